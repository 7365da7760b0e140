// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "eval/bounds/jumps.hpp"
#include "eval/bounds/positive_values.hpp"
#include "eval/eval_step.hpp"

namespace fuse::runtime {
namespace reference {

ReferenceTensor Step::make_in_place() const {
  if (dying && dying->is_real() == is_floating(dtype()) && dying->shape() == shape) {
    return ReferenceTensor(dtype(), shape, std::move(*dying));
  }
  return make();
}

void Step::fail(ErrorCode code, std::string message, std::string hint) const {
  std::vector<std::string> shapes;
  for (const ReferenceTensor* operand : operands) {
    shapes.push_back(type_text(operand->dtype(), operand->shape()));
  }
  throw Error({.kind = code == ErrorCode::internal ? ErrorKind::internal : ErrorKind::user,
               .code = code,
               .message = fmt::format("{} (the result is {})", message, type_text(dtype(), shape)),
               .op = std::string(to_string(node.op)),
               .shapes = std::move(shapes),
               .location = graph.location(node),
               .hint = std::move(hint)});
}

namespace {

using ir::Node;
using ir::NodeId;
using ir::Op;
using ir::Relation;

using DimValues = std::map<std::string, std::int64_t, std::less<>>;

DimValues bind_dims(const ir::Graph& graph, const std::function<std::int64_t(std::string_view)>& dims) {
  DimValues values;
  for (const ir::Symbol& symbol : graph.symbols) {
    if (!dims) {
      throw Error({.code = ErrorCode::unbound, .message = fmt::format("dim '{}' has no value", symbol.name)});
    }
    const std::int64_t value = dims(symbol.name);
    if (value < symbol.range.min || value > symbol.range.max) {
      throw Error({.code = ErrorCode::invalid_extent,
                   .message = fmt::format("dim '{}' is {}, outside of its range [{}, {}]", symbol.name, value,
                                          symbol.range.min, symbol.range.max)});
    }
    values.emplace(symbol.name, value);
  }
  return values;
}

/// One evaluation of one graph.
class Evaluation {
 public:
  Evaluation(const ir::Graph& graph, const Values& inputs, DimValues dims, Precision precision,
             std::uint64_t variant)
      : graph_(graph),
        inputs_(inputs),
        dims_(std::move(dims)),
        precision_(precision),
        floats_(precision == Precision::wide && has_f64(graph) ? Hold::wide : Hold::real),
        variant_(variant),
        values_(graph.nodes.size()),
        last_use_(graph.nodes.size(), none) {
    check_inputs();
    find_last_uses();
  }

  ReferenceResult run(const std::function<void(std::size_t, std::size_t)>& progress) {
    std::size_t done = 0, total = 0;
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) total += last_use_[id] != none ? 1 : 0;
    const auto count = [&] {
      if (progress) progress(++done, total);
    };
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (!is_computed(id)) continue;
      for (std::size_t made = make_sources(id); made > 0; --made) count();
      compute(id, operands_of(id));
      count();
    }
    for (const ir::Output& output : graph_.outputs) {
      if (values_[output.node]) continue;
      values_[output.node] = source(output.node);
      count();
    }
    return outputs();
  }

  /// Whether an output needs it, and it is made of operands.
  bool is_computed(NodeId id) const { return last_use_[id] != none && !is_source(id); }

  /// A source waits for its first user, so that a weight is not held from the start. Returns how many were
  /// made.
  std::size_t make_sources(NodeId id) {
    std::size_t made = 0;
    for (const NodeId operand : graph_[id].operands) {
      if (!is_source(operand) || values_[operand]) continue;
      values_[operand] = source(operand);
      ++made;
    }
    return made;
  }

  std::vector<const ReferenceTensor*> operands_of(NodeId id) const {
    std::vector<const ReferenceTensor*> operands;
    for (const NodeId operand : graph_[id].operands) operands.push_back(&*values_[operand]);
    return operands;
  }

  /// Computes the node from these operands. Those that nothing reads later are freed then.
  void compute(NodeId id, std::vector<const ReferenceTensor*> operands) {
    values_[id] = value_made(id, std::move(operands));
    for (const NodeId operand : graph_[id].operands) {
      if (last_use_[operand] == id) values_[operand].reset();
    }
  }

  /// All nodes have been computed.
  ReferenceResult outputs() {
    ReferenceResult result;
    for (auto output = graph_.outputs.begin(); output != graph_.outputs.end(); ++output) {
      std::optional<ReferenceTensor>& value = values_[output->node];
      if (!value) value = source(output->node);
      const bool again = std::any_of(output + 1, graph_.outputs.end(),
                                     [&](const ir::Output& later) { return later.node == output->node; });
      result.outputs.insert_or_assign(output->name, again ? ReferenceTensor(*value) : std::move(*value));
    }
    return result;
  }

