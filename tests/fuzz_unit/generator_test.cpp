// The generator: the same program for the same seed, valid, and of every kind that it promises.
// SPDX-License-Identifier: Apache-2.0
#include "fuzz/grow/generator.hpp"

#include <set>

#include "fuzz/corpus.hpp"
#include "fuzz/coverage.hpp"
#include "fuzz/grow/makers.hpp"
#include "fuzz/grow/random.hpp"
#include "ir/graph/verify.hpp"
#include "support/catch.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::fuzz;  // NOLINT

TEST_CASE("the numbers of a seed are fixed", "[fuzz]") {
  Random random(1);
  CHECK(random.bits() == 0xf18d6ce93d6cf1eeU);
  CHECK(seed_of(1, 2) != seed_of(2, 1));
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t value = random.between(-3, 4);
    CHECK((-3 <= value && value <= 4));
  }
}

TEST_CASE("generated programs are valid, repeatable and survive their text", "[fuzz]") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    INFO("seed " << seed);
    const Case one = generate(seed), again = generate(seed);
    ir::verify(one.program.graph);
    const std::string text = to_text(one, "a comment");
    CHECK(text == to_text(again, "a comment"));
    const Case parsed = parse_case(text, "text");
    CHECK(to_text(parsed, "a comment") == to_text(parse_case(to_text(parsed, ""), "text"), "a comment"));
    CHECK(parsed.options == one.options);
    CHECK(parsed.program.inputs == one.program.inputs);
    CHECK(parsed.program.bindings == one.program.bindings);
    for (const DimValues& dims : one.program.bindings) {
      const runtime::Values a = make_inputs(one.program, dims), b = make_inputs(parsed.program, dims);
      REQUIRE(a.size() == b.size());
      for (const auto& [name, tensor] : a) CHECK((b.at(name).data == tensor.data));
    }
  }
}

TEST_CASE("generated programs have every shape of trouble", "[fuzz]") {
  std::set<std::int64_t> ranks;
  std::size_t outputs = 0, symbolic = 0, dead = 0, shared = 0, parameters = 0, scoped = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const ir::Graph graph = generate(seed).program.graph;
    const auto users = ir::users(graph);
    std::set<ir::NodeId> results;
    for (const ir::Output& output : graph.outputs) results.insert(output.node);
    for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
      ranks.insert(graph[id].type.rank());
      dead += users[id].empty() && !results.contains(id);
      shared += users[id].size() > 1;
      parameters += graph[id].op == ir::Op::parameter;
      scoped += graph[id].scope != 0;
    }
    outputs += graph.outputs.size() > 1;
    symbolic += !graph.symbols.empty();
  }
  for (std::int64_t rank = 0; rank <= 8; ++rank) {
    INFO("rank " << rank);
    CHECK(ranks.contains(rank));
  }
  for (const std::size_t count : {outputs, symbolic, dead, shared, parameters, scoped}) CHECK(count > 10);
}

TEST_CASE("every op can be made on every dtype that is legal", "[fuzz]") {
  Coverage coverage;
  for (const std::string& cell : coverage.empty_cells()) {
    const std::size_t space = cell.find(' ');
    const ir::Op op = *ir::parse_op(cell.substr(0, space));
    const DType dtype = *parse_dtype(cell.substr(space + 1));
    bool made = false;
    for (std::uint64_t seed = 0; seed < 40 && !made; ++seed) {
      GrowingGraph g(seed, false, 512);
      try {
        Maker{g}.make(op, dtype);
        made = !g.graph().nodes.empty() && g.graph().nodes.back().op == op && g.evaluate();
      } catch (const Error&) {}
    }
    INFO(cell);
    CHECK(made);
  }
  CHECK(coverage.empty_cells().size() > 200);
  CHECK(is_legal(ir::Op::exp, f32));
  CHECK(!is_legal(ir::Op::exp, i32));
  CHECK(!is_legal(ir::Op::iota, f16));
  CHECK(is_legal(ir::Op::reshape, boolean));
  CHECK(!is_legal(ir::Op::matmul, i64));
}
