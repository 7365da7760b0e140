// SPDX-License-Identifier: Apache-2.0
#include "ir/passes/common_subexpressions.hpp"

#include <bit>
#include <unordered_map>
#include <variant>

#include "ir/dim_poly.hpp"

namespace fuse::ir {
namespace {

/// Of what is cheap to hash; equality decides.
struct Hash {
  std::size_t value = 0;

  void mix(std::uint64_t more) { value ^= more + 0x9e3779b97f4a7c15u + (value << 6) + (value >> 2); }
  void mix(std::int64_t more) { mix(static_cast<std::uint64_t>(more)); }
  void mix(const Dim& dim) {
    if (dim.is_constant()) return mix(dim.constant());
    for (const detail::DimTerm& term : dim.poly()->terms) mix(term.coefficient);
    mix(dim.poly()->constant);
  }
  template <class T>
  void mix(const std::vector<T>& all) {
    for (const T& one : all) mix(one);
  }

  // Attributes by which many nodes of one graph differ.
  void operator()(const ConstantAttr& attr) {
    mix(std::bit_cast<std::uint64_t>(attr.real));
    mix(attr.integer);
  }
  void operator()(const DimsAttr& attr) { mix(attr.dims); }
  void operator()(const AxisAttr& attr) { mix(attr.axis); }
  void operator()(const SliceAttr& attr) {
    mix(attr.starts);
    mix(attr.limits);
    mix(attr.strides);
  }
  void operator()(const PadAttr& attr) {
    mix(attr.low);
    mix(attr.high);
  }
  void operator()(const SizesAttr& attr) { mix(attr.sizes); }
  void operator()(const DimAttr& attr) { mix(attr.dim); }
  void operator()(const RandomAttr& attr) { mix(attr.stream); }
  template <class A>
  void operator()(const A&) {}
};

bool commutes(const Node& node) { return info(node.op).has(Trait::commutative); }

std::size_t hash_of(const Node& node) {
  Hash hash{static_cast<std::size_t>(node.op)};
  hash.mix(static_cast<std::uint64_t>(node.type.dtype));
  hash.mix(static_cast<std::uint64_t>(node.type.dims.size()));
  hash.mix(node.type.dims);
  std::visit(hash, node.attr);
  // Either way round, where the op does not mind.
  const bool swap = commutes(node) && node.operands[0] > node.operands[1];
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    hash.mix(static_cast<std::uint64_t>(node.operands[swap ? 1 - i : i]));
  }
  return hash.value;
}

/// A sum or product rounds alike either way round. Where both operands are NaN, which of the two comes out is
/// open.
bool same_operands(const Node& a, const Node& b) {
  if (a.operands == b.operands) return true;
  return commutes(a) && a.operands[0] == b.operands[1] && a.operands[1] == b.operands[0];
}

bool same(const Node& a, const Node& b) {
  return a.op == b.op && same_operands(a, b) && a.type == b.type && a.attr == b.attr;
}

}  // namespace

Graph common_subexpressions(const Graph& graph) {
  Graph result = graph;
  std::vector<NodeId> kept(graph.nodes.size());
  std::unordered_multimap<std::size_t, NodeId> seen;
  for (NodeId id = 0; id < result.nodes.size(); ++id) {
    Node& node = result.nodes[id];
    for (NodeId& operand : node.operands) operand = kept[operand];
    kept[id] = id;
    if (std::holds_alternative<NameAttr>(node.attr)) continue;
    const std::size_t hash = hash_of(node);
    const auto [first, last] = seen.equal_range(hash);
    for (auto candidate = first; candidate != last; ++candidate) {
      if (same(result.nodes[candidate->second], node)) {
        kept[id] = candidate->second;
        break;
      }
    }
    if (kept[id] == id) seen.emplace(hash, id);
  }
  renumber_outputs(result, kept);
  return result;
}

}  // namespace fuse::ir
