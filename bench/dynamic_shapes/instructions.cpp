// SPDX-License-Identifier: Apache-2.0
#include "dynamic_shapes/instructions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "base/access.hpp"
#include "compile/builds/builds.hpp"
#include "compile/toolchains/cuda/nvrtc.hpp"
#include "os/parallel.hpp"
#include "sass_table/roofline.hpp"

namespace fuse::bench {
namespace {

constexpr std::int64_t large = 1 << 20;  // bytes, from which on sass_table has goals

struct CountedShape {
  DimValues dims{};
  sass::CaseCount one, own;  ///< of the one executable, and of the shape's own build
  std::string failed;        ///< why a count is impossible; empty: both are there
};

/// Of all elements: the largest value that kernels touch may be another one in another cut.
double whole(double of_element, const sass::CaseCount& count) {
  return of_element * static_cast<double>(count.elements);
}

double slots_ratio(const CountedShape& shape) {
  return whole(shape.one.slots, shape.one) / whole(shape.own.slots, shape.own);
}

double cycles_ratio(const CountedShape& shape) {
  return whole(shape.one.cycles, shape.one) / whole(shape.own.cycles, shape.own);
}

std::vector<CountedShape> counted_shapes(sass::Counter& counter, const DynamicGraph& graph,
                                         const Settings& settings, const sass::Gpu& gpu) {
  const Target target = target_profile(gpu.profile);
  const CompiledBuilds one =
      run_builds(ir_of(graph.graph), target,
                 pipeline_options({.versions = settings.versions, .builds = settings.builds}));
  std::vector<CountedShape> shapes(static_cast<std::size_t>(settings.shapes));
  std::mt19937_64 random(settings.seed);
  for (CountedShape& shape : shapes) shape.dims = drawn(ir_of(graph.graph), random);
  parallel_for(0, shapes.size(), [&](std::size_t i) {
    CountedShape& shape = shapes[i];
    const char* of = "the one executable";
    try {
      shape.one = counter.count(graph.name, one, shape.dims, gpu);
      of = "the shape's own build";
      PipelineOptions options = pipeline_options({});
      options.threads = 1;
      shape.own = counter.count(
          graph.name, run_pipeline(fixed(ir_of(graph.graph), shape.dims), target, options), {}, gpu);
    } catch (const std::exception& error) {
      shape.failed = fmt::format("{}: {}: {}", text_of(shape.dims), of, error.what());
    }
  });
  return shapes;
}

std::string names_of(const sass::CaseCount& count) {
  std::string names;
  for (const sass::KernelCount& kernel : count.kernels)
    names += (names.empty() ? "" : ", ") +
             fmt::format("{} {:.1f}", kernel.name, kernel.cycles / count.cycles * 100) + "%";
  return names;
}

void print_shape(const CountedShape& shape) {
  fmt::print("  {:20} instructions {:.2f} / {:.2f} = {:.3f}, cycles {:.2f} / {:.2f} = {:.3f}; {} / {}\n",
             text_of(shape.dims), shape.one.slots, shape.own.slots, slots_ratio(shape), shape.one.cycles,
             shape.own.cycles, cycles_ratio(shape), names_of(shape.one), names_of(shape.own));
}

/// Of shapes whose kernels have to move at least so many bytes.
void print_row(const std::string& name, const std::vector<CountedShape>& shapes, std::int64_t bytes) {
  Ratios slots, cycles;
  for (const CountedShape& shape : shapes) {
    if (!shape.failed.empty() || shape.own.floor_bytes < bytes) continue;
    slots.add(slots_ratio(shape), shape.dims);
    cycles.add(cycles_ratio(shape), shape.dims);
  }
  fmt::print("{:28} {:6}", name, slots.all.size());
  if (!slots.all.empty()) {
    fmt::print("   {:5.3f} {:7.3f}  {:18} {:5.3f} {:7.3f}  {}", slots.mean(), slots.worst,
               text_of(slots.worst_at), cycles.mean(), cycles.worst, text_of(cycles.worst_at));
  }
  fmt::print("\n");
}

void print_graph(const std::string& name, const std::vector<CountedShape>& shapes, bool each) {
  print_row(name, shapes, 0);
  print_row("  of 1 MB and more", shapes, large);
  const auto failed = std::count_if(shapes.begin(), shapes.end(),
                                    [](const CountedShape& shape) { return !shape.failed.empty(); });
  if (failed > 0) fmt::print("  {} of {} shapes left out:\n", failed, shapes.size());
  for (const CountedShape& shape : shapes) {
    if (!shape.failed.empty()) fmt::print("    {}\n", shape.failed);
  }
  for (const CountedShape& shape : shapes) {
    if (each && shape.failed.empty()) print_shape(shape);
  }
  std::fflush(stdout);
}

}  // namespace

void print_instructions(const std::vector<DynamicGraph>& graphs, const Settings& settings,
                        const std::string& profile) {
  const sass::Gpu& gpu = sass::gpu_of(profile);
  sass::Counter counter(sass::Nvdisasm::find(""));
  counter.keep = settings.keep;
  runtime::nvrtc_library().require();
  sass::set_up_counting();
  fmt::print(
      "instructions that kernels issue for each element, and cycles (the most of these and of what any "
      "pipe is busy),\nof one executable to those of a build for the shape, mean and worst: counted in SASS "
      "by "
      "sass_table.\nCalls of the GEMM library, copies and memsets do not count.\n\n");
  fmt::print("{:28} {:6}   {:14} {:18} {:14} {}\n", "graph", "shapes", "instructions", "worst shape",
             "cycles", "worst shape");
  for (const DynamicGraph& graph : graphs)
    print_graph(graph.name, counted_shapes(counter, graph, settings, gpu), settings.each_shape);
}

}  // namespace fuse::bench
