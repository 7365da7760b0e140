// Blocks that take rows in turns: threads load the next row while they work on one, and keep what is the same
// in each row. SPDX-License-Identifier: Apache-2.0
#include "schedule/mapping/row_to_row.hpp"

#include "base/access.hpp"
#include "schedule/schedule_support.hpp"
#include "stitch/rows_of_any_length.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::Choices;

namespace {

Choices in_turns(std::string_view splits, bool ahead, bool invariants, int register_cache = 0) {
  return {.splits = schedule::parse_splits(splits).value(),
          .register_cache = register_cache,
          .ahead = ahead,
          .invariants = invariants};
}

/// A norm with a scale, whose type differs, a shift, and a tensor that is added behind the reductions.
Graph norm(DType dtype, std::int64_t rows, const Dim& length) {
  Graph g("norm");
  if (!length.is_constant()) g.dim(std::string(length.name()), {length.min(), length.max(), length.hint()});
  const Tensor x = g.input("x", dtype, {rows, length}), z = g.input("z", dtype, {rows, length});
  const Tensor gamma = convert(g.parameter("gamma", dtype, {length}), f32),
               beta = g.parameter("beta", f32, {length});
  g.output("y", convert(layer_norm(convert(x, f32), gamma, beta), dtype) + z);
  return g;
}

std::string kernel_of(const Graph& g, const Choices& choices) {
  PipelineOptions options;
  options.choose = chooses(choices);
  const Compiled made = run_pipeline(ir_of(g), target_profile("h200"), options);
  REQUIRE(made.kernels.size() == 1);
  return print(made.kernels[0]);
}

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

void check(const Graph& g, const Choices& choices, const DimValues& dims = {}) {
  std::vector<fuzz::Case> cases;
  cases.push_back(case_of(g, {.checked = true, .threads = 2, .shuffle_seed = 5, .optimization = 0}));
  if (!dims.empty()) cases.back().program.bindings = {dims};
  fuzz::Batch batch(std::move(cases), {}, chooses(choices));
  const fuzz::Outcome outcome = batch.run(0);
  INFO(ir_of(g).name << " {" << choices.to_string() << "}: " << outcome.text);
  CHECK(to_string(outcome.verdict) == to_string(fuzz::Verdict::ok));
}

}  // namespace

TEST_CASE("row to row: a row is loaded once, a turn before it is needed", "[stitch][schedule]") {
  const std::string text = kernel_of(
      norm(bf16, 100, 512), in_turns("r:serial r:grid5 c:serial c:warp2 c:lane32 c:vector8", true, false));
  INFO(text);
  const std::size_t loop = text.find("for row in [");
  REQUIRE(loop != std::string::npos);
  const std::string before = text.substr(0, loop), turn = text.substr(loop);
  CHECK(count(before, "= x[") == 1);
  CHECK(count(turn, "= x[") == 1);
  // That load stands in front of the first barrier, and is of the next row.
  CHECK(turn.find("= x[") < turn.find("barrier block"));
  CHECK(turn.find("bind next_row_1 = row + 5") < turn.find("= x["));
  CHECK(text.find("x: ordered global const bf16") != std::string::npos);
  // What a later pass alone reads is loaded there.
  CHECK(count(before, "= z[") == 0);
  CHECK(count(before, "= gamma[") == 0);
}

TEST_CASE("row to row: what is the same in each row is loaded once for all", "[stitch][schedule]") {
  const std::string text = kernel_of(
      norm(bf16, 100, 512), in_turns("r:serial r:grid5 r:warp4 c:serial c:lane32 c:vector8", false, true));
  INFO(text);
  const std::size_t loop = text.find("for b in [");
  REQUIRE(loop != std::string::npos);
  const std::string before = text.substr(0, loop), turn = text.substr(loop);
  for (const char* load : {"= gamma[", "= beta["}) {
    CHECK(count(before, load) == 1);
    CHECK(count(turn, load) == 0);
  }
  // 16 bits each, in half as many registers.
  CHECK(before.find("keep_packed same_gamma") != std::string::npos);
  CHECK(before.find("keep_packed same_beta") == std::string::npos);
  CHECK(text.find("x: global const bf16") != std::string::npos);
}

