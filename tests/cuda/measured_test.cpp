// Marks of a measured run on the device's streams, seen in the fake driver's log.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include "cuda/fake_device.hpp"

namespace fuse::test {
namespace {

TEST_CASE("a measured run marks every step on its stream and waits for nothing", "[cuda][streams]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    const Executable executable = compile(branches(2), Device::cuda());
    WholeRun run(executable);
    REQUIRE(run.run());
    const auto records = [&] {
      const int before = fakes.count("cuEventRecord");
      REQUIRE(run.run());
      return fakes.count("cuEventRecord") - before;
    };
    const int before = records();
    run.workspace.measure();
    const auto steps = static_cast<int>(run.prepared.predicted().steps.size());
    CHECK(records() == before + 2 * steps + 2);
    CHECK(fakes.count("cuStreamSynchronize") == 0);
    CHECK(fakes.count("cuEventSynchronize") == 0);
    const std::optional<Profile> profile = run.workspace.measured();
    REQUIRE(profile);
    CHECK(profile->clock == "CUDA events");
    CHECK(profile->steps.size() == static_cast<std::size_t>(steps));
    int grouped = 0;
    for (const GroupTime& group : profile->groups) {
      CHECK(group.end > group.start);
      grouped += group.steps;
    }
    CHECK(grouped == steps);
  }
  fakes.require_clean();
}

TEST_CASE("a prepared run names the algorithms of its GEMMs", "[cuda][streams]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    Graph g("product");
    g.output("y", matmul(g.input("a", f32, {64, 32}), g.input("b", f32, {32, 48})));
    const std::string text = compile(g, Device::cuda()).prepare().explain();
    INFO(text);
    // The fake's algorithms are as their alignments: 16 bytes, and those of an element.
    CHECK(contains(
        text,
        "cuBLASLt algorithm 16, tile 17, stages 22, split-k 18, 0 bytes of scratch for 16-byte aligned "
        "operands, else algorithm 4, "));
  }
  fakes.require_clean();
}

}  // namespace
}  // namespace fuse::test
#endif
