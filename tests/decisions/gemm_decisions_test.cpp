// Which algorithm a GEMM runs with, as decisions say. SPDX-License-Identifier: Apache-2.0
#include "schedule/decisions/gemm_decisions.hpp"

#include <fmt/format.h>

#include "decisions/decisions_support.hpp"

namespace fuse::test {
namespace {

/// Two products of one kind, one behind the other, and one of another.
Graph products(const std::string& dim = "B", const std::string& name = "x") {
  Graph g("products");
  const Dim n = g.dim(dim, {.min = 1, .max = 1024, .hint = 64});
  const Tensor w = g.parameter(name + "_w", f32, {32, 32});
  const Tensor first = exp(matmul(g.input(name, f32, {n, 32}), w));
  g.output("y", matmul(exp(matmul(first, w)), g.parameter(name + "_v", f32, {32, 8})));
  return g;
}

/// Of all GEMMs of the graph, in the order of the plan.
std::vector<schedule::GemmDecision> entries(const Graph& g) {
  const Compiled compiled = compiled_with(g, "");
  return schedule::all_gemm_decisions_of(compiled.graph, compiled.partition);
}

std::vector<std::uint32_t> ranks(const Compiled& compiled) {
  std::vector<std::uint32_t> result;
  for (const schedule::Step& step : compiled.plan.steps) {
    if (const auto* gemm = std::get_if<schedule::GemmStep>(&step.work))
      result.push_back(gemm->algorithm.rank);
  }
  return result;
}

TEST_CASE("decisions give GEMMs their algorithms, all that are alike or one", "[schedule][decisions]") {
  const Graph g = products();
  const std::vector<schedule::GemmDecision> all = entries(g);
  REQUIRE(all.size() == 2);
  const std::string key = fmt::format("gemm {:016x}", all[0].key);
  CHECK(ranks(compiled_with(g, no_decisions() + key + " {algorithm = 3}\n")) ==
        std::vector<std::uint32_t>{3, 3, 0});
  const std::string one = no_decisions() + key + " 1 {algorithm = 2}\n";
  CHECK(ranks(compiled_with(g, one)) == std::vector<std::uint32_t>{0, 2, 0});
  CHECK(ranks(compiled_with(g, one + key + " {algorithm = 1}\n")) == std::vector<std::uint32_t>{1, 2, 0});
  CHECK(print(compiled_with(g, one).plan).find(" algorithm 2 ") != std::string::npos);
}

TEST_CASE("algorithms are written where they were given, and come back", "[schedule][decisions]") {
  const Graph g = products();
  const std::string usual = decisions_text(compiled_with(g, ""));
  CHECK(usual.find("gemm ") == std::string::npos);
  const std::string key = fmt::format("gemm {:016x}", entries(g)[0].key);
  for (const std::string& lines : {key + " {algorithm = 0}\n", key + " 1 {algorithm = 2}\n",
                                   key + " {algorithm = 1}\n" + key + " 1 {algorithm = 2}\n"}) {
    const std::string text = decisions_text(compiled_with(g, no_decisions() + lines));
    INFO(text);
    CHECK(text.find(lines.substr(0, lines.find('\n') + 1)) != std::string::npos);
    CHECK(decisions_text(compiled_with(g, text)) == text);
    CHECK(schedule::parse_decisions(text).gemms.size() ==
          schedule::parse_decisions(no_decisions() + lines).gemms.size());
  }
}

TEST_CASE("a GEMM's key has its epilogue, and no names", "[schedule][decisions]") {
  const std::vector<schedule::GemmDecision> mine = entries(products()),
                                            other = entries(products("T", "other"));
  REQUIRE(mine.size() == other.size());
  for (std::size_t i = 0; i < mine.size(); ++i) CHECK(mine[i].key == other[i].key);
  const auto key = [](bool bias, std::int64_t k) {
    Graph g;
    const Tensor product = matmul(g.input("x", f32, {64, k}), g.parameter("w", f32, {k, 32}));
    g.output("y", bias ? product + g.parameter("b", f32, {32}) : product);
    return entries(g).at(0).key;
  };
  CHECK(key(false, 16) == key(false, 16));
  CHECK(key(true, 16) != key(false, 16));
  CHECK(key(false, 32) != key(false, 16));
}

TEST_CASE("an algorithm of no GEMM names its line", "[schedule][decisions]") {
  const Graph g = products();
  const std::string key = fmt::format("gemm {:016x}", entries(g)[0].key);
  const auto refused = [&](const std::string& lines) { return refusal(g, no_decisions() + lines); };
  CHECK(
      refused("gemm 0123456789abcdef {algorithm = 1}\n") ==
      "invalid-argument: decisions: line 3: graph 'products' has no gemm 0123456789abcdef\n  hint: it has 2 "
      "gemms. By other answers GEMMs may be merged, or have other epilogues: keep the lines merge and "
      "epilogue");
  CHECK(refused(key + " 2 {algorithm = 1}\n") ==
        "invalid-argument: decisions: line 3: there is no number 2 of " + key +
            "\n  hint: numbers are 0 to 1");
  CHECK(refused(key + " {algorithm = 1}\n" + key + " {algorithm = 2}\n") ==
        "invalid-argument: decisions: line 4: " + key +
            " has two entries\n  hint: the first stands in line 3: leave out one of them");
  const std::string right = "\n  hint: a GEMM has the number of its algorithm, from 0: {algorithm = 2}";
  CHECK(refused(key + " {algorithm = -1}\n") == "parse: decisions: line 3: algorithm is '-1'" + right);
  CHECK(refused(key + " {algorithm}\n") == "parse: decisions: line 3: algorithm is ''" + right);
  CHECK(refused(key + " {algo = 1}\n") == "parse: decisions: line 3: there is no key 'algo'" + right);
  CHECK(refused(key + " {}\n") == "parse: decisions: line 3: there is no algorithm" + right);
  const Compiled skipped = compiled_with(g, no_decisions() + "gemm 0123456789abcdef {algorithm = 1}\n", true);
  CHECK(skipped.unfit_decisions == 1);
  CHECK(ranks(skipped) == std::vector<std::uint32_t>{0, 0, 0});
}

}  // namespace
}  // namespace fuse::test
