// SPDX-License-Identifier: Apache-2.0
#include "compile/traffic.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "compile/signature_of.hpp"
#include "ir/graph/costly_ops.hpp"
#include "runtime/execute/binding.hpp"

namespace fuse::runtime {
namespace {

using schedule::PlanValue;
using schedule::ValueId;

constexpr std::int64_t large = 1'000'000;  // bytes; below, caches hide what is read twice
constexpr std::int64_t sector = 32;

/// Who touches a value.
struct Uses {
  bool read = false, written = false;  ///< by kernels, copies and memsets
  bool gemm_read = false, gemm_written = false;
};

std::vector<Uses> uses_of(const schedule::Plan& plan) {
  std::vector<Uses> uses(plan.values.size());
  for (const schedule::Step& step : plan.steps) {
    const bool gemm = std::holds_alternative<schedule::GemmStep>(step.work);
    for (const ValueId id : step.reads) (gemm ? uses[id].gemm_read : uses[id].read) = true;
    for (const ValueId id : step.writes) (gemm ? uses[id].gemm_written : uses[id].written) = true;
  }
  return uses;
}

/// What is given, or made by a GEMM, has to be read once where a kernel uses it; what is asked for, or used
/// by a GEMM, has to be written once where a kernel makes it. All else could have stayed on the chip. No more
/// counts than was loaded or stored: some rows of a table, what is new in a cache.
std::int64_t floor_of(const PlanValue& value, const Uses& uses, std::int64_t bytes, std::int64_t loaded,
                      std::int64_t stored) {
  const bool given = value.kind == PlanValue::Kind::input || value.kind == PlanValue::Kind::parameter ||
                     value.kind == PlanValue::Kind::packed;
  const bool asked_for = value.kind == PlanValue::Kind::output;
  return ((given || uses.gemm_written) && uses.read ? std::min(bytes, loaded) : 0) +
         ((asked_for || uses.gemm_read) && uses.written ? std::min(bytes, stored) : 0);
}

class Counter {
 public:
  Counter(const Compiled& compiled, const ir::Graph& graph, const DimValues& dims)
      : compiled_(compiled), binding_(signature_of(graph, {}), dims) {
    for (const PlanValue& value : compiled_.plan.values) {
      bytes_.push_back(product_of(binding_.shape(value.dims)) *
                       static_cast<std::int64_t>(size_of(value.dtype)));
    }
    loaded_.resize(bytes_.size());
    stored_.resize(bytes_.size());
  }

  PlanTraffic run(const std::vector<KernelCounts>& counts) {
    for (const schedule::Step& step : compiled_.plan.steps) {
      const auto* work = std::get_if<schedule::KernelStep>(&step.work);
      if (!work) continue;
      auto& values = launched_with_[work->kernel];
      values.resize(work->buffers.size());
      for (std::size_t i = 0; i < values.size(); ++i) values[i].insert(work->buffers[i]);
    }
    std::map<std::string, const KernelCounts*> rows;
    for (const KernelCounts& row : counts) rows[row.kernel] = &row;
    const std::vector<schedule::ValueId> memory = roots(compiled_.plan);
    std::set<schedule::ValueId> used;  // a memset for versions that did not run did not run, either
    for (const schedule::Step& step : compiled_.plan.steps) {
      const auto* work = std::get_if<schedule::KernelStep>(&step.work);
      if (work && rows.contains(compiled_.source.kernels[work->kernel].name))
        for (const schedule::ValueId id : work->buffers) used.insert(memory[id]);
    }
    for (const schedule::Step& step : compiled_.plan.steps) {
      if (const auto* work = std::get_if<schedule::KernelStep>(&step.work)) {
        const auto row = rows.find(compiled_.source.kernels[work->kernel].name);
        if (row != rows.end()) count_kernel(*work, *row->second);
        // Counts are kept by kernel: all its launches stand in the row.
        if (row != rows.end()) rows.erase(row);
      } else if (const auto* copy = std::get_if<schedule::CopyStep>(&step.work)) {
        count_plain(copy->from, true);
        count_plain(copy->to, false);
      } else if (const auto* memset = std::get_if<schedule::MemsetStep>(&step.work)) {
        if (compiled_.plan.tables.empty() || used.contains(memory[memset->to]))
          count_plain(memset->to, false);
      }
    }
    const std::vector<Uses> uses = uses_of(compiled_.plan);
    for (ValueId id = 0; id < bytes_.size(); ++id) {
      traffic(id).floor +=
          floor_of(compiled_.plan.values[id], uses[id], bytes_[id], loaded_[id], stored_[id]);
    }
    return traffic_;
  }

 private:
  static std::int64_t product_of(const std::vector<std::int64_t>& shape) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    return count;
  }

  Traffic& traffic(ValueId id) { return bytes_[id] >= large ? traffic_.large_values : traffic_.small_values; }

  void count_kernel(const schedule::KernelStep& work, const KernelCounts& row) {
    for (std::size_t i = 0; i < std::min(work.buffers.size(), row.params.size()); ++i) {
      const AccessCounts& from = row.params[i];
      Traffic& to = traffic(work.buffers[i]);
      to.load += from.load_bytes;
      // Of several launches with other values here it is not known how much each loads and stores.
      const std::set<ValueId>& values = launched_with_[work.kernel][i];
      for (const ValueId id : values) {
        loaded_[id] += values.size() == 1 ? from.load_bytes : bytes_[id];
        stored_[id] += values.size() == 1 ? from.store_bytes : bytes_[id];
      }
      to.store += from.store_bytes;
      to.sector_load += from.load_sectors * sector;
      to.sector_store += from.store_sectors * sector;
    }
  }

  void count_plain(ValueId id, bool load) {
    Traffic& to = traffic(id);
    (load ? to.load : to.store) += bytes_[id];
    (load ? loaded_ : stored_)[id] += bytes_[id];
    (load ? to.sector_load : to.sector_store) += bytes_[id];
  }

  const Compiled& compiled_;
  const Binding binding_;
  std::vector<std::int64_t> bytes_, loaded_, stored_;
  std::map<std::uint32_t, std::vector<std::set<ValueId>>> launched_with_;  // of a kernel, by parameter
  PlanTraffic traffic_;
};

}  // namespace

PlanTraffic traffic_of(const Compiled& compiled, const ir::Graph& graph, const DimValues& dims,
                       const std::vector<KernelCounts>& counts) {
  return Counter(compiled, graph, dims).run(counts);
}

std::map<std::string, std::int64_t> executed_costly_ops(const std::vector<KernelCounts>& counts) {
  std::map<std::string, std::int64_t> executed;
  for (const KernelCounts& kernel : counts) {
    for (std::size_t i = 0; i < kernel.ops.size(); ++i) {
      if (kernel.ops[i] > 0) executed[std::string(ir::costly_ops()[i].name)] += kernel.ops[i];
    }
  }
  return executed;
}

}  // namespace fuse::runtime
