// ValueEmitter: the value of a graph node at given coordinates, as kernel statements.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "codegen_cuda/lower/kernel_builder.hpp"
#include "ir/graph/ir_graph.hpp"
#include "schedule/mapping/slice_starts.hpp"

namespace fuse::codegen {

using Coordinates = std::vector<kernel::Index>;

/// Row-major: the flat index of coordinates, and back.
kernel::Index flatten(const Coordinates& at, const std::vector<Dim>& dims);
Coordinates unflatten(const kernel::Index& flat, const std::vector<Dim>& dims);

class ValueEmitter {
 public:
  /// `dims[node]`: the node's extents by the kernel's names. `buffers`: the stored values that the kernel
  /// reads. `starts`: those of slices, which are arguments.
  ValueEmitter(const ir::Graph& graph, KernelBuilder& builder, std::map<ir::NodeId, kernel::BufferId> buffers,
               std::function<Dim(const Dim&)> rename, const std::vector<schedule::SliceStart>& starts)
      : graph_(graph),
        builder_(builder),
        buffers_(std::move(buffers)),
        rename_(std::move(rename)),
        starts_(starts) {}

  /// Appends what computes the node's element; the same element is computed once. Iterative: graphs may be
  /// deep.
  /// With a predicate, memory is read only where it is true; elsewhere the value means nothing.
  kernel::VarId value(ir::NodeId node, const Coordinates& at,
                      std::optional<kernel::VarId> predicate = std::nullopt);
  /// Where a dynamic_update_slice writes its update: the clamped starts.
  Coordinates starts(ir::NodeId node);
  /// What is computed until the scope is left is forgotten then: its statements go out of scope.
  void enter_scope() { outer_.push_back(known_); }
  void leave_scope() {
    known_ = std::move(outer_.back());
    outer_.pop_back();
  }
  /// From here on `var` is the node's element at these coordinates, the only one that is asked for.
  void define(ir::NodeId node, Coordinates at, kernel::VarId var) { defined_[node] = {std::move(at), var}; }
  bool is_defined(ir::NodeId node) const { return defined_.contains(node); }
  /// In this scope the node's element at these coordinates is in the buffer.
  void keep(ir::NodeId node, Coordinates at, kernel::BufferId buffer, kernel::Index index) {
    known_.kept[node] = {std::move(at), buffer, std::move(index)};
  }
  bool is_loaded(ir::NodeId node) const { return buffers_.contains(node); }
  /// From here on the value lies in the buffer.
  void read_from(ir::NodeId node, kernel::BufferId buffer) { buffers_[node] = buffer; }
  /// The buffer of a stored value has its elements from this one on, in row-major order.
  void begin_at(ir::NodeId node, kernel::Index first) { first_[node] = std::move(first); }
  /// The buffer of a stored value has a box of its elements alone, which begins at these coordinates.
  void keep_box(ir::NodeId node, Coordinates first, std::vector<Dim> extents) {
    boxes_[node] = {std::move(first), std::move(extents)};
  }
  /// Where in its buffer a stored value's element is.
  kernel::Index in_buffer(ir::NodeId node, const Coordinates& at) const;
  /// The same by the element's number in row-major order; no buffer of a box.
  kernel::Index in_buffer(ir::NodeId node, const kernel::Index& element) const {
    const auto first = first_.find(node);
    return first == first_.end() ? element : element - first->second;
  }
  std::vector<Dim> dims(ir::NodeId node) const;
  /// The coordinates in the operand of a broadcast, for an element of its result.
  Coordinates broadcast_coordinates(const ir::Node& node, const Coordinates& at) const;

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
  /// Where a slice begins, by the kernel's names.
  Coordinates begin_of(ir::NodeId slice) const;
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
  std::map<ir::NodeId, kernel::Index> first_{};
  struct Box {
    Coordinates first;
    std::vector<Dim> extents;
  };
  std::map<ir::NodeId, Box> boxes_{};
  std::function<Dim(const Dim&)> rename_;
  const std::vector<schedule::SliceStart>& starts_;
  struct Part {
    std::optional<kernel::VarId> below,
        predicate;  ///< index is before the part's end; and not before its start
  };
  struct Kept {
    Coordinates at;
    kernel::BufferId buffer = 0;
    kernel::Index index;
  };
  /// What the statements in scope have computed.
  struct Known {
    std::map<Key, kernel::VarId> values;
    /// Positions of gathers, dynamic slices (the clamped indices) and reverses.
    std::map<Key, Coordinates> positions;
    std::map<Key, std::optional<kernel::VarId>>
        inside;  ///< for pads and updates, whether the box holds the element
    std::map<Key, kernel::VarId> predicates, outside;  ///< for pads and updates, where each operand is read
    std::map<Key, std::vector<Part>> parts;            ///< the parts of concats
    std::map<ir::NodeId, Kept> kept;
  };
  Known known_;
  std::vector<Known> outer_;
  std::map<ir::NodeId, std::pair<Coordinates, kernel::VarId>> defined_;
};

}  // namespace fuse::codegen
