// SPDX-License-Identifier: Apache-2.0
#include "schedule/segments/canonical.hpp"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "ir/graph/attr.hpp"
#include "ir/graph/hash.hpp"
#include "schedule/segments/vector_width.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;
using Operand = CanonicalSegment::Operand;
using Source = CanonicalSegment::Source;

/// The attribute of a node, with alignments in place of the starts that may be arguments.
ir::Attr without_starts(const ir::Graph& graph, const CanonicalSegment& form, std::size_t node) {
  ir::Attr attr = graph[form.nodes[node]].attr;
  for (const CanonicalSegment::Start& start : form.starts) {
    if (start.node != node) continue;
    auto& slice = std::get<ir::SliceAttr>(attr);
    slice.starts[start.axis] = slice.limits[start.axis] = start.alignment;
  }
  return attr;
}

/// A hash of the form; or of its family, whose members differ in starts.
std::uint64_t hashed(const ir::Graph& graph, const CanonicalSegment& form, ir::Hasher hasher,
                     bool family = false) {
  hasher.add(static_cast<std::uint64_t>(form.between)).add(form.nodes.size()).add(form.inputs.size());
  for (std::size_t i = 0; i < form.nodes.size(); ++i) {
    const ir::Node& node = graph[form.nodes[i]];
    hasher.add(static_cast<std::uint64_t>(node.op));
    if (family && node.op == ir::Op::slice) {
      hasher.add(without_starts(graph, form, i));
    } else {
      hasher.add(node.attr);
    }
    hasher.add(node.type);
    hasher.add(static_cast<std::uint64_t>(form.stored[i]));
  }
  for (const Operand& operand : form.operands) {
    hasher.add(static_cast<std::uint64_t>(operand.source)).add(operand.index);
  }
  for (std::size_t i = 0; i < form.phases.size(); ++i)
    hasher.add(std::uint64_t{form.phases[i]}).add(std::uint64_t{form.in_place[i]});
  for (const auto& [result, input] : form.overwrites)
    hasher.add(std::uint64_t{result}).add(std::uint64_t{input});
  for (std::size_t i = 0; i < form.inputs.size(); ++i) {
    hasher.add(graph[form.inputs[i]].type).add(form.same[i]);
  }
  return hasher.value();
}

/// The widest access, in elements, that may begin at element `start` of a row, where a slice of `extent`
/// elements does; no wider than any access is.
std::int64_t alignment_of(const Dim& start, const Dim& extent) {
  std::int64_t elements = most_vector_elements;
  while (elements > 1 && !(proven_divisible(start, elements) && proven_divisible(extent, elements)))
    elements /= 2;
  return elements;
}

/// Makes forms one after another; what it notes of nodes is valid for one segment at a time.
class Canonicaliser {
 public:
  Canonicaliser(const ir::Graph& graph, const std::vector<NodeId>& storage)
      : graph_(graph), storage_(storage), notes_(graph.nodes.size()) {}

  CanonicalSegment run(const Segment& segment) {
    form_ = {};
    form_.between = segment.between;
    segment_ = &segment;
    ++time_;
    for (const NodeId id : segment.nodes) notes_[id] = {time_, {}, false};
    // The root reaches all that it needs; other results of the segment follow, last ones first.
    visit(segment.root);
    for (auto id = segment.nodes.rbegin(); id != segment.nodes.rend(); ++id) visit(*id);
    for (const NodeId input : segment.inputs) read(input);
    note_buffers();
    for (const Phase& phase : segment.phases) {
      form_.phases.push_back(notes_[phase.root].position.index);
      form_.in_place.push_back(phase.in_place);
      for (const Overwrite& each : phase.overwrites)
        form_.overwrites.emplace_back(notes_[each.result].position.index, notes_[each.input].position.index);
    }
    note_starts();
    form_.hash = hashed(graph_, form_, ir::Hasher());
    return std::move(form_);
  }

 private:
  struct Note {
    std::uint32_t time = 0;
    Operand position{};
    bool visited = false;
  };

