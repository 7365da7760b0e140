// SPDX-License-Identifier: Apache-2.0
#include "schedule/views/views.hpp"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <utility>

#include "ir/graph/fixed_values.hpp"
#include "plan/plan.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;
using ir::Relation;

constexpr std::size_t most_opened = 64;  // concats inside one: 2048 values

/// A value, or why there is none.
struct Offset {
  std::optional<Dim> elements{};
  std::string refused{};
};

class ViewChooser {
 public:
  ViewChooser(const ir::Graph& graph, const MemoryUse& use, const analysis::Facts& facts,
              const ViewRules& rules, std::vector<NodeId>& computed)
      : graph_(graph), use_(use), facts_(facts), rules_(rules), computed_(computed) {}

  Views run() {
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (info(graph_[id].op).relation == Relation::slice && use_.operand[id]) choose_slice(id);
    }
    find_taken();
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (info(graph_[id].op).relation == Relation::concat && use_.stored[id]) {
        choose_concat(id);
      }
    }
    choose_transposes();
    return std::move(views_);
  }

 private:
  /// Asks about what can be a view; `by_cost`: whether it is one by cost.
  void ask(ViewChoice& choice, bool by_cost) const {
    const auto value = [&] { return std::vector{choice.value}; };
    const bool taken = decided(rules_.decide, ir::Question::view, graph_, choice.value, by_cost, value);
    if (taken) choice.refused.clear();
    if (!taken && by_cost) choice.refused = "decisions say so";
  }

  bool is_one(const Dim& extent) const { return facts_.equal(extent, 1); }

  /// Why the value cannot begin at an element of that type.
  std::string misaligned(NodeId id, const Dim& elements) const {
    const Dim bytes = elements * static_cast<std::int64_t>(size_of(graph_[id].type.dtype));
    if (facts_.divisible(bytes, view_alignment)) return {};
    return fmt::format("{} begins at byte {}, which is not proven to be a multiple of {}",
                       graph_.value_name(id), bytes.to_string(), view_alignment);
  }

  /// Where the block begins, if the slice is one: it has whole inner axes, part of one, single elements of
  /// the outer.
  Offset offset_of(const ir::Node& node) const {
    const auto& slice = ir::attr<ir::SliceAttr>(node);
    const std::vector<Dim>& whole = graph_[node.operands[0]].type.dims;
    Dim offset = 0, inner = 1;
    std::optional<std::size_t> cut;
    for (std::size_t axis = whole.size(); axis-- > 0;) {
      const Dim& extent = node.type.dims[axis];
      const bool all =
          slice.strides[axis] == 1 && slice.starts[axis].is(0) && facts_.equal(extent, whole[axis]);
      if (cut && !is_one(extent)) {
        return {{}, fmt::format("axis {} is cut inside axis {}", *cut, axis)};
      }
      if (!cut && !all) {
        cut = axis;
        if (slice.strides[axis] != 1 && !is_one(extent)) return {{}, fmt::format("axis {} is strided", axis)};
      }
      offset = offset + slice.starts[axis] * inner;
      inner = inner * whole[axis];
    }
    return {offset, {}};
  }

  void choose_slice(NodeId id) {
    const NodeId whole = use_.storage[graph_[id].operands[0]];
    ViewChoice& choice = views_.choices.emplace_back(ViewChoice{.value = id});
    if (!use_.stored[whole]) {
      choice.refused = graph_.value_name(whole) + " is computed where it is read";
      return;
    }
    Offset offset = offset_of(graph_[id]);
    choice.refused = offset.elements ? misaligned(id, *offset.elements) : std::move(offset.refused);
    if (choice.taken()) ask(choice, true);
    if (choice.taken()) views_.of.emplace(id, View{whole, *offset.elements});
  }

  /// Values whose location is given.
  void find_taken() {
    fixed_ = ir::fixed_values(graph_);
    is_output_.resize(graph_.nodes.size());
    takes_input_ = use_.in_place;
    for (const ir::Output& output : graph_.outputs) {
      is_output_[use_.storage[output.node]] = true;
      if (output.donated()) takes_input_[use_.storage[output.node]] = true;
    }
  }

  /// Why the value cannot be written inside another's memory.
  std::string rooted(NodeId id) const {
    if (const auto view = views_.of.find(id); view != views_.of.end()) {
      return "lies in " + graph_.value_name(view->second.whole);
    }
    if (ir::is_given(graph_[id])) return "is the caller's memory";
    if (product(graph_[id].type.dims).is(0)) return "has no elements";
    if (takes_input_[id]) return "takes an input's memory";
    if (fixed_[id]) return "follows from parameters alone";
    return {};
  }

  /// The first axis that is longer than 1 outside of the one along which the operands stand.
  std::optional<std::size_t> outside(const ir::Node& concat) const {
    const auto axis = static_cast<std::size_t>(ir::attr<ir::AxisAttr>(concat).axis);
    for (std::size_t outer = 0; outer < axis; ++outer) {
      if (!is_one(concat.type.dims[outer])) return outer;
    }
    return std::nullopt;
  }

  /// The operands in order; those of concats in between that need no memory stand for them, where each is
  /// there once. The bound keeps graphs of many such concats near linear.
  std::vector<NodeId> parts_of(NodeId id) const {
    const auto push = [&](std::vector<NodeId>& work, NodeId concat) {
      work.insert(work.end(), graph_[concat].operands.rbegin(), graph_[concat].operands.rend());
    };
    std::vector<NodeId> parts, work;
    std::set<NodeId> opened;
    push(work, id);
    while (!work.empty()) {
      const NodeId part = use_.storage[work.back()];
      work.pop_back();
      const bool passes =
          !use_.stored[part] && info(graph_[part].op).relation == Relation::concat && !outside(graph_[part]);
      if (passes && opened.size() < most_opened && opened.insert(part).second) {
        push(work, part);
      } else {
        parts.push_back(part);
      }
    }
    return parts;
  }

  /// Why the parts cannot lie back to back. Otherwise it notes their locations, and those that have no step
  /// of their own yet.
  std::string lay_out(NodeId id, std::vector<std::pair<NodeId, View>>& locations,
                      std::vector<NodeId>& computed) {
    if (const auto outer = outside(graph_[id])) {
      return fmt::format("axis {} lies inside axis {}", ir::attr<ir::AxisAttr>(graph_[id]).axis, *outer);
    }
    Dim offset = 0;
    std::set<NodeId> seen;
    std::vector<NodeId> steps;  // parts that would need a step of their own
    for (const NodeId part : parts_of(id)) {
      std::string why = rooted(part);
      if (why.empty() && !seen.insert(part).second) why = "stands in it twice";
      if (!why.empty()) return fmt::format("{} {}", graph_.value_name(part), why);
      if (why = misaligned(part, offset); !why.empty()) return why;
      if (!use_.stored[part]) computed.push_back(part);
      if (!use_.stored[part] || is_output_[part]) steps.push_back(part);
      locations.emplace_back(part, View{id, offset, true});
      offset = offset + product(graph_[part].type.dims);
    }
    if (steps.size() < 2) return {};
    return fmt::format("{} and {} would each need a step", graph_.value_name(steps[0]),
                       graph_.value_name(steps[1]));
  }

  /// The concat is a block of one memory where the parts are slices that lie back to back in it.
  std::optional<View> block_of(NodeId id) const {
    std::optional<View> block;
    Dim end = 0;
    for (const NodeId part : parts_of(id)) {
      if (info(graph_[part].op).relation != Relation::slice) return std::nullopt;
      const NodeId whole = use_.storage[graph_[part].operands[0]];
      const Offset offset = offset_of(graph_[part]);
      if (!offset.elements || !use_.stored[whole]) return std::nullopt;
      if (!block) {
        block = View{whole, *offset.elements};
      } else if (block->whole != whole || !facts_.equal(*offset.elements, end)) {
        return std::nullopt;
      }
      end = *offset.elements + product(graph_[part].type.dims);
    }
    return outside(graph_[id]) ? std::nullopt : block;
  }

  void choose_concat(NodeId id) {
    ViewChoice& choice = views_.choices.emplace_back(ViewChoice{.value = id});
    if (use_.operand[id]) {
      if (std::optional<View> block = block_of(id)) {
        choice.refused = misaligned(id, block->offset);
        if (choice.taken()) ask(choice, true);
        if (choice.taken()) views_.of.emplace(id, std::move(*block));
        return;
      }
    }
    std::vector<std::pair<NodeId, View>> locations;
    std::vector<NodeId> computed;
    choice.refused = fixed_[id] ? "it follows from parameters alone" : lay_out(id, locations, computed);
    if (choice.taken()) ask(choice, true);
    if (!choice.taken()) return;
    std::vector<NodeId>& parts = views_.assembled[id];
    for (auto& [part, view] : locations) {
      parts.push_back(part);
      views_.of.emplace(part, std::move(view));
    }
    computed_.insert(computed_.end(), computed.begin(), computed.end());
  }

  void choose_transposes() {
    std::vector<std::vector<NodeId>> users;  // per node, once there is a candidate
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      const ir::Node& node = graph_[id];
      if (node.op != ir::Op::transpose || !use_.stored[id]) continue;
      if (info(graph_[node.operands[0]].op).relation != Relation::contraction) continue;
      if (users.empty()) users = ir::users(graph_);
      choose_transpose(id, users);
    }
  }

  void choose_transpose(NodeId id, const std::vector<std::vector<NodeId>>& users) {
    const NodeId made = graph_[id].operands[0];
    ViewChoice& choice = views_.choices.emplace_back(ViewChoice{.value = id});
    if (users[made].size() != 1 || is_output_[made]) {
      choice.refused = graph_.value_name(made) + " is read elsewhere, too";
      return;
    }
    if (takes_input_[id] || fixed_[id] || product(graph_[id].type.dims).is(0) || views_.of.contains(made)) {
      choice.refused = "its memory is spoken for";
      return;
    }
    GemmLayoutChoice output = output_layout_of(graph_, id, facts_, rules_.launch_bytes);
    choice.refused = std::move(output.refused);
    if (output.layout) ask(choice, choice.taken());
    if (!choice.taken()) return;
    views_.assembled[id] = {made};
    views_.of.emplace(made, View{.whole = id, .offset = 0, .part = true, .layout = std::move(output.layout)});
  }

  const ir::Graph& graph_;
  const MemoryUse& use_;
  const analysis::Facts& facts_;
  const ViewRules& rules_;
  std::vector<NodeId>& computed_;
  std::vector<bool> fixed_, is_output_, takes_input_;
  Views views_;
};

}  // namespace

