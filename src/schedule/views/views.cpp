// SPDX-License-Identifier: Apache-2.0
#include "schedule/views/views.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "analysis/assumption_line.hpp"
#include "ir/graph/fixed_values.hpp"
#include "plan/plan.hpp"
#include "schedule/views/strided_access.hpp"

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
    choose_strided();
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

  /// Whether so many elements of the value are a multiple of the alignment.
  bool is_aligned(NodeId id, const Dim& elements) const {
    return facts_.divisible(elements * static_cast<std::int64_t>(size_of(graph_[id].type.dtype)),
                            view_alignment);
  }

  /// Why the value cannot begin at an element of that type.
  std::string misaligned(NodeId id, const Dim& elements) const {
    const Dim bytes = elements * static_cast<std::int64_t>(size_of(graph_[id].type.dtype));
    if (facts_.divisible(bytes, view_alignment)) return {};
    return fmt::format("{} begins at byte {}, which is not proven to be a multiple of {}{}",
                       graph_.value_name(id), bytes.to_string(), view_alignment, unless_divisible(bytes));
  }

  /// "; it is with g.assume(..)", where the user could say so.
  std::string unless_divisible(const Dim& bytes) const {
    const std::string line = analysis::assumption_line(graph_, std::vector{divisible(bytes, view_alignment)});
    return line.empty() ? "" : "; it is with " + line;
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
      if (!seen.insert(part).second) why = "stands in it twice";
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
    GemmStrides strides{.c = operand_in_transpose(graph_[id])};
    GemmLayoutsChoice layouts = layouts_of(graph_, made, strides, facts_);
    choice.refused = std::move(layouts.refused);
    if (!layouts.layouts) return;
    choice.refused = dearer_than_step(layouts.layouts->calls, 2 * bytes_hint(id), rules_.launch_bytes);
    ask(choice, choice.taken());
    if (!choice.taken()) return;
    views_.assembled[id] = {made};
    views_.of.emplace(made,
                      View{.whole = id, .offset = 0, .part = true, .layout = std::move(layouts.layouts->c)});
    strides_[made] = std::move(strides);
  }

  double bytes_hint(NodeId id) const {
    const ir::Type& type = graph_[id].type;
    return static_cast<double>(product(type.dims).hint()) * static_cast<double>(size_of(type.dtype));
  }

  /// What is still copied for GEMMs alone.
  void choose_strided() {
    std::set<NodeId> wholes;
    for (const auto& [id, view] : views_.of) wholes.insert(view.whole);
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (!use_.operand[id] || fixed_[id] || views_.of.contains(id) || views_.assembled.contains(id))
        continue;
      const Relation relation = info(graph_[id].op).relation;
      if (relation != Relation::slice && relation != Relation::permute && relation != Relation::broadcast)
        continue;
      if (!wholes.contains(id) && !use_.dense[id]) {
        choose_strided(id);
      } else if (choice_of(id) == views_.choices.end()) {
        note({.value = id,
              .refused = wholes.contains(id) ? "another view lies in it"
                                             : "a user's kernel or an epilogue reads it as it is"});
      }
    }
  }

  /// A GEMM that reads a value, through reshapes.
  struct Use {
    NodeId matmul = 0;
    bool second = false;  ///< as its operand b
    NodeId operand = 0;
  };

  /// A GEMM with operands in strides.
  struct StridedGemm {
    GemmStrides strides{};
    GemmLayouts layouts{};
  };

  std::vector<Use> gemms_that_read(NodeId value) {
    if (users_.empty()) users_ = ir::users(graph_);
    std::vector<Use> result;
    std::vector<NodeId> work = {value};
    while (!work.empty()) {
      const NodeId id = work.back();
      work.pop_back();
      for (const NodeId user : users_[id]) {
        const ir::Node& node = graph_[user];
        if (use_.storage[user] == value) work.push_back(user);
        if (info(node.op).relation != Relation::contraction) continue;
        for (const bool second : {false, true}) {
          if (node.operands[second] == id) result.push_back({user, second, id});
        }
      }
    }
    return result;
  }

  void choose_strided(NodeId id) {
    const auto in_memory = [&](NodeId node) {
      const auto view = views_.of.find(use_.storage[node]);
      return use_.stored[use_.storage[node]] && (view == views_.of.end() || view->second.is_block());
    };
    const std::optional<StridedAccess> access = strided_access(graph_, id, facts_, in_memory);
    if (!access) return;
    ViewChoice choice{.value = id, .refused = misaligned(id, access->offset)};
    std::map<NodeId, StridedGemm> gemms;
    if (choice.taken()) choice.refused = read_in_strides(id, access->dims, gemms);
    if (choice.taken()) {
      choice.refused = dearer_than_copy(id, gemms);
      ask(choice, choice.taken());
    }
    const bool taken = choice.taken();
    note(std::move(choice));
    if (!taken) return;
    views_.of.emplace(
        id, View{.whole = use_.storage[access->whole], .offset = access->offset, .strides = access->dims});
    for (auto& [matmul, made] : gemms) {
      if (made.layouts.c) views_.of.at(matmul).layout = made.layouts.c;
      views_.gemms[matmul] = std::move(made.layouts);
      strides_[matmul] = std::move(made.strides);
    }
  }

  std::vector<ViewChoice>::iterator choice_of(NodeId value) {
    return std::find_if(views_.choices.begin(), views_.choices.end(),
                        [&](const ViewChoice& each) { return each.value == value; });
  }

  /// Of a slice the choice says more than that it is no block. Of a transposed result it says less than why
  /// the GEMM does not write it so.
  void note(ViewChoice choice) {
    const auto known = choice_of(choice.value);
    if (known == views_.choices.end()) {
      views_.choices.push_back(std::move(choice));
    } else if (choice.taken() || info(graph_[choice.value].op).relation == Relation::slice) {
      *known = std::move(choice);
    }
  }

  /// The calls that a GEMM makes so far.
  Dim calls_of(NodeId matmul) const {
    if (const auto known = views_.gemms.find(matmul); known != views_.gemms.end()) return known->second.calls;
    const auto view = views_.of.find(matmul);
    return view != views_.of.end() && view->second.layout ? view->second.layout->outer : Dim(1);
  }

  /// Why rows or matrices would begin where wide accesses cannot, though those of a copy could.
  std::string misaligned(NodeId operand, const GemmLayout& layout) const {
    const std::vector<Dim>& dims = graph_[operand].type.dims;
    if (!is_aligned(operand, dims.back())) return {};
    for (const Dim& apart : {layout.row, layout.inner_stride, layout.outer_stride}) {
      if (is_aligned(operand, apart)) continue;
      const auto size = static_cast<std::int64_t>(size_of(graph_[operand].type.dtype));
      return fmt::format("its rows or matrices would begin {} elements apart, at no multiples of {} bytes{}",
                         apart.to_string(), view_alignment, unless_divisible(apart * size));
    }
    return {};
  }

  /// Why the GEMMs that read the value cannot read it where it lies; otherwise how they do.
  std::string read_in_strides(NodeId id, const std::vector<StridedDim>& dims,
                              std::map<NodeId, StridedGemm>& gemms) {
    for (const Use& use : gemms_that_read(id)) {
      const auto known = strides_.find(use.matmul);
      StridedGemm& gemm = gemms[use.matmul];
      if (known != strides_.end() && !gemm.strides.a && !gemm.strides.b && !gemm.strides.c)
        gemm.strides = known->second;
      std::optional<std::vector<StridedDim>>& operand = use.second ? gemm.strides.b : gemm.strides.a;
      operand = use.operand == id ? dims : reshaped(dims, graph_[use.operand].type.dims, facts_);
      if (!operand) return graph_.value_name(use.operand) + " divides axes that do not lie together";
      GemmLayoutsChoice made = layouts_of(graph_, use.matmul, gemm.strides, facts_);
      if (!made.layouts) return fmt::format("{}: {}", graph_.value_name(use.matmul), made.refused);
      if (use_.has_epilogue[use.matmul] && !made.layouts->calls.is(1))
        return graph_.value_name(use.matmul) + " has an epilogue, which several calls cannot have";
      if (std::string why = misaligned(use.operand, (use.second ? made.layouts->b : made.layouts->a)->layout);
          !why.empty())
        return why;
      gemm.layouts = std::move(*made.layouts);
    }
    return {};
  }

  /// Why the GEMMs that would read the value where it lies cost more than its copy; empty if they do not.
  std::string dearer_than_copy(NodeId id, const std::map<NodeId, StridedGemm>& gemms) const {
    double calls = 0;  // more than there are
    for (const auto& [matmul, gemm] : gemms) {
      calls += static_cast<double>(gemm.layouts.calls.hint()) - static_cast<double>(calls_of(matmul).hint());
    }
    const Dim all(static_cast<std::int64_t>(calls) + 1);
    if (dearer_than_step(all, 2 * bytes_hint(id), rules_.launch_bytes).empty()) return {};
    return fmt::format("its GEMMs would make {} calls more, the step is one and {} bytes", calls,
                       2 * bytes_hint(id));
  }

  const ir::Graph& graph_;
  const MemoryUse& use_;
  const analysis::Facts& facts_;
  const ViewRules& rules_;
  std::vector<NodeId>& computed_;
  std::vector<bool> fixed_, is_output_, takes_input_;
  std::vector<std::vector<NodeId>> users_;  // once there is a candidate for strides
  std::map<NodeId, GemmStrides> strides_;   // per matmul, of what lies in strides so far
  Views views_;
};

}  // namespace

Views choose_views(const ir::Graph& graph, const MemoryUse& use, const analysis::Facts& facts,
                   const ViewRules& rules, std::vector<NodeId>& computed) {
  return ViewChooser(graph, use, facts, rules, computed).run();
}

void Views::drop(const ir::Graph& graph, NodeId id) {
  of.erase(id);
  for (auto& [matmul, layouts] : gemms) {
    const auto reads = [&](std::size_t operand) {
      NodeId at = graph[matmul].operands[operand];
      while (at != id && info(graph[at].op).relation == Relation::reshape) at = graph[at].operands[0];
      return at == id;
    };
    if (layouts.a && reads(0)) layouts.a.reset();
    if (layouts.b && reads(1)) layouts.b.reset();
  }
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
      const std::string strides = view.strides.empty() ? "" : ", strides " + strides_text(view.strides);
      text += fmt::format("view {} in {} at element {}{}\n", name, graph.value_name(view.whole),
                          view.offset.to_string(), strides);
    }
  }
  return text;
}

}  // namespace fuse::schedule
