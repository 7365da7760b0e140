// dynamic_shapes: one build for every shape beside a build for each shape, by the cost model (BladeDISC, 7;
// docs/versions.md). For random shapes of each graph: launches, bytes that steps read and write, and
// predicted seconds, as ratios; and the versions that kernels have. Or what kernels issue, counted in SASS.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fuse/fuse.hpp>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/access.hpp"
#include "bench_arguments.hpp"
#include "compile/builds/builds.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "dynamic_shapes/dynamic_graphs.hpp"
#include "dynamic_shapes/instructions.hpp"
#include "dynamic_shapes/shapes.hpp"
#include "schedule/choosers/segment_cost.hpp"
#include "schedule/versions/narrowed.hpp"
#include "target/step_cost.hpp"

namespace fuse::bench {
namespace {

constexpr double most_peer_bytes = 1e8;  // of all values of a graph at a shape that a CPU runs

void print_help() {
  fmt::print(
      "dynamic_shapes [--shapes N] [--seed S] [--profile NAME] [--versions N] [--builds N] [--only PART,..]\n"
      "               [--instructions N [--each] [--keep DIR]] [--beside] [--write-shapes FILE]\n"
      "One executable for every shape, of at most N builds (4) with at most N versions of a kernel (8), "
      "beside a\n"
      "static build for each of N random shapes (200), by the cost model. PART: a part of a graph's name.\n"
      "--instructions: instead, what kernels issue for the first N shapes, counted in their SASS by NVRTC "
      "and\n"
      "nvdisasm (FUSE_NVDISASM, build/tools/nvdisasm, PATH); --each: a line for each shape too; --keep: "
      "writes\n"
      "texts and disassemblies there.\n"
      "--beside: instead, what padding to powers of two, and a compilation for each shape, take.\n"
      "--write-shapes: instead, writes shapes that a CPU runs, for bench/peers/dynamic_shapes.py.\n");
}

double seconds_of_cpu() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// What running a plan comes to.
struct Cost {
  double launches = 0, bytes = 0, seconds = 0;
};

/// Of a step that is no kernel of a schedule.
double seconds_of_step(const schedule::Step& step, const schedule::Plan& plan, const DimValues& dims,
                       const Target& target) {
  double bytes = 0;
  for (const std::vector<schedule::ValueId>* ids : {&step.reads, &step.writes}) {
    for (const schedule::ValueId id : *ids) {
      const schedule::PlanValue& value = plan.values[id];
      bytes += static_cast<double>(value_of(product(value.dims), dims)) *
               static_cast<double>(size_of(value.dtype));
    }
  }
  const auto whole = static_cast<std::int64_t>(bytes);
  if (const auto* gemm = std::get_if<schedule::GemmStep>(&step.work)) {
    const auto at = [&](const Dim& dim) { return value_of(dim, dims); };
    const auto& layout = gemm->layout ? gemm->layout : gemm->layout_a ? gemm->layout_a : gemm->layout_b;
    const double more = layout ? static_cast<double>(at(layout->outer) - 1) : 0;
    return schedule::gemm_cost(whole, at(gemm->batch), at(gemm->m), at(gemm->n), at(gemm->k), target)
               .seconds +
           more * target.launch_seconds;
  }
  const bool transfers = !std::holds_alternative<schedule::KernelStep>(step.work);
  return transfers ? schedule::transfer_cost(whole, target).seconds : 0;
}

/// A memset whose memory no other step uses is left out of a run.
bool runs(const schedule::Step& step, const schedule::Plan& plan) {
  const auto* zero = std::get_if<schedule::MemsetStep>(&step.work);
  if (!zero) return true;
  const std::vector<schedule::ValueId> roots = schedule::roots(plan);
  const auto uses = [&](schedule::ValueId id) { return roots[id] == roots[zero->to]; };
  return std::any_of(plan.steps.begin(), plan.steps.end(), [&](const schedule::Step& other) {
    return !std::holds_alternative<schedule::MemsetStep>(other.work) &&
           (std::any_of(other.reads.begin(), other.reads.end(), uses) ||
            std::any_of(other.writes.begin(), other.writes.end(), uses));
  });
}

Cost cost_at(const Compiled& compiled, const DimValues& dims, const Target& target) {
  Cost cost;
  std::vector<std::uint32_t> taken;
  for (const schedule::VersionTable& table : compiled.plan.tables)
    taken.push_back(version_for(table, [&](const Dim& dim) { return value_of(dim, dims); }));
  const schedule::Plan plan = with_versions(compiled.plan, taken);
  const auto bytes = [&](schedule::ValueId id) {
    const schedule::PlanValue& value = plan.values[id];
    return static_cast<double>(value_of(product(value.dims), dims)) *
           static_cast<double>(size_of(value.dtype));
  };
  for (const schedule::Step& step : plan.steps) {
    if (!runs(step, plan)) continue;
    cost.launches += !std::holds_alternative<schedule::MemsetStep>(step.work);
    for (const schedule::ValueId id : step.reads) cost.bytes += bytes(id);
    for (const schedule::ValueId id : step.writes) cost.bytes += bytes(id);
    cost.seconds += seconds_of_step(step, plan, dims, target);
  }
  std::size_t table = 0;
  for (std::size_t i = 0; i < compiled.schedules.size();) {
    const schedule::Segment& segment = compiled.partition.segments[compiled.segment_of[i]];
    std::size_t ways = 1;
    while (i + ways < compiled.schedules.size() && compiled.segment_of[i + ways] == compiled.segment_of[i])
      ++ways;
    ir::Graph graph = compiled.graph;
    const schedule::KernelChoices* choices = &compiled.schedules[i].choices;
    if (ways > 1) {
      const schedule::Version& version = compiled.versions[table].each[taken[table]];
      graph = schedule::graph_of(compiled.graph, version);
      choices = &version.chosen.choices;
      ++table;
    }
    // The cost model knows no tiles with sides as short as half of the smallest tile's.
    const bool tiles = std::any_of(choices->phases.begin(), choices->phases.end(), schedule::walks_tiles);
    graph = schedule::with_ranges(graph, [&](const ir::Symbol& symbol) {
      DimRange range = symbol.range;
      range.hint = std::max<std::int64_t>(tiles ? 17 : 1, dims.find(symbol.name)->second);
      return range;
    });
    cost.seconds += schedule::seconds_of_any(graph, segment, *choices, target);
    i += ways;
  }
  return cost;
}

double ratio_of(double a, double b) { return b == 0 ? 1 : a / b; }

/// Builds, and the versions of a kernel in them.
std::string versions_text(const CompiledBuilds& builds) {
  std::size_t segments = 0, schedules = 0, most = 1;
  for (const Compiled& compiled : builds.each) {
    for (std::size_t i = 0; i < compiled.segment_of.size(); ++i)
      segments += i == 0 || compiled.segment_of[i] != compiled.segment_of[i - 1];
    schedules += compiled.schedules.size();
    for (const schedule::Versions& versions : compiled.versions) most = std::max(most, versions.each.size());
  }
  return fmt::format("{} x {:.2f} (most {})", builds.each.size(),
                     static_cast<double>(schedules) / static_cast<double>(segments), most);
}

const Compiled& build_for(const CompiledBuilds& builds, const DimValues& dims) {
  return builds.each[version_for(builds.regions.table, [&](const Dim& dim) { return value_of(dim, dims); })];
}

void measure(const DynamicGraph& each, const Settings& settings, const Target& target) {
  const auto compiled_with = [&](int versions, int builds, double& seconds) {
    const double start = seconds_of_cpu();
    CompiledBuilds compiled =
        run_builds(ir_of(each.graph), target, pipeline_options({.versions = versions, .builds = builds}));
    seconds = seconds_of_cpu() - start;
    return compiled;
  };
  double plain_seconds = 0, planning = 0;
  const CompiledBuilds one = compiled_with(1, 1, plain_seconds),
                       several = compiled_with(settings.versions, settings.builds, planning);
  const int shapes = settings.shapes;
  const std::uint64_t seed = settings.seed;
  std::mt19937_64 random(seed);
  Ratios launches, bytes, seconds, seconds_of_one;
  for (int i = 0; i < shapes; ++i) {
    const DimValues dims = drawn(ir_of(each.graph), random);
    const Cost best = cost_at(run_pipeline(fixed(ir_of(each.graph), dims), target), {}, target);
    const Cost dynamic = cost_at(build_for(several, dims), dims, target),
               single = cost_at(build_for(one, dims), dims, target);
    launches.add(ratio_of(dynamic.launches, best.launches), dims);
    bytes.add(ratio_of(dynamic.bytes, best.bytes), dims);
    seconds.add(ratio_of(dynamic.seconds, best.seconds), dims);
    seconds_of_one.add(ratio_of(single.seconds, best.seconds), dims);
  }
  fmt::print(
      "{:28} {:20} {:5.2f} {:5.2f}   {:5.3f} {:5.3f}   {:5.3f} {:6.3f}   {:6.3f} {:7.3f}   {:5.0f} {:5.0f}   "
      "{}\n",
      each.name, versions_text(several), launches.mean(), launches.worst, bytes.mean(), bytes.worst,
      seconds.mean(), seconds.worst, seconds_of_one.mean(), seconds_of_one.worst, 1e3 * plain_seconds,
      1e3 * planning, text_of(seconds.worst_at));
  std::fflush(stdout);
}

/// Each dim at the next power of two, where its range allows it.
DimValues padded(const ir::Graph& graph, DimValues dims) {
  for (const ir::Symbol& symbol : graph.symbols) {
    std::int64_t& value = dims[symbol.name];
    value = std::min(symbol.range.max,
                     static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(value))));
  }
  return dims;
}

