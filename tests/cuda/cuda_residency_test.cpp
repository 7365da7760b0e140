// Launches that spin on the fake driver: cooperative ones where there are slots, else their parts.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include "base/access.hpp"
#include "compile/compile.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "cuda/fake_device.hpp"
#include "support/grid_kernels.hpp"

namespace fuse::test {
namespace {

/// The fake GPU holds 132 * 32 = 4224 blocks of 64 threads with 32 registers each.
Graph sums(const CustomKernel& kernel) {
  Graph g("sums");
  g.output("y", custom_call(kernel, {g.input("x", i32, {kernel.grid, 64})}, i32, {2 * kernel.grid}));
  return g;
}

TEST_CASE("a workspace launches cooperatively, the next one the parts", "[cuda][residency]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    // Another handle of the same GPU, as another library of the process would have.
    const Executable one = compile(sums(row_sums_and_total_in_parts(4000)), Device::cuda());
    const Executable other = compile(sums(row_sums_and_total_in_parts(225)), Device::cuda());
    auto whole = std::make_unique<WholeRun>(one);
    WholeRun parts(other);
    CHECK_FALSE(whole->workspace.split());
    CHECK(parts.workspace.split());
    REQUIRE(whole->run());
    CHECK(fakes.count("cuLaunchCooperativeKernel") == 1);
    CHECK(fakes.count("cuLaunchKernel") == 0);
    REQUIRE(parts.run());
    CHECK(fakes.count("cuLaunchCooperativeKernel") == 1);
    CHECK(fakes.count("cuLaunchKernel") == 2);
    CHECK(fakes.find_call("cuLaunchKernel").starts_with("cuLaunchKernel row_sums_and_total_0 grid 225 1 1"));
    whole.reset();
    const Workspace slots = parts.prepared.workspace();
    CHECK_FALSE(slots.split());
  }
  fakes.require_clean();
}

TEST_CASE("a workspace holds its slots until its last run is over", "[cuda][residency]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    const Executable executable = compile(sums(row_sums_and_total_in_parts(4000)), Device::cuda());
    WholeRun run(executable);
    REQUIRE(run.run());
    const int before = fakes.count("cuEventSynchronize");
    run.workspace = Workspace();
    CHECK(fakes.count("cuEventSynchronize") == before + 1);
    run.workspace = run.prepared.workspace();
    fakes.fail_at("cuLaunchCooperativeKernel", 1, 999);
    REQUIRE_FALSE(run.run());  // its memset is in flight
    run.workspace = Workspace();
    CHECK(fakes.count("cuEventSynchronize") == before + 2);
    run.workspace = run.prepared.workspace({.mode = ExecutionMode::graph});
    CHECK_FALSE(run.workspace.split());
    REQUIRE(run.run());
    CHECK(fakes.count("cuGraphLaunch") == 1);
    const Workspace other = run.prepared.workspace({.mode = ExecutionMode::graph});
    CHECK(other.split());
  }
  fakes.require_clean();
}

TEST_CASE("a run holds slots for all that it has beside itself", "[cuda][residency]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  Graph two("two");
  for (const char* name : {"a", "b"}) {
    const CustomKernel kernel = row_sums_and_total_in_parts(2000);
    two.output(std::string("y") + name, custom_call(kernel, {two.input(name, i32, {2000, 64})}, i32, {4000}));
  }
  const Device device = Device::cuda();
  const Prepared other = compile(sums(row_sums_and_total_in_parts(300)), device).prepare();
  for (const bool beside : {true, false}) {
    INFO("beside each other " << beside);
    Compiled compiled = run_pipeline(ir_of(two), backend_of(device)->target());
    REQUIRE(compiled.plan.steps.size() == 3);  // the counters set to zero, two kernels
    compiled.streams = {.max_streams = 2, .stream = {0, 0, 0}};
    if (beside) compiled.streams.stream = {0, 0, 1};
    const WholeRun run(runtime::make_executable(ir_of(two), std::move(compiled), device));
    CHECK_FALSE(run.workspace.split());
    CHECK(other.workspace().split() == beside);  // 4000 + 300 of 4224, or 2000 + 300
  }
}

TEST_CASE("registers that the driver counted decide how many blocks have slots", "[cuda][residency]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  CHECK(compile(sums(row_sums_and_total_in_parts(4224)), Device::cuda()).prepare().launches() == 1);
  CHECK(compile(sums(row_sums_and_total_in_parts(4225)), Device::cuda()).prepare().launches() == 2);
  const Executable whole = compile(sums(row_sums_and_total(4225)), Device::cuda());
  CHECK(error_info([&] { whole.prepare(); }).code == ErrorCode::out_of_residency);
}

TEST_CASE("a driver that counts fewer blocks than the registers allow is believed", "[cuda][residency]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  fakes.set_most_blocks(16);  // a sanitizer's, say, which takes a part of each multiprocessor
  CHECK(compile(sums(row_sums_and_total_in_parts(2112)), Device::cuda()).prepare().launches() == 1);
  CHECK(compile(sums(row_sums_and_total_in_parts(2113)), Device::cuda()).prepare().launches() == 2);
}

}  // namespace
}  // namespace fuse::test
#endif
