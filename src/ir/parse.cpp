// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "ir/infer.hpp"
#include "ir/lexer.hpp"
#include "ir/print.hpp"
#include "ir/verify.hpp"

namespace fuse::ir {
namespace {

constexpr std::size_t max_nodes = std::size_t{1} << 24;
constexpr int max_depth = 256;  // of parentheses in a dim
constexpr std::size_t max_scopes = 256;

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : lexer_(text, file) {}

  Graph run() {
    lexer_.expect("graph", "at the start");
    lexer_.expect("@", "before the graph's name");
    graph_.name = name("the graph's name");
    signature();
    body();
    if (lexer_.peek().kind != Token::Kind::end)
      lexer_.fail("expected the end of the text, found " + lexer_.found());
    verify(graph_, ErrorKind::user);
    return std::move(graph_);
  }

 private:
  using Kind = Token::Kind;

  std::string name(const char* what) {
    const Token& token = lexer_.peek();
    if (token.kind != Kind::identifier && token.kind != Kind::string) {
      lexer_.fail(fmt::format("expected {}, found {}", what, lexer_.found()));
    }
    const Token taken = lexer_.take();
    return taken.quoted ? taken.name : std::string(taken.text);
  }

  std::int64_t integer(const char* what) {
    const bool negative = lexer_.accept("-");
    const Token& token = lexer_.peek();
    if (token.kind != Kind::number) lexer_.fail(fmt::format("expected {}, found {}", what, lexer_.found()));
    // The magnitude of the smallest integer is one above the largest.
    std::uint64_t magnitude = 0;
    const auto [end, error] =
        std::from_chars(token.text.data(), token.text.data() + token.text.size(), magnitude);
    const std::uint64_t limit =
        static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) + (negative ? 1 : 0);
    if (error != std::errc() || end != token.text.data() + token.text.size() || magnitude > limit) {
      lexer_.fail(fmt::format("{} is not a 64-bit integer", lexer_.found()));
    }
    lexer_.take();
    return static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
  }

  // Signature. Types mention symbols that are declared after it, so they are skipped first and read then.

  struct Declared {
    std::string name;
    bool parameter = false;
    Lexer::Mark type_at{};
  };

  Lexer::Mark skip_type() {
    const Lexer::Mark at = lexer_.mark();
    name("a type");
    lexer_.expect("[", "after the element type");
    while (!lexer_.is("]")) {
      if (lexer_.peek().kind == Kind::end)
        lexer_.fail("expected ']' after the dims, found the end of the text");
      lexer_.take();
    }
    lexer_.take();
    return at;
  }

  void signature() {
    std::vector<Declared> given, made;
    lexer_.expect("(", "before the inputs");
    while (!lexer_.accept(")")) {
      if (!given.empty()) lexer_.expect(",", "between inputs");
      Declared input;
      input.parameter = lexer_.accept("param");
      if (lexer_.peek().kind != Kind::value)
        lexer_.fail("expected an input such as %x, found " + lexer_.found());
      const Token token = lexer_.take();
      input.name = token.quoted ? token.name : std::string(token.text);
      lexer_.expect(":", "before the input's type");
      input.type_at = skip_type();
      given.push_back(std::move(input));
    }
    lexer_.expect("->", "after the inputs");
    lexer_.expect("(", "before the outputs");
    while (!lexer_.accept(")")) {
      if (!made.empty()) lexer_.expect(",", "between outputs");
      Declared output{.name = name("an output's name")};
      lexer_.expect(":", "before the output's type");
      output.type_at = skip_type();
      made.push_back(std::move(output));
    }
    if (lexer_.accept("where")) symbols();
    const Lexer::Mark after = lexer_.mark();
    for (const Declared& input : given) {
      lexer_.rewind(input.type_at);
      add_input(input);
    }
    for (const Declared& output : made) {
      lexer_.rewind(output.type_at);
      output_types_.emplace_back(output.name, type());
    }
    lexer_.rewind(after);
  }

