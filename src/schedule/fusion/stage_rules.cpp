// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/stage_rules.hpp"

#include <algorithm>
#include <utility>

#include "schedule/segments/loop_shape.hpp"
#include "schedule/segments/stays_along.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;
using ir::Relation;
using StageForm = Stage::Form;

bool reduces(const ir::Graph& graph, NodeId root) {
  return info(graph[root].op).relation == Relation::reduce;
}

/// The dims of the loops longer than 1 that a row's value (false) or a column's value (true) has.
Positions dims_of_value(const Frame& frame, bool reduced) {
  Positions result;
  for (const std::size_t i : long_dims(frame.dims)) {
    if (frame.is_reduced[i] == reduced) result.push_back(i);
  }
  return result;
}

std::optional<Positions> positions_through(const ir::Graph& graph, const ir::Node& node, std::size_t number,
                                           const Positions& operand) {
  switch (info(node.op).relation) {
    case Relation::broadcast: {
      Positions positions;
      for (const std::size_t dim : operand) {
        positions.push_back(static_cast<std::size_t>(ir::attr<ir::DimsAttr>(node).dims[dim]));
      }
      return positions;
    }
    case Relation::reshape: {
      // Dims of extent 1 come and go; those that repeat the value stay where they are among the long ones.
      const std::vector<Dim>& from = graph[node.operands[0]].type.dims;
      if (ir::without_ones(from) != ir::without_ones(node.type.dims)) return std::nullopt;
      const Positions before = long_dims(from), after = long_dims(node.type.dims);
      Positions positions;
      for (const std::size_t dim : operand) {
        positions.push_back(
            after[static_cast<std::size_t>(std::find(before.begin(), before.end(), dim) - before.begin())]);
      }
      return positions;
    }
    default:
      return stays_along(graph, node, number, operand) ? std::optional(operand) : std::nullopt;
  }
}

/// The dims of the target along which the long dims of a value run, where every op between keeps coordinates
/// or repeats them, and all paths agree.
std::optional<Positions> positions_in(const ir::Graph& graph, const Segment& reader, NodeId value,
                                      NodeId target) {
  // Of most nodes they are those of an operand: each is kept once, and nodes, in graph order, have its index.
  std::vector<Positions> known = {long_dims(graph[value].type.dims)};
  std::vector<std::pair<NodeId, std::size_t>> index_of = {{value, 0}};
  const auto find = [&](NodeId id) -> std::optional<std::size_t> {
    const auto found = std::lower_bound(index_of.begin(), index_of.end(), std::pair(id, std::size_t{0}));
    return found != index_of.end() && found->first == id ? std::optional(found->second) : std::nullopt;
  };
  const auto index = [&](Positions positions) {
    const auto found = std::find(known.begin(), known.end(), positions);
    const auto at = static_cast<std::size_t>(found - known.begin());
    if (found == known.end()) known.push_back(std::move(positions));
    return at;
  };
  for (const NodeId id : reader.nodes) {  // operands first
    if (id == reader.root && id != target) continue;
    const ir::Node& node = graph[id];
    const bool same = info(node.op).relation == Relation::identity;
    std::optional<std::size_t> mine;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      std::optional<std::size_t> at = find(node.operands[i]);
      if (!at) continue;
      if (!same) {
        std::optional<Positions> through = positions_through(graph, node, i, known[*at]);
        if (!through) return std::nullopt;
        at = index(std::move(*through));
      }
      if (mine && *mine != *at) return std::nullopt;
      mine = at;
    }
    if (mine) index_of.emplace_back(id, *mine);
  }
  const std::optional<std::size_t> at = find(target);
  return at ? std::optional(known[*at]) : std::nullopt;
}

/// The forms that a segment's own loops allow.
std::vector<StageForm> forms_in(const ir::Graph& graph, const Frame& frame, NodeId root) {
  if (reduces(graph, root)) {
    const Frame own = frame_of(graph, root);
    if (own.dims != frame.dims) return {};
    if (own.is_reduced == frame.is_reduced) return {StageForm::inner_reduce};
    const Positions all = long_dims(frame.dims);
    const bool across = frame.reduces && frame.inner &&
                        std::all_of(all.begin(), all.end(),
                                    [&](std::size_t i) { return own.is_reduced[i] != frame.is_reduced[i]; });
    return across ? std::vector{StageForm::outer_reduce} : std::vector<StageForm>();
  }
  const std::vector<Dim>& dims = graph[root].type.dims;
  if (dims == frame.dims) return {StageForm::element};
  if (!frame.reduces) return {};
  const auto like = [&](bool column) {
    const Positions mine = long_dims(dims), at = dims_of_value(frame, column);
    return std::equal(mine.begin(), mine.end(), at.begin(), at.end(),
                      [&](std::size_t a, std::size_t b) { return dims[a] == frame.dims[b]; });
  };
  std::vector<StageForm> forms;
  if (like(false)) forms.push_back(StageForm::row);
  if (like(true)) forms.push_back(StageForm::column);
  return forms;
}

/// Whether a thread that computes a value of the reader, in this form, has what it reads from `made`.
bool holds(const ir::Graph& graph, const Frame& frame, const Member& made, const Segment& reader,
           StageForm form) {
  if (is_column(made.form) != (form == StageForm::column)) return false;
  if (made.form == StageForm::element && form == StageForm::row) return false;
  const bool walks = form == StageForm::inner_reduce || form == StageForm::outer_reduce;
  const NodeId target = walks ? graph[reader.root].operands[0] : reader.root;
  const std::optional<Positions> positions = positions_in(graph, reader, made.root, target);
  if (!positions) return false;
  if (form == StageForm::row || form == StageForm::column)
    return *positions == long_dims(graph[target].type.dims);
  return *positions ==
         (made.form == StageForm::element ? long_dims(frame.dims) : dims_of_value(frame, false));
}

}  // namespace

Frame frame_of(const ir::Graph& graph, NodeId root) {
  if (!reduces(graph, root)) {
    const std::vector<Dim>& dims = graph[root].type.dims;
    return {.dims = dims, .is_reduced = std::vector<bool>(dims.size())};
  }
  LoopShape shape = loop_shape(graph, graph[root]);
  const std::vector<Dim>& dims = graph[graph[root].operands[0]].type.dims;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].is(1)) shape.is_reduced[i] = false;
  }
  return {.dims = dims, .is_reduced = shape.is_reduced, .reduces = true, .inner = shape.inner};
}

std::optional<Member> place(const ir::Graph& graph, const Frame& frame, std::size_t id,
                            const Segment& segment, std::span<const Read> reads,
                            std::span<const Member> before) {
  const auto in_form = [&](StageForm form) -> std::optional<Member> {
    Member member{.segment = id, .root = segment.root, .form = form};
    bool reads_any = false;
    for (const Read& read : reads) {
      const auto made = std::find_if(before.begin(), before.end(),
                                     [&](const Member& other) { return other.segment == read.maker; });
      if (made == before.end()) continue;
      if (!read.whole || !holds(graph, frame, *made, segment, form)) return std::nullopt;
      const bool ends_pass = made->form == StageForm::inner_reduce || made->form == StageForm::outer_reduce;
      member.pass = std::max(member.pass, made->pass + ends_pass);
      reads_any = true;
    }
    // A stage of columns must follow from columns: anything else has a better form.
    if (form == StageForm::column && !reads_any) return std::nullopt;
    return member;
  };
  for (const StageForm form : forms_in(graph, frame, segment.root)) {
    if (const std::optional<Member> member = in_form(form)) return member;
  }
  return std::nullopt;
}

}  // namespace fuse::schedule
