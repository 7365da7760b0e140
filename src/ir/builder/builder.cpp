// Graph, Tensor and the Builder behind them: names, scopes, lines and checked insertion of nodes.
// SPDX-License-Identifier: Apache-2.0
#include "ir/builder/builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "ir/dims/disproof.hpp"
#include "ir/graph/infer.hpp"
#include "ir/text/print.hpp"

namespace fuse {
namespace {

std::string describe(const Arg& operand) {
  if (!operand.is_number()) return operand.tensor().valid() ? operand.tensor().type_string() : "no tensor";
  if (!operand.is_integer()) return fmt::format("{}", operand.real());
  if (operand.integer() < 0 && operand.real() > 0) {
    return fmt::format("{}", static_cast<std::uint64_t>(operand.integer()));
  }
  return fmt::format("{}", operand.integer());
}

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::f32:
      return static_cast<float>(value);
    case DType::f16:
      return static_cast<double>(half(value));
    case DType::bf16:
      return static_cast<double>(bfloat16(value));
    default:
      return value;
  }
}

/// Whether a double is exactly the integer that was written.
bool holds(double value, const Arg& written) {
  constexpr double two_63 = 9223372036854775808.0;
  if (!(std::fabs(value) < 2 * two_63)) return false;
  if (value >= 0 && written.real() >= 0) {
    return static_cast<std::uint64_t>(value) == static_cast<std::uint64_t>(written.integer());
  }
  return value >= -two_63 && value < two_63 && static_cast<std::int64_t>(value) == written.integer();
}

std::string location_key(const SourceLocation& at) { return at.file + ':' + std::to_string(at.line); }

const ir::Node& node_of(const std::shared_ptr<detail::Builder>& builder, ir::NodeId node) {
  if (!builder) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "a tensor handle that was never given a value was used",
                 .hint = "make it with Graph::input, Graph::parameter or an operator"});
  }
  return builder->graph[node];
}

detail::Builder& alive(const std::shared_ptr<detail::Builder>& builder) {
  if (!builder) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "a graph was used after it was moved from",
                 .hint = "assign a graph to it first"});
  }
  return *builder;
}

}  // namespace

