// SPDX-License-Identifier: Apache-2.0
#include "codegen_cpu/text/lane_values.hpp"

#include <algorithm>

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR

LaneValues::LaneValues(const Kernel& kernel) : kernel_(kernel), vars_(kernel.vars.size()) {
  // What lanes combine is state, which each lane has its own of.
  for (const Reduction& reduction : kernel.reductions) {
    for (const auto* vars : {&reduction.left, &reduction.right, &reduction.result}) {
      for (const VarId var : *vars) vars_[var] = true;
    }
    walk(reduction.region);
  }
  walk(kernel.body);
}

bool LaneValues::differs(const Dim& index) const {
  if (index.is_constant()) return false;
  const std::vector<Dim> names = index.symbols();
  return std::any_of(names.begin(), names.end(),
                     [&](const Dim& each) { return names_.contains(each.name()); });
}

bool LaneValues::differs(const Rhs& rhs) const {
  if (const auto* compute = std::get_if<Compute>(&rhs))
    return std::any_of(compute->operands.begin(), compute->operands.end(),
                       [&](VarId var) { return vars_[var]; });
  // A reciprocal is a vector for the quotients, whatever the divisor is.
  if (std::holds_alternative<Reciprocal>(rhs)) return true;
  if (const auto* quotient = std::get_if<Quotient>(&rhs))
    return vars_[quotient->numerator] || vars_[quotient->divisor];
  if (const auto* value = std::get_if<IndexValue>(&rhs)) return differs(value->index);
  if (const auto* less = std::get_if<IndexLess>(&rhs)) return differs(*less);
  if (const auto* random = std::get_if<Random>(&rhs))
    return differs(random->element) || vars_[random->seed] || vars_[random->offset];
  if (const auto* load = std::get_if<Load>(&rhs))
    return kernel_.buffers[load->buffer].space == Space::local || differs(load->index) ||
           (load->predicate && vars_[*load->predicate]);
  return false;
}

void LaneValues::walk(const std::vector<Stmt>& body) {
  for (const Stmt& stmt : body) {
    if (const auto* let = std::get_if<Let>(&stmt.node)) {
      if (differs(let->rhs)) vars_[let->var] = true;
    } else if (const auto* declare = std::get_if<Declare>(&stmt.node)) {
      for (const VarId var : declare->state) vars_[var] = true;
    } else if (const auto* scan = std::get_if<WarpScan>(&stmt.node)) {
      vars_[scan->result] = vars_[scan->carry] = true;
    } else if (const auto* bind = std::get_if<Bind>(&stmt.node)) {
      if (differs(bind->value)) names_.insert(bind->name);
    } else if (const auto* data = std::get_if<BindData>(&stmt.node)) {
      if (vars_[data->value]) names_.insert(data->name);
    } else if (const auto* loop = std::get_if<For>(&stmt.node)) {
      const bool of_lanes = loop->parallel == Parallel::lane || loop->parallel == Parallel::block;
      if (of_lanes || differs(loop->begin)) names_.insert(loop->name);
      walk(loop->body);
    } else if (const auto* branch = std::get_if<If>(&stmt.node)) {
      walk(branch->body);
    }
  }
}

}  // namespace fuse::codegen
