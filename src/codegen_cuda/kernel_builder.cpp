// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/kernel_builder.hpp"

#include <utility>

#include "codegen_cuda/identifiers.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::Op;

KernelBuilder::KernelBuilder(const ir::Graph& graph, std::string name) : graph_(graph) {
  kernel.name = std::move(name);
  sinks_.push_back(&kernel.body);
}

void KernelBuilder::at(ir::NodeId id) {
  const ir::Node& node = graph_[id];
  const SourceLocation& location = graph_.location(node);
  origin_.op = graph_.value_name(id) + ' ' + std::string(to_string(node.op));
  origin_.scope = graph_.scope_path(node.scope);
  origin_.location = location.file.empty() ? "" : location.file + ':' + std::to_string(location.line);
  base_ = 'v' + std::to_string(id);
}

std::string KernelBuilder::unique(const std::string& base) {
  std::string name = base;
  while (!names_.insert(name).second) name = base + '_' + std::to_string(++next_[base]);
  return name;
}

BufferId KernelBuilder::buffer(std::string name, DType dtype, Space space, Dim elements, bool written) {
  kernel.buffers.push_back({unique(c_identifier(name)), dtype, space, std::move(elements), written});
  return static_cast<BufferId>(kernel.buffers.size() - 1);
}

VarId KernelBuilder::variable(DType dtype) {
  kernel.vars.push_back({unique(base_), dtype});
  return static_cast<VarId>(kernel.vars.size() - 1);
}

VarId KernelBuilder::value(DType dtype, Rhs rhs) {
  const VarId var = variable(dtype);
  append(Let{var, std::move(rhs)});
  return var;
}

VarId KernelBuilder::compute(Op op, DType dtype, std::vector<VarId> operands) {
  return value(dtype, Compute{op, std::move(operands)});
}

std::vector<VarId> KernelBuilder::declare(ReductionId reduction, const std::string& name,
                                          std::vector<VarId> initial) {
  std::vector<VarId> state;
  for (DType dtype : kernel.reductions[reduction].state) {
    kernel.vars.push_back({unique(state.empty() ? name : name + "_index"), dtype});
    state.push_back(static_cast<VarId>(kernel.vars.size() - 1));
  }
  append(Declare{reduction, state, std::move(initial)});
  return state;
}

void KernelBuilder::append(decltype(Stmt::node) node) {
  sinks_.back()->push_back({std::move(node), origin_});
}

void KernelBuilder::loop(For loop, const std::function<void()>& fill) {
  const Origin origin = origin_;
  std::vector<Stmt> body;
  sinks_.push_back(&body);
  fill();
  sinks_.pop_back();
  loop.body = std::move(body);
  sinks_.back()->push_back({std::move(loop), origin});
}

void KernelBuilder::when(std::vector<IndexLess> conditions, const std::function<void()>& fill) {
  const Origin origin = origin_;
  std::vector<Stmt> body;
  sinks_.push_back(&body);
  fill();
  sinks_.pop_back();
  sinks_.back()->push_back({If{std::move(conditions), std::move(body)}, origin});
}

ReductionId KernelBuilder::reduction(Op op, DType element) {
  const Op combine = info(op).combine;
  const bool with_position = info(op).identity == ir::Identity::none;
  Reduction reduction{.op = op, .state = {element}, .region = {}};
  if (with_position) reduction.state.push_back(i64);
  const std::string base = std::exchange(base_, "combined");
  for (DType dtype : reduction.state) {
    kernel.vars.push_back({unique("left"), dtype});
    reduction.left.push_back(static_cast<VarId>(kernel.vars.size() - 1));
    kernel.vars.push_back({unique("right"), dtype});
    reduction.right.push_back(static_cast<VarId>(kernel.vars.size() - 1));
  }
  sinks_.push_back(&reduction.region);
  const auto [left, right] = std::pair(reduction.left, reduction.right);
  if (!with_position) {
    reduction.single = combine;
    reduction.result = {compute(combine, element, {left[0], right[0]})};
  } else {
    // Take the right one when it is better, or equal and earlier; a NaN is better than any number.
    VarId better = compute(combine == Op::max ? Op::gt : Op::lt, boolean, {right[0], left[0]});
    VarId same = compute(Op::eq, boolean, {right[0], left[0]});
    if (is_floating(element)) {
      const VarId left_nan = compute(Op::ne, boolean, {left[0], left[0]});
      const VarId right_nan = compute(Op::ne, boolean, {right[0], right[0]});
      const VarId both = compute(Op::logical_and, boolean, {left_nan, right_nan});
      const VarId left_number = compute(Op::logical_not, boolean, {left_nan});
      const VarId only_right = compute(Op::logical_and, boolean, {right_nan, left_number});
      better = compute(Op::logical_or, boolean, {better, only_right});
      same = compute(Op::logical_or, boolean, {same, both});
    }
    const VarId earlier = compute(Op::lt, boolean, {right[1], left[1]});
    const VarId tie = compute(Op::logical_and, boolean, {same, earlier});
    const VarId take = compute(Op::logical_or, boolean, {better, tie});
    reduction.result = {compute(Op::select, element, {take, right[0], left[0]}),
                        compute(Op::select, i64, {take, right[1], left[1]})};
  }
  sinks_.pop_back();
  base_ = base;
  kernel.reductions.push_back(std::move(reduction));
  return static_cast<ReductionId>(kernel.reductions.size() - 1);
}

}  // namespace fuse::codegen
