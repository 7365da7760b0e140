// fuse_faults: plants every fault of plant_fault.hpp in the kernels of the list of stitched graphs, one at a
// time, and tells which of them the checked device or the oracle finds. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "support/stitch_cases.hpp"

namespace fuse::test {
namespace {

constexpr std::size_t together = 32;  // programs that one call of the system compiler builds

struct Planted {
  std::string graph, kernel, what;
  fuzz::Case made;
};

/// Of the kernels that steps of the plan run: parts of others that the device has slots for do not run.
std::vector<Planted> plant(const StitchGraph& each, std::int64_t rows, std::int64_t columns,
                           const std::string& profile = "h200", const std::string& rules = "") {
  const Graph graph = each.build(f32, rows, columns);
  const Compiled compiled = run_pipeline(ir_of(graph), target_profile(profile), fuzz::pipeline_of(rules));
  const std::vector<std::size_t> uses = kernel_uses(compiled);
  std::vector<Planted> planted;
  for (const kernel::FaultSite& site : kernel::fault_sites(compiled.kernels)) {
    if (uses[site.kernel] == 0) continue;
    const fuzz::RunOptions options{.profile = profile,
                                   .checked = true,
                                   .shuffle_seed = 1,
                                   .optimization = 0,
                                   .fault = kernel::to_string(site.fault),
                                   .rules = rules};
    planted.push_back({fmt::format("{} {}x{} {} {}", each.name, rows, columns, profile, rules),
                       compiled.kernels[site.kernel].name, site.what, case_of(graph, options)});
  }
  return planted;
}

struct Tally {
  int planted = 0, found = 0;
};

int run() {
  std::vector<Planted> all;
  for (const StitchGraph& each : stitch_graphs()) {
    // A warp a row, and a block whose last warp has elements; more blocks than a combining block has warps.
    for (const std::int64_t columns : {20, 500}) {
      for (Planted& one : plant(each, 150, columns)) all.push_back(std::move(one));
    }
    // Rows of several blocks: a cluster's, or of a grid that waits; phases behind grid barriers. Of graphs
    // whose results depend on every part of their reductions, which softmax's do not on its maximum.
    const std::string name = each.name;
    if (name != "rms_norm" && name != "layer_norm") continue;
    for (const char* profile : {"h200", "a100"}) {
      for (Planted& one : plant(each, 2, 40000, profile)) all.push_back(std::move(one));
    }
    for (Planted& one : plant(each, 30, 45, "tiny3", "no-merge")) all.push_back(std::move(one));
    for (Planted& one : plant(each, 1, 3000, "tiny3", "astitch")) all.push_back(std::move(one));
  }
  std::map<std::string, Tally> by_kind, by_verdict;
  std::vector<std::string> survivors;
  const bool progress = isatty(STDERR_FILENO) != 0;
  for (std::size_t first = 0; first < all.size(); first += together) {
    const std::size_t last = std::min(all.size(), first + together);
    std::vector<fuzz::Case> cases;
    for (std::size_t i = first; i < last; ++i) cases.push_back(all[i].made);
    fuzz::Batch batch(std::move(cases));
    for (std::size_t i = first; i < last; ++i) {
      const fuzz::Outcome outcome = batch.run(i - first);
      const std::string& fault = all[i].made.options.fault;
      const bool found = fuzz::is_failure(outcome.verdict);
      Tally& tally = by_kind[fault.substr(0, fault.find('.'))];
      ++tally.planted;
      tally.found += found;
      ++by_verdict[std::string(to_string(outcome.verdict))].planted;
      if (!found) survivors.push_back(fmt::format("{:<36} {:<14} {}", all[i].graph, fault, all[i].what));
    }
    if (progress) std::fprintf(stderr, "\r%zu of %zu", last, all.size());
  }
  if (progress) std::fprintf(stderr, "\r                \r");
  fmt::print("{:<10} {:>8} {:>8}\n", "fault", "planted", "found");
  Tally sum;
  for (const auto& [kind, tally] : by_kind) {
    fmt::print("{:<10} {:>8} {:>8} {:>8.1f}%\n", kind, tally.planted, tally.found,
               100.0 * tally.found / tally.planted);
    sum.planted += tally.planted;
    sum.found += tally.found;
  }
  fmt::print("{:<10} {:>8} {:>8} {:>8.1f}%\n\n", "all", sum.planted, sum.found,
             100.0 * sum.found / sum.planted);
  for (const auto& [verdict, tally] : by_verdict) fmt::print("{:<10} {:>8}\n", verdict, tally.planted);
  fmt::print("\nnot found:\n");
  for (const std::string& survivor : survivors) fmt::print("  {}\n", survivor);
  return 50 * sum.found >= 49 * sum.planted ? 0 : 1;  // 98%
}

}  // namespace
}  // namespace fuse::test

int main() {
  try {
    return fuse::test::run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuse_faults: %s\n", error.what());
    return 2;
  }
}
