// ir::Graph: the SSA tensor graph that every pass reads and returns. A plain value; the public fuse::Graph
// wraps one. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/dim.hpp>
#include <fuse/dtype.hpp>
#include <fuse/error.hpp>
#include <fuse/relation.hpp>
#include <string>
#include <vector>

#include "ir/graph/attr.hpp"
#include "ir/graph/op.hpp"

namespace fuse::ir {

struct Type {
  DType dtype = f32;
  std::vector<Dim> dims;
  std::int64_t rank() const { return static_cast<std::int64_t>(dims.size()); }
  bool operator==(const Type&) const = default;
};
/// "f32[B, 1024]"
std::string to_string(const Type&);

/// Index into Graph::nodes. One node, one op, one value.
using NodeId = std::uint32_t;
/// Index into Graph::scopes; 0 is the root, which has no name.
using ScopeId = std::uint32_t;
/// Index into Graph::locations; 0 is the unknown location.
using LocationId = std::uint32_t;

struct Node {
  Op op = Op::input;
  Attr attr;
  std::vector<NodeId> operands;
  Type type;
  ScopeId scope = 0;
  LocationId location = 0;  ///< the user's line
};

struct Scope {
  std::string name;  ///< one component; the path is to_path()
  ScopeId parent = 0;
  LocationId location = 0;  ///< the user's line that opened it
};

struct Symbol {
  std::string name;
  DimRange range;
  std::int64_t factor = 1;  ///< the largest constant that is known to divide it (canonical_dims)
};
/// The range of a symbol over its factor.
DimRange quotient_range(const Symbol&);

/// What holds for the dims in every run.
struct Assumption {
  DimRelation relation;
  LocationId location = 0;  ///< the user's line
};

struct Output {
  static constexpr NodeId no_donor = ~NodeId{0};
  std::string name;
  NodeId node = 0;
  NodeId donor = no_donor;  ///< the input whose memory it takes
  bool donated() const { return donor != no_donor; }
};

struct Graph {
  std::string name = "graph";
  std::vector<Symbol> symbols;  ///< in order of declaration; names are unique
  std::vector<Assumption> assumptions{};
  std::vector<Node> nodes;      ///< operands stand before their users
  std::vector<Output> outputs;  ///< in order of declaration; names are unique
  std::vector<Scope> scopes = {Scope{}};
  std::vector<SourceLocation> locations = {SourceLocation{}};

  // Made once, in the .cpp: in every file that includes this they take longer than the rest of it.
  Graph();
  Graph(const Graph&);
  Graph(Graph&&) noexcept;
  Graph& operator=(const Graph&);
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  const Node& operator[](NodeId id) const { return nodes[id]; }
  /// "layer_norm.mean"; empty for the root.
  std::string scope_path(ScopeId scope) const;
  const SourceLocation& location(const Node& node) const { return locations[node.location]; }
  /// "%x" for an input or parameter named x, "%12" otherwise.
  std::string value_name(NodeId id) const;
};

template <class A>
const A& attr(const Node& node) {
  return std::get<A>(node.attr);
}

/// What `to` says of each node a graph had becomes of its outputs.
void renumber_outputs(Graph&, const std::vector<NodeId>& to);

/// The users of each node, in node order; an output is no user.
std::vector<std::vector<NodeId>> users(const Graph&);

/// An input or a parameter: stored before anything runs.
inline bool is_given(const Node& node) { return std::holds_alternative<NameAttr>(node.attr); }

/// The dims that are longer than 1, in order: shapes that agree in them have the same elements in the same
/// order.
std::vector<Dim> without_ones(const std::vector<Dim>&);

}  // namespace fuse::ir
