// Kernels of rows and columns on the fake driver: launched whole where there are slots, in parts where not.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <vector>

#include "cuda/fake_device.hpp"

namespace fuse::test {
namespace {

Graph normalised_columns() {
  Graph g("normalised_columns");
  const Tensor x = g.input("x", f32, {1024, 64});
  const Tensor y = x / sum(x, {1}, {.keep_dims = true});
  g.output("y", y);
  g.output("columns", sum(y, {0}));
  return g;
}

}  // namespace

TEST_CASE("a kernel of rows and columns is one launch where it has slots", "[cuda][residency][stitch]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    const Executable executable = compile(normalised_columns(), Device::cuda());
    for (const ExecutionMode mode : {ExecutionMode::streams, ExecutionMode::graph}) {
      INFO("graph " << (mode == ExecutionMode::graph));
      WholeRun first(executable, {}, {.mode = mode});
      REQUIRE(first.prepared.launches() == 1);
      // One block of so many threads takes the whole of a multiprocessor: a second run has no slots.
      std::vector<WholeRun> others;
      while (others.empty() || !others.back().workspace.split())
        others.emplace_back(executable, DimValues{}, WorkspaceOptions{.mode = mode});
      CHECK_FALSE(first.workspace.split());
      for (int again = 0; again < 2; ++again) {
        REQUIRE(first.run());
        REQUIRE(others.back().run());
      }
    }
  }
  fakes.require_clean();
}

}  // namespace fuse::test
#endif