Views choose_views(const ir::Graph& graph, const MemoryUse& use, const analysis::Facts& facts,
                   const ViewRules& rules, std::vector<NodeId>& computed) {
  return ViewChooser(graph, use, facts, rules, computed).run();
}

std::vector<NodeId> written_values(const Views& views, NodeId stored) {
  std::vector<NodeId> work = {stored}, written;
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    const auto view = views.of.find(id);
    if (const auto concat = views.assembled.find(id); concat != views.assembled.end()) {
      work.insert(work.end(), concat->second.rbegin(), concat->second.rend());
    } else if (view != views.of.end() && !view->second.part) {
      work.push_back(view->second.whole);
    } else {
      written.push_back(id);
    }
  }
  return written;
}

std::string print(const ir::Graph& graph, const Views& views) {
  std::string text;
  for (const ViewChoice& choice : views.choices) {
    const ir::Node& node = graph[choice.value];
    const std::string name = fmt::format("{} {}", graph.value_name(choice.value), to_string(node.op));
    if (!choice.taken()) {
      text += fmt::format("copy {} because {}\n", name, choice.refused);
    } else if (const auto parts = views.assembled.find(choice.value);
               parts != views.assembled.end() && views.of.at(parts->second[0]).layout) {
      const ir::NodeId made = parts->second[0];
      text += fmt::format("assembled {} by gemm {}: {}\n", name, graph.value_name(made),
                          to_string(*views.of.at(made).layout));
    } else if (parts != views.assembled.end()) {
      text += fmt::format("assembled {} of", name);
      for (const ir::NodeId part : parts->second) {
        text += fmt::format(" {} at element {}{}", graph.value_name(part),
                            views.of.at(part).offset.to_string(), part == parts->second.back() ? "\n" : ",");
      }
    } else {
      const View& view = views.of.at(choice.value);
      text += fmt::format("view {} in {} at element {}\n", name, graph.value_name(view.whole),
                          view.offset.to_string());
    }
  }
  return text;
}

}  // namespace fuse::schedule
