// SPDX-License-Identifier: Apache-2.0
#include "ir/text/print.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "base/access.hpp"
#include "base/number.hpp"
#include "base/quoting.hpp"

namespace fuse::ir {
namespace {

/// Past this a list of the signature or of `return` is written one item per line.
constexpr std::size_t line_limit = 100;
/// Deeper scopes are not indented further, so that a line's length does not depend on the depth.
constexpr std::size_t most_indent = 32;

/// Appends the text of one graph. Nothing here recurses, and a graph that verify refuses prints as well.
class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph), number_(graph.nodes.size()) {}

  std::string run() {
    number_values();
    text_.reserve(64 * graph_.nodes.size() + 256);
    signature();
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (!is_given(graph_[id])) node(id);
    }
    enter(0);
    returns();
    text_ += "}\n";
    return std::move(text_);
  }

 private:
  /// Inputs and parameters take the first numbers, as they will when the text is parsed.
  void number_values() {
    NodeId next = 0;
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (is_given(graph_[id])) number_[id] = next++;
    }
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (!is_given(graph_[id])) number_[id] = next++;
    }
  }

  template <class Integer>
  void append_integer(Integer value) {
    char digits[24];
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }

  void append_value(NodeId id) {
    text_ += '%';
    if (id >= graph_.nodes.size()) {
      text_ += '?';
    } else if (const auto* named = std::get_if<NameAttr>(&graph_[id].attr)) {
      text_ += word(named->name);
    } else {
      append_integer(number_[id]);
    }
  }

  void append_dim(const Dim& dim) {
    if (dim.is_constant()) return append_integer(dim.constant());
    const auto [entry, fresh] = dims_.try_emplace(poly_of(dim));
    if (fresh) {
      Dim shown = dim;
      for (const Dim& symbol : dim.symbols()) {
        if (is_identifier(symbol.name())) continue;
        const std::string name(symbol.name());
        shown = shown.substitute(name, Dim::symbol(quoted_word(name), {symbol.min(), symbol.max(), 0}));
      }
      entry->second = shown.to_string();
    }
    text_ += entry->second;
  }

  void append_item(std::int64_t value) { append_integer(value); }
  void append_item(const Dim& value) { append_dim(value); }

  template <class T>
  void append_list(const std::vector<T>& items) {
    text_ += '[';
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i) text_ += ", ";
      append_item(items[i]);
    }
    text_ += ']';
  }

  void append_type(const Type& type) {
    text_ += fuse::to_string(type.dtype);
    append_list(type.dims);
  }

  const SourceLocation& location(LocationId id) const {
    return graph_.locations[id < graph_.locations.size() ? id : 0];
  }
  LocationId location_around() const { return open_.empty() ? 0 : graph_.scopes[open_.back()].location; }

  void append_location(LocationId id, LocationId around) {
    if (id == around || location(id) == location(around)) return;
    const SourceLocation& at = location(id);
    if (at == SourceLocation{}) {
      text_ += " at ?";
      return;
    }
    text_ += " at ";
    text_ += file_word(at.file);
    text_ += ':';
    append_integer(at.line);
  }

  /// What `append` appends, on its own.
  template <class F>
  std::string captured(F append) {
    const std::size_t start = text_.size();
    append();
    std::string part = text_.substr(start);
    text_.resize(start);
    return part;
  }

  /// The items between `open` and `close`, in one line if `room` is left for them.
  void append_items(std::string_view open, const std::vector<std::string>& items, std::string_view close,
                    std::size_t room, std::size_t column) {
    std::size_t length = open.size() + close.size();
    for (const std::string& item : items) length += item.size() + 2;
    const bool wrap = length > room && items.size() > 1;
    text_ += open;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i) text_ += wrap ? "," : ", ";
      if (wrap && (i || open.ends_with('('))) text_.append("\n").append(column, ' ');
      text_ += items[i];
    }
    text_ += close;
  }

  static std::string_view sign(DimRelation::Kind kind) {
    return kind == DimRelation::Kind::equal     ? " = "
           : kind == DimRelation::Kind::at_most ? " <= "
           : kind == DimRelation::Kind::one_or  ? " = 1 or "
                                                : " divides ";
  }

  std::string given_item(NodeId id) {
    return captured([&] {
      if (graph_[id].op == Op::parameter) text_ += "param ";
      append_value(id);
      text_ += ": ";
      append_type(graph_[id].type);
      const std::vector<ScopeId> path = chain(graph_[id].scope);
      for (std::size_t i = 0; i < path.size(); ++i) {
        text_ += i ? " / " : " in ";
        text_ += word(graph_.scopes[path[i]].name);
      }
      append_location(graph_[id].location, 0);
    });
  }

  void signature() {
    std::vector<std::string> given, made, symbols;
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (is_given(graph_[id])) given.push_back(given_item(id));
    }
    for (const Output& output : graph_.outputs) {
      made.push_back(captured([&] {
        text_ += word(output.name);
        text_ += ": ";
        if (output.node < graph_.nodes.size()) append_type(graph_[output.node].type);
      }));
    }
    for (const Symbol& symbol : graph_.symbols) {
      symbols.push_back(word(symbol.name) + " in [" + std::to_string(symbol.range.min) + ", " +
                        std::to_string(symbol.range.max) + ']');
      if (symbol.range.hint) symbols.back() += " hint " + std::to_string(symbol.range.hint);
    }
    std::vector<std::string> assumed;
    for (const Assumption& assumption : graph_.assumptions) {
      assumed.push_back(captured([&] {
        append_dim(assumption.relation.left);
        text_ += sign(assumption.relation.kind);
        append_dim(assumption.relation.right);
        append_location(assumption.location, 0);
      }));
    }
    const std::string head = "graph @" + word(graph_.name) + '(';
    std::size_t results = 8;
    for (const std::string& item : made) results += item.size() + 2;
    append_items(head, given, ")", line_limit - std::min(line_limit, results), 4);
    append_items(" -> (", made, ")", line_limit - 10, 4);
    if (!symbols.empty()) append_items("\n    where ", symbols, "", line_limit, 10);
    if (!assumed.empty()) append_items("\n    assuming ", assumed, "", line_limit, 13);
    text_ += " {\n";
  }

  void returns() {
    std::vector<std::string> items;
    for (const Output& output : graph_.outputs) {
      items.push_back(captured([&] {
        text_ += word(output.name);
        text_ += " = ";
        append_value(output.node);
        if (!output.donated()) return;
        text_ += " into ";
        append_value(output.donor);
      }));
    }
    if (!items.empty()) append_items("  return ", items, "\n", line_limit, 9);
  }

  void indent() { text_.append(2 * std::min(open_.size(), most_indent) + 2, ' '); }

  /// The scopes from the outermost one inwards, without the root.
  std::vector<ScopeId> chain(ScopeId scope) const {
    std::vector<ScopeId> path;
    while (scope != 0 && scope < graph_.scopes.size() && path.size() < graph_.scopes.size()) {
      path.push_back(scope);
      scope = graph_.scopes[scope].parent;
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

  /// Closes and opens scope blocks until `scope` is the innermost.
  void enter(ScopeId scope) {
    if (scope == (open_.empty() ? 0 : open_.back())) return;
    const std::vector<ScopeId> path = chain(scope);
    const auto [end, same] = std::mismatch(path.begin(), path.end(), open_.begin(), open_.end());
    const auto common = static_cast<std::size_t>(end - path.begin());
    while (open_.size() > common) {
      open_.pop_back();
      indent();
      text_ += "}\n";
    }
    for (std::size_t i = common; i < path.size(); ++i) {
      indent();
      text_ += "scope ";
      text_ += word(graph_.scopes[path[i]].name);
      append_location(graph_.scopes[path[i]].location, location_around());
      text_ += " {\n";
      open_.push_back(path[i]);
    }
  }

  void node(NodeId id) {
    const Node& node = graph_[id];
    enter(node.scope);
    indent();
    append_value(id);
    text_ += " = ";
    text_ += to_string(node.op);
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      text_ += i ? ", " : " ";
      append_value(node.operands[i]);
    }
    std::visit([&](const auto& attr) { append(attr, node.type.dtype); }, node.attr);
    text_ += " : ";
    append_type(node.type);
    append_location(node.location, location_around());
    text_ += '\n';
  }

  void append(const NoAttr&, DType) {}
  void append(const NameAttr&, DType) {}
  template <class T>
  void append_item(const std::vector<T>& items) {
    append_list(items);
  }

  /// " {name = value, ...}"
  template <class T, class... Rest>
  void append_fields(std::string_view name, const T& value, const Rest&... rest) {
    text_ += " {";
    append_more(name, value, rest...);
    text_ += '}';
  }
  template <class T, class... Rest>
  void append_more(std::string_view name, const T& value, const Rest&... rest) {
    text_ += name;
    text_ += " = ";
    append_item(value);
    if constexpr (sizeof...(rest) > 0) {
      text_ += ", ";
      append_more(rest...);
    }
  }

  void append(const DimsAttr& attr, DType) { append_fields("dims", attr.dims); }
  void append(const AxisAttr& attr, DType) { append_fields("axis", attr.axis); }
  void append(const DimAttr& attr, DType) { append_fields("dim", attr.dim); }
  void append(const SliceAttr& attr, DType) {
    append_fields("starts", attr.starts, "limits", attr.limits, "strides", attr.strides);
  }
  void append(const PadAttr& attr, DType) { append_fields("low", attr.low, "high", attr.high); }
  void append(const SizesAttr& attr, DType) { append_fields("sizes", attr.sizes); }
  void append(const ScanAttr& attr, DType) {
    text_ += " {";
    append_more("axis", attr.axis);
    if (attr.exclusive) text_ += ", exclusive = true";
    if (attr.reverse) text_ += ", reverse = true";
    text_ += '}';
  }
  void append(const ContractionAttr& attr, DType) {
    append_fields("batch_a", attr.batch_a, "batch_b", attr.batch_b, "contract_a", attr.contract_a,
                  "contract_b", attr.contract_b);
  }
  void append(const RandomAttr& attr, DType) { append_fields("stream", attr.stream); }
  void append(const CustomAttr& attr, DType) {
    text_ += " {kernel = ";
    text_ += word(attr.name);
    text_ += ", ";
    append_more("threads", attr.threads);
    if (attr.shared_bytes != 0) {
      text_ += ", ";
      append_more("shared_bytes", attr.shared_bytes);
    }
    text_ += ", ";
    append_more("grid", attr.grid, "extents", attr.extents);
    if (attr.grid_barrier) text_ += ", grid_barrier = true";
    text_ += ", source = ";
    text_ += quoted_word(attr.source);
    for (std::size_t i = 0; i < attr.parts.size(); ++i) {
      text_ += i == 0 ? ", parts = [" : ", ";
      text_ += quoted_word(attr.parts[i]);
    }
    if (!attr.parts.empty()) text_ += ']';
    text_ += '}';
  }
  void append(const MatmulAttr& attr, DType) {
    if (attr.transpose_a) text_ += attr.transpose_b ? " {transpose_a = true, " : " {transpose_a = true}";
    if (attr.transpose_b) text_ += attr.transpose_a ? "transpose_b = true}" : " {transpose_b = true}";
  }
  void append(const ConstantAttr& attr, DType dtype) {
    text_ += " {value = ";
    if (dtype == DType::boolean) {
      text_ += attr.integer ? "true" : "false";
    } else if (is_integer(dtype)) {
      append_integer(attr.integer);
    } else if (std::isnan(attr.real)) {
      text_ += "nan";
    } else {
      if (std::signbit(attr.real)) text_ += '-';
      append_magnitude(std::fabs(attr.real));
    }
    text_ += '}';
  }

  /// Hexadecimal: exact and short.
  void append_magnitude(double value) {
    if (std::isinf(value)) {
      text_ += "inf";
      return;
    }
    text_ += magnitude_text(value);
  }

  const Graph& graph_;
  std::vector<NodeId> number_;
  std::vector<ScopeId> open_;
  std::unordered_map<const detail::DimPoly*, std::string> dims_;  ///< the graph keeps the keys alive
  std::string text_;
};

}  // namespace

std::string print(const Graph& graph) { return Printer(graph).run(); }

}  // namespace fuse::ir
