// SPDX-License-Identifier: Apache-2.0
#include "compile/pipeline/memory_bounds.hpp"

#include <map>
#include <optional>
#include <utility>

#include "analysis/facts.hpp"

namespace fuse {
namespace {

using schedule::Plan;
using schedule::PlanValue;
using schedule::Step;
using schedule::StepVersion;
using schedule::ValueId;

using Key = std::pair<std::uint32_t, std::uint32_t>;  // a table, and a version of it

/// For each value, the only version that uses it; none: others use it, or nobody.
std::vector<std::optional<Key>> only_versions(const Plan& plan) {
  std::vector<std::optional<Key>> only(plan.values.size());
  std::vector<bool> shared(plan.values.size());
  const std::vector<ValueId> roots = schedule::roots(plan);
  const auto note = [&](ValueId id, const Step& step) {
    for (const ValueId each : {id, roots[id]}) {
      const auto own =
          step.version ? std::optional(Key{step.version->table, step.version->version}) : std::nullopt;
      if (!own || (only[each] && only[each] != own)) shared[each] = true;
      only[each] = own;
    }
  };
  for (const Step& step : plan.steps) {
    if (std::holds_alternative<schedule::MemsetStep>(step.work)) continue;  // of counters, before any version
    for (const std::vector<ValueId>* ids : {&step.reads, &step.writes})
      for (const ValueId id : *ids) note(id, step);
    if (const auto* const kernel = std::get_if<schedule::KernelStep>(&step.work))
      for (const schedule::KernelStep& launch : kernel->fallback)
        for (const ValueId id : launch.buffers) note(id, step);
  }
  for (ValueId id = 0; id < only.size(); ++id)
    if (shared[id]) only[id].reset();
  return only;
}

class Bounds {
 public:
  explicit Bounds(const ir::Graph& graph)
      : graph_(graph), constraints_(analysis::constraints_of(graph)), facts_(graph.symbols, constraints_) {}

  std::int64_t most(const PlanValue& value, const analysis::Facts& facts) const {
    std::int64_t bytes = 0;
    const std::int64_t elements = facts.range(product(value.dims)).max;
    const bool fits =
        elements < Plan::no_bound &&
        !__builtin_mul_overflow(elements, static_cast<std::int64_t>(size_of(value.dtype)), &bytes);
    return fits ? std::max<std::int64_t>(bytes, 0) : Plan::no_bound;
  }
  const analysis::Facts& all() const { return facts_; }
  /// What is known where a version is taken; null where none of the dims takes it.
  const analysis::Facts* of(const Plan& plan, const Key& key) {
    const auto [known, added] = by_version_.try_emplace(key);
    if (!added) return known->second ? &*known->second : nullptr;
    std::vector<analysis::Constraint> constraints = constraints_;
    const std::vector<DimRelation> conditions = conditions_of(plan.tables[key.first])[key.second];
    for (const DimRelation& relation : conditions) constraints.push_back({.relation = relation});
    try {
      known->second.emplace(graph_.symbols, constraints);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::contradiction) throw;
      return nullptr;
    }
    return &*known->second;
  }

 private:
  const ir::Graph& graph_;
  const std::vector<analysis::Constraint> constraints_;
  const analysis::Facts facts_;
  std::map<Key, std::optional<analysis::Facts>> by_version_;
};

}  // namespace

std::vector<std::int64_t> most_bytes_of(const Plan& plan, const ir::Graph& graph) {
  if (graph.symbols.empty()) return {};
  Bounds bounds(graph);
  const std::vector<std::optional<Key>> only = only_versions(plan);
  std::vector<std::int64_t> result;
  for (ValueId id = 0; id < plan.values.size(); ++id) {
    const PlanValue& value = plan.values[id];
    if (value.kind != PlanValue::Kind::temporary) {
      result.push_back(Plan::no_bound);  // it has no memory of the workspace
      continue;
    }
    const analysis::Facts* const facts = only[id] ? bounds.of(plan, *only[id]) : &bounds.all();
    result.push_back(facts ? bounds.most(value, *facts) : 0);
  }
  return result;
}

}  // namespace fuse