  void symbols() {
    do {
      Symbol symbol;
      const std::size_t at = lexer_.offset();
      symbol.name = name("a symbol");
      lexer_.expect("in", "after the symbol");
      lexer_.expect("[", "before the range");
      symbol.range.min = integer("the least value");
      lexer_.expect(",", "in the range");
      symbol.range.max = integer("the largest value");
      lexer_.expect("]", "after the range");
      if (lexer_.accept("hint")) symbol.range.hint = integer("the hint");
      if (!symbols_.emplace(symbol.name, Dim::symbol(symbol.name, symbol.range)).second) {
        lexer_.fail_at(at, fmt::format("symbol '{}' is declared twice", symbol.name),
                       ErrorCode::duplicate_name);
      }
      graph_.symbols.push_back(std::move(symbol));
    } while (lexer_.accept(","));
  }

  void add_input(const Declared& input) {
    const SourceLocation at = lexer_.here();
    const Type declared = type();
    const Op op = input.parameter ? Op::parameter : Op::input;
    NameAttr attr{input.name};
    infer_type(op, {}, attr, &declared, at);
    if (!values_.emplace(value_key(input.name, true), static_cast<NodeId>(graph_.nodes.size())).second) {
      lexer_.fail_at(input.type_at.offset, fmt::format("'{}' is declared twice", input.name),
                     ErrorCode::duplicate_name);
    }
    graph_.nodes.push_back({op, std::move(attr), {}, declared, 0, 0});
  }

  /// Names and numbers do not meet: %"12" is an input, %12 is not.
  static std::string value_key(std::string_view text, bool is_name) {
    return (is_name ? "n" : "%") + std::string(text);
  }

  static std::string value_key(const Token& token) {
    const bool number = !token.quoted && token.text[0] >= '0' && token.text[0] <= '9';
    return value_key(token.quoted ? std::string_view(token.name) : token.text, !number);
  }

  // Types and dims.

  Type type() {
    Type type;
    const std::size_t at = lexer_.offset();
    const std::string dtype = name("a type");
    const auto parsed = parse_dtype(dtype);
    if (!parsed)
      lexer_.fail_at(at, fmt::format("unknown element type '{}'", dtype), ErrorCode::parse,
                     "f64 f32 f16 bf16 i64 i32 bool");
    type.dtype = *parsed;
    lexer_.expect("[", "after the element type");
    type.dims = dims();
    return type;
  }

  /// After the bracket that opens them.
  std::vector<Dim> dims() {
    std::vector<Dim> result;
    while (!lexer_.accept("]")) {
      if (!result.empty()) lexer_.expect(",", "between dims");
      result.push_back(dim());
    }
    return result;
  }

