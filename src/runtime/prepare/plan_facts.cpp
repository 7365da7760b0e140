// SPDX-License-Identifier: Apache-2.0
#include "runtime/prepare/plan_facts.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <utility>

namespace fuse::runtime {
namespace {

using schedule::Plan;
using schedule::PlanValue;
using schedule::Step;
using schedule::ValueId;

/// What tells things apart: those with equal keys are alike.
using Key = std::vector<std::uint64_t>;

/// For each key, the first thing that has it.
class First {
 public:
  std::uint32_t operator()(Key key, std::size_t number) {
    return known_.try_emplace(std::move(key), static_cast<std::uint32_t>(number)).first->second;
  }

 private:
  std::map<Key, std::uint32_t> known_;
};

class Keys {
 public:
  explicit Keys(const PlanFacts& facts) : facts_(facts) {}

  Key of(const PlanValue& value) {
    key_ = {static_cast<std::uint64_t>(value.dtype)};
    add(value.dims);
    const bool is_rest = value.inside && value.inside->is_rest;
    add(is_rest);
    if (!is_rest) return std::move(key_);
    add_value(value.inside->whole);  // how much is left depends on the whole
    add(value.inside->offset_bytes);
    return std::move(key_);
  }

  Key of(const schedule::VersionTable& table) {
    key_ = {table.versions};
    for (const auto& [relation, yes, no] : table.tests) {
      add(static_cast<std::uint64_t>(relation.kind));
      add(relation.left);
      add(relation.right);
      for (const schedule::VersionTable::Branch& branch : {yes, no}) {
        add(branch.ends);
        add(branch.to);
      }
    }
    return std::move(key_);
  }

  Key of(const Step& step) {
    key_ = {step.work.index(), step.cooperative, step.version.has_value()};
    if (step.version) {
      add(facts_.tables[step.version->table]);
      add(step.version->version);
    }
    add_values(step.reads);
    add_values(step.writes);
    std::visit([&](const auto& work) { add_work(work); }, step.work);
    return std::move(key_);
  }

 private:
  struct ByForm {
    bool operator()(const Dim& a, const Dim& b) const { return compare(a, b) < 0; }
  };

  void add(std::uint64_t number) { key_.push_back(number); }
  void add(const Dim& dim) { add(dims_.try_emplace(dim, dims_.size()).first->second); }
  void add(const std::vector<Dim>& dims) {
    add(dims.size());
    for (const Dim& dim : dims) add(dim);
  }
  void add(const std::optional<schedule::GemmLayout>& layout) {
    add(layout.has_value());
    if (!layout) return;
    for (const Dim& dim :
         {layout->row, layout->inner, layout->inner_stride, layout->outer, layout->outer_stride})
      add(dim);
  }
  void add_value(ValueId id) { add(facts_.values[id]); }
  void add_values(const std::vector<ValueId>& ids) {
    add(ids.size());
    for (const ValueId id : ids) add_value(id);
  }

  void add_work(const schedule::KernelStep& work) {
    add(work.kernel);
    add_values(work.buffers);
    add(work.extents);
    add(work.grid);
    add(work.touched);
  }
  void add_work(const schedule::GemmStep& work) {
    for (const ValueId id : {work.a, work.b, work.c}) add_value(id);
    for (const Dim& dim : {work.batch, work.m, work.n, work.k}) add(dim);
    for (const bool transpose : {work.transpose_a, work.transpose_b}) add(transpose);
    for (const DType dtype : {work.operand, work.result}) add(static_cast<std::uint64_t>(dtype));
    add(static_cast<std::uint64_t>(work.epilogue));
    add(work.extra.has_value());
    if (work.extra) add_value(*work.extra);
    add(std::bit_cast<std::uint64_t>(work.scale));
    for (const auto* const layout : {&work.layout, &work.layout_a, &work.layout_b}) add(*layout);
    add(work.algorithm.rank);
    add(static_cast<std::uint64_t>(work.algorithm.line));
    add(work.algorithms ? std::uint64_t{*work.algorithms} + 1 : 0);
  }
  void add_work(const schedule::CopyStep& work) {
    add_value(work.from);
    add_value(work.to);
  }
  void add_work(const schedule::MemsetStep& work) {
    add_value(work.to);
    add(work.byte);
  }

  const PlanFacts& facts_;
  Key key_;
  std::map<Dim, std::uint64_t, ByForm> dims_;
};

template <class Things>
void find_first(const Things& things, Keys& keys, std::vector<std::uint32_t>& result) {
  First first;
  result.reserve(things.size());
  for (const auto& thing : things) result.push_back(first(keys.of(thing), result.size()));
}

}  // namespace

std::vector<Place> places_of(const Plan& plan) {
  using Kind = PlanValue::Kind;
  const auto place_of = [](const PlanValue& value) {
    if (value.inside) return Place::inside;
    if (value.kind == Kind::temporary) return value.donor ? Place::donor : Place::memory;
    return value.kind == Kind::packed ? Place::packed : Place::slot;
  };
  std::vector<Place> places;
  places.reserve(plan.values.size());
  for (const PlanValue& value : plan.values) places.push_back(place_of(value));
  return places;
}

PlanFacts::PlanFacts(const Plan& plan) : roots(schedule::roots(plan)), places(places_of(plan)) {
  Keys keys(*this);
  find_first(plan.values, keys, values);
  find_first(plan.tables, keys, tables);
  find_first(plan.steps, keys, steps);
}

}  // namespace fuse::runtime
