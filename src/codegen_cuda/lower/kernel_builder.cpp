// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/lower/kernel_builder.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "codegen_cuda/text/identifiers.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::Op;

namespace {

/// The identity of the accumulator; a pair starts from that of the reduction that shares its combiner: argmax
/// from max's.
Constant identity_of(Op op, DType dtype) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto [low, high] = integer_range(dtype);
  const Constant lowest{-infinity, low}, highest{infinity, high};
  switch (info(op).identity) {
    case ir::Identity::zero:
      return {0, 0};
    case ir::Identity::one:
      return {1, 1};
    case ir::Identity::lowest:
      return lowest;
    case ir::Identity::highest:
      return highest;
    case ir::Identity::none:
      break;
  }
  return info(op).combine == Op::max ? lowest : highest;
}

}  // namespace

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
  const auto free_array = [&](bool of_any_size) {
    return std::find_if(free_.begin(), free_.end(), [&](BufferId id) {
      return space == Space::shared && kernel.buffers[id].dtype == dtype &&
             (of_any_size || kernel.buffers[id].elements == elements);
    });
  };
  auto fits = free_array(false);
  if (fits == free_.end()) fits = free_array(true);
  if (fits != free_.end()) {
    const BufferId taken = *fits;
    free_.erase(fits);
    Dim& size = kernel.buffers[taken].elements;
    size = std::max(size.constant(), elements.constant());
    return taken;
  }
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
    kernel.vars.push_back({unique(component(name, reduction, state.size())), dtype});
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
  if (conditions.empty()) return fill();
  const Origin origin = origin_;
  std::vector<Stmt> body;
  sinks_.push_back(&body);
  fill();
  sinks_.pop_back();
  sinks_.back()->push_back({If{std::move(conditions), std::move(body)}, origin});
}

void KernelBuilder::either(const kernel::Index& number, const std::function<void()>& zero,
                           const std::function<void()>& other) {
  alternatives({{{{number, 1}}, zero}, {{{0, number}}, other}});
}

void KernelBuilder::alternatives(const std::vector<Alternative>& all) {
  const std::size_t first = kernel.buffers.size();
  const std::vector<BufferId> around = free_;
  std::vector<BufferId> left = around;  // what no alternative took of what is free around
  for (const Alternative& each : all) {
    free_ = around;
    for (std::size_t id = first; id < kernel.buffers.size(); ++id) {
      if (kernel.buffers[id].space == Space::shared) free_.push_back(static_cast<BufferId>(id));
    }
    when(each.conditions, each.fill);
    std::erase_if(left,
                  [&](BufferId id) { return std::find(free_.begin(), free_.end(), id) == free_.end(); });
  }
  free_ = left;
}

std::string KernelBuilder::component(const std::string& name, ReductionId reduction,
                                     std::size_t number) const {
  if (number == 0) return name;
  return name + (kernel.reductions[reduction].state[number] == i64 ? "_index" : "_sum");
}

ReductionId KernelBuilder::combined(Reduction reduction, const std::function<void(Reduction&)>& fill) {
  const std::string base = std::exchange(base_, "combined");
  for (DType dtype : reduction.state) {
    kernel.vars.push_back({unique("left"), dtype});
    reduction.left.push_back(static_cast<VarId>(kernel.vars.size() - 1));
    kernel.vars.push_back({unique("right"), dtype});
    reduction.right.push_back(static_cast<VarId>(kernel.vars.size() - 1));
  }
  sinks_.push_back(&reduction.region);
  fill(reduction);
  sinks_.pop_back();
  base_ = base;
  kernel.reductions.push_back(std::move(reduction));
  return static_cast<ReductionId>(kernel.reductions.size() - 1);
}

ReductionId KernelBuilder::reduction(Op op, DType element) {
  const Op combine = info(op).combine;
  if (info(op).identity != ir::Identity::none) {
    return combined({.op = op, .state = {element}, .identity = {identity_of(op, element)}, .region = {}},
                    [&](Reduction& reduction) {
                      reduction.single = combine;
                      reduction.result = {compute(combine, element, {reduction.left[0], reduction.right[0]})};
                    });
  }
  // The position of no element comes after every other, so that any element wins a tie against it.
  const Constant no_position{0, std::numeric_limits<std::int64_t>::max()};
  Reduction pair{
      .op = op, .state = {element, i64}, .identity = {identity_of(op, element), no_position}, .region = {}};
  return combined(std::move(pair), [&](Reduction& reduction) {
    // Take the right one when it is better, or equal and earlier; a NaN is better than any number.
    const auto [left, right] = std::pair(reduction.left, reduction.right);
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
  });
}

ReductionId KernelBuilder::online_sum(DType element) {
  Reduction pair{.op = Op::reduce_sum,
                 .state = {element, element},
                 .identity = {identity_of(Op::reduce_max, element), identity_of(Op::reduce_sum, element)},
                 .region = {}};
  return combined(std::move(pair), [&](Reduction& reduction) {
    const auto [left, right] = std::pair(reduction.left, reduction.right);
    const VarId greatest = compute(Op::max, element, {left[0], right[0]});
    // The sum of the side whose maximum is less is scaled by exp(less - greater). Where both are the same it
    // stays: their difference is NaN where they are infinite.
    const VarId same = compute(Op::eq, boolean, {left[0], right[0]});
    const VarId difference = compute(Op::sub, element, {left[0], right[0]});
    const VarId distance = compute(Op::neg, element, {compute(Op::abs, element, {difference})});
    const VarId one = value(element, Constant{1, 1});
    const VarId scale = compute(Op::select, element, {same, one, compute(Op::exp, element, {distance})});
    const VarId left_is_less = compute(Op::lt, boolean, {left[0], right[0]});
    const VarId less = compute(Op::select, element, {left_is_less, left[1], right[1]});
    const VarId more = compute(Op::select, element, {left_is_less, right[1], left[1]});
    const VarId scaled = compute(Op::mul, element, {less, scale});
    reduction.result = {greatest, compute(Op::add, element, {more, scaled})};
  });
}

}  // namespace fuse::codegen
