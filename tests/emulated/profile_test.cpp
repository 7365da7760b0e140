// When the steps of a run are at work: by the cost model, and as marked. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <map>

#include "compile/pipeline/experiments.hpp"
#include "support/branches.hpp"
#include "support/catch.hpp"

namespace fuse::test {
namespace {

bool overlap(const Profile& profile) {
  for (const StepTime& a : profile.steps) {
    for (const StepTime& b : profile.steps) {
      if (a.stream < b.stream && a.start < b.end && b.start < a.end) return true;
    }
  }
  return false;
}

void check_spans(const Profile& profile, std::size_t steps) {
  REQUIRE(profile.steps.size() == steps);
  double last = 0;
  std::map<int, double> ended;  // of each stream
  for (const StepTime& step : profile.steps) {
    INFO(step.step);
    CHECK(step.start >= ended[step.stream]);
    CHECK(step.end >= step.start);
    ended[step.stream] = step.end;
    last = std::max(last, step.end);
  }
  CHECK(profile.seconds >= last);
}

TEST_CASE("a profile has the times of groups, from their first step to their last", "[emulated][streams]") {
  // One group of three steps, and one of a single step behind a GEMM; what the copy makes is in no group.
  Graph g("grouped");
  const Tensor x = g.input("x", f32, {64, 32});
  const Tensor y = softmax(x, 1);
  g.output("y", y);
  g.output("z", tanh(matmul(y, g.input("w", f32, {32, 16}))));
  g.output("again", x);
  const Prepared prepared =
      compile(g, Device::emulated(), {.experiments = experiments({.stitch = Stitch::mapping})}).prepare();
  const Profile profile = prepared.predicted();
  char seconds[64];
  std::snprintf(seconds, sizeof seconds, "  %.2f us by the cost model", 1e6 * profile.seconds);
  CHECK(prepared.explain().find(seconds) != std::string::npos);
  REQUIRE(profile.groups.size() >= 2);
  std::size_t grouped = 0, several = 0;
  for (const GroupTime& group : profile.groups) {
    INFO(group.group << " " << group.name);
    CHECK(!group.name.empty());
    CHECK(group.start < group.end);
    several += group.steps > 1;
    grouped += static_cast<std::size_t>(group.steps);
    CHECK(std::any_of(profile.steps.begin(), profile.steps.end(),
                      [&](const StepTime& step) { return step.start == group.start; }));
    CHECK(std::any_of(profile.steps.begin(), profile.steps.end(),
                      [&](const StepTime& step) { return step.end == group.end; }));
  }
  CHECK(several == 1);
  CHECK(grouped + 1 == profile.steps.size());
  const auto softmax_group = std::find_if(profile.groups.begin(), profile.groups.end(),
                                          [](const GroupTime& group) { return group.steps > 1; });
  CHECK(softmax_group->name.find("in softmax") != std::string::npos);
  CHECK(softmax_group->start == 0);
  CHECK(softmax_group->end < profile.seconds);
}

TEST_CASE("the cost model's run has branches beside each other", "[emulated][streams]") {
  const Device device = Device::emulated();
  const Prepared prepared =
      compile(branches(4), device, {.experiments = experiments({.layers = 2})}).prepare();
  const Profile profile = prepared.predicted();
  check_spans(profile, static_cast<std::size_t>(prepared.launches() + prepared.gemms()));
  CHECK(profile.clock == "cost model (h200)");
  CHECK(prepared.streams() > 1);
  CHECK(overlap(profile));
  CHECK(profile.steps[0].step.starts_with("step 0, kernel '"));

  const Prepared one =
      compile(branches(4), device, {.experiments = experiments({.layers = 2}), .streams = 1}).prepare();
  CHECK_FALSE(overlap(one.predicted()));
  CHECK(one.predicted().seconds > profile.seconds);
}

TEST_CASE("a prepared run is explained step by step", "[emulated][streams]") {
  const Prepared prepared =
      compile(branches(4), Device::emulated(), {.experiments = experiments({.layers = 2})}).prepare();
  const std::string text = prepared.explain();
  INFO(text);
  const auto count = [&](const std::string& words) {
    std::size_t found = 0;
    for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++found;
    return found;
  };
  CHECK(text.find("streams: " + std::to_string(prepared.streams())) != std::string::npos);
  CHECK(text.find("workspace: " + std::to_string(prepared.workspace_bytes()) + " bytes") !=
        std::string::npos);
  CHECK(count("\nstream ") == prepared.predicted().steps.size());
  CHECK(count("\nstream 1") > 0);
  CHECK(count("waits for step") > 0);

  // What ends on another stream than the caller's is waited for, and nothing else.
  Graph two("two");
  const Tensor x = two.input("x", f32, {64, 64}), z = two.input("z", f32, {64, 63});
  for (int i = 0; i < 3; ++i) {
    two.output("y" + std::to_string(i), softmax(slice(x, 1, 0, 64 - i), 0));
  }
  two.output("z", softmax(z, 0));
  const Prepared apart =
      compile(two, Device::emulated(), {.experiments = experiments({.layers = 2})}).prepare();
  INFO(apart.explain());
  REQUIRE(apart.streams() > 1);
  CHECK(apart.explain().find("ends after step") != std::string::npos);
  const Prepared one = compile(two, Device::emulated(), {.streams = 1}).prepare();
  CHECK(one.explain().find("ends after") == std::string::npos);
}

TEST_CASE("a run is measured where its workspace says so", "[emulated][streams]") {
  const Device device = Device::emulated();
  const Executable executable = compile(branches(6), device);
  WholeRun run(executable);
  REQUIRE(run.run());
  CHECK_FALSE(run.workspace.measured());
  run.workspace.measure();
  CHECK_FALSE(run.workspace.measured());
  REQUIRE(run.run());
  REQUIRE(run.stream.synchronize());
  const std::optional<Profile> profile = run.workspace.measured();
  REQUIRE(profile);
  check_spans(*profile, run.prepared.predicted().steps.size());
  CHECK(profile->clock == "host clock");
  CHECK(profile->seconds > 0);

  for (const StepTime& step : profile->steps) CHECK(step.end > step.start);

  // Buffers that are refused: there is no such run.
  run.views[0].bytes = 1;
  CHECK_FALSE(run.run());
  CHECK(run.workspace.measured());  // of the run before
}

TEST_CASE("an empty workspace says that it has nothing, and cannot be measured", "[streams]") {
  Workspace empty;
  CHECK_FALSE(empty.measured());
  CHECK_FALSE(empty.split());
  CHECK(empty.mode_note().empty());
  CHECK(empty.mode() == ExecutionMode::streams);
  CHECK(empty.memory().address == nullptr);
  CHECK(empty.memory().bytes == 0);
  try {
    empty.measure();
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    CHECK(error.info().message == "the workspace is empty");
  }
}

TEST_CASE("the reference device has no steps to measure", "[streams]") {
  const Executable executable = compile(branches(2), Device::reference());
  WholeRun run(executable);
  run.workspace.measure();
  REQUIRE(run.run());
  CHECK_FALSE(run.workspace.measured());
  CHECK(run.prepared.predicted().steps.empty());
}

}  // namespace
}  // namespace fuse::test