  Dim dim() {
    const std::size_t at = lexer_.offset();
    try {
      return sum(0);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::invalid_extent)
        lexer_.fail_at(at, error.info().message, ErrorCode::invalid_extent);
      throw;
    }
  }

  // Recursion here is over parentheses, which max_depth bounds.
  Dim sum(int depth) {
    Dim result = term(depth);
    for (;;) {
      if (lexer_.accept("+")) {
        result = result + term(depth);
      } else if (lexer_.accept("-")) {
        result = result - term(depth);
      } else {
        return result;
      }
    }
  }

  Dim term(int depth) {
    Dim result = factor(depth);
    for (;;) {
      if (lexer_.accept("*")) {
        result = result * factor(depth);
      } else if (lexer_.accept("/")) {
        result = result / factor(depth);
      } else if (lexer_.accept("%")) {
        result = result % factor(depth);
      } else {
        return result;
      }
    }
  }

  Dim factor(int depth) {
    if (depth > max_depth) lexer_.fail("a dim nests too deeply");
    if (lexer_.accept("-")) return Dim(0) - factor(depth + 1);
    if (lexer_.accept("(")) {
      const Dim inner = sum(depth + 1);
      lexer_.expect(")", "in a dim");
      return inner;
    }
    const Token& token = lexer_.peek();
    if (token.kind == Kind::number) return integer("an extent");
    if (token.kind != Kind::identifier) lexer_.fail("expected a dim, found " + lexer_.found());
    const auto symbol = symbols_.find(std::string(token.text));
    if (symbol == symbols_.end()) {
      lexer_.fail(fmt::format("unknown symbol {}", lexer_.found()), ErrorCode::unknown_name,
                  "declare it after 'where'");
    }
    lexer_.take();
    return symbol->second;
  }

  // Body.

  void body() {
    lexer_.expect("{", "before the body");
    std::vector<ScopeId> open = {0};
    bool returned = false;
    for (;;) {
      if (lexer_.accept("}")) {
        if (open.size() == 1) break;
        open.pop_back();
      } else if (returned) {
        lexer_.fail("expected '}' after return, found " + lexer_.found());
      } else if (lexer_.accept("scope")) {
        if (open.size() > max_scopes) lexer_.fail("scopes nest too deeply");
        Scope scope{name("a scope's name"), open.back(), graph_.scopes[open.back()].location};
        if (lexer_.accept("at")) scope.location = location();
        lexer_.expect("{", "after the scope");
        open.push_back(static_cast<ScopeId>(graph_.scopes.size()));
        graph_.scopes.push_back(std::move(scope));
      } else if (open.size() == 1 && lexer_.accept("return")) {
        returns();
        returned = true;
      } else {
        statement(open.back());
      }
    }
    if (!returned && !output_types_.empty()) lexer_.fail("the outputs are not returned");
  }

  LocationId location() {
    const SourceLocation at = lexer_.take_location();
    if (at == SourceLocation{}) return 0;
    const auto [found, added] = locations_.emplace(at.file + ':' + std::to_string(at.line), 0);
    if (added) {
      found->second = static_cast<LocationId>(graph_.locations.size());
      graph_.locations.push_back(at);
    }
    return found->second;
  }

  NodeId operand() {
    const Token& token = lexer_.peek();
    if (token.kind != Kind::value) lexer_.fail("expected a value such as %1, found " + lexer_.found());
    const auto found = values_.find(value_key(token));
    if (found == values_.end()) {
      lexer_.fail(fmt::format("{} is used before it is defined", lexer_.found()), ErrorCode::cycle,
                  "values stand before their uses");
    }
    lexer_.take();
    return found->second;
  }

  void statement(ScopeId scope) {
    if (lexer_.peek().kind != Kind::value)
      lexer_.fail("expected a value, a scope or '}', found " + lexer_.found());
    if (graph_.nodes.size() >= max_nodes) lexer_.fail("more than 2^24 values");
    const SourceLocation at = lexer_.here();
    const std::size_t start = lexer_.offset();
    const std::string key = value_key(lexer_.take());
    if (key[0] == 'n') lexer_.fail_at(start, "values have numbers: %1, %2", ErrorCode::parse);
    lexer_.expect("=", "after the value");
    Node node;
    node.scope = scope;
    node.op = op();
    if (lexer_.peek().kind == Kind::value) {
      do node.operands.push_back(operand());
      while (lexer_.accept(","));
    }
    // The type stands after the attributes, and a constant's attribute needs it: remember where they are.
    const Lexer::Mark attributes_at = lexer_.mark();
    if (lexer_.accept("{")) skip_attributes();
    lexer_.expect(":", "before the type");
    const Type declared = type();
    node.location = lexer_.accept("at") ? location() : graph_.scopes[scope].location;
    const Lexer::Mark after = lexer_.mark();
    lexer_.rewind(attributes_at);
    node.attr = attribute(info(node.op), declared.dtype);
    lexer_.rewind(after);
    std::vector<Type> operands;
    for (NodeId id : node.operands) operands.push_back(graph_.nodes[id].type);
    node.type = infer_type(node.op, operands, node.attr, &declared, at);
    if (!values_.emplace(key, static_cast<NodeId>(graph_.nodes.size())).second) {
      lexer_.fail_at(start, fmt::format("{} is defined twice", key), ErrorCode::duplicate_name);
    }
    graph_.nodes.push_back(std::move(node));
  }

  Op op() {
    const std::size_t at = lexer_.offset();
    const std::string text = name("an op");
    const auto op = parse_op(text);
    if (!op)
      lexer_.fail_at(at, fmt::format("unknown op '{}'", text), ErrorCode::unknown_name,
                     "the ops are listed in fuse/ops.def");
    if (info(*op).attribute == "NameAttr") lexer_.fail_at(at, text + " stands in the signature");
    return *op;
  }

  void skip_attributes() {
    while (!lexer_.accept("}")) {
      if (lexer_.peek().kind == Kind::end)
        lexer_.fail("expected '}' after the attributes, found the end of the text");
      lexer_.take();
    }
  }

  void key(std::string_view name) {
    lexer_.expect(name, "as attribute");
    lexer_.expect("=", "after the attribute's name");
  }

  std::vector<std::int64_t> integers(std::string_view name) {
    key(name);
    lexer_.expect("[", "before the list");
    std::vector<std::int64_t> list;
    while (!lexer_.accept("]")) {
      if (!list.empty()) lexer_.expect(",", "in the list");
      list.push_back(integer("an integer"));
    }
    return list;
  }

  std::vector<Dim> dim_list(std::string_view name) {
    key(name);
    lexer_.expect("[", "before the list");
    return dims();
  }

  Attr attribute(const OpInfo& row, DType dtype) {
    const bool present = lexer_.accept("{");
    Attr attr;
    if (row.attribute == "MatmulAttr") {
      MatmulAttr matmul;
      while (present && !lexer_.is("}")) {
        if (matmul.transpose_a || matmul.transpose_b) lexer_.expect(",", "between attributes");
        bool& flag = lexer_.is("transpose_a") ? matmul.transpose_a : matmul.transpose_b;
        key(lexer_.is("transpose_a") ? "transpose_a" : "transpose_b");
        lexer_.expect("true", "as its value");
        flag = true;
      }
      attr = matmul;
    } else if (row.attribute != "NoAttr") {
      if (!present)
        lexer_.fail(
            fmt::format("expected '{{' with the attributes of {}, found {}", row.name, lexer_.found()));
      attr = required_attribute(row, dtype);
    }
    if (present) lexer_.expect("}", "after the attributes");
    return attr;
  }

  Attr required_attribute(const OpInfo& row, DType dtype) {
    if (row.attribute == "DimsAttr") return DimsAttr{integers("dims")};
    if (row.attribute == "AxisAttr") {
      key("axis");
      return AxisAttr{integer("an axis")};
    }
    if (row.attribute == "DimAttr") {
      key("dim");
      return DimAttr{dim()};
    }
    if (row.attribute == "SliceAttr") {
      SliceAttr slice;
      slice.starts = dim_list("starts");
      lexer_.expect(",", "between attributes");
      slice.limits = dim_list("limits");
      lexer_.expect(",", "between attributes");
      slice.strides = integers("strides");
      return slice;
    }
    key("value");
    return constant(dtype);
  }

  ConstantAttr constant(DType dtype) {
    if (dtype == DType::boolean) {
      if (lexer_.accept("true")) return {0, 1};
      lexer_.expect("false", "or 'true'");
      return {0, 0};
    }
    if (is_integer(dtype)) return {0, integer("an integer")};
    const bool negative = lexer_.accept("-");
    double value = 0;
    if (lexer_.accept("nan")) {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (lexer_.accept("inf")) {
      value = std::numeric_limits<double>::infinity();
    } else {
      std::string_view digits = lexer_.peek().text;
      const bool hex = digits.substr(0, 2) == "0x";
      if (hex) digits.remove_prefix(2);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value,
                                                hex ? std::chars_format::hex : std::chars_format::general);
      if (lexer_.peek().kind != Kind::number || error != std::errc() ||
          end != digits.data() + digits.size()) {
        lexer_.fail(fmt::format("expected a number, found {}", lexer_.found()));
      }
      lexer_.take();
    }
    return {negative ? -value : value, 0};
  }

  void returns() {
    do {
      const std::size_t at = lexer_.offset();
      const std::string output = name("an output's name");
      const std::size_t index = graph_.outputs.size();
      if (index >= output_types_.size() || output_types_[index].first != output) {
        lexer_.fail_at(at, fmt::format("'{}' is not the output that the signature names next", output),
                       ErrorCode::unknown_name);
      }
      lexer_.expect("=", "after the output's name");
      const NodeId node = operand();
      const Type &declared = output_types_[index].second, &actual = graph_.nodes[node].type;
      if (declared != actual) {
        lexer_.fail_at(
            at, fmt::format("output '{}' is {}, declared {}", output, to_string(actual), to_string(declared)),
            ErrorCode::shape_mismatch);
      }
      graph_.outputs.push_back({output, node});
    } while (lexer_.accept(","));
    if (graph_.outputs.size() != output_types_.size()) {
      lexer_.fail(fmt::format("output '{}' is not returned", output_types_[graph_.outputs.size()].first));
    }
  }

  Lexer lexer_;
  Graph graph_;
  std::unordered_map<std::string, Dim> symbols_;
  std::unordered_map<std::string, NodeId> values_;
  std::unordered_map<std::string, LocationId> locations_;
  std::vector<std::pair<std::string, Type>> output_types_;
};

}  // namespace

Graph parse(std::string_view text, const std::string& file) { return Parser(text, file).run(); }

}  // namespace fuse::ir
