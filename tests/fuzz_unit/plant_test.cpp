// Faults planted between the graph and the device are found, and made small.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "fuzz/corpus.hpp"
#include "fuzz/grow/generator.hpp"
#include "fuzz/grow/random.hpp"
#include "fuzz/judge/execute.hpp"
#include "fuzz/minimise.hpp"
#include "support/catch.hpp"
#include "support/sanitized.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::fuzz;  // NOLINT

namespace {

/// A rewrite that a careless pass could make: x - y becomes y - x.
ir::Graph swap_differences(const ir::Graph& graph) {
  ir::Graph wrong = graph;
  for (ir::Node& node : wrong.nodes) {
    if (node.op == ir::Op::sub) std::swap(node.operands[0], node.operands[1]);
  }
  return wrong;
}

bool has(const ir::Graph& graph, ir::Op op) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const ir::Node& node) { return node.op == op; });
}

constexpr const char* difference = R"(#! options profile=tiny3 checked=1 threads=2 shuffle=3 choices=5
#! inputs_seed 7
#! input uniform -2 2 x
#! input whole 1 5 z
#! dims B=5
graph @g(%x: f32[B, 7], %z: f32[B, 7]) -> (unused: f32[B, 7], y: f32[7])
    where B in [1, 100] {
  %2 = exp %x : f32[B, 7]
  %3 = add %2, %z : f32[B, 7]
  %4 = sub %3, %z : f32[B, 7]
  %5 = reduce_max %4 {dims = [0]} : f32[7]
  %6 = mul %5, %5 : f32[7]
  %7 = neg %5 : f32[7]
  return unused = %3, y = %7
}
)";

}  // namespace

TEST_CASE("a case runs alone", "[fuzz][emulated]") {
  const Outcome outcome = run_alone(parse_case(difference, "difference"));
  INFO(outcome.text);
  CHECK(outcome.verdict == Verdict::ok);
  CHECK(outcome.shares.elements == 42);
  CHECK(outcome.shares.undecided == 0);
}

TEST_CASE("a planted wrong rewrite is found and made small", "[fuzz][emulated]") {
  const Case c = parse_case(difference, "difference");
  const Judge judge = [](const Case& each) { return run_alone(each, swap_differences); };
  CHECK(judge(c).verdict == Verdict::mismatch);
  const Minimised small = minimise(c, judge, 60);
  CHECK(small.verdict == Verdict::mismatch);
  INFO(to_text(small.smallest, small.text));
  CHECK(small.ops == 1);
  CHECK(has(small.smallest.program.graph, ir::Op::sub));
  CHECK(small.smallest.program.graph.outputs.size() == 1);
  CHECK(small.smallest.program.graph.symbols.empty());
  CHECK(!small.smallest.options.checked);
}

TEST_CASE("a batch blames the right program", "[fuzz][emulated]") {
  std::vector<Case> cases;
  for (std::uint64_t i = 0; cases.size() < 6; ++i) cases.push_back(generate(seed_of(11, i)));
  cases[3] = parse_case(difference, "difference");
  Batch batch(cases, [](const ir::Graph& graph) {
    return graph.outputs[0].name == "unused" ? swap_differences(graph) : graph;
  });
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Outcome outcome = batch.run(i);
    INFO(i << ": " << outcome.text);
    CHECK((outcome.verdict == Verdict::mismatch) == (i == 3));
  }
}

TEST_CASE("planted wrong constants in generated programs are found", "[fuzz][emulated]") {
  // An op of each program answers something else; a program in which it does not show in an output is none.
  std::size_t planted = 0, found = 0, plantable = 0;
  const auto can_plant = [](const ir::Graph& graph) {
    return std::ranges::any_of(graph.outputs, [&](const ir::Output& output) {
      const ir::Op op = graph[output.node].op;
      return op == ir::Op::add || op == ir::Op::max || op == ir::Op::reduce_max;
    });
  };
  std::vector<Case> cases;
  for (std::uint64_t i = 0; cases.size() < fuse::test::fewer<std::size_t>(24, 3) ||
                            plantable < fuse::test::fewer<std::size_t>(6, 2);
       ++i) {
    cases.push_back(generate(seed_of(12, i)));
    plantable += can_plant(cases.back().program.graph);
  }
  std::vector<bool> changed;
  Batch batch(cases, [&](const ir::Graph& graph) {
    ir::Graph wrong = graph;
    bool any = false;
    for (const ir::Output& output : graph.outputs) {
      ir::Node& node = wrong.nodes[output.node];
      if (any || (node.op != ir::Op::add && node.op != ir::Op::max && node.op != ir::Op::reduce_max))
        continue;
      node.op = node.op == ir::Op::add   ? ir::Op::sub
                : node.op == ir::Op::max ? ir::Op::min
                                         : ir::Op::reduce_min;
      any = true;
    }
    changed.push_back(any);
    return wrong;
  });
  for (std::size_t i = 0; i < batch.size(); ++i) {
    planted += changed[i];
    const Verdict verdict = batch.run(i).verdict;
    found += is_failure(verdict);
    if (!changed[i]) CHECK(!is_failure(verdict));
  }
  CHECK(planted > 0);
  CHECK(found > 0);
}

TEST_CASE("every past failure stays mended", "[fuzz][emulated]") {
  std::vector<Case> cases;
  const std::vector<std::string> files = corpus_files(FUSE_FUZZ_CORPUS);
  for (const std::string& file : files) cases.push_back(load_corpus(file));
  Batch batch(cases);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Outcome outcome = batch.run(i);
    INFO(files[i] << ": " << outcome.text);
    CHECK(!is_failure(outcome.verdict));
  }
}
