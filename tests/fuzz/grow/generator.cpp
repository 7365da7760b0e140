// SPDX-License-Identifier: Apache-2.0
#include "fuzz/grow/generator.hpp"

#include <algorithm>
#include <map>

#include "fuzz/grow/makers.hpp"
#include "fuzz/grow/patterns.hpp"
#include "ir/graph/infer.hpp"

namespace fuse::fuzz {
namespace {

std::vector<ir::Op> all_ops() {
  std::vector<ir::Op> ops;
  for (int i = 0; i < ir::op_count; ++i) ops.push_back(static_cast<ir::Op>(i));
  return ops;
}

bool is_accepted(ir::Op op, std::size_t arity, const ir::Type& type, const ir::Attr& attr) {
  try {
    const std::vector<ir::Type> operands(arity, type);
    ir::infer_type(op, operands, attr, nullptr, SourceLocation());
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Whether the op's maker ever brings out a node of that counted dtype.
bool can_make(ir::Op op, DType dtype) {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    GrowingGraph g(seed, false, 512);
    try {
      Maker{g}.make(op, dtype);
    } catch (const Error&) {
      continue;
    }
    if (g.graph().nodes.empty()) continue;
    const ir::Node& last = g.graph().nodes.back();
    if (last.op == op && counted_dtype(g.graph(), last) == dtype) return true;
  }
  return false;
}

bool ask_legal(ir::Op op, DType dtype) {
  const ir::OpInfo& row = ir::info(op);
  if (row.elementwise) {
    return is_accepted(op, static_cast<std::size_t>(row.arity), {dtype, {Dim(4)}}, ir::NoAttr{});
  }
  if (row.relation == ir::Relation::reduce) return is_accepted(op, 1, {dtype, {Dim(4)}}, ir::DimsAttr{{0}});
  return can_make(op, dtype);
}

/// Sources appear by themselves; ops that reduce, move or contract are rarer rows than element-wise ones.
double weight_of(ir::Op op) {
  const ir::OpInfo& row = ir::info(op);
  if (row.has(ir::Trait::source)) return 0.4;
  if (row.relation == ir::Relation::expand) return 0.4;  // in programs of one shape it is a broadcast
  if (row.has(ir::Trait::movement)) return 2.5;
  if (row.relation == ir::Relation::reduce) return 1.5;
  return row.elementwise ? 1 : 2.5;
}

/// One op that is legal, kept if its value is one to go on with.
bool grow(GrowingGraph& g, std::optional<DType> floats) {
  static const std::vector<ir::Op> ops = all_ops();
  static const std::vector<double> weights = [] {
    std::vector<double> result;
    for (const ir::Op op : ops) result.push_back(weight_of(op));
    return result;
  }();
  const ir::Op op = ops[g.random.weighted(weights)];
  std::vector<DType> legal;
  std::vector<double> dtype_weights;
  for (const DType dtype : dtypes()) {
    if (!is_legal(op, dtype) || (floats && is_floating(dtype) && dtype != *floats)) continue;
    legal.push_back(dtype);
    double weight = 1;
    for (const ir::Node& node : g.graph().nodes) weight += node.type.dtype == dtype ? 0.7 : 0;
    dtype_weights.push_back(weight);
  }
  if (legal.empty()) return false;
  const bool compound = g.random.chance(0.06);
  const DType dtype = legal[g.random.weighted(dtype_weights)];
  for (int attempt = 0; attempt < 3; ++attempt) {
    const std::size_t mark = g.mark();
    try {
      if (compound) {
        make_compound(g, floats.value_or(g.random.pick({f32, f32, f64, f16, bf16})));
      } else {
        Maker{g, attempt > 0 && !g.special}.make(op, dtype);
      }
      if (g.mark() > mark && g.evaluate()) return true;
    } catch (const Error&) {  // not legal so
    }
    g.roll_back(mark);
  }
  return false;
}

/// A pattern, kept if its values are ones to go on with.
bool add_pattern(GrowingGraph& g, const Pattern& pattern) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    const std::size_t mark = g.mark();
    try {
      pattern.make(g);
      if (g.mark() > mark && g.evaluate()) return true;
    } catch (const Error&) {  // not legal so
    }
    g.roll_back(mark);
  }
  return false;
}

std::vector<ir::NodeId> choose_outputs(GrowingGraph& g) {
  const auto users = ir::users(g.graph());
  std::vector<ir::NodeId> outputs;
  for (const auto& [value, donor] : g.donations()) outputs.push_back(value);
  for (ir::NodeId id = static_cast<ir::NodeId>(g.graph().nodes.size()); id-- > 0;) {
    if (outputs.size() >= 6) break;
    if (g.donations().contains(id)) continue;
    const bool source = ir::info(g.graph()[id].op).has(ir::Trait::source);
    const double probability = !users[id].empty() ? (source ? 0.005 : 0.07) : source ? 0.05 : 0.85;
    if (g.random.chance(outputs.empty() && !source ? 1 : probability)) outputs.push_back(id);
  }
  if (outputs.empty()) outputs.push_back(static_cast<ir::NodeId>(g.graph().nodes.size() - 1));
  if (g.random.chance(0.03)) outputs.push_back(outputs.front());  // one value under two names
  return outputs;
}

RunOptions choose_options(Random& random) {
  RunOptions options;
  options.profile = random.pick({"h200", "h200", "a100", "v100", "tiny3", "tiny2"});
  options.checked = random.chance(0.35);
  options.threads = random.pick({1, 1, 2, 3});
  if (random.chance(0.5)) options.shuffle_seed = 1 + (random.bits() >> 40);
  if (random.chance(0.5)) options.choices_seed = 1 + (random.bits() >> 40);
  options.nests = options.choices_seed != 0 && options.choices_seed % 2 == 0;
  options.optimization = random.pick({0, 0, 0, 2});  // most of a program's time is its kernels' compiler
  if (random.chance(0.12)) options.runs = 2;
  options.graph_mode = random.chance(options.runs > 1 ? 0.5 : 0.02);
  options.together = random.chance(0.04);
  options.saved = random.chance(0.04);
  return options;
}

}  // namespace

