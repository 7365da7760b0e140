// SPDX-License-Identifier: Apache-2.0
#include "codegen_cpu/text/running_extremes.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "ir/kernel/visit.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR

namespace {

/// To make one and to read it costs about as much as it saves of four values.
constexpr std::int64_t fewest_values = 8;

/// At most `fewest_values`, since more makes no difference.
std::int64_t iterations_of(const For& loop) {
  if (!loop.begin.is_constant() || !loop.end.is_constant() || !loop.step.is_constant()) return fewest_values;
  const std::int64_t length = loop.end.constant() - loop.begin.constant();
  return std::clamp<std::int64_t>((length + loop.step.constant() - 1) / loop.step.constant(), 0,
                                  fewest_values);
}

struct Uses {
  std::map<VarId, RunningExtreme> extremes;
  std::map<VarId, std::int64_t> values;  ///< how many an extreme takes
  std::set<VarId> others;                ///< variables that are read or written in another way
};

bool note_extreme(const Kernel& kernel, const Combine& combine, std::int64_t times, Uses& uses) {
  const Reduction& reduction = kernel.reductions[combine.reduction];
  if (!reduction.single || reduction.state[0] != f32) return false;
  if (*reduction.single != ir::Op::max && *reduction.single != ir::Op::min) return false;
  uses.extremes[combine.state[0]] = {combine.state[0], *reduction.single == ir::Op::max};
  uses.values[combine.state[0]] += times;
  return true;
}

void note_others(const Stmt& stmt, std::set<VarId>& others) {
  for_each_assigned(stmt, [&](VarId var) { others.insert(var); });
  if (const auto* let = std::get_if<Let>(&stmt.node)) {
    Rhs copy = let->rhs;
    for_each_operand(copy, [&](VarId& var) { others.insert(var); });
  } else if (const auto* declare = std::get_if<Declare>(&stmt.node)) {
    others.insert(declare->initial.begin(), declare->initial.end());
  } else if (const auto* store = std::get_if<Store>(&stmt.node)) {
    others.insert(store->value);
  } else if (const auto* scan = std::get_if<WarpScan>(&stmt.node)) {
    others.insert(scan->incoming);
  } else if (const auto* data = std::get_if<BindData>(&stmt.node)) {
    others.insert(data->value);
  }
}

void note_uses(const Kernel& kernel, const std::vector<Stmt>& body, std::int64_t times, Uses& uses) {
  for (const Stmt& stmt : body) {
    const auto* const combine = std::get_if<Combine>(&stmt.node);
    if (combine) uses.others.insert(combine->incoming.begin(), combine->incoming.end());
    if (!combine || !note_extreme(kernel, *combine, times, uses)) note_others(stmt, uses.others);
    const auto* const loop = std::get_if<For>(&stmt.node);
    if (const std::vector<Stmt>* const inner = body_of(stmt))
      note_uses(kernel, *inner, loop ? std::min(times * iterations_of(*loop), fewest_values) : times, uses);
  }
}

}  // namespace

std::vector<RunningExtreme> running_extremes(const Kernel& kernel, const For& loop) {
  Uses uses;
  note_uses(kernel, loop.body, iterations_of(loop), uses);
  std::vector<RunningExtreme> found;
  for (const auto& [state, extreme] : uses.extremes) {
    if (!uses.others.contains(state) && uses.values[state] >= fewest_values) found.push_back(extreme);
  }
  return found;
}

}  // namespace fuse::codegen