namespace detail {

Builder::Builder(ir::Graph graph_) : graph(std::move(graph_)) {
  for (ir::LocationId id = 0; id < graph.locations.size(); ++id) {
    location_ids.try_emplace(location_key(graph.locations[id]), id);
  }
  for (const ir::Symbol& symbol : graph.symbols) {
    names.try_emplace(symbol.name, Dim::symbol(symbol.name, symbol.range));
  }
  for (const ir::Node& node : graph.nodes) {
    if (const auto* named = std::get_if<ir::NameAttr>(&node.attr)) names.try_emplace(named->name);
    if (const auto* random = std::get_if<ir::RandomAttr>(&node.attr)) {
      next_stream = std::max(next_stream, random->stream + 1);
    }
  }
  for (const ir::Output& output : graph.outputs) output_names.insert(output.name);
}

SourceLocation Builder::where(const std::source_location& at) const {
  return compounds.empty() ? SourceLocation(at) : graph.locations[graph.scopes[compounds.back()].location];
}

void Builder::fail(ErrorCode code, std::string_view op, const std::vector<Arg>& operands, std::string message,
                   std::string hint, const std::source_location& at) const {
  std::vector<std::string> shapes;
  for (const Arg& operand : operands) shapes.push_back(describe(operand));
  // The caller knows the function that he called, and not the ops of which it consists.
  if (!compounds.empty() && graph.scopes[compounds.front()].name != op) {
    message += fmt::format("; this {} is a part of {}", op, graph.scopes[compounds.front()].name);
  }
  throw Error({.code = code,
               .message = std::move(message),
               .op = std::string(op),
               .shapes = std::move(shapes),
               .location = where(at),
               .hint = std::move(hint)});
}

ir::LocationId Builder::locate(const std::source_location& at) {
  if (!compounds.empty()) return graph.scopes[compounds.back()].location;
  SourceLocation location(at);
  const auto [entry, fresh] =
      location_ids.try_emplace(location_key(location), static_cast<ir::LocationId>(graph.locations.size()));
  if (fresh) graph.locations.push_back(std::move(location));
  return entry->second;
}

Builder& Builder::of(std::string_view op, const std::vector<Arg>& operands) {
  Builder* builder = nullptr;
  for (const Arg& operand : operands) {
    if (operand.is_number()) continue;
    Builder* own = operand.tensor().builder_.get();
    const auto refuse = [&](ErrorCode code, std::string message, std::string hint) {
      const Builder unknown;
      const Builder* reporter = builder ? builder : own ? own : &unknown;
      reporter->fail(code, op, operands, std::move(message), std::move(hint), operand.at());
    };
    if (!own) {
      refuse(ErrorCode::invalid_argument, "an operand is a tensor handle that was never given a value",
             "make it with Graph::input, Graph::parameter or an operator");
    }
    if (builder && own != builder) {
      refuse(
          ErrorCode::wrong_graph,
          fmt::format("operands belong to two graphs, '{}' and '{}'", builder->graph.name, own->graph.name),
          "build all operands with one Graph; tensors stay with the original when a Graph is copied");
    }
    builder = own;
  }
  if (!builder) {
    Builder().fail(ErrorCode::invalid_argument, op, operands, "no operand is a tensor",
                   "make a number a tensor with Graph::constant",
                   operands.empty() ? std::source_location() : operands[0].at());
  }
  return *builder;
}

ir::ConstantAttr Builder::literal(DType dtype, const Arg& number, std::string_view op,
                                  const std::vector<Arg>& operands) const {
  const auto refuse = [&](std::string_view why, std::string hint) {
    fail(ErrorCode::dtype_mismatch, op, operands,
         fmt::format("the number {} {} {}", describe(number), why, fuse::to_string(dtype)), std::move(hint),
         number.at());
  };
  if (is_floating(dtype)) {
    const double rounded = round_to(dtype, number.real());
    if (number.is_integer() && !holds(rounded, number)) {
      refuse("is not exact in", "write it with a decimal point if it may be rounded");
    }
    if (std::isinf(rounded) && !std::isinf(number.real())) {
      refuse("does not fit in", "use a smaller number, or an infinity where that is meant");
    }
    return {.real = rounded, .integer = 0};
  }
  if (!number.is_integer() && std::trunc(number.real()) != number.real()) {
    refuse("has a fraction and cannot be of type", "convert the tensor to a floating type first");
  }
  const auto [low, high] = integer_range(dtype);
  constexpr double two_63 = 9223372036854775808.0;
  const bool wide = number.is_integer() ? number.integer() < 0 && number.real() > 0
                                        : !(number.real() >= -two_63 && number.real() < two_63);
  const std::int64_t value = wide                  ? 0
                             : number.is_integer() ? number.integer()
                                                   : static_cast<std::int64_t>(number.real());
  if (wide || value < low || value > high) {
    refuse("does not fit in", kind_of(dtype) == DTypeKind::boolean ? "a bool is 0 or 1"
                                                                   : "use a number in the range of the type");
  }
  return {.real = 0, .integer = value};
}

void Builder::check_dim(const Dim& dim, std::string_view op, const std::source_location& at) const {
  if (dim.is_constant()) return;
  for (const Dim& symbol : dim.symbols()) {
    const std::string name(symbol.name());
    const auto found = names.find(name);
    if (found == names.end() || !found->second) {
      fail(ErrorCode::wrong_graph, op, {}, fmt::format("dim '{}' was not declared in this graph", name),
           "declare it with Graph::dim of the graph that uses it", at);
    }
    const Dim& own = *found->second;
    if (symbol.min() != own.min() || symbol.max() != own.max() || symbol.hint() != own.hint()) {
      fail(ErrorCode::wrong_graph, op, {},
           fmt::format("dim '{}' is of another graph: its range [{}, {}] is [{}, {}] in this graph", name,
                       symbol.min(), symbol.max(), own.min(), own.max()),
           "declare it with Graph::dim of the graph that uses it", at);
    }
  }
}

void Builder::check_name(const std::string& name, std::string_view op, const std::source_location& at) const {
  if (name.empty()) fail(ErrorCode::invalid_argument, op, {}, "a name is empty", "give it a name", at);
  const auto found = names.find(name);
  if (found == names.end()) return;
  fail(ErrorCode::duplicate_name, op, {},
       fmt::format("the name '{}' is taken by {}", name, found->second ? "a dim" : "an input or a parameter"),
       "inputs, parameters and dims of a graph have different names", at);
}

Tensor Builder::add(ir::Op op, const std::vector<Tensor>& operands, ir::Attr attr, const ir::Type* declared,
                    const std::source_location& at) {
  const std::string_view name = ir::to_string(op);
  const auto as_args = [&] {
    std::vector<Arg> args;
    for (const Tensor& operand : operands) args.emplace_back(operand, at);
    return args;
  };
  std::vector<ir::Type> types;
  std::vector<ir::NodeId> ids;
  types.reserve(operands.size());
  ids.reserve(operands.size());
  for (const Tensor& operand : operands) {
    if (operand.builder_.get() != this) {
      of(name, as_args());  // names the two graphs, unless all operands are of one other graph
      fail(ErrorCode::wrong_graph, name, as_args(),
           fmt::format("operands belong to graph '{}', the op to graph '{}'", operand.builder_->graph.name,
                       graph.name),
           "build all operands with one Graph", at);
    }
    types.push_back(graph[operand.node_].type);
    ids.push_back(operand.node_);
  }
  if (declared) {
    for (const Dim& dim : declared->dims) check_dim(dim, name, at);
  }
  for (const Dim& dim : ir::dims_of(attr)) check_dim(dim, name, at);
  if (graph.nodes.size() >= std::numeric_limits<ir::NodeId>::max()) {
    fail(ErrorCode::invalid_argument, name, as_args(), "the graph has too many ops", "split it", at);
  }
  const ir::LocationId location = locate(at);
  std::vector<DimRelation> needs;  // proven or guarded by the compiler, which asks for them again
  ir::Type type = ir::infer_type(op, types, attr, declared, graph.locations[location], &needs);
  graph.nodes.push_back({.op = op,
                         .attr = std::move(attr),
                         .operands = std::move(ids),
                         .type = std::move(type),
                         .scope = scope_stack.back(),
                         .location = location});
  return tensor(static_cast<ir::NodeId>(graph.nodes.size() - 1));
}

ScopeGuard Builder::open_scope(std::string name, const std::source_location& at, bool fixes_location) {
  if (name.empty()) {
    fail(ErrorCode::invalid_argument, "scope", {}, "a scope's name is empty", "give it a name", at);
  }
  const ir::LocationId location = locate(at);
  // Room first, so that nothing throws between opening and the guard that closes.
  scope_stack.reserve(scope_stack.size() + 1);
  compounds.reserve(compounds.size() + 1);
  graph.scopes.push_back({.name = std::move(name), .parent = scope_stack.back(), .location = location});
  scope_stack.push_back(static_cast<ir::ScopeId>(graph.scopes.size() - 1));
  if (fixes_location) compounds.push_back(scope_stack.back());
  return ScopeGuard(shared_from_this(), fixes_location);
}

void Builder::close_scope(bool fixes_location) {
  if (scope_stack.size() > 1) scope_stack.pop_back();
  if (fixes_location && !compounds.empty()) compounds.pop_back();
}

}  // namespace detail