double seconds_of_wall() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// What others do with shapes that they do not know beforehand.
void measure_beside(const DynamicGraph& each, const Settings& settings, const Target& target) {
  const ir::Graph& graph = ir_of(each.graph);
  std::mt19937_64 random(settings.seed);
  Ratios padding;
  std::set<DimValues> shapes, buckets;
  double planning = 0;
  std::size_t kernels = 0;
  for (int i = 0; i < settings.shapes; ++i) {
    const DimValues dims = drawn(graph, random), rounded = padded(graph, dims);
    const double start = seconds_of_cpu();
    const Compiled own = run_pipeline(fixed(graph, dims), target);
    planning += seconds_of_cpu() - start;
    padding.add(ratio_of(cost_at(run_pipeline(fixed(graph, rounded), target), {}, target).seconds,
                         cost_at(own, {}, target).seconds),
                dims);
    if (shapes.insert(dims).second) kernels += own.kernels.size();
    buckets.insert(rounded);
  }
  std::size_t once = 0;
  for (const Compiled& build : run_builds(graph, target, pipeline_options({})).each)
    once += build.kernels.size();
  // On this machine there is a compiler for its CPU.
  const double start = seconds_of_wall();
  compile(each.graph, Device::cpu(), {.cache = false});
  const double all_shapes = seconds_of_wall() - start;
  const double before = seconds_of_wall();
  DimValues dims = drawn(graph, random, most_peer_bytes);
  compile(graph_of<Graph>(fixed(graph, dims)), Device::cpu(), {.cache = false});
  const double one_shape = seconds_of_wall() - before;
  fmt::print("{:28} {:5.3f} {:6.3f} {:4} {:4}   {:4} {:6}   {:6.2f}   {:5.2f} {:5.2f}   {}\n", each.name,
             padding.mean(), padding.worst, buckets.size(), shapes.size(), once, kernels, planning,
             all_shapes, one_shape, text_of(padding.worst_at));
  std::fflush(stdout);
}

