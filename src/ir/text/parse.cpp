// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "base/number.hpp"
#include "base/quoting.hpp"
#include "base/suggest.hpp"
#include "ir/dims/dim_parser.hpp"
#include "ir/dims/disproof.hpp"
#include "ir/dims/lexer.hpp"
#include "ir/graph/infer.hpp"
#include "ir/graph/verify.hpp"
#include "ir/text/print.hpp"
#include "ir/text/value_table.hpp"

namespace fuse::ir {
namespace {

using Kind = Token::Kind;

constexpr std::size_t max_nodes = std::size_t{1} << 24;
constexpr std::size_t max_scopes = 1024;  // the most scopes open at once

constexpr std::string_view op_names[] = {
#define FUSE_ELEMENTWISE(name, arity, operands, result, ulp, traits, cuda, note) #name,
#define FUSE_REDUCTION(name, operands, identity, combine, note) #name,
#define FUSE_OP(name, arity, attribute, relation, traits, note) #name,
#include <fuse/ops.def>
};

std::string nearest_op(std::string_view name) {
  const std::string near = did_you_mean({std::begin(op_names), std::end(op_names)}, name);
  return near.empty() ? "fusec ops lists the ops" : near;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& file)
      : text_(text), lexer_(text, file), here_(file, 1), values_(text.size()) {}

  Graph run() {
    if (text_.starts_with("fuseplan")) {
      lexer_.fail_at(0, "this is a saved plan, and no graph", ErrorCode::parse,
                     "Executable::load runs it, or fuse_compiler_plan_load from C");
    }
    lexer_.expect("graph", "at the start");
    lexer_.expect("@", "before the graph's name");
    graph_.name = lexer_.take_name("the graph's name");
    signature();
    body();
    if (lexer_.peek().kind != Kind::end) lexer_.fail_expected("the end of the text");
    verify(graph_, ErrorKind::user);
    return std::move(graph_);
  }

 private:
  // Signature. Types use symbols that are declared after it, so they are passed over first and read then.

  struct Declared {
    std::string name;
    std::size_t at = 0;
    Op op = Op::input;
    Lexer::Mark type_at{};
  };

  void skip_type(Declared& declared) {
    lexer_.expect(":", "before the type");
    declared.type_at = lexer_.mark();
    lexer_.take_name("a type such as f32[4, 8]");
    lexer_.expect("[", "before the extents");
    while (!lexer_.is("]")) {
      const Kind kind = lexer_.peek().kind;
      if (kind == Kind::end || lexer_.is("{") || lexer_.is("="))
        lexer_.fail_expected("']' after the extents");
      lexer_.take();
    }
    lexer_.take();
  }

  /// What follows the type of an input: "in layer / attention at main.cpp:4". Read when symbols are known.
  void skip_origin() {
    if (lexer_.accept("in")) {
      do lexer_.take_name("a scope's name");
      while (lexer_.accept("/"));
    }
    if (lexer_.accept("at")) lexer_.take_location();
  }

  void signature() {
    std::vector<Declared> given, made;
    lexer_.expect("(", "before the inputs");
    while (!lexer_.accept(")")) {
      if (!given.empty()) lexer_.expect(",", "between inputs");
      Declared& input = given.emplace_back();
      if (lexer_.accept("param")) input.op = Op::parameter;
      const Token& token = lexer_.peek();
      if (token.kind != Kind::value || ValueTable::is_number(token))
        lexer_.fail_expected("an input such as %x or param %w");
      input.at = lexer_.offset();
      input.name = token.quoted ? token.name : std::string(token.text);
      if (input.name.empty()) lexer_.fail("the name is empty", ErrorCode::parse, "name it");
      lexer_.take();
      skip_type(input);
      skip_origin();
    }
    lexer_.expect("->", "after the inputs");
    lexer_.expect("(", "before the outputs");
    while (!lexer_.accept(")")) {
      if (!made.empty()) lexer_.expect(",", "between outputs");
      Declared& output = made.emplace_back();
      output.at = lexer_.offset();
      output.name = lexer_.take_name("an output's name");
      if (output.name.empty()) lexer_.fail_at(output.at, "the name is empty", ErrorCode::parse, "name it");
      skip_type(output);
    }
    if (lexer_.accept("where")) symbols();
    if (lexer_.accept("assuming")) assumptions();
    const Lexer::Mark after = lexer_.mark();
    for (Declared& input : given) add_input(input);
    std::unordered_map<std::string_view, bool> names;
    for (Declared& output : made) {
      if (!names.emplace(output.name, true).second) fail_repeated(output.at, "output", output.name);
      lexer_.rewind(output.type_at);
      outputs_.emplace_back(output.name, type());
    }
    lexer_.rewind(after);
  }