ScopeGuard::ScopeGuard(ScopeGuard&&) noexcept = default;
ScopeGuard::~ScopeGuard() {
  if (builder_) builder_->close_scope(fixes_location_);
}

DType Tensor::dtype() const { return node_of(builder_, node_).type.dtype; }
std::vector<Dim> Tensor::dims() const { return node_of(builder_, node_).type.dims; }
std::int64_t Tensor::rank() const { return node_of(builder_, node_).type.rank(); }
std::string Tensor::type_string() const { return ir::to_string(node_of(builder_, node_).type); }

Dim Tensor::dim(std::int64_t axis) const {
  const ir::Type& type = node_of(builder_, node_).type;
  if (axis < -type.rank() || axis >= type.rank()) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("axis {} is out of range for rank {}", axis, type.rank()),
                 .op = "dim",
                 .shapes = {ir::to_string(type)},
                 .hint = "a negative axis counts from the end"});
  }
  return type.dims[static_cast<std::size_t>(axis < 0 ? axis + type.rank() : axis)];
}

Graph::Graph(std::string name) : builder_(std::make_shared<detail::Builder>()) {
  builder_->graph.name = std::move(name);
}

Graph::Graph(const Graph& other)
    : builder_(other.builder_ ? std::make_shared<detail::Builder>(other.builder_->graph) : nullptr) {}

Graph& Graph::operator=(const Graph& other) {
  if (this != &other) *this = Graph(other);
  return *this;
}