  /// Visits depth first; a node gets its number after its operands.
  void visit(NodeId from) {
    if (notes_[from].visited) return;
    struct Level {
      NodeId node;
      std::size_t next;
    };
    std::vector<Level> stack = {{from, 0}};
    notes_[from].visited = true;
    while (!stack.empty()) {
      Level& level = stack.back();
      const std::vector<NodeId>& operands = graph_[level.node].operands;
      if (level.next < operands.size()) {
        const NodeId operand = operands[level.next++];
        if (skipped(level.node, level.next - 1)) continue;
        if (!inside(operand)) {
          read(operand);
        } else if (!notes_[operand].visited) {
          notes_[operand].visited = true;
          stack.push_back({operand, 0});
        }
        continue;
      }
      const NodeId node = level.node;
      stack.pop_back();
      notes_[node].position = {Source::node, static_cast<std::uint32_t>(form_.nodes.size())};
      form_.nodes.push_back(node);
      const std::vector<NodeId>& results = segment_->results;
      const auto passes = [&](const Phase& phase) {
        return std::binary_search(phase.results.begin(), phase.results.end(), node);
      };
      const std::vector<Phase>& phases = segment_->phases;
      form_.stored.push_back(
          std::binary_search(results.begin(), results.end(), node) ? CanonicalSegment::Stored::in_memory
          : std::any_of(phases.begin(), phases.end(), passes)      ? CanonicalSegment::Stored::in_block
                                                                   : CanonicalSegment::Stored::no);
      for (std::size_t i = 0; i < operands.size(); ++i) {
        form_.operands.push_back(skipped(node, i) ? Operand{} : notes_[operands[i]].position);
      }
    }
  }

  /// An update in place does not read what it leaves as it is.
  bool skipped(NodeId node, std::size_t operand) const {
    return operand == 0 && graph_[node].op == ir::Op::dynamic_update_slice &&
           std::any_of(segment_->phases.begin(), segment_->phases.end(),
                       [&](const Phase& phase) { return phase.in_place && phase.root == node; });
  }

  /// Whether it is a node of the segment, and not an input of it.
  bool inside(NodeId id) const {
    return notes_[id].time == time_ && notes_[id].position.source != Source::input;
  }

  void read(NodeId input) {
    Note& note = notes_[input];
    if (note.time == time_) return;
    note = {time_, {Source::input, static_cast<std::uint32_t>(form_.inputs.size())}, true};
    form_.inputs.push_back(input);
  }

  void note_buffers() {
    std::unordered_map<NodeId, std::uint32_t> first;
    for (const NodeId input : form_.inputs) {
      const auto number = static_cast<std::uint32_t>(form_.same.size());
      form_.same.push_back(first.emplace(storage_[input], number).first->second);
    }
  }

  /// Notes the starts of slices of stored values: there a start only moves an address.
  void note_starts() {
    std::size_t first = 0;  // operand of the node
    std::vector<bool> stored(form_.nodes.size());
    for (std::uint32_t i = 0; i < form_.nodes.size(); ++i) {
      const ir::Node& node = graph_[form_.nodes[i]];
      const bool reshape = info(node.op).relation == ir::Relation::reshape;
      if (reshape || node.op == ir::Op::slice) {
        const Operand& operand = form_.operands[first];
        const bool of_stored =
            operand.source == Source::input || (operand.source == Source::node && stored[operand.index]);
        stored[i] = of_stored && reshape;
        if (of_stored && !reshape) note_starts(i, node);
      }
      first += node.operands.size();
    }
  }

  void note_starts(std::uint32_t position, const ir::Node& node) {
    const auto& slice = ir::attr<ir::SliceAttr>(node);
    const std::vector<Dim>& whole = graph_[node.operands[0]].type.dims;
    bool innermost = true;
    for (std::size_t axis = whole.size(); axis-- > 0; innermost = innermost && whole[axis].is(1)) {
      if (!slice.starts[axis].is_constant()) continue;
      const std::int64_t alignment = innermost ? alignment_of(slice.starts[axis], node.type.dims[axis]) : 1;
      form_.starts.push_back({position, static_cast<std::uint32_t>(axis), alignment});
    }
  }

  const ir::Graph& graph_;
  const std::vector<NodeId>& storage_;
  std::vector<Note> notes_;
  std::uint32_t time_ = 0;
  const Segment* segment_ = nullptr;
  CanonicalSegment form_;
};

}  // namespace

std::uint64_t content_key(const ir::Graph& graph, const CanonicalSegment& form) {
  std::vector<NodeId> nodes = form.inputs;
  nodes.insert(nodes.end(), form.nodes.begin(), form.nodes.end());
  const ir::Hasher::SymbolNumbers numbers = ir::number_symbols(graph, nodes);
  return hashed(graph, form, ir::Hasher(numbers));
}