  [[noreturn]] void fail_repeated(std::size_t at, std::string_view what, const std::string& name) const {
    lexer_.fail_at(at, fmt::format("{} {} is defined twice", what, name), ErrorCode::parse,
                   "give each a name of its own");
  }

  void symbols() {
    do {
      Symbol symbol;
      const std::size_t at = lexer_.offset();
      symbol.name = lexer_.take_name("the name of a dim");
      if (symbol.name.empty()) lexer_.fail_at(at, "the name is empty", ErrorCode::parse, "name it");
      lexer_.expect("in", "after the dim");
      lexer_.expect("[", "before the range");
      DimRange& range = symbol.range;
      range.min = lexer_.take_integer("the least value");
      lexer_.expect(",", "in the range");
      range.max = lexer_.take_integer("the largest value");
      lexer_.expect("]", "after the range");
      if (lexer_.accept("hint")) range.hint = lexer_.take_integer("the hint");
      if (range.min < 0 || range.max < range.min ||
          (range.hint != 0 && (range.hint < range.min || range.hint > range.max))) {
        lexer_.fail_at(at,
                       fmt::format("dim {} has range [{}, {}] and hint {}", word(symbol.name), range.min,
                                   range.max, range.hint),
                       ErrorCode::parse, "0 <= min <= max; the hint is 0 or in the range");
      }
      if (!symbols_.emplace(symbol.name, Dim::symbol(symbol.name, range)).second) {
        fail_repeated(at, "dim", word(symbol.name));
      }
      graph_.symbols.push_back(std::move(symbol));
    } while (lexer_.accept(","));
  }

  void assumptions() {
    do {
      const std::size_t at = lexer_.offset();
      Assumption assumption;
      DimRelation& relation = assumption.relation;
      relation.left = parse_dim(lexer_, symbols_);
      if (lexer_.accept("divides")) {
        relation.kind = DimRelation::Kind::divides;
      } else if (lexer_.accept("<")) {
        lexer_.expect("=", "after '<'");
        relation.kind = DimRelation::Kind::at_most;
      } else if (!lexer_.accept("=")) {
        lexer_.fail_expected("'=', '<=' or 'divides'");
      }
      relation.right = parse_dim(lexer_, symbols_);
      if (relation.kind == DimRelation::Kind::equal && relation.right.is(1) && lexer_.accept("or")) {
        relation.kind = DimRelation::Kind::one_or;
        relation.right = parse_dim(lexer_, symbols_);
      }
      if (const std::string why = disproof(relation); !why.empty()) {
        lexer_.fail_at(at, fmt::format("{} cannot hold: {}", relation.to_string(), why),
                       ErrorCode::contradiction, "correct the assumption or the ranges of its dims");
      }
      if (lexer_.accept("at")) assumption.location = location();
      graph_.assumptions.push_back(std::move(assumption));
    } while (lexer_.accept(","));
  }

  void add_input(Declared& input) {
    if (symbols_.count(input.name)) fail_repeated(input.at, "name", word(input.name));
    if (!values_.insert_name(input.name, next_id())) {
      fail_repeated(input.at, "value", '%' + word(input.name));
    }
    lexer_.rewind(input.type_at);
    Node node;
    node.op = input.op;
    node.attr = NameAttr{std::move(input.name)};
    set_line();
    node.type = type();
    infer_type(node.op, {}, node.attr, &node.type, here_, &needs_);
    if (lexer_.accept("in")) node.scope = input_scope();
    if (lexer_.accept("at")) node.location = location();
    graph_.nodes.push_back(std::move(node));
  }

