// Stitching: which graphs become one kernel, and what it answers. SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "base/access.hpp"
#include "compile/pipeline/experiments.hpp"
#include "fuzz/judge/execute.hpp"
#include "stitch/stitch_support.hpp"
#include "support/sanitized.hpp"
#include "support/stitch_cases.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

std::size_t kernels_of(const Graph& graph, const char* profile, Stitch stitch = Stitch::full) {
  const std::vector<std::size_t> uses =
      kernel_uses(compiled(graph, profile, {.experiments = experiments({.stitch = stitch})}));
  return std::accumulate(uses.begin(), uses.end(), std::size_t{0});
}

/// All of the list with these options, against the exact results.
void check_all(std::vector<fuzz::RunOptions> variants, std::int64_t rows, std::int64_t columns) {
  std::vector<fuzz::Case> cases;
  std::vector<std::string> names;
  for (const StitchGraph& each : stitch_graphs()) {
    for (const DType dtype : {f32, bf16}) {
      for (const fuzz::RunOptions& options : variants) {
        cases.push_back(case_of(each.build(dtype, rows, columns), options));
        names.push_back(std::string(each.name) + ' ' + std::string(to_string(dtype)) + ' ' +
                        to_string(options));
      }
    }
  }
  fuzz::Batch batch(std::move(cases));
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const fuzz::Outcome outcome = batch.run(i);
    INFO(names[i] << ": " << outcome.text);
    CHECK(to_string(outcome.verdict) == to_string(fuzz::Verdict::ok));
  }
}

}  // namespace

TEST_CASE("a memory-intensive part of a model is one kernel", "[stitch][schedule]") {
  for (const StitchGraph& each : stitch_graphs()) {
    for (const DType dtype : {f32, bf16}) {
      for (const char* profile : {"v100", "a100", "h200", "tiny3"}) {
        INFO(each.name << ' ' << to_string(dtype) << " for " << profile);
        const Graph graph = each.build(dtype, 512, 1024);
        const std::size_t kernels = kernels_of(graph, profile);
        CHECK(kernels == 1);
        CHECK(kernels < kernels_of(graph, profile, Stitch::mapping));
      }
    }
  }
}

TEST_CASE("stitched kernels answer right, checked, whatever the order of threads", "[stitch][emulated]") {
  const int rounds = test::fewer(3, 3);
  std::vector<fuzz::RunOptions> variants;
  for (const char* profile : {"v100", "a100", "h200", "tiny3"}) {
    for (int seed = 1; seed <= rounds; ++seed) {
      variants.push_back({.profile = profile,
                          .checked = true,
                          .threads = 2,
                          .shuffle_seed = static_cast<std::uint64_t>(seed),
                          .optimization = 0});
    }
  }
  check_all(variants, 5, 100);
}

TEST_CASE("stitched kernels answer right by other nests and for other numbers of cached values",
          "[stitch][emulated]") {
  std::vector<fuzz::RunOptions> variants;
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(test::fewer(10, 5)); ++seed) {
    variants.push_back({.profile = seed % 2 ? "tiny2" : "h200", .choices_seed = seed, .optimization = 0});
  }
  check_all(variants, 7, 45);
}

TEST_CASE("both parts of a concat may be one total, whose other dim is 1 long", "[stitch]") {
  Graph g("twice");
  const Tensor most = max(g.input("x", f32, {16, 1, 32}), {2});
  g.output("y", slice(concat({most, most}, 1), 1, 0, 2, 2));
  PipelineOptions options;
  options.graph_passes = 0;  // which would take the concat away
  const Compiled made = run_pipeline(ir_of(g), target_profile("h200"), options);
  CHECK(made.kernels.size() == 1);
}
