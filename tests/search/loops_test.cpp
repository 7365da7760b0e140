// The loops that are read off kernels, and what couples of them. SPDX-License-Identifier: Apache-2.0
#include "schedule/search/loops.hpp"

#include "schedule/search/couple.hpp"
#include "search/search_segments.hpp"
#include "support/catch.hpp"

using namespace fuse;            // NOLINT
using namespace fuse::test;      // NOLINT
using namespace fuse::schedule;  // NOLINT

namespace {

/// "%1.0 37, %1.1 72 threads": each loop with its extent, and "threads" where it may not be blocks.
std::string loops_text(const SearchedKernel& kernel) {
  std::string text;
  for (const Loop& loop : loops_of(kernel.graph, kernel.segment)) {
    text += (text.empty() ? "" : ", ") + loop.name + " " + loop.extent.to_string() +
            (loop.may_be_blocks ? "" : " threads");
    for (const std::size_t parent : loop.descends_from) text += " <" + std::to_string(parent);
  }
  return text;
}

SearchedKernel kernel_of(const Graph& g) {
  std::vector<SearchedKernel> kernels = kernels_of("graph", g, "h200");
  REQUIRE(kernels.size() == 1);
  return kernels[0];
}

}  // namespace

TEST_CASE("loops: a softmax has rows that may be blocks, and elements that are reduced or read out of order",
          "[search]") {
  Graph g("softmax");
  g.output("y", softmax(g.input("x", f32, {37, 72})));
  const SearchedKernel kernel = kernel_of(g);
  CHECK(loops_text(kernel) ==
        "%1.0 37, %1.1 72 threads, %5.0 37 <0, %5.1 72 threads, %7.0 37 <0 <2, %7.1 72 threads");
  const CoupledLoops classes = coupled(loops_of(kernel.graph, kernel.segment));
  CHECK(classes.coupled == 2);  // the rows
  CHECK(classes.designs_before == 512);
  CHECK(classes.designs_after == 32);
}

TEST_CASE("loops: nothing keeps the loops of elements from being blocks", "[search]") {
  Graph g("elements");
  const Tensor x = g.input("x", f32, {37, 1, 72});
  g.output("y", exp(x));
  CHECK(loops_text(kernel_of(g)) == "%1.0 37, %1.2 72");  // an extent of one is no loop
}

TEST_CASE("loops: columns beside rows reduce the rows", "[search]") {
  Graph g("columns");
  g.output("y", sum(g.input("x", f32, {37, 72}), {0}));
  CHECK(loops_text(kernel_of(g)) == "%1.0 37 threads, %1.1 72");
}
