// plan_scaling: how planning scales with the ops of a graph, and what 24 equal layers cost more than one.
// Prints ops, ms, ns/op and MB for graphs of 1,000 to 100,000 ops. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <functional>
#include <fuse/fuse.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "families.hpp"
#include "ir/graph/ir_graph.hpp"

namespace fuse::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Of all threads of this process: what other programs do on the machine is not in it.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Field of /proc/self/status, in MB.
double status_mb(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field)) return std::stod(line.substr(field.size() + 1)) / 1024;
  }
  return 0;
}

struct Options {
  std::vector<std::size_t> sizes = {1'000, 10'000, 40'000, 100'000};
  std::string family;  // empty: all
  int threads = 1;
  bool stages = false;
  bool ratio = true;
};

/// Times one size of one family in this process. Planning is what the pipeline does before code generation.
void measure(const Family& family, std::size_t ops, const Options& options) {
  const Graph graph = family.make(ops);
  const std::size_t nodes = ir_of(graph).nodes.size();
  const double before = status_mb("VmRSS:");
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts here
  std::map<std::string, double> stages;
  double planning = 0, peak = 0, last = cpu_seconds();
  const double cpu_start = last;
  const auto start = Clock::now();
  PipelineOptions how;  // named: g++ 14 takes parts of a temporary for uninitialised
  how.threads = options.threads;
  how.timed = [&](std::string_view stage, double) {
    const double now = cpu_seconds();
    stages[std::string(stage)] += now - last;
    last = now;
    if (stage != "schedule") return;
    planning = now - cpu_start;
    peak = status_mb("VmHWM:");
  };
  const auto compiled = run_pipeline(ir_of(graph), target_profile("h200"), how);
  const double all = cpu_seconds() - cpu_start, wall = seconds_since(start);
  fmt::print("{:<10} {:>8} {:>9.1f} {:>7.0f} {:>7.0f} {:>7.0f} {:>9.1f} {:>9.1f} {:>7.0f} {:>8} {:>8}\n",
             family.name, nodes, planning * 1e3, planning * 1e9 / static_cast<double>(nodes), peak,
             peak - before, all * 1e3, wall * 1e3, status_mb("VmHWM:"), compiled.partition.segments.size(),
             compiled.source.kernels.size());
  if (!options.stages) return;
  for (const auto& [stage, seconds] : stages) fmt::print("    {:<28} {:>9.1f} ms\n", stage, seconds * 1e3);
}

/// In a process of its own, so that one case's memory is not another's. Returns whether it went well.
bool apart(const std::function<void()>& work) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    int status = 0;
    try {
      work();
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
      status = 1;
    }
    std::fflush(stdout);
    _exit(status);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// The quickest of some cold compiles: each on a device of its own, which holds nothing from before.
struct Cost {
  double wall = 1e9, cpu = 1e9;  ///< cpu: of the compilers too
};
Cost cold_compile(const Graph& graph) {
  Cost best;
  const auto cpu = [] {
    rusage children{};
    getrusage(RUSAGE_CHILDREN, &children);
    const auto of = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    return cpu_seconds() + of(children.ru_utime) + of(children.ru_stime);
  };
  for (int i = 0; i < 5; ++i) {
    const Device device = Device::emulated();
    const double before = cpu();
    const auto start = Clock::now();
    compile(graph, device);
    best.wall = std::min(best.wall, seconds_since(start));
    best.cpu = std::min(best.cpu, cpu() - before);
  }
  return best;
}

void layers_ratio() {
  const Graph one = transformer(1), many = transformer(24);
  const Cost first = cold_compile(one), all = cold_compile(many);
  fmt::print("whole compile, emulated device, quickest of 5\n");
  fmt::print("  wall: 1 layer {:.0f} ms, 24 layers {:.0f} ms, ratio {:.2f}\n", first.wall * 1e3,
             all.wall * 1e3, all.wall / first.wall);
  fmt::print("  CPU:  1 layer {:.0f} ms, 24 layers {:.0f} ms, ratio {:.2f}\n", first.cpu * 1e3, all.cpu * 1e3,
             all.cpu / first.cpu);
}

int run(const Options& options) {
  fmt::print(
      "planning: passes to schedules, verified, on {} thread{}; whole: to the plan and the text. ms: CPU "
      "time\n"
      "{:<10} {:>8} {:>9} {:>7} {:>7} {:>7} {:>9} {:>9} {:>7} {:>8} {:>8}\n",
      options.threads, options.threads == 1 ? "" : "s", "family", "ops", "ms", "ns/op", "peak MB", "new MB",
      "whole ms", "wall ms", "MB", "segments", "kernels");
  bool good = true;
  for (const Family& family : families()) {
    if (!options.family.empty() && options.family != family.name) continue;
    for (const std::size_t ops : options.sizes) {
      good &= apart([&] { measure(family, ops, options); });
    }
  }
  if (options.ratio) good &= apart(layers_ratio);
  return good ? 0 : 1;
}

int usage() {
  fmt::print(stderr,
             "plan_scaling [--family NAME] [--ops N]... [--threads N] [--stages] [--no-ratio]\n"
             "  --stages  time of each stage too\n");
  return 2;
}

}  // namespace
}  // namespace fuse::bench

int main(int argc, char** argv) {
  ::setenv("FUSE_CACHE", "0", 1);  // what is compiled here is measured
  fuse::bench::Options options;
  bool sizes_given = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--stages") {
      options.stages = true;
    } else if (word == "--no-ratio") {
      options.ratio = false;
    } else if (word == "--family" && more) {
      options.family = argv[++i];
    } else if (word == "--threads" && more) {
      options.threads = std::atoi(argv[++i]);
    } else if (word == "--ops" && more) {
      if (!sizes_given) options.sizes.clear();
      sizes_given = true;
      options.sizes.push_back(std::strtoull(argv[++i], nullptr, 10));
    } else {
      return fuse::bench::usage();
    }
  }
  return fuse::bench::run(options);
}
