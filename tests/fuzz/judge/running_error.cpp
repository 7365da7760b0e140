// SPDX-License-Identifier: Apache-2.0
#include "fuzz/judge/running_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "eval/bounds/error_bound.hpp"
#include "eval/bounds/rounding.hpp"
#include "fuzz/judge/error_rules.hpp"

namespace fuse::fuzz {

using runtime::HostTensor;
using runtime::with_storage;

bool Rule::operands_exact() const {
  return std::all_of(operands.begin(), operands.end(), [](const Enclosure* e) { return e->exact(); });
}

ReferenceTensor Rule::apply(const std::vector<const ReferenceTensor*>& values, DType result,
                            std::optional<ir::Op> op) const {
  ir::Graph one;
  one.symbols = graph.symbols;
  runtime::Values inputs;
  ir::Node last = node;
  last.op = op.value_or(node.op);
  last.type.dtype = result;
  last.scope = last.location = 0;
  last.operands.clear();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string name = "operand" + std::to_string(i);
    one.nodes.push_back({.op = ir::Op::input,
                         .attr = ir::NameAttr{name},
                         .operands = {},
                         .type = {values[i]->dtype(), graph[node.operands[i]].type.dims}});
    inputs.emplace(name, values[i]->to_host());
    last.operands.push_back(static_cast<ir::NodeId>(i));
  }
  one.nodes.push_back(std::move(last));
  one.outputs.push_back({"result", static_cast<ir::NodeId>(values.size())});
  const auto value_of = [&](std::string_view name) { return dims.find(name)->second; };
  return std::move(
      runtime::evaluate(one, inputs, value_of, runtime::Precision::same_type).outputs.at("result"));
}

ReferenceTensor Rule::centre() const {
  std::vector<const ReferenceTensor*> centres;
  for (const Enclosure* operand : operands) centres.push_back(&operand->centre);
  return apply(centres, dtype());
}

template <>
Range<double> whole<double>(DType) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return {-infinity, infinity};
}

template <>
Range<std::int64_t> whole<std::int64_t>(DType dtype) {
  if (kind_of(dtype) == DTypeKind::boolean) return {0, 1};
  HostTensor ends = HostTensor::make(dtype, {2});  // set_int saturates
  ends.set_int(0, std::numeric_limits<std::int64_t>::min());
  ends.set_int(1, std::numeric_limits<std::int64_t>::max());
  return {ends.get_int(0), ends.get_int(1)};
}

namespace {

double rounded(DType dtype, double value) {
  runtime::reference::round_to(dtype, &value, 1);
  return value;
}

}  // namespace

double greatest_finite(DType dtype) {
  HostTensor one = HostTensor::make(dtype, {1});
  double power = 1;
  while (std::isfinite(rounded(dtype, power * 2))) power *= 2;
  return power + (power - runtime::ulp_of(power, dtype));
}

double floor_to(DType dtype, double value) {
  const double nearest = rounded(dtype, value);
  if (nearest <= value || std::isnan(value)) return nearest;
  if (std::isinf(nearest)) return greatest_finite(dtype);
  return rounded(dtype, nearest - 0.75 * runtime::ulp_of(nearest, dtype));
}

double ceil_to(DType dtype, double value) { return -floor_to(dtype, -value); }

ReferenceTensor as_dtype(const ReferenceTensor& tensor, DType dtype) {
  return ReferenceTensor(dtype, tensor.shape(), ReferenceTensor(tensor));
}

Enclosure enclose_unknown(const Rule& rule) {
  ReferenceTensor centre = rule.centre();
  if (rule.operands_exact()) return {std::move(centre), std::nullopt, std::nullopt};
  return with_storage(rule.dtype(), [&]<class T>() {
    Ends<T> ends(centre);
    for (std::size_t i = 0; i < centre.element_count(); ++i) ends.any(i);
    return std::move(ends).take(std::move(centre));
  });
}

Enclosure enclose(const ir::Graph& graph, ir::NodeId id, std::span<const Enclosure* const> operands,
                  const DimValues& dims, const HostTensor* input) {
  const ir::Node& node = graph[id];
  const Rule rule{graph, node, operands, dims};
  const ir::OpInfo& row = info(node.op);
  if (row.elementwise) return enclose_elementwise(rule);
  switch (row.relation) {
    case ir::Relation::none:
      if (input) return {ReferenceTensor::from_host(*input), std::nullopt, std::nullopt};
      return {rule.apply({}, node.type.dtype), std::nullopt, std::nullopt};
    case ir::Relation::identity:
      return operands.size() == 1 ? enclose_convert(rule) : enclose_select(rule);
    case ir::Relation::reduce:
      return enclose_reduction(rule);
    case ir::Relation::scan:
    case ir::Relation::contraction:
      return enclose_sum(rule);
    case ir::Relation::random:
    case ir::Relation::custom:
      return enclose_unknown(rule);
    case ir::Relation::broadcast:
    case ir::Relation::expand:
    case ir::Relation::permute:
    case ir::Relation::reshape:
    case ir::Relation::slice:
    case ir::Relation::concat:
    case ir::Relation::reverse:
    case ir::Relation::pad:
    case ir::Relation::gather:
    case ir::Relation::dynamic_slice:
    case ir::Relation::update:
      return enclose_movement(rule);
  }
  throw Error({.kind = ErrorKind::internal, .code = ErrorCode::internal, .message = "an unknown relation"});
}

