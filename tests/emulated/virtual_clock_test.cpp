// The virtual clock of the emulated device: costs and waits, and the times of runs that follow from them.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/virtual_clock.hpp"

#include <cmath>
#include <fuse/fuse.hpp>

#include "base/access.hpp"
#include "support/catch.hpp"

using namespace fuse;  // NOLINT
using runtime::ClockedWork;
using runtime::VirtualClock;

namespace {

/// Two branches, each a GEMM, and a kernel that adds them.
Graph branches() {
  Graph g("branches");
  const Tensor x = g.input("x", f32, {64, 64});
  const Tensor a = matmul(x, g.parameter("a", f32, {64, 32})), b = matmul(x, g.parameter("b", f32, {64, 48}));
  g.output("y", tanh(a));
  g.output("z", exp(b));
  return g;
}

Profile measured_run(const Device& device, const CompileOptions& options) {
  const Executable executable = compile(branches(), device, options);
  Session session(executable);
  for (const Slot& slot : executable.slots()) {
    if (slot.kind == Slot::Kind::output) continue;
    const std::size_t bytes = static_cast<std::size_t>(product(slot.dims).constant()) * size_of(slot.dtype);
    session.set(slot.name, std::vector<std::byte>(bytes));
  }
  session.pack();
  session.measure();
  session.run();
  return session.measured().value();
}

}  // namespace

TEST_CASE("work advances the time of its queue, and a wait takes the later time", "[emulated]") {
  VirtualClock clock(0, 1);
  const int a = 0, b = 0;
  clock.spend(&a, {.seconds = 2});
  clock.spend(&b, {.seconds = 5});
  CHECK(clock.time(&a) == 2);
  CHECK(clock.time(&b) == 5);
  clock.wait_until(&a, clock.time(&b));
  CHECK(clock.time(&a) == 5);
  clock.wait_until(&a, 3);
  CHECK(clock.time(&a) == 5);
  clock.forget(&a);
  CHECK(clock.time(&a) == 0);
}

TEST_CASE("a planted cost sees how many other queues are at work", "[emulated]") {
  VirtualClock clock(0, 1);
  std::vector<int> seen;
  clock.plant([&](const ClockedWork& work) {
    seen.push_back(work.beside);
    return work.beside > 0 ? 2 * work.seconds : work.seconds;
  });
  const int a = 0, b = 0, c = 0;
  clock.spend(&a, {.seconds = 3});  // alone
  clock.spend(&b, {.seconds = 1});  // beside a
  clock.spend(&c, {.seconds = 1});  // beside both
  clock.spend(&a, {.seconds = 1});  // they have ended
  CHECK(seen == std::vector<int>{0, 1, 2, 0});
  CHECK(clock.time(&b) == 2);
  CHECK(clock.time(&a) == 4);
}

TEST_CASE("noise has the deviation that was asked for, and is the same for the same seed", "[emulated]") {
  const int queue = 0;
  const auto times = [&](std::uint64_t seed) {
    VirtualClock clock(0.05, seed);
    std::vector<double> each;
    for (int i = 0; i < 4000; ++i) {
      const double before = clock.time(&queue);
      clock.spend(&queue, {.seconds = 1});
      each.push_back(clock.time(&queue) - before);
    }
    return each;
  };
  const std::vector<double> first = times(1);
  CHECK(first == times(1));
  CHECK(first != times(2));
  double mean = 0, square = 0;
  for (const double each : first) mean += each / 4000;
  for (const double each : first) square += (each - mean) * (each - mean) / 4000;
  CHECK(mean == Approx(1).margin(0.005));
  CHECK(std::sqrt(square) == Approx(0.05).epsilon(0.05));
}

TEST_CASE("a measured run takes the same virtual time again, and streams are at work beside each other",
          "[emulated]") {
  const auto device = [] { return Device::emulated({.optimization = 0, .virtual_clock = true}); };
  CompileOptions options;
  options.merge_gemms = false;
  const Profile first = measured_run(device(), options), second = measured_run(device(), options);
  CHECK(first.clock == "virtual clock (h200)");
  CHECK(first.seconds > 0);
  CHECK(first.seconds == second.seconds);
  options.streams = 1;
  const Device one = device();
  runtime::plant_costs(*backend_of(one), [](const ClockedWork& work) { return work.gemm ? 10.0 : 1.0; });
  CHECK(measured_run(one, options).seconds == Approx(21));  // tanh and exp share a launch
  options.streams = 2;
  const Device two = device();
  runtime::plant_costs(*backend_of(two), [](const ClockedWork& work) { return work.gemm ? 10.0 : 1.0; });
  CHECK(measured_run(two, options).seconds == Approx(11));
}

TEST_CASE("costs are planted on a virtual clock alone", "[emulated]") {
  const Device device = Device::emulated();
  CHECK_THROWS_WITH(runtime::plant_costs(*backend_of(device), {}), Catch::Contains("virtual clock"));
}
