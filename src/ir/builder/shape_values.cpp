// Shape values: tensors that state extents (BladeDISC, 3.1.2). What follows from extents and numbers alone is
// again an expression of symbols, known to Facts like any other.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "ir/builder/call.hpp"

namespace fuse {
inline namespace v0 {
namespace {

using detail::Builder;
using detail::Call;
using ir::Node;
using ir::NodeId;
using ir::Op;

using Elements = std::vector<Dim>;

constexpr std::size_t longest = 4096;       // of an expression as text
constexpr std::int64_t most_elements = 64;  // of a shape value: no tensor has as many dims

class ShapeValues {
 public:
  explicit ShapeValues(const Call& call) : call_(call), graph_(call.builder.graph) {}

  /// Operands before their users, without recursion: a chain may be long.
  const Elements& of(NodeId root) {
    std::vector<NodeId> open = {root};
    std::set<NodeId> needed;
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (!needed.insert(id).second) continue;
      open.insert(open.end(), graph_[id].operands.begin(), graph_[id].operands.end());
    }
    for (const NodeId id : needed) {
      Elements made = make(graph_[id], id);
      for (const Dim& each : made) {
        if (each.to_string().size() > longest) refuse(id, "is too long an expression");
        if (graph_[id].type.dtype == i32 && !within<std::int32_t>(each)) refuse(id, "may be beyond 32 bits");
      }
      values_.emplace(id, std::move(made));
    }
    return values_.at(root);
  }

 private:
  /// Whether no value is at an end of the type: bounds of extents saturate there.
  template <class T>
  static bool within(const Dim& dim) {
    return dim.min() > std::numeric_limits<T>::min() && dim.max() < std::numeric_limits<T>::max();
  }

  [[noreturn]] void refuse(NodeId id, const std::string& why) const {
    call_.fail(
        ErrorCode::invalid_argument,
        fmt::format("{}, {} of type {}, {}", graph_.value_name(id), to_string(graph_[id].op),
                    ir::to_string(graph_[id].type), why),
        "an extent follows from dim_size, numbers and integer arithmetic; for one that is data, declare a "
        "symbol with Graph::dim and give prepare its value");
  }

  std::int64_t count(NodeId id) const {
    const ir::Type& type = graph_[id].type;
    if (type.dtype != i64 && type.dtype != i32) refuse(id, "is no integer of 32 or 64 bits");
    const Dim elements = product(type.dims);
    if (!elements.is_constant() || elements.constant() > most_elements || type.rank() > 1)
      refuse(id, fmt::format("is no scalar and no vector of up to {} numbers", most_elements));
    return elements.constant();
  }

  Elements make(const Node& node, NodeId id) {
    const std::int64_t elements = count(id);
    const auto operand = [&](std::size_t i) -> const Elements& { return values_.at(node.operands[i]); };
    switch (node.op) {
      case Op::constant:
        return Elements(static_cast<std::size_t>(elements), Dim(ir::attr<ir::ConstantAttr>(node).integer));
      case Op::iota: {
        Elements result;
        for (std::int64_t i = 0; i < elements; ++i) result.emplace_back(i);
        return result;
      }
      case Op::dim_size:
        return {ir::attr<ir::DimAttr>(node).dim};
      case Op::convert:
      case Op::reshape:
        return operand(0);
      case Op::broadcast_in_dim: {
        const Elements& from = operand(0);
        return from.size() == 1 ? Elements(static_cast<std::size_t>(elements), from[0]) : from;
      }
      case Op::slice: {
        const auto& attr = ir::attr<ir::SliceAttr>(node);
        const Elements& from = operand(0);
        if (attr.starts.empty()) return from;
        if (!attr.starts[0].is_constant()) refuse(id, "begins at a symbol");
        Elements result;
        for (std::int64_t i = 0; i < elements; ++i)
          result.push_back(
              from.at(static_cast<std::size_t>(attr.starts[0].constant() + i * attr.strides[0])));
        return result;
      }
      case Op::reverse: {
        Elements result = operand(0);
        if (!ir::attr<ir::DimsAttr>(node).dims.empty()) std::ranges::reverse(result);
        return result;
      }
      case Op::concat: {
        Elements result;
        for (std::size_t i = 0; i < node.operands.size(); ++i) {
          const Elements& part = operand(i);
          result.insert(result.end(), part.begin(), part.end());
        }
        return result;
      }
      case Op::gather: {
        const Elements from = operand(0);
        Elements result;
        for (const Dim& index : operand(1)) {
          if (!index.is_constant()) refuse(id, "takes an element whose number is a symbol");
          const auto last = static_cast<std::int64_t>(from.size()) - 1;
          if (last < 0) refuse(id, "takes an element of none");
          result.push_back(
              from[static_cast<std::size_t>(std::clamp<std::int64_t>(index.constant(), 0, last))]);
        }
        return result;
      }
      case Op::reduce_sum:
      case Op::reduce_prod: {
        Dim result = node.op == Op::reduce_sum ? 0 : 1;
        for (const Dim& each : operand(0)) result = node.op == Op::reduce_sum ? result + each : result * each;
        return {result};
      }
      default:
        return elementwise(node, id);
    }
  }

  Elements elementwise(const Node& node, NodeId id) {
    constexpr Op known[] = {Op::add, Op::sub, Op::mul, Op::div, Op::rem, Op::neg, Op::max, Op::min};
    if (std::ranges::find(known, node.op) == std::end(known))
      refuse(id, node.operands.empty() ? "is data" : "is no op that is followed");
    const Elements a = values_.at(node.operands[0]);
    const Elements b = node.operands.size() > 1 ? values_.at(node.operands[1]) : Elements(a.size());
    Elements result;
    for (std::size_t i = 0; i < a.size(); ++i) result.push_back(combined(node.op, a[i], b[i], id));
    return result;
  }

  Dim combined(Op op, const Dim& a, const Dim& b, NodeId id) const {
    // Sums and products that wrap are right where the extent does not overflow in the end; what compares is
    // not.
    const bool compares = op == Op::div || op == Op::rem || op == Op::max || op == Op::min;
    if (compares && !(within<std::int64_t>(a) && within<std::int64_t>(b)))
      refuse(id, "compares or divides what may be beyond 64 bits: declare smaller ranges");
    switch (op) {
      case Op::add:
        return a + b;
      case Op::sub:
        return a - b;
      case Op::mul:
        return a * b;
      case Op::neg:
        return Dim(0) - a;
      case Op::div:
      case Op::rem:  // the op truncates, extents round down: the same where nothing is negative
        if (!proven_le(0, a) || !proven_le(1, b)) refuse(id, "may divide by 0, or what is negative");
        return op == Op::div ? a / b : a % b;
      default:
        if (proven_le(a, b)) return op == Op::max ? b : a;
        if (proven_le(b, a)) return op == Op::max ? a : b;
        refuse(id, fmt::format("is {} or {}, by the dims", a.to_string(), b.to_string()));
    }
  }

  const Call& call_;
  const ir::Graph& graph_;
  std::map<NodeId, Elements> values_;
};

Elements stated(std::string_view function, const Arg& values, std::int64_t rank) {
  const Call call{function, {values}};
  const Tensor& tensor = call.tensor(0);
  if (call.type(0).rank() != rank)
    call.fail(ErrorCode::invalid_argument, rank == 0 ? "it is no scalar" : "it is no vector",
              rank == 0 ? "extents_of takes a vector" : "extent_of takes a scalar");
  return ShapeValues(call).of(Builder::node(tensor));
}

}  // namespace

Dim extent_of(const Arg& value) { return stated("extent_of", value, 0).at(0); }
std::vector<Dim> extents_of(const Arg& values) { return stated("extents_of", values, 1); }

}  // namespace v0
}  // namespace fuse
