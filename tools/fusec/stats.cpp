// fusec stats: what the kernels move, counted by the emulated device, and the least they could.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <fuse/executable.hpp>
#include <map>

#include "commands.hpp"
#include "common.hpp"
#include "inputs.hpp"
#include "json.hpp"
#include "pipeline.hpp"
#include "progress.hpp"
#include "runtime/backend.hpp"
#include "runtime/binding.hpp"

namespace fuse::fusec {
namespace {

using schedule::PlanValue;
using schedule::ValueId;

constexpr std::int64_t large = 1'000'000;  // bytes; below, caches hide what is read twice
constexpr std::int64_t sector = 32;

/// Bytes that steps other than GEMMs move.
struct Traffic {
  std::int64_t load = 0, store = 0;                ///< as the kernels ask for them
  std::int64_t sector_load = 0, sector_store = 0;  ///< in whole sectors, once for each access of a warp
  std::int64_t floor = 0;

  std::int64_t requested() const { return load + store; }
  std::int64_t sectors() const { return sector_load + sector_store; }
};

struct Stats {
  std::size_t kernels = 0;
  std::int64_t launches = 0, gemms = 0;
  Traffic large_values, small_values;
};

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
/// by a GEMM, has to be written once where a kernel makes it. All else could have stayed on the chip.
std::int64_t floor_of(const PlanValue& value, const Uses& uses, std::int64_t bytes) {
  const bool given = value.kind == PlanValue::Kind::input || value.kind == PlanValue::Kind::parameter ||
                     value.kind == PlanValue::Kind::packed;
  const bool asked_for = value.kind == PlanValue::Kind::output;
  return ((given || uses.gemm_written) && uses.read ? bytes : 0) +
         ((asked_for || uses.gemm_read) && uses.written ? bytes : 0);
}

class Counter {
 public:
  Counter(const Executable& executable, const DimValues& dims, const ir::Graph& graph)
      : compiled_(executable.stages()), binding_(graph, dims) {
    for (const PlanValue& value : compiled_.plan.values) {
      bytes_.push_back(product_of(binding_.shape(value.dims)) *
                       static_cast<std::int64_t>(size_of(value.dtype)));
    }
  }

  Stats run(const std::vector<runtime::KernelCounts>& counts) {
    const std::vector<Uses> uses = uses_of(compiled_.plan);
    for (ValueId id = 0; id < bytes_.size(); ++id) {
      traffic(id).floor += floor_of(compiled_.plan.values[id], uses[id], bytes_[id]);
    }
    std::map<std::string, const runtime::KernelCounts*> rows;
    for (const runtime::KernelCounts& row : counts) rows[row.kernel] = &row;
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
        count_plain(memset->to, false);
      }
    }
    return stats_;
  }

 private:
  static std::int64_t product_of(const std::vector<std::int64_t>& shape) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    return count;
  }

  Traffic& traffic(ValueId id) { return bytes_[id] >= large ? stats_.large_values : stats_.small_values; }

  void count_kernel(const schedule::KernelStep& work, const runtime::KernelCounts& row) {
    for (std::size_t i = 0; i < std::min(work.buffers.size(), row.params.size()); ++i) {
      const runtime::AccessCounts& from = row.params[i];
      Traffic& to = traffic(work.buffers[i]);
      to.load += from.load_bytes;
      to.store += from.store_bytes;
      to.sector_load += from.load_sectors * sector;
      to.sector_store += from.store_sectors * sector;
    }
  }

  void count_plain(ValueId id, bool load) {
    Traffic& to = traffic(id);
    (load ? to.load : to.store) += bytes_[id];
    (load ? to.sector_load : to.sector_store) += bytes_[id];
  }

  const Compiled& compiled_;
  const runtime::Binding binding_;
  std::vector<std::int64_t> bytes_;
  Stats stats_;
};

Json ratio(std::int64_t bytes, std::int64_t floor) {
  if (floor == 0) return nullptr;
  return static_cast<double>(bytes) / static_cast<double>(floor);
}

void add_traffic(Json& json, const Traffic& traffic) {
  json["bytes"] = {{"requested", {{"load", traffic.load}, {"store", traffic.store}}},
                   {"sectors", {{"load", traffic.sector_load}, {"store", traffic.sector_store}}}};
  json["floor"] = traffic.floor;
  json["ratio_requested"] = ratio(traffic.requested(), traffic.floor);
  json["ratio_sectors"] = ratio(traffic.sectors(), traffic.floor);
}

Json to_json(const Stats& stats, const ir::Graph& graph, const std::string& profile, const DimValues& dims) {
  Json json = {{"version", 1},        {"graph", graph.name},      {"target", profile},
               {"dims", dims},        {"kernels", stats.kernels}, {"launches", stats.launches},
               {"gemms", stats.gemms}};
  add_traffic(json, stats.large_values);
  json["small"] = Json::object();
  add_traffic(json["small"], stats.small_values);
  return json;
}

std::string to_text(const Stats& stats) {
  const auto row = [](const char* name, const Traffic& t) {
    const auto times = [&](std::int64_t bytes) {
      return t.floor == 0 ? std::string("-")
                          : fmt::format("{:.3f}", static_cast<double>(bytes) / static_cast<double>(t.floor));
    };
    return std::vector<std::string>{name,
                                    std::to_string(t.load),
                                    std::to_string(t.store),
                                    std::to_string(t.sector_load),
                                    std::to_string(t.sector_store),
                                    std::to_string(t.floor),
                                    times(t.requested()),
                                    times(t.sectors())};
  };
  return fmt::format("kernels {}  launches {}  gemms {}\n\n", stats.kernels, stats.launches, stats.gemms) +
         table({{"values", "load", "store", "sector load", "sector store", "floor", "requested/floor",
                 "sectors/floor"},
                row("1 MB and more", stats.large_values),
                row("smaller", stats.small_values)});
}

}  // namespace

int execute(const StatsOptions& options) {
  const GraphOptions& source = options.graph;
  const Graph graph = load_graph(source.file);
  const Device device = Device::emulated({.profile = source.profile, .checked = true});
  Progress progress("making the inputs");
  const Inputs inputs = make_inputs(graph.ir(), {}, source.dims, 1);
  progress.now("compiling for " + device.name());
  const Executable executable = compile(graph, device, source.compile);
  Session session(executable, inputs.dims);
  for (const auto& [name, tensor] : inputs.values) session.set(name, tensor.data);
  progress.now("running on " + device.name());
  session.pack();  // once, and no part of a run
  device.backend()->reset_counts();
  session.run();
  Stats stats = Counter(executable, inputs.dims, graph.ir()).run(device.backend()->counts());
  stats.kernels = executable.stages().source.kernels.size();
  stats.launches = session.prepared().launches();
  stats.gemms = session.prepared().gemms();
  fmt::print("{}", options.json ? json_text(to_json(stats, graph.ir(), source.profile, inputs.dims))
                                : to_text(stats));
  return 0;
}

}  // namespace fuse::fusec