std::map<std::string, Enclosure> enclose(const ir::Graph& graph, const runtime::Values& inputs,
                                         const DimValues& dims) {
  std::vector<bool> live(graph.nodes.size());
  for (const ir::Output& output : graph.outputs) live[output.node] = true;
  for (ir::NodeId id = static_cast<ir::NodeId>(graph.nodes.size()); id-- > 0;) {
    if (!live[id]) continue;
    for (const ir::NodeId operand : graph[id].operands) live[operand] = true;
  }
  std::vector<std::optional<Enclosure>> values(graph.nodes.size());
  for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (!live[id]) continue;
    std::vector<const Enclosure*> operands;
    for (const ir::NodeId operand : graph[id].operands) operands.push_back(&*values[operand]);
    const auto* named = std::get_if<ir::NameAttr>(&graph[id].attr);
    values[id] = enclose(graph, id, operands, dims, named ? &inputs.at(named->name) : nullptr);
  }
  std::map<std::string, Enclosure> outputs;
  for (const ir::Output& output : graph.outputs) outputs.emplace(output.name, *values[output.node]);
  return outputs;
}

Shares& Shares::operator+=(const Shares& other) {
  elements += other.elements;
  exact += other.exact;
  undecided += other.undecided;
  return *this;
}

Shares shares_of(const Enclosure& value) {
  Shares shares{.elements = value.centre.element_count()};
  if (value.exact()) {
    shares.exact = shares.elements;
    return shares;
  }
  with_storage(value.centre.dtype(), [&]<class T>() {
    const auto low = value.low->elements<T>(), high = value.high->elements<T>();
    const Range<T> all = whole<T>(value.centre.dtype());
    for (std::size_t i = 0; i < low.size(); ++i) {
      shares.exact += same(low[i], high[i]);
      shares.undecided += low[i] == all.low && high[i] == all.high;
    }
  });
  return shares;
}

namespace {

std::string position(std::size_t index, const std::vector<std::int64_t>& shape) {
  std::string text;
  for (std::size_t d = shape.size(); d-- > 0;) {
    const auto extent = static_cast<std::size_t>(shape[d]);
    text = std::to_string(index % extent) + (text.empty() ? "" : ", ") + text;
    index /= extent;
  }
  return '[' + text + ']';
}

std::string text_of(double value) { return fmt::format("{:.9g} ({:a})", value, value); }
std::string text_of(std::int64_t value) { return std::to_string(value); }

template <class T>
bool allowed(T low, T high, T got) {
  if (same(low, high)) return same(low, got);
  return undecided(low, high) || (low <= got && got <= high);
}

}  // namespace

std::string mismatch(const Enclosure& expected, const HostTensor& got) {
  const ReferenceTensor& centre = expected.centre;
  if (got.dtype != centre.dtype() || got.shape != centre.shape()) {
    return fmt::format("is {}, not {}", runtime::type_text(got.dtype, got.shape),
                       runtime::type_text(centre.dtype(), centre.shape()));
  }
  const ReferenceTensor given = ReferenceTensor::from_host(got);
  std::string text;
  with_storage(got.dtype, [&]<class T>() {
    const auto low = expected.least().elements<T>(), high = expected.greatest().elements<T>();
    const auto values = given.elements<T>();
    std::size_t first = values.size(), count = 0;
    for (std::size_t i = values.size(); i-- > 0;) {
      if (allowed(low[i], high[i], values[i])) continue;
      first = i;
      ++count;
    }
    if (count == 0) return;
    const std::string wanted = same(low[first], high[first])
                                   ? text_of(low[first])
                                   : fmt::format("{} in [{}, {}]", text_of(centre.elements<T>()[first]),
                                                 text_of(low[first]), text_of(high[first]));
    text = fmt::format("{} of {} elements of {} are wrong; the first at {}: got {}, expected {}", count,
                       values.size(), runtime::type_text(got.dtype, got.shape), position(first, got.shape),
                       text_of(values[first]), wanted);
  });
  return text;
}

}  // namespace fuse::fuzz
