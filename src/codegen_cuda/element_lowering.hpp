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
  kernel::VarId value(ir::NodeId node, const Coordinates& at);
  /// Forgets the values so far: their statements go out of scope.
  void leave_scope() { memo_.clear(), positions_.clear(), parts_.clear(); }
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
  kernel::VarId source(const Key& key, const ir::Node& node);
  kernel::VarId load(const Key& key, const ir::Node& node, kernel::BufferId buffer);

  const ir::Graph& graph_;
  KernelBuilder& builder_;
  std::map<ir::NodeId, kernel::BufferId> buffers_;
  std::function<Dim(const Dim&)> rename_;
  std::map<Key, kernel::VarId> memo_;
  std::map<Key, kernel::Index> positions_;  ///< of gathers: the clamped index
  struct Part {
    std::optional<kernel::VarId> below,
        predicate;  ///< index is before the part's end; and not before its start
  };
  std::map<Key, std::vector<Part>> parts_;  ///< of concats
};

}  // namespace fuse::codegen