namespace {

/// Whether both are equal apart from attributes; `same_attr` compares those of two nodes at a position.
template <class SameAttr>
bool alike(const ir::Graph& graph, const CanonicalSegment& a, const CanonicalSegment& b,
           const SameAttr& same_attr) {
  if (a.between != b.between || a.nodes.size() != b.nodes.size() || a.operands != b.operands ||
      a.stored != b.stored || a.same != b.same || a.phases != b.phases || a.in_place != b.in_place ||
      a.overwrites != b.overwrites)
    return false;
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    const ir::Node &x = graph[a.nodes[i]], &y = graph[b.nodes[i]];
    if (x.op != y.op || x.operands.size() != y.operands.size() || x.type != y.type || !same_attr(x, y, i))
      return false;
  }
  // What makes an input does not matter, only what it looks like.
  const auto same_input = [&](NodeId x, NodeId y) { return graph[x].type == graph[y].type; };
  return std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(), same_input);
}

}  // namespace

bool equal(const ir::Graph& graph, const CanonicalSegment& a, const CanonicalSegment& b) {
  return alike(graph, a, b,
               [](const ir::Node& x, const ir::Node& y, std::size_t) { return x.attr == y.attr; });
}

bool of_one_family(const ir::Graph& graph, const CanonicalSegment& a, const CanonicalSegment& b) {
  if (a.starts != b.starts) return false;
  return alike(graph, a, b, [&](const ir::Node& x, const ir::Node& y, std::size_t position) {
    if (x.attr == y.attr) return true;
    return x.op == ir::Op::slice && without_starts(graph, a, position) == without_starts(graph, b, position);
  });
}

std::function<CanonicalSegment(const Segment&)> canonical_forms(const ir::Graph& graph,
                                                                const std::vector<NodeId>& storage) {
  auto canonicaliser = std::make_shared<Canonicaliser>(graph, storage);
  return [canonicaliser](const Segment& segment) { return canonicaliser->run(segment); };
}

namespace {

/// Numbers of what is found by hash and verified by comparing.
class Classes {
 public:
  /// The number of the first for which `same` is true; else `next`, which is remembered.
  template <class Same>
  std::uint32_t find(std::uint64_t hash, std::uint32_t next, const Same& same) {
    const auto [begin, end] = by_hash_.equal_range(hash);
    const auto found = std::find_if(begin, end, [&](const auto& entry) { return same(entry.second); });
    if (found != end) return found->second;
    by_hash_.emplace(hash, next);
    return next;
  }

 private:
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;
};

}  // namespace

EqualSegments equal_segments(const ir::Graph& graph, const std::vector<Segment>& segments,
                             const std::vector<ir::NodeId>& storage) {
  EqualSegments result;
  result.forms.resize(segments.size());
  result.form_of.resize(segments.size(), EqualSegments::none);
  Canonicaliser canonicaliser(graph, storage);
  Classes forms, families;
  const auto first = [&](std::uint32_t form) -> const CanonicalSegment& {
    return result.forms[result.first[form]];
  };
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].kind != Segment::Kind::kernel) continue;
    const CanonicalSegment& form = result.forms[i] = canonicaliser.run(segments[i]);
    const auto next = static_cast<std::uint32_t>(result.first.size());
    result.form_of[i] =
        forms.find(form.hash, next, [&](std::uint32_t other) { return equal(graph, first(other), form); });
    if (result.form_of[i] != next) continue;
    result.first.push_back(static_cast<std::uint32_t>(i));
    result.family_of.push_back(
        form.starts.empty()
            ? next
            : families.find(hashed(graph, form, ir::Hasher(), true), next,
                            [&](std::uint32_t other) { return of_one_family(graph, first(other), form); }));
  }
  return result;
}

ir::NodeId counterpart(const CanonicalSegment& from, const CanonicalSegment& to, ir::NodeId node) {
  const auto at = [&](const std::vector<NodeId>& list) { return std::find(list.begin(), list.end(), node); };
  if (const auto input = at(from.inputs); input != from.inputs.end()) {
    return to.inputs[static_cast<std::size_t>(input - from.inputs.begin())];
  }
  return to.nodes[static_cast<std::size_t>(at(from.nodes) - from.nodes.begin())];
}

}  // namespace fuse::schedule