/// One line for each shape: the graph's name, and its dims.
void write_shapes(std::FILE* file, const DynamicGraph& each, const Settings& settings) {
  std::mt19937_64 random(settings.seed);
  for (int i = 0; i < settings.shapes; ++i)
    fmt::print(file, "{}\t{}\n", each.name, text_of(drawn(ir_of(each.graph), random, most_peer_bytes)));
}

std::vector<DynamicGraph> chosen_graphs(const std::string& only) {
  const std::vector<std::string> parts = parts_of(only);
  std::vector<DynamicGraph> graphs;
  for (DynamicGraph& each : dynamic_graphs()) {
    const bool wanted =
        parts.empty() || std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
          return each.name.find(part) != std::string::npos;
        });
    if (wanted) graphs.push_back(std::move(each));
  }
  return graphs;
}

int run_instructions(const std::vector<DynamicGraph>& graphs, const Settings& settings,
                     const std::string& profile) {
#if FUSE_BENCH_HAS_SASS
  fmt::print("profile {}, seed {}, the first {} shapes; ", profile, settings.seed, settings.shapes);
  try {
    print_instructions(graphs, settings, profile);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
  return 0;
#else
  (void)graphs, (void)settings, (void)profile;
  wrong("--instructions needs a build with the CUDA target, and none for a bundle");
#endif
}

}  // namespace
}  // namespace fuse::bench

