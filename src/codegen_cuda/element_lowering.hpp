// ElementLowering: the value of a graph node at given coordinates, as kernel statements.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "codegen_cuda/kernel_builder.hpp"
#include "ir/graph.hpp"

namespace fuse::codegen {

using Coordinates = std::vector<kernel::Index>;

/// Row-major: the flat index of coordinates, and back.
kernel::Index flatten(const Coordinates& at, const std::vector<Dim>& dims);
Coordinates unflatten(const kernel::Index& flat, const std::vector<Dim>& dims);

class ElementLowering {
 public:
  /// `dims[node]`: the node's extents by the kernel's names. `buffers`: the stored values that the kernel
  /// reads.
  ElementLowering(const ir::Graph& graph, KernelBuilder& builder,
                  std::map<ir::NodeId, kernel::BufferId> buffers, std::function<Dim(const Dim&)> rename)
      : graph_(graph), builder_(builder), buffers_(std::move(buffers)), rename_(std::move(rename)) {}

  /// Appends what computes the node's element; the same element is computed once. Iterative: graphs may be
  /// deep.
  /// With a predicate, memory is read only where it is true; elsewhere the value means nothing.
  kernel::VarId value(ir::NodeId node, const Coordinates& at,
                      std::optional<kernel::VarId> predicate = std::nullopt);
  /// Where a dynamic_update_slice writes its update: the clamped starts.
  Coordinates starts(ir::NodeId node);
  /// Forgets the values so far: their statements go out of scope.
  void leave_scope() {
    memo_.clear(), positions_.clear(), parts_.clear(), inside_.clear(), predicates_.clear(), outside_.clear();
  }
  std::vector<Dim> dims(ir::NodeId node) const;

 private:
  struct Key {
    ir::NodeId node;
    Coordinates at;
    std::optional<kernel::VarId> predicate;  ///< loads happen only where it is true
    bool operator<(const Key& other) const;
  };

  /// Appends the statements of `key` if all that it needs is there; else pushes what is missing.
  bool step(const Key& key, std::vector<Key>& work);
  std::optional<kernel::VarId> find(Key key, std::vector<Key>& work) const;
  std::optional<kernel::VarId> movement(const Key& key, const ir::Node& node, std::vector<Key>& work);
  std::optional<kernel::VarId> concatenation(const Key& key, const ir::Node& node, std::vector<Key>& work);
  std::optional<kernel::VarId> gathered(const Key& key, const ir::Node& node, std::vector<Key>& work);
  Coordinates reversed(const Key& key, const ir::Node& node);
  std::optional<kernel::VarId> padded(const Key& key, const ir::Node& node, std::vector<Key>& work);
  std::optional<kernel::VarId> dynamically_sliced(const Key& key, const ir::Node& node,
                                                  std::vector<Key>& work);
  std::optional<kernel::VarId> updated(const Key& key, const ir::Node& node, std::vector<Key>& work);
  std::optional<kernel::VarId> random(const Key& key, const ir::Node& node, std::vector<Key>& work);
  /// The clamped starts that operands from `first` on give for boxes of `sizes`; null while one is missing.
  const Coordinates* starts(const Key& key, const ir::Node& node, std::size_t first,
                            const std::vector<Dim>& sizes, std::vector<Key>& work);
  /// Whether low <= at < low + size in every dim; null where that always holds.
  std::optional<kernel::VarId> in_box(const Key& key, const Coordinates& low, const std::vector<Dim>& sizes);
  kernel::VarId all_of(std::optional<kernel::VarId> a, kernel::VarId b);
  kernel::VarId source(const Key& key, const ir::Node& node);
  kernel::VarId load(const Key& key, const ir::Node& node, kernel::BufferId buffer);

  const ir::Graph& graph_;
  KernelBuilder& builder_;
  std::map<ir::NodeId, kernel::BufferId> buffers_;
  std::function<Dim(const Dim&)> rename_;
  std::map<Key, kernel::VarId> memo_;
  std::map<Key, Coordinates> positions_;  ///< of gathers, dynamic slices (the clamped indices) and reverses
  std::map<Key, std::optional<kernel::VarId>>
      inside_;  ///< of pads and updates: whether the box holds the element
  std::map<Key, kernel::VarId> predicates_, outside_;  ///< of pads and updates: where each operand is read
  struct Part {
    std::optional<kernel::VarId> below,
        predicate;  ///< index is before the part's end; and not before its start
  };
  std::map<Key, std::vector<Part>> parts_;  ///< of concats
};

}  // namespace fuse::codegen