  /// Inputs name the scope that they were declared in by its path; equal paths share scopes.
  ScopeId input_scope() {
    ScopeId scope = 0;
    std::size_t depth = 0;
    do {
      if (++depth > max_scopes) lexer_.fail("scopes nest too deeply");
      std::string name = scope_name();
      const auto [entry, fresh] = input_scopes_.emplace(std::to_string(scope) + '/' + name,
                                                        static_cast<ScopeId>(graph_.scopes.size()));
      if (fresh) graph_.scopes.push_back({std::move(name), scope, 0});
      scope = entry->second;
    } while (lexer_.accept("/"));
    return scope;
  }

  std::string scope_name() {
    const std::size_t at = lexer_.offset();
    std::string name = lexer_.take_name("a scope's name");
    if (name.empty()) lexer_.fail_at(at, "the name is empty", ErrorCode::parse, "name it");
    return name;
  }

  NodeId next_id() const { return static_cast<NodeId>(graph_.nodes.size()); }

  /// Errors of type rules have the line of the text.
  void set_line() { here_.line = lexer_.peek().line; }

  /// Texts of types are read once each: a graph has few, and equal dims then share their form.
  Type type() {
    const std::string_view text = lexer_.through(']');
    if (const auto known = types_.find(text); known != types_.end()) {
      lexer_.skip(text.size());
      return known->second;
    }
    const std::size_t start = lexer_.offset();
    const std::string name = lexer_.take_name("a type such as f32[4, 8]");
    const std::optional<DType> dtype = parse_dtype(name);
    if (!dtype) {
      lexer_.fail_at(start, fmt::format("unknown element type {}", word(name)), ErrorCode::parse,
                     "the element types are f64, f32, f16, bf16, i64, i32, i8, u8 and bool");
    }
    Type type{*dtype, dims()};
    if (lexer_.end_of_last() - start == text.size()) types_.emplace(text, type);
    return type;
  }

  template <class F>
  auto list(F item) {
    std::vector<decltype(item())> items;
    lexer_.expect("[", "before the list");
    while (!lexer_.accept("]")) {
      if (!items.empty() && !lexer_.accept(",")) lexer_.fail_expected("',' or ']'");
      if (items.size() == max_rank)
        lexer_.fail("a list has more than 32 items", ErrorCode::parse, "ranks are at most 32; merge dims");
      items.push_back(item());
    }
    return items;
  }
  std::vector<Dim> dims() {
    return list([&] { return parse_dim(lexer_, symbols_); });
  }
  std::vector<std::int64_t> integers() {
    return list([&] { return lexer_.take_integer("an integer"); });
  }

  LocationId location() {
    const SourceLocation at = lexer_.take_location();
    if (at == SourceLocation{}) return 0;
    const auto [found, fresh] = locations_.emplace(at.file + ':' + std::to_string(at.line),
                                                   static_cast<LocationId>(graph_.locations.size()));
    if (fresh) graph_.locations.push_back(at);
    return found->second;
  }

  // Body.

  void body() {
    lexer_.expect("{", "before the body");
    std::vector<ScopeId> open = {0};
    while (!lexer_.is("return")) {
      if (lexer_.is("}") && open.size() == 1) break;
      if (lexer_.accept("}")) {
        open.pop_back();
      } else if (lexer_.accept("scope")) {
        if (open.size() > max_scopes) lexer_.fail("scopes nest too deeply");
        Scope scope{scope_name(), open.back(), graph_.scopes[open.back()].location};
        if (lexer_.accept("at")) scope.location = location();
        lexer_.expect("{", "after the scope");
        open.push_back(static_cast<ScopeId>(graph_.scopes.size()));
        graph_.scopes.push_back(std::move(scope));
      } else {
        statement(open.back());
      }
    }
    if (open.size() > 1) lexer_.fail_expected("'}', a value or a scope");
    if (!outputs_.empty() || lexer_.is("return")) returns();
    lexer_.expect("}", "after the body");
  }

