// What the library, its tests and its tools see of public objects, and an application does not. The classes
// of include/fuse have Access as their friend, and all else calls the functions below.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace fuse {
namespace detail {

/// Templates, so that nothing is included here: each class names the member that it has.
struct Access {
  template <class T>
  static const auto& backend(const T& object) {
    return object.backend_;
  }
  template <class T>
  static auto& queue(const T& stream) {
    return *stream.queue_;
  }
  template <class T>
  static auto poly(const T& dim) {
    return dim.poly_.get();
  }
  template <class T>
  static const auto& ir(const T& graph) {
    return graph.ir();
  }
  template <class T>
  static const auto& stages(const T& executable) {
    return executable.stages();
  }
  template <class T>
  static auto* impl(const T& object) {
    return object.impl_.get();
  }
  template <class T>
  static long owners(const T& object) {
    return object.impl_.use_count();
  }
  template <class Graph, class Ir>
  static Graph from_ir(Ir&& ir) {
    return Graph::from_ir(std::forward<Ir>(ir));
  }
  template <class T, class Impl>
  static T made_of(Impl&& impl) {
    return T(std::forward<Impl>(impl));
  }
};

}  // namespace detail

/// The runtime::Backend of a Device, a Stream or a Buffer.
template <class T>
const auto& backend_of(const T& object) {
  return detail::Access::backend(object);
}
/// The runtime::Queue of a Stream.
template <class T>
auto& queue_of(const T& stream) {
  return detail::Access::queue(stream);
}
/// The sum of terms that a Dim is; null for a number.
template <class T>
auto poly_of(const T& dim) {
  return detail::Access::poly(dim);
}
/// The ir::Graph of a Graph.
template <class T>
const auto& ir_of(const T& graph) {
  return detail::Access::ir(graph);
}
/// A Graph of an ir::Graph: `graph_of<Graph>(std::move(graph))`.
template <class Graph, class Ir>
Graph graph_of(Ir&& ir) {
  return detail::Access::from_ir<Graph>(std::forward<Ir>(ir));
}
/// What each stage of compiling made. Throws unsupported for an executable that was loaded.
template <class T>
const auto& stages_of(const T& executable) {
  return detail::Access::stages(executable);
}
/// What an Executable, a Prepared, a Workspace or an ExperimentsHandle consists of; null for one that was
/// moved from.
template <class T>
auto* impl_of(const T& object) {
  return detail::Access::impl(object);
}
/// An Executable or an ExperimentsHandle of its parts.
template <class T, class Impl>
T made_of(Impl&& impl) {
  return detail::Access::made_of<T>(std::forward<Impl>(impl));
}

}  // namespace fuse
