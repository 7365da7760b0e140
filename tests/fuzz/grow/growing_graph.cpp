// SPDX-License-Identifier: Apache-2.0
#include "fuzz/grow/growing_graph.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "analysis/guards.hpp"
#include "fuzz/judge/error_rules.hpp"

namespace fuse::fuzz {
namespace {

constexpr std::source_location here = std::source_location::current();

/// Names that text must quote or that C and the device dialect use.
constexpr const char* hostile_names[] = {"float", "int", "x y", "threadIdx", "load", "b\"q", "7", "in"};

}  // namespace

GrowingGraph::GrowingGraph(std::uint64_t seed, bool special_, std::int64_t most_elements, int shapes)
    : random(seed),
      special(special_),
      most_elements_(most_elements),
      shapes_(shapes),
      inputs_seed_(random.bits() >> 16) {
  builder_->graph.name = "fuzz";
  const double weights[] = {0.45, 0.3, 0.15, 0.1};
  const std::size_t count = std::max<std::size_t>(random.weighted(weights), shapes_ > 0 ? 1 : 0);
  for (std::size_t i = 0; i < count; ++i) {
    DimRange range{.min = random.pick({0, 1, 1, 1, 2, 4}), .max = 0, .hint = 0};
    const std::int64_t value =
        random.chance(0.2) ? range.min : range.min + random.between(0, random.pick({3, 9, 40}));
    range.max = random.pick(
        {value, value + 3, std::int64_t{1} << 10, std::int64_t{1} << 20, std::int64_t{2147483647}});
    if (random.chance(0.4)) range.hint = random.between(range.min, std::min<std::int64_t>(range.max, 5000));
    std::string name(1, "BTSN"[i]);
    dims_.emplace(name, value);
    builder_->graph.symbols.push_back({name, range});
    symbols_.push_back(Dim::symbol(name, range));
    builder_->names.emplace(name, symbols_.back());
  }
}

Tensor GrowingGraph::add(ir::Op op, const std::vector<Tensor>& operands, ir::Attr attr) {
  return builder_->add(op, operands, std::move(attr), nullptr, here);
}

Tensor GrowingGraph::add(ir::Op op, const std::vector<Tensor>& operands, ir::Attr attr, DType dtype,
                         std::vector<Dim> dims) {
  const ir::Type declared{dtype, std::move(dims)};
  return builder_->add(op, operands, std::move(attr), &declared, here);
}

InputStyle GrowingGraph::style(DType dtype) {
  using Kind = InputStyle::Kind;
  if (special && random.chance(0.6)) return {Kind::special, -4, 4};
  const double weights[] = {4, 3, 2, 1, 2};
  switch (random.weighted(weights)) {
    case 0:
      return {Kind::uniform, -2, 2};
    case 1:
      return {Kind::uniform, 0.25, 4};
    case 2:
      return {Kind::whole, 0, 5};
    case 3:
      return {Kind::spread, dtype == f16 ? -10.0 : -30.0, dtype == f16 ? 8.0 : 20.0};
    default:
      return {Kind::whole, -9, 9};
  }
}

Tensor GrowingGraph::input(DType dtype, std::vector<Dim> dims, bool parameter) {
  std::string name = "x" + std::to_string(names_++);
  if (random.chance(0.03)) {
    const std::string other = random.pick(hostile_names);
    if (!builder_->names.contains(other)) name = other;
  }
  InputStyle drawn = style(dtype);
  // An unsigned type has nothing below 0.
  if (!is_floating(dtype))
    drawn.low = std::max(drawn.low, static_cast<double>(whole<std::int64_t>(dtype).low));
  styles_[name] = drawn;
  builder_->names.emplace(name, std::nullopt);
  return add(parameter ? ir::Op::parameter : ir::Op::input, {}, ir::NameAttr{name}, dtype, std::move(dims));
}

Tensor GrowingGraph::constant(DType dtype, std::vector<Dim> dims) {
  InputStyle drawn = style(dtype);
  if (!is_floating(dtype))
    drawn.low = std::max(drawn.low, static_cast<double>(whole<std::int64_t>(dtype).low));
  const runtime::HostTensor one = make_input(dtype, {1}, random.bits(), "constant", drawn);
  ir::ConstantAttr value;
  is_floating(dtype) ? void(value.real = one.get(0)) : void(value.integer = one.get_int(0));
  return add(ir::Op::constant, {}, value, dtype, std::move(dims));
}

Tensor GrowingGraph::broadcast(const Tensor& x, std::vector<Dim> dims, std::vector<std::int64_t> positions) {
  const DType dtype = x.dtype();
  return add(ir::Op::broadcast_in_dim, {x}, ir::DimsAttr{std::move(positions)}, dtype, std::move(dims));
}

Dim GrowingGraph::declare(std::int64_t value) {
  const std::string name = "L" + std::to_string(symbols_.size());
  const DimRange range{.min = random.pick<std::int64_t>({0, 1}), .max = std::int64_t{1} << 20, .hint = 0};
  dims_.emplace(name, value);
  builder_->graph.symbols.push_back({name, range});
  symbols_.push_back(Dim::symbol(name, range));
  builder_->names.emplace(name, symbols_.back());
  return symbols_.back();
}

std::optional<Dim> GrowingGraph::one_or(const Dim& whole) {
  std::vector<ir::Assumption>& all = builder_->graph.assumptions;
  if (shapes_ == 0 || all.size() >= 3) return std::nullopt;  // each doubles the builds
  const std::int64_t value = value_of(whole);
  const Dim symbol = declare(value == 0 || random.chance(0.5) ? 1 : value);
  all.push_back({fuse::one_or(symbol, whole), 0});
  return symbol;
}

void GrowingGraph::donate(const Tensor& value, const Tensor& donor) {
  donations_.emplace(detail::Builder::node(value), detail::Builder::node(donor));
}

std::optional<Tensor> GrowingGraph::earlier(const std::function<bool(const ir::Type&)>& fits_type) {
  std::vector<ir::NodeId> found;
  for (ir::NodeId id = 0; id < values_.size(); ++id) {
    if (fits_type(graph()[id].type)) found.push_back(id);
  }
  if (found.empty()) return std::nullopt;
  const std::size_t recent = std::min<std::size_t>(found.size(), 4);
  const std::size_t at =
      random.chance(0.5) ? found.size() - 1 - random.below(recent) : random.below(found.size());
  return builder_->tensor(found[at]);
}

Tensor GrowingGraph::operand(DType dtype, std::int64_t least_rank) {
  if (random.chance(0.85)) {
    const auto fit = [&](const ir::Type& type) {
      return type.dtype == dtype && type.rank() >= least_rank && fits(type.dims);
    };
    if (auto found = earlier(fit)) return *found;
  }
  if (random.chance(0.5)) {
    const auto convertible = [&](const ir::Type& type) {
      return type.dtype != dtype && type.rank() >= least_rank && fits(type.dims);
    };
    if (auto found = earlier(convertible)) {
      std::vector<Dim> dims = found->dims();
      return add(ir::Op::convert, {*found}, ir::NoAttr{}, dtype, std::move(dims));
    }
  }
  return input(dtype, shape(least_rank), random.chance(0.2));
}

std::optional<Tensor> GrowingGraph::broadcast_of_earlier(DType dtype, const std::vector<Dim>& dims) {
  std::vector<std::int64_t> positions;
  const auto position = [&](const ir::Type& type) {
    positions.clear();
    if (type.dtype != dtype || type.dims == dims) return false;
    std::size_t at = 0;
    for (const Dim& dim : type.dims) {
      while (at < dims.size() && !(dim == dims[at]) && !dim.is(1)) ++at;
      if (at == dims.size()) return false;
      positions.push_back(static_cast<std::int64_t>(at++));
    }
    return true;
  };
  const auto found = earlier(position);
  if (!found) return std::nullopt;
  position({dtype, found->dims()});
  return broadcast(*found, dims, positions);
}

Tensor GrowingGraph::of_type(DType dtype, const std::vector<Dim>& dims) {
  if (random.chance(0.6)) {
    const auto same_type = [&](const ir::Type& type) { return type.dtype == dtype && type.dims == dims; };
    if (auto found = earlier(same_type)) return *found;
  }
  if (random.chance(0.3)) {
    const auto same_dims = [&](const ir::Type& type) { return type.dims == dims; };
    if (auto found = earlier(same_dims)) return add(ir::Op::convert, {*found}, ir::NoAttr{}, dtype, dims);
  }
  if (random.chance(0.5)) {
    if (auto found = broadcast_of_earlier(dtype, dims)) return *found;
  }
  const double weights[] = {3, 1, 2, 1.5};
  switch (random.weighted(weights)) {
    case 0:
      return input(dtype, dims, random.chance(0.25));
    case 1:
      return constant(dtype, dims);
    case 2: {  // a scalar, as the operators write it
      const Tensor scalar = random.chance(0.8) ? constant(dtype, {}) : input(dtype, {});
      return broadcast(scalar, dims, {});
    }
    default: {  // some of the dims, repeated along the others
      std::vector<Dim> kept;
      std::vector<std::int64_t> positions;
      for (std::size_t i = 0; i < dims.size(); ++i) {
        if (random.chance(0.4)) continue;
        kept.push_back(random.chance(0.15) ? Dim(1) : dims[i]);
        positions.push_back(static_cast<std::int64_t>(i));
      }
      return broadcast(input(dtype, kept, random.chance(0.4)), dims, positions);
    }
  }
}

Tensor GrowingGraph::tame(const Tensor& x) {
  const DType dtype = x.dtype();
  if (dtype != f32 && dtype != f64) return input(dtype, x.dims());
  const Tensor bounded = add(ir::Op::tanh, {x});
  if (random.chance(0.3)) return bounded;
  const Tensor half = add(ir::Op::constant, {}, ir::ConstantAttr{.real = 0.5, .integer = 0}, dtype, x.dims());
  return add(ir::Op::add, {add(ir::Op::abs, {bounded}), half});
}

Dim GrowingGraph::extent() {
  if (!symbols_.empty() && random.chance(shapes_ > 0 ? 0.7 : 0.35)) {
    const Dim symbol = random.pick(symbols_);
    const double weights[] = {6, 1, 1, 1};
    switch (random.weighted(weights)) {
      case 0:
        return symbol;
      case 1:
        return symbol * random.between(2, 8);
      case 2:
        return symbol + random.between(1, 3);
      default:
        return symbol * random.pick(symbols_);
    }
  }
  const double weights[] = {3, 30, 4, 2, 1, 0.25};
  switch (random.weighted(weights)) {
    case 0:
      return 1;
    case 1:
      return random.between(2, 9);
    case 2:
      return random.pick({12, 16, 17, 31, 32, 33});
    case 3:
      return random.pick({64, 65, 100, 127, 128});
    case 4:
      return random.pick({255, 257, 512, 1000, 1025, 2049, 4096});
    default:
      return 0;
  }
}

std::vector<Dim> GrowingGraph::shape(std::int64_t least_rank) {
  const double weights[] = {4, 20, 30, 20, 12, 6, 4, 3, 3};
  const auto rank = std::max(least_rank, static_cast<std::int64_t>(random.weighted(weights)));
  std::vector<Dim> dims;
  for (std::int64_t i = 0; i < rank; ++i) dims.push_back(extent());
  while (!fits(dims)) {  // the largest gives way
    const auto largest = std::max_element(
        dims.begin(), dims.end(), [&](const Dim& a, const Dim& b) { return value_of(a) < value_of(b); });
    *largest =
        random.between(1, std::max<std::int64_t>(1, std::min<std::int64_t>(value_of(*largest) / 2, 8)));
  }
  return dims;
}

std::int64_t GrowingGraph::value_of(const Dim& dim) const {
  return dim.evaluate([&](std::string_view name) { return dims_.find(name)->second; });
}

std::int64_t GrowingGraph::elements(const std::vector<Dim>& dims) const {
  constexpr std::int64_t bytes = sizeof(double);  // of an element, to the reference
  std::int64_t size = bytes;
  bool none = false;
  for (const Dim& dim : dims) {
    const std::int64_t value = value_of(dim);
    none = none || value == 0;
    // A size in bytes that overflows is refused, whatever else is 0.
    if (__builtin_mul_overflow(size, std::max<std::int64_t>(1, value), &size)) return std::int64_t{1} << 62;
  }
  return none ? 0 : size / bytes;
}

void GrowingGraph::roll_back(std::size_t mark) {
  for (std::size_t id = mark; id < builder_->graph.nodes.size(); ++id) {
    if (const auto* named = std::get_if<ir::NameAttr>(&builder_->graph.nodes[id].attr)) {
      styles_.erase(named->name);
      builder_->names.erase(named->name);
    }
  }
  builder_->graph.nodes.resize(mark);
  donations_.erase(donations_.lower_bound(static_cast<ir::NodeId>(mark)), donations_.end());
  if (values_.size() > mark) values_.resize(mark);
}

bool GrowingGraph::evaluate() {
  const std::size_t first = values_.size();
  for (ir::NodeId id = static_cast<ir::NodeId>(first); id < graph().nodes.size(); ++id) {
    const ir::Node& node = graph()[id];
    if (!fits(node.type.dims)) return false;
    std::vector<const Enclosure*> operands;
    for (const ir::NodeId operand : node.operands) operands.push_back(&values_[operand]);
    if (const auto* named = std::get_if<ir::NameAttr>(&node.attr)) {
      std::vector<std::int64_t> shape;
      for (const Dim& dim : node.type.dims) shape.push_back(value_of(dim));
      const runtime::HostTensor input =
          make_input(node.type.dtype, shape, inputs_seed_, named->name, styles_.at(named->name));
      values_.push_back(enclose(graph(), id, operands, dims_, &input));
    } else {
      values_.push_back(enclose(graph(), id, operands, dims_));
    }
    const Enclosure& value = values_.back();
    const bool last = id + 1 == graph().nodes.size();
    if (!special && value.centre.is_real()) {
      for (const double element : value.centre.real()) {
        if (std::isnan(element) || (last && std::isinf(element))) return false;
      }
    }
    if (!last) continue;
    const Shares shares = shares_of(value);
    if (static_cast<double>(shares.undecided) >
        (special ? 0.6 : 0.25) * static_cast<double>(shares.elements)) {
      return false;
    }
  }
  return true;
}

namespace {

/// Relations between symbols that hold of every binding: the compiler may use them and must not be wrong.
void assume_some(Random& random, const std::vector<Dim>& symbols, Program& program) {
  const auto value = [](const Dim& dim, const DimValues& dims) {
    return dim.evaluate([&](std::string_view name) { return dims.find(name)->second; });
  };
  for (std::int64_t i = random.between(1, 3); i-- > 0;) {
    const Dim a = random.pick(symbols),
              b = random.chance(0.5) ? random.pick(symbols) : a * random.pick(symbols);
    const std::int64_t off = value(a, program.bindings[0]) - value(b, program.bindings[0]);
    const DimRelation relation = random.chance(0.5)   ? equal(a, b + off)
                                 : random.chance(0.5) ? divisible(a, random.pick({2, 3, 4, 8}))
                                                      : at_most(a, b + off + random.between(0, 2));
    if (relation.left == relation.right) continue;
    const bool holds = std::all_of(program.bindings.begin(), program.bindings.end(), [&](const auto& dims) {
      return relation.holds(value(relation.left, dims), value(relation.right, dims));
    });
    if (holds) program.graph.assumptions.push_back({relation, 0});
  }
}

}  // namespace

Program GrowingGraph::finish(const std::vector<ir::NodeId>& outputs) {
  Program program{.graph = graph(), .inputs = styles_, .inputs_seed = inputs_seed_, .bindings = {dims_}};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    program.graph.outputs.push_back({"y" + std::to_string(i), outputs[i]});
  }
  if (!program.graph.assumptions
           .empty()) {  // GEMMs may not read what follows from parameters of such extents
    for (ir::Node& node : program.graph.nodes)
      if (node.op == ir::Op::parameter && !product(node.type.dims).is_constant()) node.op = ir::Op::input;
  }
  donate_some(program.graph);
  if (symbols_.empty()) return program;
  if (random.chance(0.4)) add_binding(program);
  for (int i = 0; i < 6 * shapes_ && static_cast<int>(program.bindings.size()) < shapes_; ++i)
    add_binding(program);
  if (random.chance(0.4)) assume_some(random, symbols_, program);
  return program;
}