  void statement(ScopeId scope) {
    if (lexer_.peek().kind != Kind::value) {
      lexer_.fail_expected("a value such as %1, 'scope', 'return' or '}'");
    }
    if (graph_.nodes.size() >= max_nodes) lexer_.fail("the graph has more than 2^24 values");
    set_line();
    const std::size_t start = lexer_.offset();
    const Token own = lexer_.peek();
    if (values_.find(own)) fail_repeated(start, "value", own_text());
    lexer_.take();
    lexer_.expect("=", "after the value");
    Node node;
    node.scope = scope;
    node.op = op();
    operands_.clear();
    if (lexer_.peek().kind == Kind::value) {
      do {
        node.operands.push_back(operand(&own));
        operands_.push_back(graph_[node.operands.back()].type);
      } while (lexer_.accept(","));
    }
    const Lexer::Mark value_at = attributes(node);
    lexer_.expect(":", "before the type");
    const Type declared = type();
    if (auto* constant = std::get_if<ConstantAttr>(&node.attr)) {
      const Lexer::Mark after = lexer_.mark();
      lexer_.rewind(value_at);
      *constant = constant_value(declared.dtype);
      lexer_.rewind(after);
    }
    node.location = lexer_.accept("at") ? location() : graph_.scopes[scope].location;
    needs_.clear();
    node.type = infer_type(node.op, operands_, node.attr, &declared, here_, &needs_);
    values_.insert(own, next_id());
    graph_.nodes.push_back(std::move(node));
  }

  std::string own_text() const {
    const Token& token = lexer_.peek();
    return '%' + std::string(token.text);
  }

  Op op() {
    const std::size_t at = lexer_.offset();
    if (lexer_.peek().kind != Kind::identifier) lexer_.fail_expected("an op");
    const std::string name(lexer_.take().text);
    const std::optional<Op> op = parse_op(name);
    if (!op) lexer_.fail_at(at, "unknown op " + name, ErrorCode::parse, nearest_op(name));
    if (std::holds_alternative<NameAttr>(empty_attribute(*op))) {
      lexer_.fail_at(at, fmt::format("{} is no op of a body", name), ErrorCode::parse,
                     "inputs and parameters stand in the signature");
    }
    return *op;
  }

  /// `own`: the value that it is computed for, or null.
  NodeId operand(const Token* own) {
    if (lexer_.peek().kind != Kind::value) lexer_.fail_expected("a value such as %1");
    if (const auto found = values_.find(lexer_.peek())) {
      lexer_.take();
      return *found;
    }
    const std::string wanted = ValueTable::key(lexer_.peek());
    const std::string shown = own_text();
    const std::size_t at = lexer_.offset();
    if ((own && wanted == ValueTable::key(*own)) || is_defined_later(wanted)) {
      lexer_.fail_at(at, shown + " is used before it is defined", ErrorCode::cycle,
                     "values stand before their users");
    }
    lexer_.fail_at(at, "unknown value " + shown, ErrorCode::parse, "define it above");
  }

  /// Looks through the rest of the text; an error follows either way.
  bool is_defined_later(const std::string& wanted) try {
    bool found = false;
    while (!found && lexer_.peek().kind != Kind::end) {
      const bool matches = lexer_.peek().kind == Kind::value && ValueTable::key(lexer_.peek()) == wanted;
      lexer_.take();
      found = matches && lexer_.is("=");
    }
    return found;
  } catch (const Error&) {
    return false;
  }

  // Attributes.

  /// Fills node.attr. A constant's value needs the type, which stands after it: its location is returned.
  Lexer::Mark attributes(Node& node) {
    node.attr = empty_attribute(node.op);
    Lexer::Mark value_at;
    std::vector<std::string> seen;
    if (lexer_.accept("{")) {
      while (!lexer_.accept("}")) {
        if (!seen.empty() && !lexer_.accept(",")) lexer_.fail_expected("',' or '}'");
        const std::size_t at = lexer_.offset();
        seen.push_back(lexer_.take_name("an attribute's name"));
        if (std::find(seen.begin(), seen.end() - 1, seen.back()) != seen.end() - 1) {
          fail_repeated(at, "attribute", seen.back());
        }
        lexer_.expect("=", "after the attribute's name");
        value_at = lexer_.mark();
        if (!std::visit([&](auto& attr) { return read(attr, seen.back()); }, node.attr)) {
          lexer_.fail_at(at, fmt::format("{} has no attribute {}", to_string(node.op), word(seen.back())),
                         ErrorCode::parse, attributes_text(node.attr));
        }
      }
    }
    for (const std::string_view name : attribute_names(node.attr).needed) {
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
      lexer_.fail(fmt::format("{} needs the attribute {}", to_string(node.op), name), ErrorCode::parse,
                  fmt::format("write {{{} = ...}} before the type", name));
    }
    return value_at;
  }

