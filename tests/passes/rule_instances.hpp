// Random graphs that a rule's pattern matches, if its condition holds: types, shapes, attributes and
// constants are drawn. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <fuse/fuse.hpp>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "eval/evaluate.hpp"
#include "ir/graph/infer.hpp"
#include "passes/rewrite/rewrite_rules.hpp"
#include "tensors/host_tensor.hpp"

namespace fuse::test {

using ir::algebra::Pattern;

inline const std::vector<DType>& types_of_rules() {
  static const std::vector<DType> types = {f64, f32, f16, bf16, i64, i32, i8, u8, boolean};
  return types;
}

class RuleInstance {
 public:
  /// `plain`: moderate positive values only, for rules that do not keep special ones.
  RuleInstance(std::uint64_t seed, bool plain) : random_(seed), plain_(plain) {}

  /// A graph whose output is the pattern; empty where the draw does not fit together. Verify it.
  std::optional<ir::Graph> build(const Pattern& pattern) {
    ir::Type type{pick(types_of_rules()), dims(between(0, 3))};
    const ir::OpInfo& row = info(pattern.op);
    if (row.relation == ir::Relation::reduce && row.identity == ir::Identity::none) type.dtype = i64;
    const auto root = node(pattern, type);
    if (!root) return std::nullopt;
    graph_.outputs.push_back({.name = "y", .node = *root});
    return graph_;
  }

  /// Appends the pattern with `x` for its first value; empty, and the graph as before, where the draw does
  /// not fit. The pattern has no other values. Extents are constants.
  std::optional<ir::NodeId> wrap(ir::Graph& graph, ir::NodeId x, const Pattern& pattern) {
    graph_ = std::move(graph);
    slots_ = {{0, x}};
    const std::size_t before = graph_.nodes.size();
    const ir::Type type = graph_[x].type;
    const auto made = node(pattern, type);
    const bool fits = made && slots_.size() == 1 && fits_from(before);
    if (!fits) graph_.nodes.resize(before);
    graph = std::move(graph_);
    return fits ? made : std::nullopt;
  }

  runtime::Values inputs() {
    runtime::Values values;
    for (const ir::Node& node : graph_.nodes) {
      const auto* named = std::get_if<ir::NameAttr>(&node.attr);
      if (!named) continue;
      std::vector<std::int64_t> shape;
      for (const Dim& dim : node.type.dims) shape.push_back(dim.constant());
      auto tensor = runtime::HostTensor::make(node.type.dtype, shape);
      for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
        is_floating(tensor.dtype) ? tensor.set(i, real()) : tensor.set_int(i, integer());
      }
      values.emplace(named->name, std::move(tensor));
    }
    return values;
  }

