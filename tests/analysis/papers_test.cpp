// The cases of BladeDISC's figures 3 and 5, as graphs on file.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/facts_support.hpp"
#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "support/paths.hpp"
#include "target/target.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using analysis::Facts;
using analysis::Range;

namespace {

Graph paper(const std::string& name) {
  return Graph::load((source_directory() / "tests/papers" / (name + ".fuse")).string());
}

Dim symbol(const Graph& g, const std::string& name) {
  for (const ir::Symbol& declared : ir_of(g).symbols) {
    if (declared.name == name) return Dim::symbol(name, declared.range);
  }
  FAIL("no dim " << name);
  return 0;
}

}  // namespace

TEST_CASE("bladedisc_fig3: factor 4, range from 2048, and the fact outlives the passes", "[facts][papers]") {
  const Graph g = paper("bladedisc_fig3");
  const Dim S0 = symbol(g, "S0"), S3 = symbol(g, "S3");
  const Compiled compiled = run_pipeline(ir_of(g), target_profile("h200"));
  CHECK(unproven_needs(compiled.graph) == 0);
  for (const Facts& facts : {facts_of(g), analysis::facts_of(compiled.graph)}) {
    CHECK(facts.equal(S3, 4 * S0));
    CHECK(facts.factor(S3) == 4);
    CHECK(facts.range(S3) == Range{2048, 262144});
    CHECK(facts.equal_products({S0, 4}, {S3}));
  }
  REQUIRE(compiled.guards.size() == 1);
  CHECK(compiled.guards[0].to_string() == "4 * S0 = S3, for reshape %5");
}

TEST_CASE("bladedisc_fig5: group-dims multiply to the same number", "[facts][papers]") {
  const Graph g = paper("bladedisc_fig5");
  const Facts facts = facts_of(g);
  const Dim S0 = symbol(g, "S0"), S1 = symbol(g, "S1"), S2 = symbol(g, "S2"), S3 = symbol(g, "S3");
  CHECK(facts.equal(S0, S2 * S3));
  CHECK(facts.equal_products({S0}, {S2, S3}));
  CHECK(facts.equal_products({S0, S1}, {S2, S3, S1}));
  CHECK_FALSE(facts.equal_products({S0}, {S2, S1}));
  CHECK(facts.range(S2 * S3).max == 65536);
  const Compiled compiled = run_pipeline(ir_of(g), target_profile("h200"));
  CHECK(unproven_needs(compiled.graph) == 0);
  CHECK(compiled.guards.size() == 1);
  CHECK(to_string(compiled.graph[0].type) == "f32[S2 * S3, S1]");
  // 65536 * 4096 elements need no 64-bit index, which ranges of S2 and S3 alone would.
  for (const kernel::Kernel& kernel : compiled.kernels) CHECK(to_string(kernel.index_type) == "i32");
}

TEST_CASE("bladedisc_fig5_unproven: the product is guarded, not proven", "[facts][papers]") {
  const Graph g = paper("bladedisc_fig5_unproven");
  const Facts facts = facts_of(g);
  const Dim S0 = symbol(g, "S0"), S1 = symbol(g, "S1"), S2 = symbol(g, "S2"), S3 = symbol(g, "S3"),
            S4 = symbol(g, "S4");
  CHECK_FALSE(facts.equal(S0, S2 * S3));
  CHECK_FALSE(facts.equal_products({S0}, {S2, S3}));
  CHECK(facts.equal_products({S0, S1}, {S2, S3, S4}));
  const Compiled compiled = run_pipeline(ir_of(g), target_profile("h200"));
  CHECK(unproven_needs(compiled.graph) == 0);
  REQUIRE(compiled.guards.size() == 1);
  CHECK(compiled.guards[0].relation.to_string() == "S0 * S1 = S2 * S3 * S4");
}