Dim Graph::dim(std::string name, DimRange range, At at) {
  detail::Builder& builder = alive(builder_);
  builder.check_name(name, "dim", at);
  if (range.min < 0 || range.min > range.max) {
    builder.fail(
        ErrorCode::invalid_argument, "dim", {},
        fmt::format("the range [{}, {}] of dim '{}' is not 0 <= min <= max", range.min, range.max, name),
        "an extent is not negative", at);
  }
  if (range.hint != 0 && (range.hint < range.min || range.hint > range.max)) {
    builder.fail(ErrorCode::invalid_argument, "dim", {},
                 fmt::format("the hint {} of dim '{}' is outside its range [{}, {}]", range.hint, name,
                             range.min, range.max),
                 "give a likely value in the range, or 0 for none", at);
  }
  Dim dim = Dim::symbol(name, range);
  builder.names.emplace(name, dim);
  builder.graph.symbols.push_back({.name = std::move(name), .range = range});
  return dim;
}

void Graph::assume(const DimRelation& relation, At at) {
  detail::Builder& builder = alive(builder_);
  for (const Dim& dim : {relation.left, relation.right}) builder.check_dim(dim, "assume", at);
  if (const std::string why = ir::disproof(relation); !why.empty()) {
    builder.fail(ErrorCode::contradiction, "assume", {},
                 fmt::format("{} cannot hold: {}", relation.to_string(), why),
                 "correct the assumption or the ranges of its dims", at);
  }
  builder.graph.assumptions.push_back({relation, builder.locate(at)});
}

Tensor Graph::input(std::string name, DType dtype, std::vector<Dim> dims, At at) {
  detail::Builder& builder = alive(builder_);
  builder.check_name(name, "input", at);
  const ir::Type type{dtype, std::move(dims)};
  const Tensor result = builder.add(ir::Op::input, {}, ir::NameAttr{name}, &type, at);
  builder.names.emplace(std::move(name), std::nullopt);
  return result;
}

Tensor Graph::parameter(std::string name, DType dtype, std::vector<Dim> dims, At at) {
  detail::Builder& builder = alive(builder_);
  builder.check_name(name, "parameter", at);
  const ir::Type type{dtype, std::move(dims)};
  const Tensor result = builder.add(ir::Op::parameter, {}, ir::NameAttr{name}, &type, at);
  builder.names.emplace(std::move(name), std::nullopt);
  return result;
}

Tensor Graph::constant(DType dtype, Arg value, std::vector<Dim> dims) {
  detail::Builder& builder = alive(builder_);
  if (!value.is_number()) {
    builder.fail(ErrorCode::invalid_argument, "constant", {value}, "the value is a tensor",
                 "give a number; broadcast_to repeats a tensor", value.at());
  }
  const ir::Type type{dtype, std::move(dims)};
  return builder.add(ir::Op::constant, {}, builder.literal(dtype, value, "constant", {value}), &type,
                     value.at());
}

Tensor Graph::iota(DType dtype, std::vector<Dim> dims, std::int64_t axis, At at) {
  const ir::Type type{dtype, std::move(dims)};
  if (axis < 0) axis += type.rank();
  return alive(builder_).add(ir::Op::iota, {}, ir::AxisAttr{axis}, &type, at);
}

Dim Graph::data_dim(std::string name, const Tensor& value, DimRange range, At at) {
  detail::Builder& builder = alive(builder_);
  const std::vector<Arg> args = {Arg(value, at)};
  detail::Builder::of("data_dim", args);
  const auto refuse = [&](ErrorCode code, std::string message, std::string hint) {
    builder.fail(code, "data_dim", args, std::move(message), std::move(hint), at);
  };
  if (value.dtype() != i64 && value.dtype() != i32)
    refuse(ErrorCode::dtype_mismatch, fmt::format("the extent '{}' is {}", name, value.type_string()),
           "an extent is an i32 or i64");
  if (value.rank() != 0)
    refuse(ErrorCode::shape_mismatch, fmt::format("the extent '{}' is {}", name, value.type_string()),
           "give one element, as reshape(slice(lengths, 0, i, i + 1), {}) does");
  const std::string holds = name + "_holds";
  if (builder.output_names.contains(holds))
    refuse(ErrorCode::duplicate_name, fmt::format("there is an output '{}', which data_dim makes", holds),
           "give the dim or the output another name");
  const Dim symbol = dim(name, range, at);
  const Tensor wide = value.dtype() == i64 ? value : convert(Arg(value, at), i64);
  output(holds, Arg(wide, at) == Arg(dim_size(symbol, at), at), at);
  return symbol;
}