/// As asked for; of the other outputs, some take an input of their type.
void GrowingGraph::donate_some(ir::Graph& graph) {
  std::set<ir::NodeId> taken;
  for (const auto& [value, donor] : donations_) taken.insert(donor);
  for (ir::Output& output : graph.outputs) {
    if (const auto asked = donations_.find(output.node); asked != donations_.end()) {
      output.donor = asked->second;
      donations_.erase(asked);
      continue;
    }
    if (!random.chance(0.2) || ir::is_given(graph[output.node])) continue;
    for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
      if (graph[id].op != ir::Op::input || graph[id].type != graph[output.node].type) continue;
      if (!taken.insert(id).second) continue;
      output.donor = id;
      break;
    }
  }
}

void GrowingGraph::add_binding(Program& program) {
  DimValues other;
  const double weights[] = {1, 1, 3};
  const std::size_t end = random.weighted(weights);  // of the ranges: the least, the greatest, anything
  for (const ir::Symbol& symbol : graph().symbols) {
    const std::int64_t more = shapes_ > 0 ? random.pick({1, 5, 33, 300, 5000}) : random.pick({1, 5, 33});
    const std::int64_t top = std::min(symbol.range.max, symbol.range.min + more);
    other[symbol.name] = end == 0   ? symbol.range.min
                         : end == 1 ? symbol.range.max
                                    : random.between(symbol.range.min, top);
  }
  std::swap(dims_, other);
  for (const ir::Assumption& assumption : graph().assumptions) {  // drawn dims would hardly ever satisfy it
    const std::int64_t value = value_of(assumption.relation.right);
    dims_[std::string(assumption.relation.left.name())] = value == 0 || random.chance(0.5) ? 1 : value;
  }
  // What an op needs of its dims may not hold of these: prepare would refuse them.
  const std::vector<ir::Guard> guards = analysis::guards_of(program.graph);
  const bool all_fit =
      std::all_of(graph().nodes.begin(), graph().nodes.end(),
                  [&](const ir::Node& node) { return fits(node.type.dims); }) &&
      std::all_of(guards.begin(), guards.end(), [&](const ir::Guard& guard) {
        return guard.relation.holds(value_of(guard.relation.left), value_of(guard.relation.right));
      });
  std::swap(dims_, other);
  const bool is_new =
      std::find(program.bindings.begin(), program.bindings.end(), other) == program.bindings.end();
  if (all_fit && is_new) program.bindings.push_back(std::move(other));
}

}  // namespace fuse::fuzz
