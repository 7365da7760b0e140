// fusec stats: what the kernels move, counted by the emulated device, and the least they could.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <fuse/session.hpp>
#include <map>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "compile/traffic.hpp"
#include "fusec/commands.hpp"
#include "fusec/common.hpp"
#include "fusec/print/fusec_json.hpp"
#include "fusec/progress.hpp"
#include "fusec/values/inputs.hpp"

namespace fuse::fusec {
namespace {

using runtime::Traffic;

struct Stats {
  std::size_t kernels = 0;
  std::int64_t launches = 0, gemms = 0;
  runtime::PlanTraffic traffic{};
  std::map<std::string, std::int64_t> costly{};  ///< executions of costly ops that kernels have
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
  Json json = {{"version", 1},
               {"graph", graph.name},
               {"target", profile},
               {"dims", std::map(dims.begin(), dims.end())},
               {"kernels", stats.kernels},
               {"launches", stats.launches},
               {"gemms", stats.gemms}};
  add_traffic(json, stats.traffic.large_values);
  json["costly_ops"] = stats.costly;
  json["small"] = Json::object();
  add_traffic(json["small"], stats.traffic.small_values);
  return json;
}

/// "costly ops executed: exp 4096, tanh 512"; empty where there are none.
std::string costly_text(const Stats& stats) {
  std::string text;
  for (const auto& [name, count] : stats.costly)
    text += fmt::format("{}{} {}", text.empty() ? "\ncostly ops executed: " : ", ", name, count);
  return text.empty() ? "" : text + '\n';
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
                row("1 MB and more", stats.traffic.large_values),
                row("smaller", stats.traffic.small_values)}) +
         costly_text(stats);
}

}  // namespace

int execute(const StatsOptions& options) {
  const GraphOptions& source = options.graph;
  const Graph graph = load_graph(source.file);
  const Device device = Device::emulated({.profile = source.profile, .checked = true});
  Progress progress("making the inputs");
  const Inputs inputs = make_inputs(ir_of(graph), {}, source.dims, 1);
  progress.now("compiling for " + device.name());
  const Executable executable = compile(graph, device, source.compile);
  Session session(executable, inputs.dims);
  for (const auto& [name, tensor] : inputs.values) session.set(name, tensor.data);
  progress.now("running on " + device.name());
  session.pack();  // once, and no part of a run
  backend_of(device)->reset_counts();
  session.run();
  const Stats stats{
      .kernels = stages_of(executable).source.kernels.size(),
      .launches = session.prepared().launches(),
      .gemms = session.prepared().gemms(),
      .traffic = traffic_of(stages_of(executable), ir_of(graph), inputs.dims, backend_of(device)->counts()),
      .costly = runtime::executed_costly_ops(backend_of(device)->counts())};
  fmt::print("{}", options.json ? json_text(to_json(stats, ir_of(graph), source.profile, inputs.dims))
                                : to_text(stats));
  return 0;
}

}  // namespace fuse::fusec
