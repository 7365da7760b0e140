// Graphs whose rows have no known length, and how they run. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/access.hpp"
#include "stitch/stitch_support.hpp"
#include "support/stitch_cases.hpp"

namespace fuse::test {

/// Of a row of which no thread holds a known part.
inline Dim any_length(Graph& g) { return g.dim("N", {.min = 1, .max = 1 << 24, .hint = 5000}); }

inline Graph any_softmax(DType dtype = f32) {
  Graph g("any_softmax");
  g.output("y", softmax(g.input("x", dtype, {300, any_length(g)})));
  return g;
}

/// How often kernels load each of 300 x N elements of f32.
inline double row_loads(const Graph& g, const char* profile, std::int64_t n) {
  const Device device = Device::emulated({.profile = profile, .checked = true, .optimization = 0});
  const Executable executable = compile(g, device, {.versions = 1});
  Session session(executable, {{"N", n}});
  const std::vector<runtime::KernelCounts> counts = counted_run(executable, session);
  const runtime::PlanTraffic traffic =
      runtime::traffic_of(stages_of(executable), ir_of(g), {{"N", n}}, counts);
  return static_cast<double>(traffic.large_values.load) / static_cast<double>(300 * n * 4);
}

/// A chooser of the same choices for every segment.
inline auto chooses(const schedule::Choices& choices) {
  return [choices](const ir::Graph&, const schedule::Segment&, const Target&) {
    return schedule::KernelChoices{{choices}};
  };
}

/// As the oracle of generated programs judges it, with these choices for every segment.
inline fuzz::Outcome outcome(const Graph& g, const fuzz::RunOptions& options,
                             const schedule::Choices& choices) {
  fuzz::Batch batch({case_of(g, options)}, {}, chooses(choices));
  return batch.run(0);
}

/// Checks that each of these ways answers right, on the checked device; `seed`, of the order of threads, goes
/// on.
inline void check_ways(const Graph& g, const std::vector<schedule::Choices>& ways, const char* profile,
                       std::uint64_t& seed) {
  for (const schedule::Choices& way : ways) {
    const fuzz::RunOptions options{
        .profile = profile, .checked = true, .threads = 2, .shuffle_seed = seed++, .optimization = 0};
    const fuzz::Outcome result = outcome(g, options, way);
    INFO(ir_of(g).name << " " << way.to_string() << ": " << result.text);
    CHECK(to_string(result.verdict) == to_string(fuzz::Verdict::ok));
  }
}

}  // namespace fuse::test
