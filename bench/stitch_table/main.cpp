// stitch_table: what stitching makes of the graphs of its tests and of examples/graphs, beside other
// compilers' rules: kernels, how their stages pass values on, bytes and sectors over the least there is
// (counted by the emulated device), barriers, and registers, spills and occupancy by NVRTC.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <fuse/fuse.hpp>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "base/access.hpp"
#include "compile/pipeline/experiments.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "compile/signature_of.hpp"
#include "compile/traffic.hpp"
#include "runtime/execute/binding.hpp"
#include "schedule/mapping/schemes.hpp"
#include "support/counted_run.hpp"
#include "support/stitch_graphs.hpp"
#include "target/residency.hpp"
#if FUSE_COMPILER_HAS_CUDA
#include "compile/toolchains/cuda/nvrtc.hpp"
#endif

namespace fuse::bench {
namespace {

constexpr const char* profile = "h200";
constexpr double most_operations = 3e9;  // of the GEMMs of a graph that is run

std::string kernels_of(const Graph& graph, const CompileOptions& options) {
  const Compiled compiled = run_pipeline(ir_of(graph), target_profile(profile), pipeline_options(options));
  return std::to_string(std::count_if(
      compiled.plan.steps.begin(), compiled.plan.steps.end(),
      [](const auto& step) { return std::holds_alternative<schedule::KernelStep>(step.work); }));
}

/// Of the values that kernels of several stages pass on or store; everything else stays in the thread that
/// computed it.
std::string schemes_of(const Compiled& compiled) {
  std::size_t local = 0, regional = 0, cluster = 0, global = 0, alone = 0;
  for (const schedule::Schedule& schedule : compiled.schedules) {
    if (schedule.phases.size() == 1 && schedule.phases[0].computes.stages.size() == 1) {
      ++alone;
      continue;
    }
    for (const schedule::NodeScheme& each : schedule::schemes_of(compiled.graph, schedule)) {
      if (each.dominance == schedule::Dominance::none) continue;
      ++(each.scheme == schedule::Scheme::global     ? global
         : each.scheme == schedule::Scheme::cluster  ? cluster
         : each.scheme == schedule::Scheme::regional ? regional
                                                     : local);
    }
  }
  return fmt::format("{}/{}/{}/{}/{}", local, regional, cluster, global, alone);
}

std::string over(std::int64_t bytes, std::int64_t floor) {
  return floor == 0 ? "-" : fmt::format("{:.3f}", static_cast<double>(bytes) / static_cast<double>(floor));
}

struct Limits {
  std::string registers = "-", spilled = "-", occupancy = "-";
};

Limits limits_of(const Compiled& compiled) {
#if FUSE_COMPILER_HAS_CUDA
  if (!runtime::nvrtc_available()) return {};
  const Target target = target_profile(profile);
  int registers = 0;
  std::int64_t spilled = 0;
  double occupancy = 1;
  const runtime::Cubin cubin = runtime::compile_to_cubin(compiled.source, target.arch);
  for (std::size_t i = 0; i < cubin.kernels.size(); ++i) {
    const runtime::CompiledKernel& kernel = cubin.kernels[i];
    const int threads = compiled.source.kernels[i].block_threads;
    const int blocks = schedule::blocks_per_sm(
        {.blocks = 1, .threads = threads, .registers = kernel.registers, .shared_bytes = kernel.shared_bytes},
        target);
    registers = std::max(registers, kernel.registers);
    spilled += kernel.spill_store_bytes + kernel.spill_load_bytes;
    occupancy = std::min(occupancy, static_cast<double>(blocks * threads) / target.max_threads_per_sm);
  }
  return {std::to_string(registers), std::to_string(spilled), fmt::format("{:.0f}%", 100 * occupancy)};
#else
  static_cast<void>(compiled);
  return {};
#endif
}

double operations_of(const Compiled& compiled, const ir::Graph& graph, const DimValues& dims) {
  const runtime::Binding binding(runtime::signature_of(graph, {}), dims);
  double sum = 0;
  for (const schedule::Step& step : compiled.plan.steps) {
    const auto* gemm = std::get_if<schedule::GemmStep>(&step.work);
    if (!gemm) continue;
    double one = 2;
    for (const Dim& dim : {gemm->batch, gemm->m, gemm->n, gemm->k})
      one *= static_cast<double>(binding.value(dim));
    sum += one;
  }
  return sum;
}

struct Counts {
  std::string requested = "-", sectors = "-", barriers = "-";
};

/// Of one run in checked mode; of values of 1 MB and more, or of smaller ones where there are none or the
/// run is smaller than usual.
Counts count(const Graph& graph, const Executable& executable, const DimValues& dims, bool large) {
  Session session(executable, dims);
  const std::vector<runtime::KernelCounts> counts = test::counted_run(executable, session);
  std::int64_t barriers = 0;
  for (const runtime::KernelCounts& each : counts) barriers += each.block_barriers > 0;
  const runtime::PlanTraffic all = traffic_of(stages_of(executable), ir_of(graph), dims, counts);
  const runtime::Traffic& traffic = large && all.large_values.floor > 0 ? all.large_values : all.small_values;
  return {over(traffic.requested(), traffic.floor), over(traffic.sectors(), traffic.floor),
          std::to_string(barriers)};
}

/// The hints, or smaller ones where the GEMMs of a run would take too long; the row's name says so.
DimValues dims_of(const Graph& graph, const Compiled& compiled, std::string& name) {
  for (const std::int64_t most :
       {std::numeric_limits<std::int64_t>::max(), std::int64_t{16}, std::int64_t{2}}) {
    DimValues dims;
    std::string text;
    for (const ir::Symbol& symbol : ir_of(graph).symbols) {
      const std::int64_t wanted = std::min(symbol.range.hint, most);
      dims[symbol.name] = std::clamp<std::int64_t>(wanted, symbol.range.min, symbol.range.max);
      if (wanted == most) text += fmt::format(" {}={}", symbol.name, dims[symbol.name]);
    }
    if (operations_of(compiled, ir_of(graph), dims) > most_operations) continue;
    name += text;
    return dims;
  }
  throw std::runtime_error(name + ": its GEMMs take too long for a run");
}

void print_row(std::string name, const Graph& graph) {
  const Device device = Device::emulated({.profile = profile, .checked = true, .optimization = 1});
  const Executable executable = compile(graph, device);
  const std::string given = name;
  const DimValues dims = dims_of(graph, stages_of(executable), name);
  const Counts counted = count(graph, executable, dims, name == given);
  const Limits limits = limits_of(stages_of(executable));
  fmt::print("{:<32} {:>5} {:>5} {:>5} {:>5} {:>12} {:>8} {:>8} {:>8} {:>9} {:>7} {:>9}\n", name,
             kernels_of(graph, {.experiments = experiments({.cut = Cut::one_op})}),
             kernels_of(graph, {.experiments = experiments({.cut = Cut::xla})}),
             kernels_of(graph, {.experiments = experiments({.cut = Cut::tvm})}), kernels_of(graph, {}),
             schemes_of(stages_of(executable)), counted.requested, counted.sectors, counted.barriers,
             limits.registers, limits.spilled, limits.occupancy);
  std::fflush(stdout);
}

void run() {
  fmt::print("{:<32} {:>5} {:>5} {:>5} {:>5} {:>12} {:>8} {:>8} {:>8} {:>9} {:>7} {:>9}\n", "graph", "none",
             "xla", "tvm", "fuse", "l/r/c/g/alone", "bytes", "sectors", "barriers", "registers", "spills",
             "occupancy");
  for (const test::StitchGraph& each : test::stitch_graphs()) {
    for (const DType dtype : {f32, bf16}) {
      print_row(fmt::format("{} {} 1024x1024", each.name, to_string(dtype)), each.build(dtype, 1024, 1024));
    }
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(FUSE_BENCH_GRAPHS))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    std::ifstream in(file);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    print_row(file.stem().string(), Graph::parse(text));
  }
  fmt::print(
      "\nnone, xla, tvm, fuse: kernels by a kernel an op, by other compilers' rules, and ours (h200).\n"
      "l/r/c/g/alone: stages whose value stays with its thread; reductions that a block shares, or the "
      "blocks of\n"
      "a cluster; what all blocks share in memory, after a grid barrier; kernels of one value.\n"
      "bytes, sectors: over the least there is, of values of 1 MB and more where there are any, in a run of "
      "few tokens\n"
      "of smaller ones; "
      "barriers: "
      "kernels with block barriers;\nregisters: the most of a thread (sm_90); spills: "
      "bytes; "
      "occupancy: the least, by registers, threads and shared memory.\n");
}

}  // namespace
}  // namespace fuse::bench

int main() {
  ::setenv("FUSE_CACHE", "0", 0);  // nothing of this is the user's
  try {
    fuse::bench::run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stitch_table: %s\n", error.what());
    return 1;
  }
  return 0;
}