TEST_CASE("row to row: kernels answer right, however rows lie on blocks, warps and lanes",
          "[stitch][emulated]") {
  for (const char* splits :
       {"r:serial r:grid5 c:serial c:warp2 c:lane32 c:vector4", "r:serial c:serial c:lane32",
        "r:serial r:grid64 c:serial c:warp3 c:lane32", "r:serial r:grid3 r:warp4 c:serial c:lane32 c:vector2",
        "r:serial r:grid2 r:warp2 c:serial c:warp2 r:lane4 c:lane8 c:vector2",
        "r:serial r:grid2 c:serial c:cluster3 c:warp2 c:lane32",
        // As many turns as blocks, for 37 rows.
        "r:serial r:grid2 c:serial c:warp4 r:lane32", "r:serial r:grid37 c:serial c:lane32",
        "r:serial r:grid2 r:warp2 c:serial c:cluster2 c:warp2 c:lane32 c:vector2"}) {
    for (const bool ahead : {true, false}) {
      check(norm(bf16, 23, 200), in_turns(splits, ahead, true, 32));
      check(norm(f32, 23, 200), in_turns(splits, true, ahead));
      check(norm(f32, 37, 72), in_turns(splits, ahead, true));
    }
  }
}

TEST_CASE("row to row: rows of a length known late, whose groups some threads have not",
          "[stitch][emulated]") {
  const Dim length = Dim::symbol("S", {.min = 1, .max = 64, .hint = 48});
  for (const std::int64_t s : {1, 31, 48, 64}) {
    check(norm(f16, 9, length), in_turns("r:serial r:grid2 r:warp2 c:serial c:lane32", true, true, 16),
          {{"S", s}});
    check(norm(f16, 9, length),
          in_turns("r:serial r:grid2 c:serial c:warp2 r:lane4 c:lane8 c:vector4", true, true), {{"S", s}});
  }
}

TEST_CASE("row to row: an error says what a kernel needs for it", "[stitch][schedule]") {
  const auto error = [](const Graph& g, Choices choices) {
    return thrown_by([&] { kernel_of(g, choices); });
  };
  const Graph rows = norm(f32, 100, 512);
  const auto says = [&](const std::string& text, const char* what) {
    INFO(text);
    CHECK(text.find(what) != std::string::npos);
  };
  says(error(rows, in_turns("r:grid c:serial c:warp2 c:lane32", true, false)),
       "ahead needs blocks that take rows in turns, by r:serial");
  says(error(rows, in_turns("r:serial r:grid5 c:serial c:grid2 c:warp2 c:lane32", false, true)),
       "invariants needs a warp, a block or a cluster for each row");
  says(error(norm(f32, 100, Dim::symbol("S", {.min = 1, .max = 1 << 20, .hint = 48})),
             in_turns("r:serial r:grid5 c:serial c:warp2 c:lane32", true, false)),
       "ahead needs a known number of elements of a row in each thread");
  Choices shared = in_turns("r:serial r:grid5 c:serial c:warp2 c:lane32", true, false);
  shared.shared_cache = 512;
  says(error(rows, shared), "shared_cache holds the row in shared memory");
  says(error(norm(f32, 100, 8192), in_turns("r:serial r:grid5 c:serial c:lane32", true, false)),
       "512 registers from row to row, register_cache counted: a thread has 255");
  Graph plain("plain"), elements("elements");
  plain.output("y", softmax(plain.input("x", f32, {100, 512})));
  elements.output("y", exp(elements.input("x", f32, {100, 512})));
  says(error(plain, in_turns("r:serial r:grid5 c:serial c:warp2 c:lane32", true, true)),
       "invariants are inputs that a broadcast along the rows reads whole, of which it has none");
  says(error(elements, in_turns("r:serial r:grid5 r:warp2 r:lane32", true, false)),
       "ahead needs rows that are reduced");
}
