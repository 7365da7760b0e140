// The passes on generated programs: the reference evaluator gives the same bits before and after.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "compile/pipeline/pipeline.hpp"
#include "eval/evaluate.hpp"
#include "fuzz/grow/generator.hpp"
#include "ir/graph/verify.hpp"
#include "passes/rewrite/rewrite_rules.hpp"
#include "support/catch.hpp"
#include "support/sanitized.hpp"

using namespace fuse;  // NOLINT

namespace {

/// A rule for it may answer other bits inside the table's bound.
bool may_differ(const ir::Node& node) {
  return is_floating(node.type.dtype) &&
         std::ranges::any_of(ir::algebra::rules(), [&](const ir::algebra::Rule& rule) {
           return rule.keeps == ir::algebra::Keeps::bound && rule.from.op == node.op;
         });
}

}  // namespace

TEST_CASE("generated programs mean the same after the passes, bit for bit", "[passes]") {
  const std::uint64_t first = 7'000'000, count = test::fewer(300u);
  std::size_t before = 0, after = 0, compared = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const fuzz::Program program = fuzz::generate(seed).program;
    if (std::ranges::any_of(program.graph.nodes, may_differ)) continue;
    const ir::Graph rewritten = run_pipeline(program.graph, target_profile("h200")).graph;
    INFO("seed " << seed);
    before += program.graph.nodes.size();
    after += rewritten.nodes.size();
    for (const DimValues& dims : program.bindings) {
      const runtime::Values inputs = fuzz::make_inputs(program, dims);
      const auto run = [&](const ir::Graph& graph) {
        const auto value_of = [&](std::string_view name) { return dims.find(name)->second; };
        return runtime::evaluate(graph, inputs, value_of, runtime::Precision::same_type).outputs;
      };
      const auto expected = run(program.graph), got = run(rewritten);
      REQUIRE(got.size() == expected.size());
      for (const auto& [name, value] : expected) {
        INFO("output " << name);
        const bool same = same_bits(got.at(name), value);
        CHECK(same);
        ++compared;
      }
    }
  }
  CHECK(compared > test::fewer(500u));
  CHECK(after < before);
}
