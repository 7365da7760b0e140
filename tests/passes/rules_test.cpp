// Every rule of simplify, alone, on random graphs of its pattern, through the reference evaluator.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "eval/bounds/error_bound.hpp"
#include "fuzz/fingerprint.hpp"
#include "passes/dead_code.hpp"
#include "passes/pass_support.hpp"
#include "passes/rewrite/rewrite.hpp"
#include "passes/rule_instances.hpp"
#include "support/golden.hpp"
#include "tensors/compare.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

using ir::algebra::Keeps;
using ir::algebra::Rule;
using runtime::HostTensor;
using runtime::Precision;
using runtime::ReferenceTensor;

constexpr std::uint64_t seed = 20261121;
constexpr int attempts = 3000, wanted = 40;

std::map<std::string, ReferenceTensor> evaluate(const ir::Graph& graph, const runtime::Values& inputs,
                                                Precision precision) {
  return runtime::evaluate(graph, inputs, {}, precision).outputs;
}

double roundoff(DType dtype) { return runtime::ulp_of(1, dtype) / 2; }

/// How far a value may be off when each op rounds once: of an op, what it makes of the errors of its operands
/// to second order, and its own ulps. `exact` are the values of all nodes.
class ErrorBounds {
 public:
  ErrorBounds(const ir::Graph& graph, const runtime::Values& inputs) : graph_(graph) {
    ir::Graph all = graph;
    all.outputs.clear();
    for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
      all.outputs.push_back({.name = std::to_string(id), .node = id});
    }
    exact_ = evaluate(all, inputs, Precision::exact);
    for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) bounds_.push_back(bound(id));
  }
  const std::vector<double>& of(ir::NodeId id) const { return bounds_[id]; }

 private:
  double value(ir::NodeId id, std::size_t i) const { return exact_.at(std::to_string(id)).get(i); }

  std::vector<double> bound(ir::NodeId id) const {
    const ir::Node& node = graph_[id];
    const ir::OpInfo& row = info(node.op);
    const double u = roundoff(node.type.dtype);
    const std::size_t count = exact_.at(std::to_string(id)).element_count();
    std::vector<double> result(count);
    if (row.relation == ir::Relation::reduce) return sum_bound(id);
    for (std::size_t i = 0; i < count; ++i) {
      const auto error = [&](std::size_t k) { return bounds_[node.operands[k]][i]; };
      const auto of = [&](std::size_t k) { return std::fabs(value(node.operands[k], i)); };
      const double v = std::fabs(value(id, i));
      double passed = 0;
      switch (node.op) {
        case ir::Op::input:
          continue;
        case ir::Op::constant:
          break;  // folding may have rounded it
        case ir::Op::convert:
          passed = error(0);
          break;
        case ir::Op::add:
        case ir::Op::sub:
          passed = error(0) + error(1);
          break;
        case ir::Op::mul:
          passed = of(0) * error(1) + of(1) * error(0) + error(0) * error(1);
          break;
        case ir::Op::div:
          passed = (error(0) + v * error(1)) / (of(1) - error(1));
          break;
        case ir::Op::exp:
          passed = v * std::expm1(error(0));
          break;
        case ir::Op::sqrt:
          passed = error(0) / v;
          break;
        case ir::Op::reciprocal:
          passed = v * error(0) / (of(0) - error(0));
          break;
        case ir::Op::rsqrt:
          passed = v * error(0) / (of(0) - error(0));
          break;
        default:
          FAIL("no bound for " << to_string(node.op));
      }
      result[i] = passed + (v + passed) * u * (1 + 2 * row.ulp);
    }
    return result;
  }

  /// gamma(n) of the sum of magnitudes, and the errors added.
  std::vector<double> sum_bound(ir::NodeId id) const {
    const ir::Node& node = graph_[id];
    ir::Graph one;
    ir::Node sum = node;
    sum.operands = {0};
    sum.type.dtype = f64;
    const ir::NodeId x = node.operands[0];
    one.nodes = {
        {.op = ir::Op::input, .attr = ir::NameAttr{"x"}, .operands = {}, .type = {f64, graph_[x].type.dims}},
        sum};
    one.outputs = {{.name = "y", .node = 1}};
    const auto total = [&](auto f) {
      HostTensor terms = HostTensor::make(f64, exact_.at(std::to_string(x)).shape());
      for (std::size_t i = 0; i < bounds_[x].size(); ++i) terms.set(static_cast<std::int64_t>(i), f(i));
      return evaluate(one, {{"x", terms}}, Precision::exact).at("y");
    };
    const ReferenceTensor errors = total([&](std::size_t i) { return bounds_[x][i]; });
    const ReferenceTensor magnitudes =
        total([&](std::size_t i) { return std::fabs(value(x, i)) + bounds_[x][i]; });
    const auto terms = static_cast<std::int64_t>(bounds_[x].size());
    std::vector<double> result;
    for (std::size_t i = 0; i < errors.element_count(); ++i) {
      result.push_back(errors.get(i) + runtime::gamma(terms, node.type.dtype) * magnitudes.get(i));
    }
    return result;
  }

  const ir::Graph& graph_;
  std::map<std::string, ReferenceTensor> exact_;
  std::vector<std::vector<double>> bounds_;
};