Tensor Graph::dim_size(const Dim& dim, At at) {
  return alive(builder_).add(ir::Op::dim_size, {}, ir::DimAttr{dim}, nullptr, at);
}

void Graph::output(std::string name, const Tensor& value, At at) {
  detail::Builder& builder = alive(builder_);
  if (name.empty()) {
    builder.fail(ErrorCode::invalid_argument, "output", {}, "a name is empty", "give it a name", at);
  }
  if (&detail::Builder::of("output", {Arg(value, at)}) != &builder) {
    builder.fail(ErrorCode::wrong_graph, "output", {Arg(value, at)},
                 fmt::format("the tensor belongs to graph '{}', the output '{}' to graph '{}'",
                             value.builder_->graph.name, name, builder.graph.name),
                 "tensors stay with the original when a Graph is copied", at);
  }
  if (!builder.output_names.insert(name).second) {
    builder.fail(ErrorCode::duplicate_name, "output", {Arg(value, at)},
                 fmt::format("the name '{}' is taken by another output", name),
                 "name each output differently", at);
  }
  builder.graph.outputs.push_back({.name = std::move(name), .node = value.node_});
}

void Graph::output(std::string name, const Tensor& value, const Tensor& donor, At at) {
  detail::Builder& builder = alive(builder_);
  const std::vector<Arg> args = {Arg(value, at), Arg(donor, at)};
  detail::Builder::of("output", args);
  const ir::Graph& graph = builder.graph;
  const auto refuse = [&](ErrorCode code, std::string message, std::string hint) {
    builder.fail(code, "output", args, std::move(message), std::move(hint), at);
  };
  if (donor.builder_.get() == &builder) {
    if (graph[donor.node_].op != ir::Op::input) {
      refuse(ErrorCode::invalid_argument, fmt::format("the donor of output '{}' is no input", name),
             "only an input has memory to give");
    }
    if (value.builder_.get() == &builder && graph[donor.node_].type != graph[value.node_].type) {
      refuse(ErrorCode::shape_mismatch, fmt::format("output '{}' has another type than its donor", name),
             "memory is given for a value of the same type");
    }
    for (const ir::Output& other : graph.outputs) {
      if (other.donor != donor.node_) continue;
      refuse(ErrorCode::duplicate_name,
             fmt::format("the donor's memory is that of output '{}' already", other.name),
             "an input gives its memory once");
    }
  }
  output(std::move(name), value, at);
  builder.graph.outputs.back().donor = donor.node_;
}

ScopeGuard Graph::scope(std::string name, At at) {
  return alive(builder_).open_scope(std::move(name), at, false);
}

const std::string& Graph::name() const { return alive(builder_).graph.name; }
std::string Graph::to_string() const { return ir::print(ir()); }
const ir::Graph& Graph::ir() const { return alive(builder_).graph; }

Graph Graph::from_ir(ir::Graph graph) { return Graph(std::make_shared<detail::Builder>(std::move(graph))); }

Graph Graph::parse(std::string_view text, const std::string& file) { return from_ir(ir::parse(text, file)); }

Graph Graph::load(const std::string& path) {
  constexpr std::uintmax_t limit = std::uintmax_t{1} << 30;
  const auto refuse = [&](ErrorCode code, std::string message, std::string hint) {
    throw Error({.code = code,
                 .message = std::move(message),
                 .location = SourceLocation(path, 0),
                 .hint = std::move(hint)});
  };
  std::error_code failure;
  if (const auto size = std::filesystem::file_size(path, failure); !failure && size > limit) {
    refuse(ErrorCode::io, fmt::format("the file has {} bytes, more than 1 GiB", size),
           "this is no .fuse file");
  }
  std::ifstream file(path, std::ios::binary);
  if (std::filesystem::is_directory(path, failure))
    refuse(ErrorCode::io, "it is a directory, not a .fuse file", "a repro's directory has a file repro.json");
  if (path.empty()) refuse(ErrorCode::io, "the path of the file is empty", "name a .fuse file");
  if (!file) {
    refuse(ErrorCode::io, "the file cannot be opened", "check the path and its permissions");
  }
  std::string text;
  std::vector<char> block(1 << 16);
  // By blocks: a pipe has no size to ask for.
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > limit) {
      refuse(ErrorCode::io, "the file has more than 1 GiB", "this is no .fuse file");
    }
  }
  if (file.bad()) refuse(ErrorCode::io, "the file cannot be read", "check the device it is on");
  return parse(text, path);
}

}  // namespace fuse
