// SPDX-License-Identifier: Apache-2.0
#include "fuzz/judge/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fuse/fuse.hpp>
#include <optional>

#include "compile/pipeline/pipeline.hpp"
#include "fusec/values/inputs.hpp"
#include "fusec/values/value_runs.hpp"
#include "fuzz/grow/generator.hpp"
#include "fuzz/grow/random.hpp"
#include "ir/graph/kept_values.hpp"
#include "ir/graph/verify.hpp"

namespace fuse::fuzz {
namespace {

using ir::NodeId;
using ir::Op;
using runtime::HostTensor;

enum class Judged : std::uint8_t { right, searched, named };

/// A wrong op that is seen in an output: another op, another operand.
struct Plant {
  NodeId node = 0;
  ir::Graph graph;     ///< wrong; nodes have the numbers of the right one
  std::string text{};  ///< "%4 = add is sub"
};

/// What a wrong op may be instead: of the same operands, and a result of the same type.
constexpr std::pair<Op, Op> mistakes[] = {
    {Op::add, Op::sub},
    {Op::sub, Op::add},
    {Op::mul, Op::add},
    {Op::div, Op::mul},
    {Op::max, Op::min},
    {Op::min, Op::max},
    {Op::pow, Op::mul},
    {Op::atan2, Op::sub},
    {Op::rem, Op::sub},
    {Op::exp, Op::expm1},
    {Op::expm1, Op::exp},
    {Op::exp2, Op::exp},
    {Op::log, Op::log1p},
    {Op::log2, Op::log},
    {Op::log1p, Op::log},
    {Op::sin, Op::cos},
    {Op::cos, Op::sin},
    {Op::tanh, Op::erf},
    {Op::erf, Op::tanh},
    {Op::sqrt, Op::rsqrt},
    {Op::rsqrt, Op::sqrt},
    {Op::reciprocal, Op::neg},
    {Op::neg, Op::abs},
    {Op::abs, Op::neg},
    {Op::floor, Op::ceil},
    {Op::ceil, Op::floor},
    {Op::round, Op::floor},
    {Op::lt, Op::gt},
    {Op::gt, Op::lt},
    {Op::le, Op::ge},
    {Op::ge, Op::le},
    {Op::eq, Op::ne},
    {Op::ne, Op::eq},
    {Op::reduce_sum, Op::reduce_max},
    {Op::reduce_max, Op::reduce_min},
    {Op::reduce_min, Op::reduce_max},
    {Op::reduce_prod, Op::reduce_sum},
    {Op::argmax, Op::argmin},
    {Op::argmin, Op::argmax},
};

bool has_floats_to_judge(const ir::Graph& graph) {
  const std::vector<NodeId> live = ir::live_values(graph);
  const auto is_f64 = [&](NodeId id) { return graph[id].type.dtype == f64 && !ir::is_given(graph[id]); };
  const auto is_unknown = [&](NodeId id) { return graph[id].op == Op::custom_call; };  // text has none
  return std::any_of(live.begin(), live.end(), is_f64) && std::none_of(live.begin(), live.end(), is_unknown);
}

runtime::ReferenceResult evaluated(const ir::Graph& graph, const fusec::Inputs& inputs,
                                   std::uint64_t variant = 0) {
  return evaluate(
      graph, inputs.values, [&](std::string_view name) { return inputs.dims.find(name)->second; },
      runtime::Precision::same_type, {}, variant);
}

/// What a right device may answer: evaluations that round each their own way.
using Answers = std::vector<runtime::ReferenceResult>;

/// Beyond all doubt: a finite element is off by a millionth of the largest, or an integer differs that is the
/// same in all right answers. A softmax of 1 - 1e-90 is 0 or 1 as an integer, and may be either.
bool differs(const Answers& right, const runtime::ReferenceResult& wrong, const std::string& name) {
  const runtime::ReferenceTensor& first = right[0].outputs.at(name);
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < first.element_count(); ++i) {
    const double a = first.get(i), b = wrong.outputs.at(name).get(i);
    const bool known = std::all_of(right.begin(), right.end(), [&](const runtime::ReferenceResult& each) {
      return each.outputs.at(name).get(i) == a;
    });
    if (!first.is_real() && known) error = std::max(error, a == b ? 0.0 : INFINITY);
    if (!first.is_real() || !std::isfinite(a) || !std::isfinite(b)) continue;
    largest = std::max(largest, std::fabs(a));
    error = std::max(error, std::fabs(a - b));
  }
  return error > 1e-6 * largest;
}

/// A mistake at a random value that shows there and in an output.
std::optional<Plant> plant(const ir::Graph& graph, const fusec::Inputs& inputs, Random& random) {
  const std::vector<NodeId> live = ir::live_values(graph);
  for (int attempt = 0; attempt < 24; ++attempt) {
    const NodeId id = random.pick(live);
    Plant made{.node = id, .graph = graph};
    ir::Node& node = made.graph.nodes[id];
    const std::string was = std::string(to_string(node.op));
    std::vector<Op> others;
    for (const auto& [right, wrong] : mistakes) {
      if (right == node.op) others.push_back(wrong);
    }
    if (others.empty() || random.chance(0.25)) {
      if (node.operands.size() != 2 || node.operands[0] == node.operands[1] ||
          !(graph[node.operands[0]].type == graph[node.operands[1]].type)) {
        continue;
      }
      node.operands[1] = node.operands[0];
      made.text = fmt::format("%{} = {} of one operand twice", id, was);
    } else {
      node.op = random.pick(others);
      made.text = fmt::format("%{} = {} is {}", id, was, to_string(node.op));
    }
    try {
      ir::verify(made.graph);
      const std::vector<NodeId> kept = {id};
      const ir::Graph with_value = ir::with_kept(graph, kept);
      Answers right;
      for (std::uint64_t variant = 0; variant < 8; ++variant)
        right.push_back(evaluated(with_value, inputs, variant));
      const auto wrong = evaluated(ir::with_kept(made.graph, kept), inputs);
      const auto differs_at = [&](const std::string& name) { return differs(right, wrong, name); };
      const bool seen = std::any_of(graph.outputs.begin(), graph.outputs.end(),
                                    [&](const ir::Output& output) { return differs_at(output.name); });
      if (seen && differs_at(ir::kept_name(graph, id))) return made;
    } catch (const Error&) {  // not legal there
    }
  }
  return std::nullopt;
}

/// A graph with the outputs of `wrong` as `right` has them: kept values come to both.
fusec::ValueRuns::Rewrite planting(const Plant& plant) {
  return [&plant](const ir::Graph& right) {
    ir::Graph wrong = plant.graph;
    wrong.outputs = right.outputs;
    return wrong;
  };
}

/// Empty where the judgement holds; else what it said.
std::string judge_program(Judged kind, std::uint64_t seed, std::int64_t index, JudgeTotals& totals) {
  const Program program = generate(seed_of(seed, static_cast<std::uint64_t>(index)), f64).program;
  const ir::Graph& graph = program.graph;
  if (!has_floats_to_judge(graph)) {
    ++totals.skipped;
    return {};
  }
  std::vector<std::string> dims;
  for (const auto& [name, value] : program.bindings.at(0)) dims.push_back(fmt::format("{}={}", name, value));
  const fusec::Inputs inputs =
      fusec::make_inputs(graph, {}, dims, seed_of(seed, static_cast<std::uint64_t>(index)));
  const Device device = Device::emulated({.profile = "h200", .optimization = 0});
  Random random(seed_of(seed + 1, static_cast<std::uint64_t>(index)));
  std::optional<Plant> planted;
  if (kind == Judged::named) {
    planted = plant(graph, inputs, random);
    if (!planted) {
      ++totals.skipped;
      return {};
    }
  }
  fusec::ValueRuns runs(graph, inputs, device, planted ? planting(*planted) : fusec::ValueRuns::Rewrite());
  if (kind == Judged::right) {
    for (const auto& [node, value] : runs.run({}, {})) {
      const fusec::Verdict verdict = runs.check(node, value);
      ++totals.outputs;
      totals.bare += verdict.bare;
      if (!verdict.ok) return fmt::format("{}: {}", runs.describe(node), verdict.text);
    }
    ++totals.right;
    return {};
  }
  if (kind == Judged::searched) {
    if (const auto wrong = runs.first_wrong(runs.values(), {})) {
      return fmt::format("{}: {}", runs.describe(wrong->node), wrong->verdict);
    }
    ++totals.searched;
    return {};
  }
  const auto wrong = runs.first_wrong_of_all({});
  if (!wrong) return planted->text + ": not found";
  if (wrong->node != planted->node) {
    return fmt::format("{}: {} is named: {}", planted->text, runs.describe(wrong->node), wrong->verdict);
  }
  ++totals.named;
  return {};
}

}  // namespace

JudgeTotals judge(const JudgeSettings& settings, const std::function<void(const JudgeTotals&)>& progress) {
  JudgeTotals totals;
  std::int64_t index = settings.first;
  const auto run = [&](Judged kind, const char* name, std::int64_t wanted, const std::int64_t& done) {
    const std::int64_t failed_before = static_cast<std::int64_t>(totals.failures.size());
    while (done + static_cast<std::int64_t>(totals.failures.size()) - failed_before < wanted) {
      std::string text;
      try {
        text = judge_program(kind, settings.seed, index, totals);
      } catch (const Error& error) {
        text = error.what();
      }
      if (!text.empty()) {
        totals.failures.push_back(
            fmt::format("{}: --seed {} --index {}: {}", name, settings.seed, index, text));
      }
      ++index;
      progress(totals);
    }
  };
  run(Judged::right, "check", settings.right, totals.right);
  run(Judged::searched, "bisect", settings.searched, totals.searched);
  run(Judged::named, "planted", settings.named, totals.named);
  return totals;
}

}  // namespace fuse::fuzz