/// The rewritten graph is within its own bound of what the original is exactly.
bool near_exact(const ir::Graph& before, const ir::Graph& after, const runtime::Values& inputs) {
  const ReferenceTensor exact = evaluate(before, inputs, Precision::exact).at("y");
  const ReferenceTensor got = evaluate(after, inputs, Precision::same_type).at("y");
  const ErrorBounds bounds(after, inputs);
  for (std::size_t i = 0; i < exact.element_count(); ++i) {
    const double slack = 0x1p-45 * std::fabs(exact.get(i));  // the oracle's own roundings
    if (!(std::fabs(got.get(i) - exact.get(i)) <= bounds.of(after.outputs[0].node)[i] + slack)) return false;
  }
  return true;
}

bool within_ulps(ir::Op op, const ir::Graph& before, const ir::Graph& after, const runtime::Values& inputs) {
  const ReferenceTensor exact = evaluate(before, inputs, Precision::exact).at("y");
  const ReferenceTensor got = evaluate(after, inputs, Precision::same_type).at("y");
  const DType dtype = got.dtype();
  if (!is_floating(dtype)) return same_bits(evaluate(before, inputs, Precision::same_type).at("y"), got);
  return runtime::compare(
             got.to_host(), exact.to_host(dtype),
             [&](std::size_t, double value) { return runtime::elementwise_bound(op, value, dtype); })
      .ok();
}

bool holds(const Rule& rule, const ir::Graph& before, const ir::Graph& after, const runtime::Values& inputs) {
  switch (rule.keeps) {
    case Keeps::bits:
      return same_bits(evaluate(before, inputs, Precision::same_type).at("y"),
                       evaluate(after, inputs, Precision::same_type).at("y"));
    case Keeps::bound:
      return within_ulps(rule.from.op, before, after, inputs);
    case Keeps::algebra:
      return near_exact(before, after, inputs);
  }
  return false;
}

/// Whether types and extents fit.
bool is_valid(const ir::Graph& graph) {
  try {
    ir::verify(graph, ErrorKind::user);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

TEST_CASE("each rule keeps what it says it keeps, on random values of every type", "[passes][golden]") {
  INFO("seed " << seed);
  std::vector<std::string> lines;
  for (const Rule& rule : ir::algebra::rules()) {
    INFO(to_string(rule));
    // Of the rule itself: a new one changes nothing for others.
    const std::uint64_t first = seed + fuzz::hash_of(to_string(rule)) * 1'000'003ULL;
    int fired = 0, valid = 0;
    std::string made;
    for (int attempt = 0; attempt < attempts && fired < wanted; ++attempt) {
      const std::uint64_t own = first + static_cast<std::uint64_t>(attempt);
      RuleInstance instance(own, rule.keeps == Keeps::algebra);
      const auto drawn = instance.build(rule.from);
      if (!drawn || !is_valid(*drawn)) continue;
      ++valid;
      const ir::Graph before = ir::dead_code(ir::algebra::rewrite(*drawn, {}));
      const ir::Graph after = ir::dead_code(ir::algebra::rewrite(*drawn, {&rule}));
      if (print(before) == print(after)) continue;
      ++fired;
      INFO("seed of the graph " << own << '\n' << print(before) << print(after));
      ir::verify(after);
      const bool kept = holds(rule, before, after, instance.inputs());
      CHECK(kept);
      if (!kept) break;
      made += print(after);
    }
    CHECK(fired >= wanted / 2);  // or it was not tested
    lines.push_back(
        fmt::format("{}: {} of {} graphs {:08x}", to_string(rule), fired, valid, fuzz::hash_of(made)));
  }
  check_golden_lines("fingerprints/rules.txt", lines);  // a rule that applies to fewer graphs is still right
}

TEST_CASE("the page of the passes lists every rule", "[passes]") {
  std::ifstream in(source_directory() / "docs/passes.md");
  const std::string page{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  std::string missing;
  for (const Rule& rule : ir::algebra::rules()) {
    const std::string line = "    " + to_string(rule) + '\n';
    if (page.find(line) == std::string::npos) missing += line;
  }
  INFO("docs/passes.md lacks\n" << missing);
  CHECK(missing.empty());
}