 private:
  static constexpr NodeId none = static_cast<NodeId>(-1);
  static constexpr NodeId kept = static_cast<NodeId>(-2);  ///< an output: read after the last node

  static bool has_f64(const ir::Graph& graph) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                       [](const Node& node) { return node.type.dtype == f64; });
  }

  bool is_source(NodeId id) const { return info(graph_[id].op).relation == Relation::none; }

  std::int64_t value_of(const Dim& dim) const {
    return dim.evaluate([&](std::string_view name) {
      const auto found = dims_.find(name);
      if (found == dims_.end()) {
        throw Error({.code = ErrorCode::unbound, .message = fmt::format("dim '{}' has no value", name)});
      }
      return found->second;
    });
  }

  std::vector<std::int64_t> shape_of(NodeId id) const {
    std::vector<std::int64_t> shape;
    for (const Dim& dim : graph_[id].type.dims) shape.push_back(value_of(dim));
    if (!checked_element_count(shape, sizeof(double))) {
      throw Error(
          {.code = ErrorCode::invalid_extent,
           .message = fmt::format("{} is {} for these dims: an extent is negative, or the size overflows",
                                  graph_.value_name(id), type_text(graph_[id].type.dtype, shape)),
           .op = std::string(to_string(graph_[id].op)),
           .location = graph_.location(graph_[id])});
    }
    return shape;
  }

  void check_inputs() const {
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      const Node& node = graph_[id];
      const auto* named = std::get_if<ir::NameAttr>(&node.attr);
      if (!named) continue;
      const std::vector<std::int64_t> shape = shape_of(id);
      const std::string expected = type_text(node.type.dtype, shape);
      const auto fail = [&](ErrorCode code, std::string what, std::string hint) {
        throw Error({.code = code,
                     .message = fmt::format("{} '{}' {}", to_string(node.op), named->name, what),
                     .location = graph_.location(node),
                     .hint = std::move(hint)});
      };
      const auto found = inputs_.find(named->name);
      if (found == inputs_.end()) {
        fail(ErrorCode::unbound, "has no value", fmt::format("give it a tensor {}", expected));
      }
      const HostTensor& given = found->second;
      const std::string text = type_text(given.dtype, given.shape);
      if (given.dtype != node.type.dtype) {
        fail(ErrorCode::dtype_mismatch, fmt::format("is {}, not {}", text, expected), "convert it first");
      }
      if (given.shape != shape) {
        fail(ErrorCode::shape_mismatch, fmt::format("is {}, not {}", text, expected),
             graph_[id].type.dims.empty() ? "" : "the declared type is " + ir::to_string(node.type));
      }
      const auto count = checked_element_count(given.shape, given.dtype);
      const std::size_t bytes = static_cast<std::size_t>(count.value_or(0)) * size_of(given.dtype);
      if (given.data.size() != bytes) {
        fail(ErrorCode::buffer_size,
             fmt::format("is {}, which takes {} bytes, but has {}", text, bytes, given.data.size()), "");
      }
    }
  }

  void find_last_uses() {
    for (const ir::Output& output : graph_.outputs) last_use_.at(output.node) = kept;
    for (NodeId id = static_cast<NodeId>(graph_.nodes.size()); id-- > 0;) {
      if (last_use_[id] == none) continue;
      for (const NodeId operand : graph_[id].operands) {
        if (operand >= id) {
          throw Error({.kind = ErrorKind::internal,
                       .code = ErrorCode::cycle,
                       .message = graph_.value_name(id) + " stands before an operand of its own"});
        }
        if (last_use_[operand] == none) last_use_[operand] = id;
      }
    }
  }

  Step make_step(NodeId id) const {
    return {.graph = graph_,
            .node = graph_[id],
            .precision = precision_,
            .floats = floats_,
            .variant = variant_,
            .sums = variant_ == 0 ? 0 : variant_ + ((std::uint64_t{id} + 1) << 32),
            .value_of = [this](const Dim& dim) { return value_of(dim); },
            .shape = shape_of(id),
            .operands = {}};
  }

  ReferenceTensor value_made(NodeId id, std::vector<const ReferenceTensor*> operands) {
    Step step = make_step(id);
    step.operands = std::move(operands);
    const NodeId first = graph_[id].operands.at(0);
    if (last_use_[first] == id && step.operands[0] == &*values_[first]) step.dying = &*values_[first];
    const ir::OpInfo& row = info(graph_[id].op);
    if (row.elementwise) return evaluate_elementwise(step);
    switch (row.op) {
      case Op::select:
        return evaluate_select(step);
      case Op::convert:
        return evaluate_convert(step);
      case Op::matmul:
        return evaluate_matmul(step);
      case Op::contraction:
        return evaluate_contraction(step);
      case Op::cumulative_sum:
        return evaluate_scan(step);
      case Op::random_uniform:
        return evaluate_random(step);
      case Op::custom_call:
        return evaluate_custom(step);
      default:
        break;
    }
    if (row.relation == Relation::reduce) return evaluate_reduction(step);
    return evaluate_movement(step);
  }

  ReferenceTensor source(NodeId id) const {
    const Step step = make_step(id);
    const Node& node = graph_[id];
    if (const auto* named = std::get_if<ir::NameAttr>(&node.attr)) {
      return ReferenceTensor::from_host(inputs_.at(named->name), floats_);
    }
    ReferenceTensor result = step.make();
    step.with_storage(step.dtype(), [&]<class T>() {
      const std::span<T> out = result.elements<T>();
      if (const auto* constant = std::get_if<ir::ConstantAttr>(&node.attr)) {
        const bool real = std::is_floating_point_v<T>;
        std::fill(out.begin(), out.end(),
                  real ? static_cast<T>(constant->real) : static_cast<T>(constant->integer));
      } else if (const auto* size = std::get_if<ir::DimAttr>(&node.attr)) {
        std::fill(out.begin(), out.end(), static_cast<T>(value_of(size->dim)));
      } else {
        fill_iota<T>(step, static_cast<std::size_t>(ir::attr<ir::AxisAttr>(node).axis), out);
      }
      if constexpr (std::is_same_v<T, double>) {
        if (step.rounds()) round_to(step.dtype(), out.data(), out.size());
      } else if constexpr (std::is_same_v<T, std::int64_t>) {
        wrap_to(step.dtype(), out.data(), out.size());
      }
    });
    return result;
  }

  template <class T>
  static void fill_iota(const Step& step, std::size_t axis, std::span<T> out) {
    std::int64_t inner = 1;
    for (std::size_t d = axis + 1; d < step.shape.size(); ++d) inner *= step.shape[d];
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<T>(static_cast<std::int64_t>(i) / inner % step.shape[axis]);
    }
  }

  const ir::Graph& graph_;
  const Values& inputs_;
  const DimValues dims_;
  const Precision precision_;
  const Hold floats_;
  const std::uint64_t variant_;
  std::vector<std::optional<ReferenceTensor>> values_;
  std::vector<NodeId> last_use_;
};

}  // namespace
}  // namespace reference

