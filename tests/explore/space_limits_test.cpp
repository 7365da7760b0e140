// An exploration tries nothing that the options of the compilation rule out.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fuse/explore.hpp>
#include <fuse/fuse.hpp>
#include <vector>

#include "base/access.hpp"
#include "runtime/explore/space.hpp"
#include "support/catch.hpp"

using namespace fuse;  // NOLINT

namespace {

/// Rows that many blocks share, and a kernel behind them.
Graph long_rows() {
  Graph g("long");
  const Tensor x = g.input("x", f32, {4, 1 << 20});
  g.output("sum", sum(x, 1));
  g.output("columns", sum(exp(g.input("z", f32, {100000, 64})), 0));
  return g;
}

runtime::Space space_with(const CompileOptions& options) {
  return runtime::space_of(ir_of(long_rows()), target_profile("h200"), options, {.bits = Bits::any});
}

std::size_t options_that_wait(const runtime::Space& space) {
  std::size_t count = 0;
  for (const runtime::ExploredKernel& kernel : space.cuts.front().kernels) {
    for (const schedule::KernelChoices& choices : kernel.options)
      count += static_cast<std::size_t>(std::count_if(choices.phases.begin(), choices.phases.end(),
                                                      [](const auto& phase) { return phase.blocks > 0; }));
  }
  return count;
}

}  // namespace

TEST_CASE("an exploration tries no more streams than are allowed", "[explore]") {
  CHECK(space_with({.streams = 8}).cuts.front().streams == std::vector<int>{8, 1, 2, 4});
  CHECK(space_with({.streams = 4}).cuts.front().streams == std::vector<int>{4, 1, 2});
  CHECK(space_with({.streams = 3}).cuts.front().streams == std::vector<int>{3, 1, 2});
  CHECK(space_with({.streams = 1}).cuts.front().streams == std::vector<int>{1});
}

TEST_CASE("without grid barriers an exploration tries no kernel whose blocks wait", "[explore]") {
  CHECK(options_that_wait(space_with({})) > 1);
  CHECK(options_that_wait(space_with({.grid_barriers = false})) == 0);
}
