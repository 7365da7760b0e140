// SPDX-License-Identifier: Apache-2.0
#include "ir/print.hpp"

#include <fmt/format.h>

#include <cmath>

#include "ir/words.hpp"

namespace fuse::ir {
namespace {

/// Past this a signature is written one value a line.
constexpr std::size_t line_limit = 100;

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph), number_(graph.nodes.size()) {}

  std::string run() {
    number_values();
    signature();
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (!is_given(id)) node(id);
    }
    enter(0);
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      text_ += i == 0 ? "  return " : ", ";
      text_ += word(graph_.outputs[i].name) + " = " + value(graph_.outputs[i].node);
    }
    if (!graph_.outputs.empty()) text_ += '\n';
    text_ += "}\n";
    return std::move(text_);
  }

 private:
  bool is_given(NodeId id) const { return std::holds_alternative<NameAttr>(graph_[id].attr); }

  /// Inputs and parameters take the first numbers, as they will when the text is parsed.
  void number_values() {
    NodeId next = 0;
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (is_given(id)) number_[id] = next++;
    }
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (!is_given(id)) number_[id] = next++;
    }
  }

  std::string value(NodeId id) const {
    if (const auto* named = std::get_if<NameAttr>(&graph_[id].attr)) return '%' + word(named->name);
    return '%' + std::to_string(number_[id]);
  }

  static std::string listed(const std::vector<std::string>& items, bool wrap) {
    std::string list;
    for (const std::string& item : items) list += (list.empty() ? "" : wrap ? ",\n    " : ", ") + item;
    return wrap && !items.empty() ? "\n    " + list : list;
  }

  void signature() {
    std::vector<std::string> given, made, symbols;
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (!is_given(id)) continue;
      given.push_back((graph_[id].op == Op::parameter ? "param " : "") + value(id) + ": " +
                      to_string(graph_[id].type));
    }
    for (const Output& output : graph_.outputs) {
      made.push_back(word(output.name) + ": " + to_string(graph_[output.node].type));
    }
    for (const Symbol& symbol : graph_.symbols) {
      std::string range =
          fmt::format("{} in [{}, {}]", word(symbol.name), symbol.range.min, symbol.range.max);
      if (symbol.range.hint) range += " hint " + std::to_string(symbol.range.hint);
      symbols.push_back(std::move(range));
    }
    const std::string inputs = listed(given, false), outputs = listed(made, false);
    const bool wrap = inputs.size() + outputs.size() + graph_.name.size() > line_limit;
    text_ += fmt::format("graph @{}({}) -> ({})", word(graph_.name), listed(given, wrap), listed(made, wrap));
    if (!symbols.empty()) text_ += "\n    where " + listed(symbols, false);
    text_ += " {\n";
  }

  void indent() { text_.append(2 * open_.size() + 2, ' '); }

  void location(LocationId at, LocationId around) {
    if (at == around) return;
    const SourceLocation& location = graph_.locations[at];
    text_ += at == 0 ? " at ?" : " at " + file_word(location.file) + ':' + std::to_string(location.line);
  }

  LocationId around() const { return open_.empty() ? 0 : graph_.scopes[open_.back()].location; }

  /// Closes and opens scope blocks until `scope` is the innermost.
  void enter(ScopeId scope) {
    std::vector<ScopeId> chain;
    for (; scope != 0; scope = graph_.scopes[scope].parent) chain.insert(chain.begin(), scope);
    std::size_t common = 0;
    while (common < chain.size() && common < open_.size() && chain[common] == open_[common]) ++common;
    while (open_.size() > common) {
      open_.pop_back();
      indent();
      text_ += "}\n";
    }
    for (; common < chain.size(); ++common) {
      indent();
      text_ += "scope " + word(graph_.scopes[chain[common]].name);
      location(graph_.scopes[chain[common]].location, around());
      text_ += " {\n";
      open_.push_back(chain[common]);
    }
  }

  void node(NodeId id) {
    const Node& node = graph_[id];
    enter(node.scope);
    indent();
    text_ += '%' + std::to_string(number_[id]) + " = ";
    text_ += to_string(node.op);
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      text_ += (i ? ", " : " ") + value(node.operands[i]);
    const std::string attributes =
        std::visit([&](const auto& attr) { return print(attr, node.type.dtype); }, node.attr);
    if (!attributes.empty()) text_ += " {" + attributes + '}';
    text_ += " : " + to_string(node.type);
    location(node.location, around());
    text_ += '\n';
  }

  template <class T>
  static std::string list(const std::vector<T>& items) {
    std::string text = "[";
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i) text += ", ";
      if constexpr (std::is_same_v<T, Dim>) {
        text += items[i].to_string();
      } else {
        text += std::to_string(items[i]);
      }
    }
    return text + ']';
  }

  static std::string print(const NoAttr&, DType) { return {}; }
  static std::string print(const NameAttr&, DType) { return {}; }
  static std::string print(const DimsAttr& attr, DType) { return "dims = " + list(attr.dims); }
  static std::string print(const AxisAttr& attr, DType) { return "axis = " + std::to_string(attr.axis); }
  static std::string print(const DimAttr& attr, DType) { return "dim = " + attr.dim.to_string(); }
  static std::string print(const SliceAttr& attr, DType) {
    return fmt::format("starts = {}, limits = {}, strides = {}", list(attr.starts), list(attr.limits),
                       list(attr.strides));
  }
  static std::string print(const MatmulAttr& attr, DType) {
    std::string text = attr.transpose_a ? "transpose_a = true" : "";
    if (attr.transpose_b) text += (text.empty() ? "" : ", ") + std::string("transpose_b = true");
    return text;
  }
  static std::string print(const ConstantAttr& attr, DType dtype) {
    if (dtype == DType::boolean) return attr.integer ? "value = true" : "value = false";
    if (is_integer(dtype)) return "value = " + std::to_string(attr.integer);
    if (std::isnan(attr.real)) return "value = nan";
    if (std::isinf(attr.real)) return attr.real < 0 ? "value = -inf" : "value = inf";
    return fmt::format("value = {:a}", attr.real);
  }

  const Graph& graph_;
  std::vector<NodeId> number_;
  std::vector<ScopeId> open_;
  std::string text_;
};

}  // namespace

std::string print(const Graph& graph) { return Printer(graph).run(); }

}  // namespace fuse::ir