DType counted_dtype(const ir::Graph& graph, const ir::Node& node) {
  const ir::OpInfo& row = ir::info(node.op);
  const bool by_operand =
      row.elementwise || row.relation == ir::Relation::reduce || row.relation == ir::Relation::contraction;
  return by_operand ? graph[node.operands.at(0)].type.dtype : node.type.dtype;
}

bool is_legal(ir::Op op, DType dtype) {
  static const std::map<std::pair<ir::Op, DType>, bool> table = [] {
    std::map<std::pair<ir::Op, DType>, bool> result;
    for (const ir::Op each : all_ops()) {
      for (const DType type : dtypes()) result[{each, type}] = ask_legal(each, type);
    }
    return result;
  }();
  return table.at({op, dtype});
}

Case generate(std::uint64_t seed, std::optional<DType> floats, int shapes) {
  Random random(seed);
  const bool special = random.chance(0.12);
  std::vector<double> weights;
  for (const Pattern& pattern : patterns()) weights.push_back(pattern.weight);
  const Pattern* pattern = !floats && random.chance(0.35) ? &patterns()[random.weighted(weights)] : nullptr;
  std::int64_t most = random.chance(0.02) ? 100'000 : random.pick({256, 1024, 4096, 4096});
  if (pattern != nullptr) most = std::max(most, pattern->most_elements);
  const std::string profile(pattern != nullptr ? pattern->profile : "");
  GrowingGraph g(random.bits(), special, most, shapes);
  const std::int64_t wanted =
      random.pick({random.between(1, 4), random.between(4, 12), random.between(8, 24)});
  std::optional<ScopeGuard> scope;
  std::int64_t grown = 0;
  const std::int64_t before = pattern != nullptr ? random.between(0, wanted / 2) : wanted + 1;
  for (int attempt = 0; grown < wanted && attempt < 4 * wanted + 8; ++attempt) {
    if (g.random.chance(0.1)) {
      scope.reset();
      scope.emplace(g.builder().open_scope("part", std::source_location::current(), false));
    } else if (g.random.chance(0.05)) {
      scope.reset();
    }
    if (grown >= before && pattern != nullptr) {
      add_pattern(g, *pattern);
      pattern = nullptr;
    }
    grown += grow(g, floats);
  }
  scope.reset();
  if (g.mark() == 0) {
    g.input(f32, {Dim(3)});
    g.evaluate();
  }
  const std::vector<ir::NodeId> outputs = choose_outputs(g);
  RunOptions options = choose_options(random);
  if (!profile.empty() && random.chance(0.5)) options.profile = profile;
  // From bits that are drawn anyway, so that the programs of a seed stay what they were.
  if (options.choices_seed == 0) options.versions = 1 + static_cast<int>(options.shuffle_seed % 8);
  return {g.finish(outputs), options};
}

Case generate_dynamic(std::uint64_t seed, int shapes) {
  Case made = generate(seed, std::nullopt, shapes);
  made.options.choices_seed = 0;  // the chooser's own, for each of the versions
  made.options.nests = false;
  made.options.versions = 8;
  return made;
}

}  // namespace fuse::fuzz