int main(int argc, char** argv) {
  using namespace fuse;         // NOLINT
  using namespace fuse::bench;  // NOLINT
  std::string shapes = "200", seed = "34", profile = "h200", versions = "8", builds = "4", only, shapes_file,
              instructions, keep;
  bool beside = false, each_shape = false;
  read_arguments(argc, argv,
                 {{.name = "--shapes", .value = &shapes},
                  {.name = "--seed", .value = &seed},
                  {.name = "--profile", .value = &profile},
                  {.name = "--versions", .value = &versions},
                  {.name = "--builds", .value = &builds},
                  {.name = "--only", .value = &only},
                  {.name = "--instructions", .value = &instructions},
                  {.name = "--each", .flag = &each_shape},
                  {.name = "--keep", .value = &keep},
                  {.name = "--beside", .flag = &beside},
                  {.name = "--write-shapes", .value = &shapes_file}},
                 print_help);
  const bool counts = !instructions.empty();
  const auto number = [](std::string_view option, const std::string& text, std::int64_t most) {
    return static_cast<int>(number_of(option, text, 1, most));
  };
  constexpr std::int64_t most_shapes = 1000000, most_seed = std::numeric_limits<std::int64_t>::max();
  const Settings settings{.versions = number("--versions", versions, 16),
                          .builds = number("--builds", builds, 8),
                          .shapes = counts ? number("--instructions", instructions, most_shapes)
                                           : number("--shapes", shapes, most_shapes),
                          .seed = static_cast<std::uint64_t>(number_of("--seed", seed, 0, most_seed)),
                          .each_shape = each_shape,
                          .keep = keep};
  const std::vector<DynamicGraph> graphs = chosen_graphs(only);
  if (counts) return run_instructions(graphs, settings, profile);
  std::FILE* file = nullptr;
  if (!shapes_file.empty()) {
    file = std::fopen(shapes_file.c_str(), "w");
    if (!file) wrong(fmt::format("{} cannot be written", shapes_file));
  } else {
    fmt::print("profile {}, seed {}, {} shapes; ", profile, seed, shapes);
  }
  if (!file && beside) {
    fmt::print(
        "predicted seconds of shapes padded to powers of two to those of the shapes, mean and worst; how\n"
        "many shapes that makes of how many; kernels of one executable, and of one for each shape; seconds "
        "that planning for\n"
        "each shape takes; seconds to compile for this CPU, for all shapes and for one\n\n");
    fmt::print("{:28} {:12} {:9}   {:11}   {:6}   {:11}   {}\n", "graph", "padded", "shapes", "kernels",
               "plan s", "cpu s", "worst shape");
  } else if (!file) {
    fmt::print("each ratio: one executable to a static build for the shape, mean and worst\n\n");
    fmt::print("{:28} {:20} {:11}   {:11}   {:12}   {:14}   {:11}   {}\n", "graph", "builds x versions",
               "launches", "bytes", "seconds", "of 1 version", "planning ms", "worst shape");
  }
  for (const DynamicGraph& each : graphs) {
    if (file) {
      write_shapes(file, each, settings);
    } else if (beside) {
      measure_beside(each, settings, target_profile(profile));
    } else {
      measure(each, settings, target_profile(profile));
    }
  }
  if (file && std::fclose(file) != 0) wrong(fmt::format("{} cannot be written", shapes_file));
  return 0;
}
