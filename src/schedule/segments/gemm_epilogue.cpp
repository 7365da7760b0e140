// SPDX-License-Identifier: Apache-2.0
#include "schedule/segments/gemm_epilogue.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;

/// The operand of `node` that is not `matmul`; nothing where both are.
std::optional<NodeId> other_operand(const ir::Node& node, NodeId matmul) {
  if (node.operands.size() != 2 || node.operands[0] == node.operands[1]) return std::nullopt;
  return node.operands[node.operands[0] == matmul ? 1 : 0];
}

/// The vector along the last dim that `id` repeats.
std::optional<NodeId> bias_of(const ir::Graph& graph, NodeId id) {
  const ir::Node& node = graph[id];
  if (info(node.op).relation != ir::Relation::broadcast) return std::nullopt;
  const NodeId vector = node.operands[0];
  const ir::Type& type = graph[vector].type;
  const bool along_last = ir::attr<ir::DimsAttr>(node).dims == std::vector{node.type.rank() - 1};
  if (!along_last || type.dims.back() != node.type.dims.back()) return std::nullopt;
  return vector;
}

/// The number that every element of `id` is.
std::optional<double> constant_of(const ir::Graph& graph, NodeId id) {
  while (info(graph[id].op).relation == ir::Relation::broadcast) id = graph[id].operands[0];
  const auto* constant = std::get_if<ir::ConstantAttr>(&graph[id].attr);
  if (!constant) return std::nullopt;
  return constant->real;
}

/// Whether something other than a kernel makes it, or it is needed in memory: reading it there costs no
/// store.
bool lies_in_memory(const ir::Graph& graph, NodeId id, const std::vector<bool>& in_memory) {
  const ir::Relation relation = info(graph[id].op).relation;
  return in_memory[id] || ir::is_given(graph[id]) || relation == ir::Relation::contraction ||
         relation == ir::Relation::custom;
}

}  // namespace

std::optional<GemmEpilogue> gemm_epilogue(const ir::Graph& graph, NodeId matmul,
                                          const std::vector<std::vector<NodeId>>& users,
                                          const std::vector<bool>& in_memory) {
  const ir::Node& gemm = graph[matmul];
  const auto* flags = std::get_if<ir::MatmulAttr>(&gemm.attr);
  if (!flags || in_memory[matmul] || users[matmul].size() != 1) return std::nullopt;
  const ir::Type& a = graph[gemm.operands[0]].type;
  const DType accumulator = a.dtype == f64 ? f64 : f32;
  if (!is_floating(a.dtype) || gemm.type.dtype != accumulator) return std::nullopt;
  // Where k is 0, a library may leave out the result and its epilogue.
  const Dim& k = a.dims[a.dims.size() - (flags->transpose_a ? 2 : 1)];
  if (!proven_le(1, k)) return std::nullopt;

  const NodeId result = users[matmul].front();
  const ir::Node& user = graph[result];
  // The library rounds its sums of f32 to the result's type.
  if (user.op == ir::Op::convert && is_half(a.dtype) && user.type.dtype == a.dtype && in_memory[result])
    return GemmEpilogue{EpilogueKind::convert, result, 0};
  const std::optional<NodeId> other = other_operand(user, matmul);
  if (!in_memory[result] || !other || user.type != gemm.type) return std::nullopt;
  if (user.op == ir::Op::add) {
    // Nothing confirms that cuBLASLt adds a bias of f64.
    const bool takes_bias = gemm.type.dtype != DType::f64;
    if (const auto bias = bias_of(graph, *other); bias && takes_bias)
      return GemmEpilogue{EpilogueKind::bias, result, *bias};
    if (lies_in_memory(graph, *other, in_memory)) return GemmEpilogue{EpilogueKind::add, result, *other};
  }
  if (user.op == ir::Op::mul) {
    // A library need not look at the operands for a scale of 0, and 0 * infinity is NaN.
    const std::optional<double> scale = constant_of(graph, *other);
    if (scale && *scale != 0) return GemmEpilogue{EpilogueKind::scale, result, 0, *scale};
  }
  return std::nullopt;
}

}  // namespace fuse::schedule
