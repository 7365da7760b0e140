// Faults that are planted in kernels: where, and that each changes the text and nothing else.
// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/plant_fault.hpp"

#include <map>
#include <utility>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "ir/kernel/visit.hpp"
#include "kernel/kernel_support.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "support/sanitized.hpp"
#include "support/stitch_cases.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using kernel::PlantedFault;

namespace {

Compiled stitched() {
  return run_pipeline(ir_of(stitch::layer_norm_backward(f32, 150, 500)), target_profile("h200"));
}

}  // namespace

TEST_CASE("faults have names", "[kernel]") {
  for (const char* name : {"barrier.0", "extent.12+1", "extent.12-1", "overlap.3", "fence.0"}) {
    INFO(name);
    REQUIRE(kernel::parse_fault(name));
    CHECK(to_string(*kernel::parse_fault(name)) == name);
  }
  for (const char* name : {"", "barrier", "barrier.", "barrier.x", "barrier.0+1", "extent.1", "extent.1+2",
                           "other.0", "fence.0 "}) {
    INFO(name);
    CHECK_FALSE(kernel::parse_fault(name));
  }
}

TEST_CASE("each planted fault is another text, in one kernel", "[kernel][stitch]") {
  const Compiled whole = stitched();
  const std::vector<kernel::FaultSite> sites = kernel::fault_sites(whole.kernels);
  std::map<PlantedFault::Kind, int> kinds;
  for (const kernel::FaultSite& site : sites) {
    INFO(to_string(site.fault) << ' ' << site.what);
    ++kinds[site.fault.kind];
    std::vector<kernel::Kernel> kernels = whole.kernels;
    REQUIRE(kernel::plant_fault(kernels, site.fault));
    for (std::size_t i = 0; i < kernels.size(); ++i)
      CHECK((print(kernels[i]) == print(whole.kernels[i])) == (i != site.kernel));
  }
  CHECK(kinds.size() == 4);
  std::vector<kernel::Kernel> kernels = whole.kernels;
  CHECK_FALSE(kernel::plant_fault(kernels, {.kind = PlantedFault::Kind::fence, .site = 99}));
}

TEST_CASE("a serial loop of one statement may go one trip further", "[kernel]") {
  using namespace fuse::kernel;
  Kernel k;
  k.body.push_back({For{.name = "i", .end = 8, .body = {{Barrier{}}}}});
  std::vector<std::string> names;
  for (const FaultSite& site : fault_sites({k})) names.push_back(to_string(site.fault));
  CHECK(names == std::vector<std::string>{"barrier.0", "extent.0+1", "extent.0-1"});
}

TEST_CASE("an array that is laid over another takes its accesses, and nobody else's", "[kernel]") {
  using namespace fuse::kernel;
  enum : BufferId { x, first, second };
  for (const int elements : {8, 32}) {
    INFO("the second has " << elements);
    Kernel k;
    k.buffers = {{"x", f32, Space::global, 64, false},
                 {"first", f32, Space::shared, 16, true},
                 {"second", f32, Space::shared, elements, true}};
    for (const BufferId array : {first, second}) k.body.push_back({Store{array, 0, 0}, {}});
    for (const BufferId buffer : {first, second, x}) k.body.push_back({Let{0, Load{buffer, 0, {}}}, {}});
    std::vector<Kernel> kernels = {k};
    REQUIRE(plant_fault(kernels, {.kind = PlantedFault::Kind::overlap}));
    std::vector<BufferId> accessed;
    for_each_stmt(std::as_const(kernels[0].body), [&](const Stmt& stmt) {
      for_each_access(stmt, [&](BufferId buffer, bool) { accessed.push_back(buffer); });
    });
    const BufferId longer = elements > 16 ? second : first;
    CHECK(accessed == std::vector<BufferId>{longer, longer, longer, longer, x});
  }
}

TEST_CASE("a fault that is asked for and cannot be planted is an error", "[kernel]") {
  CHECK(thrown_by([] {
          run_pipeline(ir_of(stitch::softmax(f32, 8, 64)), target_profile("h200"),
                       {.fault = PlantedFault{.kind = PlantedFault::Kind::fence}});
        }).find("no site for the fault fence.0") != std::string::npos);
}

TEST_CASE("planted faults of every kind are found", "[kernel][stitch][emulated]") {
  const Graph graph = stitch::layer_norm_backward(f32, 150, 500);
  const Compiled whole = stitched();
  const std::vector<std::size_t> uses = kernel_uses(whole);
  std::map<PlantedFault::Kind, std::vector<fuzz::Case>> cases;
  for (const kernel::FaultSite& site : kernel::fault_sites(whole.kernels)) {
    if (uses[site.kernel] == 0 || site.fault.kind == PlantedFault::Kind::extent) continue;
    cases[site.fault.kind].push_back(case_of(
        graph, {.checked = true, .shuffle_seed = 1, .optimization = 0, .fault = to_string(site.fault)}));
  }
  CHECK(cases.size() == 3);
  for (auto& [kind, planted] : cases) {
    fuzz::Batch batch(std::move(planted));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      INFO("kind " << static_cast<int>(kind) << " number " << i);
      CHECK(fuzz::is_failure(batch.run(i).verdict));
    }
  }
}

TEST_CASE("a thread's own arrays have bounds, and hold what was written", "[kernel][stitch][emulated]") {
  const Graph graph = stitch::softmax(f32, 8, 512);
  PipelineOptions one_by_one;
  one_by_one.choose = [](const ir::Graph&, const schedule::Segment&, const Target&) {
    return schedule::KernelChoices{{{.splits = schedule::nest_of_blocks(128), .register_cache = 32}}};
  };
  const Compiled whole = run_pipeline(ir_of(graph), target_profile("h200"), one_by_one);
  REQUIRE(whole.schedules[0].phases[0].elements_per_thread > 1);
  std::string out_of_bounds, unwritten;
  for (const kernel::FaultSite& site : kernel::fault_sites(whole.kernels)) {
    if (site.what.find("while k") == std::string::npos) continue;
    const fuzz::RunOptions options{.checked = true, .optimization = 0, .fault = to_string(site.fault)};
    const fuzz::Outcome outcome = fuzz::Batch({case_of(graph, options)}, {}, one_by_one.choose).run(0);
    (site.fault.by > 0 ? out_of_bounds : unwritten) += outcome.text + '\n';
  }
  // One trip more: beyond the array. One less in an earlier pass: the later one finds nothing there.
  CHECK(out_of_bounds.find("out of bounds write of local 'h") != std::string::npos);
  CHECK(out_of_bounds.find("out of bounds read of local 'h") != std::string::npos);
  CHECK(unwritten.find("read of local 'h") != std::string::npos);
  CHECK(unwritten.find("which nobody wrote") != std::string::npos);
}