  // Each takes the value of the attribute `name`, or returns false when there is none of that name.
  bool read(NoAttr&, std::string_view) { return false; }
  bool read(NameAttr&, std::string_view) { return false; }
  bool read(DimsAttr& attr, std::string_view name) {
    if (name != "dims") return false;
    attr.dims = integers();
    return true;
  }
  bool read(AxisAttr& attr, std::string_view name) {
    if (name != "axis") return false;
    attr.axis = lexer_.take_integer("an axis");
    return true;
  }
  bool read(DimAttr& attr, std::string_view name) {
    if (name != "dim") return false;
    attr.dim = parse_dim(lexer_, symbols_);
    return true;
  }
  bool read(SliceAttr& attr, std::string_view name) {
    if (name == "strides") {
      attr.strides = integers();
      return true;
    }
    if (name != "starts" && name != "limits") return false;
    (name == "starts" ? attr.starts : attr.limits) = dims();
    return true;
  }
  bool read(MatmulAttr& attr, std::string_view name) {
    if (name != "transpose_a" && name != "transpose_b") return false;
    (name == "transpose_a" ? attr.transpose_a : attr.transpose_b) = boolean();
    return true;
  }
  bool read(PadAttr& attr, std::string_view name) {
    if (name != "low" && name != "high") return false;
    (name == "low" ? attr.low : attr.high) = dims();
    return true;
  }
  bool read(SizesAttr& attr, std::string_view name) {
    if (name != "sizes") return false;
    attr.sizes = dims();
    return true;
  }
  bool read(ScanAttr& attr, std::string_view name) {
    if (name == "axis") {
      attr.axis = lexer_.take_integer("an axis");
      return true;
    }
    if (name != "exclusive" && name != "reverse") return false;
    (name == "exclusive" ? attr.exclusive : attr.reverse) = boolean();
    return true;
  }
  bool read(ContractionAttr& attr, std::string_view name) {
    std::vector<std::int64_t>* list = name == "batch_a"      ? &attr.batch_a
                                      : name == "batch_b"    ? &attr.batch_b
                                      : name == "contract_a" ? &attr.contract_a
                                      : name == "contract_b" ? &attr.contract_b
                                                             : nullptr;
    if (list) *list = integers();
    return list != nullptr;
  }
  bool read(RandomAttr& attr, std::string_view name) {
    if (name != "stream") return false;
    attr.stream = lexer_.take_integer("a stream");
    return true;
  }
  bool read(CustomAttr& attr, std::string_view name) {
    if (name == "kernel") {
      attr.name = lexer_.take_name("the kernel's name");
    } else if (name == "source") {
      attr.source = lexer_.take_name("the kernel's text, quoted");
    } else if (name == "threads") {
      attr.threads = lexer_.take_integer("the threads of a block");
    } else if (name == "shared_bytes") {
      attr.shared_bytes = lexer_.take_integer("bytes of shared memory");
    } else if (name == "grid") {
      attr.grid = parse_dim(lexer_, symbols_);
    } else if (name == "extents") {
      attr.extents = dims();
    } else if (name == "grid_barrier") {
      attr.grid_barrier = boolean();
    } else if (name == "parts") {
      lexer_.expect("[", "before the parts");
      do attr.parts.push_back(lexer_.take_name("a part's text, quoted"));
      while (lexer_.accept(","));
      lexer_.expect("]", "after the parts");
    } else {
      return false;
    }
    return true;
  }
  bool read(ConstantAttr&, std::string_view name) {
    if (name != "value") return false;
    lexer_.accept("-");
    if (lexer_.peek().kind != Kind::number && lexer_.peek().kind != Kind::identifier) {
      lexer_.fail_expected("a number, inf, nan, true or false");
    }
    lexer_.take();
    return true;
  }