 private:
  /// Whether types and attributes of the nodes from `first` on agree, and none is an input.
  bool fits_from(std::size_t first) const {
    try {
      for (std::size_t id = first; id < graph_.nodes.size(); ++id) {
        const ir::Node& node = graph_.nodes[id];
        if (std::holds_alternative<ir::NameAttr>(node.attr)) return false;
        std::vector<ir::Type> operands;
        for (const ir::NodeId operand : node.operands) operands.push_back(graph_[operand].type);
        ir::infer_type(node.op, operands, node.attr, &node.type, {});
      }
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  using Axes = std::vector<std::int64_t>;

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  template <class T>
  T pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(from.size()) - 1))];
  }
  bool flip() { return between(0, 1) == 1; }

  std::vector<Dim> dims(std::int64_t rank) {
    std::vector<Dim> result;
    while (std::ssize(result) < rank) result.emplace_back(between(0, 40) == 0 ? 0 : between(1, 4));
    return result;
  }

  double real() {
    if (plain_) return 0.5 + static_cast<double>(between(0, 1 << 20)) * 0x1.8p-20;
    constexpr double inf = std::numeric_limits<double>::infinity();
    if (flip()) return static_cast<double>(between(-4000, 4000)) / 1000;
    if (flip()) return flip() ? 0.0 : -0.0;  // often, so that both meet
    return pick<double>({0.0,  -0.0,  1,     -1,   inf,    -inf,   std::numeric_limits<double>::quiet_NaN(),
                         0.5,  -2.5,  2,     3,    1e-45,  -1e-40, 0x1p-126,
                         3e38, -3e38, 65504, 6e-8, 1e-310, 1e300,  0x1.fp100,
                         255,  -128});
  }
  std::int64_t integer() {
    if (plain_) return between(1, 3);
    const auto most = std::numeric_limits<std::int64_t>::max();
    return pick<std::int64_t>({0, 1, -1, 2, 3, -7, 100, -128, 127, 255, most, -most - 1, -most, 0x7fffffff,
                               -0x80000000LL, between(-300, 300)});
  }

  ir::NodeId add(ir::Op op, ir::Attr attr, std::vector<ir::NodeId> operands, ir::Type type) {
    graph_.nodes.push_back(
        {.op = op, .attr = std::move(attr), .operands = std::move(operands), .type = std::move(type)});
    return static_cast<ir::NodeId>(graph_.nodes.size() - 1);
  }

  /// A number as a constant holds it: rounded or wrapped to the type.
  ir::NodeId constant(const ir::Type& type) {
    runtime::HostTensor one = runtime::HostTensor::make(type.dtype, {1});
    ir::ConstantAttr value;
    if (is_floating(type.dtype)) {
      one.set(0, plain_ || flip() ? pick<double>({0.5, 2, 4, 1.25, 3, 0.1}) : real());
      value.real = one.get(0);
    } else {
      one.set_int(0, integer());
      value.integer = one.get_int(0);
    }
    return add(ir::Op::constant, value, {}, type);
  }

  std::optional<ir::NodeId> node(const Pattern& pattern, const ir::Type& type) {
    if (pattern.kind == Pattern::Kind::literal) {
      const auto literal = ir::algebra::literal_of(pattern.literal, type.dtype);
      return literal ? std::optional(add(ir::Op::constant, *literal, {}, type)) : std::nullopt;
    }
    if (pattern.kind == Pattern::Kind::op) return op(pattern, type);
    const auto found = slots_.find(pattern.slot);
    if (found != slots_.end()) {
      return graph_[found->second].type == type ? std::optional(found->second) : std::nullopt;
    }
    const ir::NodeId made =
        pattern.kind == Pattern::Kind::constant
            ? constant(type)
            : add(ir::Op::input, ir::NameAttr{"v" + std::to_string(pattern.slot)}, {}, type);
    slots_.emplace(pattern.slot, made);
    return made;
  }

  std::optional<ir::NodeId> op(const Pattern& pattern, const ir::Type& type) {
    std::vector<ir::Type> types;
    ir::Attr attr = ir::NoAttr{};
    if (!operands_of(pattern.op, type, types, attr)) return std::nullopt;
    std::vector<ir::NodeId> operands;
    for (std::size_t i = 0; i < pattern.operands.size(); ++i) {
      if (pattern.operands[i].kind == Pattern::Kind::rest) {
        for (; i < types.size(); ++i) {
          operands.push_back(add(ir::Op::input, ir::NameAttr{"start" + std::to_string(i)}, {}, types[i]));
        }
        break;
      }
      const auto operand = node(pattern.operands[i], types.at(i));
      if (!operand) return std::nullopt;
      operands.push_back(*operand);
    }
    return add(pattern.op, std::move(attr), std::move(operands), type);
  }

  /// Operand types and attributes with which the op makes `type`.
  bool operands_of(ir::Op op, const ir::Type& type, std::vector<ir::Type>& types, ir::Attr& attr) {
    const ir::OpInfo& row = info(op);
    ir::Type x = type;
    if (row.elementwise) {
      if (row.result == ir::ResultClass::boolean) {
        if (type.dtype != boolean) return false;
        x.dtype = pick(types_of_rules());
      }
      types.assign(static_cast<std::size_t>(row.arity), x);
      return takes(row.operands, x.dtype);
    }
    switch (row.relation) {
      case ir::Relation::identity:
        if (row.arity == 3) types = {{boolean, type.dims}, type, type};
        if (row.arity == 1) types = {{pick(types_of_rules()), type.dims}};
        return true;
      case ir::Relation::permute:
        attr = permuted(type, x);
        break;
      case ir::Relation::reshape:
        std::shuffle(x.dims.begin(), x.dims.end(), random_);
        if (flip()) x.dims = {product(x.dims)};
        if (flip()) x.dims = type.dims;
        if (flip()) std::erase_if(x.dims, [](const Dim& dim) { return dim.is(1); });
        break;
      case ir::Relation::broadcast:
        attr = repeated(type, x);
        break;
      case ir::Relation::slice:
        attr = sliced(type, x);
        break;
      case ir::Relation::reverse:
        attr = ir::DimsAttr{some_axes(type.rank())};
        break;
      case ir::Relation::pad:
        attr = padded(type, x);
        types = {x, {type.dtype, {}}};
        return true;
      case ir::Relation::concat:
        if (type.rank() == 0) return false;
        attr = ir::AxisAttr{between(0, type.rank() - 1)};
        break;
      case ir::Relation::dynamic_slice:
        if (flip()) grow(x);
        attr = ir::SizesAttr{type.dims};
        types = {x};
        break;
      case ir::Relation::update: {
        ir::Type part = type;
        if (flip()) {
          for (Dim& dim : part.dims) dim = between(0, dim.constant());
        }
        types = {type, part};
        break;
      }
      case ir::Relation::reduce:
        attr = reduced(row, type, x);
        if (row.identity == ir::Identity::none) {
          x.dtype = pick(types_of_rules());
          if (type.dtype != i64) return false;
        }
        types = {x};
        return takes(row.operands, x.dtype);
      default:
        return false;
    }
    if (types.empty()) types = {x};
    if (row.arity < 0 && row.relation != ir::Relation::concat) {
      for (std::int64_t i = 0; i < type.rank(); ++i) types.push_back({i32, {}});
    }
    return true;
  }

  Axes some_axes(std::int64_t rank) {
    Axes axes;
    for (std::int64_t i = 0; i < rank; ++i) {
      if (flip()) axes.push_back(i);
    }
    return axes;
  }

  ir::Attr permuted(const ir::Type& type, ir::Type& x) {
    Axes axes;
    for (std::int64_t i = 0; i < type.rank(); ++i) axes.push_back(i);
    if (between(0, 2) != 0) std::shuffle(axes.begin(), axes.end(), random_);
    for (std::size_t i = 0; i < axes.size(); ++i) x.dims[static_cast<std::size_t>(axes[i])] = type.dims[i];
    return ir::DimsAttr{axes};
  }

  ir::Attr repeated(const ir::Type& type, ir::Type& x) {
    const bool all = between(0, 3) == 0;
    Axes axes;
    x.dims.clear();
    for (std::int64_t i = 0; i < type.rank(); ++i) {
      if (!all && flip()) continue;
      axes.push_back(i);
      x.dims.push_back(!all && between(0, 2) == 0 ? Dim(1) : type.dims[static_cast<std::size_t>(i)]);
    }
    return ir::DimsAttr{axes};
  }

  ir::Attr sliced(const ir::Type& type, ir::Type& x) {
    ir::SliceAttr slice;
    const bool all = between(0, 2) == 0;
    for (Dim& extent : x.dims) {
      const std::int64_t start = all || flip() ? 0 : between(0, 3), stride = all ? 1 : between(1, 3);
      const std::int64_t count = extent.constant();
      std::int64_t limit = count == 0 ? start : start + (count - 1) * stride + 1;
      if (stride > 1 && count > 0) limit += between(0, stride - 1);
      slice.starts.emplace_back(start);
      slice.limits.emplace_back(limit);
      slice.strides.push_back(stride);
      extent = limit + (all || flip() ? 0 : between(0, 2));
    }
    static_cast<void>(type);
    return slice;
  }

  ir::Attr padded(const ir::Type& type, ir::Type& x) {
    ir::PadAttr pad;
    const bool none = between(0, 2) == 0;
    for (std::size_t i = 0; i < type.dims.size(); ++i) {
      const std::int64_t low = none ? 0 : between(0, type.dims[i].constant());
      const std::int64_t high = none ? 0 : between(0, type.dims[i].constant() - low);
      pad.low.emplace_back(low);
      pad.high.emplace_back(high);
      x.dims[i] = type.dims[i].constant() - low - high;
    }
    return pad;
  }

  void grow(ir::Type& x) {
    for (Dim& dim : x.dims) dim = dim + between(0, 2);
  }

  ir::Attr reduced(const ir::OpInfo& row, const ir::Type& type, ir::Type& x) {
    const std::int64_t count = row.identity == ir::Identity::none ? 1 : between(1, 2);
    const bool units = flip();
    Axes axes;
    for (std::int64_t rank = type.rank(), i = 0; i < count; ++i, ++rank) {
      const std::int64_t at = between(0, rank);
      for (std::int64_t& axis : axes) axis += axis >= at ? 1 : 0;
      axes.push_back(at);
      x.dims.insert(x.dims.begin() + at, Dim(units ? 1 : between(1, 5)));
    }
    std::sort(axes.begin(), axes.end());
    return ir::DimsAttr{axes};
  }

  std::mt19937_64 random_;
  bool plain_;
  ir::Graph graph_;
  std::map<std::size_t, ir::NodeId> slots_;
};

}  // namespace fuse::test