ReferenceResult evaluate(const ir::Graph& graph, const Values& inputs,
                         const std::function<std::int64_t(std::string_view)>& dims, Precision precision,
                         const std::function<void(std::size_t done, std::size_t total)>& progress,
                         std::uint64_t variant) {
  return reference::Evaluation(graph, inputs, reference::bind_dims(graph, dims), precision, variant)
      .run(progress);
}

TogetherResult evaluate_together(const ir::Graph& graph, const Values& inputs,
                                 const std::function<std::int64_t(std::string_view)>& dims,
                                 std::size_t steady, std::size_t diverse,
                                 const std::function<void(std::size_t done, std::size_t total)>& progress) {
  using reference::Evaluation, reference::Operands;
  const auto values = reference::bind_dims(graph, dims);
  Evaluation exact(graph, inputs, values, Precision::wide, 0);
  std::vector<Evaluation> evaluations;
  evaluations.reserve(1 + steady + diverse);
  for (std::size_t k = 0; k < 1 + steady + diverse; ++k)
    evaluations.emplace_back(graph, inputs, values, Precision::same_type, k);
  TogetherResult result;
  std::vector<Operands> operands(evaluations.size());
  const std::vector<bool> positive = reference::positive_nodes(graph);
  for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (!exact.is_computed(id)) continue;
    exact.make_sources(id);
    const std::vector<const ReferenceTensor*> wanted = exact.operands_of(id);
    for (std::size_t k = 0; k < evaluations.size(); ++k) {
      evaluations[k].make_sources(id);
      operands[k] = {evaluations[k].operands_of(id), {}};
    }
    if (reference::decides(graph, graph[id]))
      result.undecided |= reference::settle(graph, graph[id], positive, wanted, operands, steady, id);
    for (std::size_t k = 0; k < evaluations.size(); ++k) evaluations[k].compute(id, operands[k].values);
    exact.compute(id, wanted);
    if (progress) progress(id + 1, graph.nodes.size());
  }
  result.exact = exact.outputs();
  for (Evaluation& each : evaluations) result.evaluations.push_back(each.outputs());
  return result;
}

}  // namespace fuse::runtime