  bool boolean() {
    if (lexer_.accept("true")) return true;
    if (!lexer_.accept("false")) lexer_.fail_expected("true or false");
    return false;
  }

  ConstantAttr constant_value(DType dtype) {
    if (dtype == DType::boolean) return {.real = 0, .integer = boolean()};
    if (is_integer(dtype)) return {.real = 0, .integer = lexer_.take_integer("an integer")};
    if (lexer_.accept("nan")) return {.real = std::numeric_limits<double>::quiet_NaN(), .integer = 0};
    const bool negative = lexer_.accept("-");
    if (negative && lexer_.is("nan")) {
      lexer_.fail("a NaN has no sign", ErrorCode::parse, "write nan");
    }
    const double value = lexer_.accept("inf") ? std::numeric_limits<double>::infinity() : magnitude(dtype);
    return {.real = negative ? -value : value, .integer = 0};
  }

  double magnitude(DType dtype) {
    if (lexer_.peek().kind != Kind::number) lexer_.fail_expected("a number, inf or nan");
    const ParsedNumber number = parse_magnitude(lexer_.peek().text, dtype);
    if (number.error == std::errc::invalid_argument) lexer_.fail_expected("a number, inf or nan");
    if (number.error != std::errc()) {
      lexer_.fail(fmt::format("{} is out of the range of {}", lexer_.found(), fuse::to_string(dtype)));
    }
    lexer_.take();
    return number.value;
  }

  // Outputs.

  void returns() {
    lexer_.expect("return", "since the signature names outputs");
    std::size_t count = 0;
    do {
      const std::size_t at = lexer_.offset();
      const std::string name = lexer_.take_name("an output's name");
      if (count == outputs_.size() || outputs_[count].first != name) {
        lexer_.fail_at(
            at,
            fmt::format("expected {}, found {}",
                        count == outputs_.size() ? "'}'" : "the output " + word(outputs_[count].first),
                        word(name)),
            ErrorCode::parse, "outputs stand in the order of the signature");
      }
      lexer_.expect("=", "after the output's name");
      const NodeId node = operand(nullptr);
      const Type& declared = outputs_[count++].second;
      const Type& actual = graph_[node].type;
      if (declared != actual) {
        lexer_.fail_at(at,
                       fmt::format("output {} is {}, in the signature {}", word(name), to_string(actual),
                                   to_string(declared)),
                       declared.dtype == actual.dtype ? ErrorCode::shape_mismatch : ErrorCode::dtype_mismatch,
                       "correct the signature");
      }
      graph_.outputs.push_back({name, node});
      if (lexer_.accept("into")) donor(graph_.outputs.back());
    } while (lexer_.accept(","));
    if (count < outputs_.size()) lexer_.fail_expected("the output " + word(outputs_[count].first));
  }

  void donor(Output& output) {
    const std::size_t at = lexer_.offset();
    output.donor = operand(nullptr);
    auto [code, message, hint] = donors_.add(graph_, output);
    if (code != ErrorCode::ok) lexer_.fail_at(at, std::move(message), code, std::move(hint));
  }

  const std::string_view text_;
  Lexer lexer_;
  Graph graph_;
  SourceLocation here_;
  SymbolTable symbols_;
  ValueTable values_;
  std::unordered_map<std::string, LocationId> locations_;
  std::unordered_map<std::string, ScopeId> input_scopes_;
  std::unordered_map<std::string_view, Type> types_;
  std::vector<std::pair<std::string, Type>> outputs_;  ///< the outputs of the signature
  Donors donors_;
  std::vector<Type> operands_;      ///< the operand types of the op at hand
  std::vector<DimRelation> needs_;  ///< the needs of the op at hand; analysis asks for them again
};

}  // namespace

Graph parse(std::string_view text, const std::string& file) { return Parser(text, file).run(); }

}  // namespace fuse::ir
