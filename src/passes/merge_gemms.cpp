// SPDX-License-Identifier: Apache-2.0
#include "passes/merge_gemms.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

#include "ir/graph/fixed_values.hpp"
#include "ir/graph/memory_values.hpp"

namespace fuse::ir {
namespace {

constexpr std::size_t max_members = 32;  // operands of one concat
// The most bytes of a member: sums of extents do not overflow.
constexpr double max_bytes = static_cast<double>(1ll << 40);

/// What the members of a group have in common besides their depth and flags.
enum class Sharing : std::uint8_t {
  left,   ///< operand 0: columns are put side by side
  right,  ///< operand 1: rows are put below each other
  shape,  ///< nothing but the types: matrices are stacked
};

struct Group {
  Sharing sharing = Sharing::left;
  std::vector<NodeId> members;  // ascending
  std::uint32_t part_of = 0;    // a group that was not to be merged whole; 0: it is whole
};

/// The groups of which GEMMs are parts that were merged, or that were left beside such. Parts of one group
/// stay apart.
using Parts = std::map<NodeId, std::set<std::uint32_t>>;

bool is_gemm(const Node& node) { return std::holds_alternative<MatmulAttr>(node.attr); }

/// The bytes at the hints; saturates far above what fits a machine.
double bytes(const Type& type) {
  double count = static_cast<double>(size_of(type.dtype));
  for (const Dim& dim : type.dims) count *= static_cast<double>(dim.hint());
  return count;
}

int order_of(const std::vector<Dim>& a, const std::vector<Dim>& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (const int order = compare(a[i], b[i])) return order;
  }
  return 0;
}

/// Finds the groups. `fresh`: of which each has a member; empty: any groups.
class Grouping {
 public:
  /// `divided`: how many groups were left in parts before.
  Grouping(const Graph& graph, const std::set<NodeId>& fresh, Parts& parts, std::uint32_t& divided,
           const Decide& decide)
      : graph_(graph),
        fresh_(fresh),
        parts_(parts),
        divided_(divided),
        decide_(decide),
        fixed_(fixed_values(graph)),
        depth_(graph.nodes.size()),
        stored_(memory_values(graph)),
        taken_(graph.nodes.size()) {
    mark_depth();
  }

  std::vector<Group> run() {
    for (const Sharing sharing : {Sharing::left, Sharing::right, Sharing::shape}) collect(sharing);
    return std::move(groups_);
  }

 private:
  void mark_depth() {
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      for (const NodeId operand : graph_[id].operands) depth_[id] = std::max(depth_[id], depth_[operand]);
      depth_[id] += is_gemm(graph_[id]);
    }
  }

  /// Flags, types and depth, then what the sharing asks for.
  struct Key {
    Sharing sharing;
    NodeId shared;
    std::uint32_t depth;
    bool transpose_a, transpose_b, fixed_a, fixed_b;
    DType operand, result;
    const std::vector<Dim>*a, *b;

    bool operator<(const Key& other) const {
      const auto plain = [](const Key& k) {
        return std::tuple(k.shared, k.depth, k.transpose_a, k.transpose_b, k.fixed_a, k.fixed_b, k.operand,
                          k.result);
      };
      if (plain(*this) != plain(other)) return plain(*this) < plain(other);
      if (sharing != Sharing::shape) return false;
      if (const int order = order_of(*a, *other.a)) return order < 0;
      return order_of(*b, *other.b) < 0;
    }
  };

  Key key(Sharing sharing, NodeId id) const {
    const Node& node = graph_[id];
    const auto& flags = attr<MatmulAttr>(node);
    const NodeId a = node.operands[0], b = node.operands[1];
    return {sharing,
            sharing == Sharing::left    ? a
            : sharing == Sharing::right ? b
                                        : 0,
            depth_[id],
            flags.transpose_a,
            flags.transpose_b,
            fixed_[a],
            fixed_[b],
            graph_[a].type.dtype,
            node.type.dtype,
            &graph_[a].type.dims,
            &graph_[b].type.dims};
  }

  bool is_huge(NodeId id) const {
    const Node& node = graph_[id];
    const Type &a = graph_[node.operands[0]].type, &b = graph_[node.operands[1]].type;
    return std::max({bytes(a), bytes(b), bytes(node.type)}) > max_bytes;
  }

  /// A slice of the merged result has to be proven to lie inside it.
  bool slices_proven(const Group& group) const {
    if (group.sharing == Sharing::shape) return true;
    std::vector<Dim> ends = {0};
    for (const NodeId id : group.members) {
      const std::vector<Dim>& c = graph_[id].type.dims;
      ends.push_back(ends.back() + c[c.size() - (group.sharing == Sharing::left ? 1 : 2)]);
      if (!proven_le(ends[ends.size() - 2], ends.back())) return false;
    }
    return std::all_of(ends.begin(), ends.end(), [&](const Dim& end) { return proven_le(end, ends.back()); });
  }

  void collect(Sharing sharing) {
    std::map<Key, std::size_t> index;
    std::vector<Group> found;
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (!is_gemm(graph_[id]) || taken_[id]) continue;
      const auto [entry, added] = index.try_emplace(key(sharing, id), found.size());
      if (added) found.push_back({sharing, {}});
      if (!is_huge(id) && added_by(sharing, id) < saved_by(sharing, id)) {
        found[entry->second].members.push_back(id);
      }
    }
    for (const Group& all : found) {
      for (std::size_t first = 0; first < all.members.size(); first += max_members) {
        const auto begin = all.members.begin() + static_cast<std::ptrdiff_t>(first);
        const std::size_t count = std::min(max_members, all.members.size() - first);
        keep({sharing, {begin, begin + static_cast<std::ptrdiff_t>(count)}});
      }
    }
  }

  void keep(Group group) {
    double saved = -saved_by(group.sharing, group.members.front());
    double added = 0;
    for (const int side : {0, 1}) added += side_launch(group.sharing, group.members.front(), side);
    for (const NodeId id : group.members) {
      saved += saved_by(group.sharing, id);
      added += added_by(group.sharing, id);
    }
    const auto is_fresh = [&](NodeId id) { return fresh_.contains(id); };
    const bool new_group =
        fresh_.empty() || std::any_of(group.members.begin(), group.members.end(), is_fresh);
    if (group.members.size() < 2 || !new_group || joins_parts(group) || !slices_proven(group)) return;
    if (decides(group, added < saved)) return take(std::move(group));
    if (decide_ && group.members.size() > 2) divide(group);
  }

  bool decides(const Group& group, bool by_cost) const {
    if (!decide_) return by_cost;
    return decide_({.question = Question::merge,
                    .graph = graph_,
                    .nodes = group.members,
                    .about = group.members.front(),
                    .by_cost = by_cost,
                    .is_part = group.part_of != 0});
  }

  void take(Group group) {
    for (const NodeId id : group.members) taken_[id] = true;
    groups_.push_back(std::move(group));
  }

  bool joins_parts(const Group& group) const {
    std::set<std::uint32_t> seen;
    for (const NodeId id : group.members) {
      const auto part = parts_.find(id);
      if (part == parts_.end()) continue;
      for (const std::uint32_t of : part->second) {
        if (!seen.insert(of).second) return true;
      }
    }
    return false;
  }

  /// Asks for parts of a group that is not merged whole (Astra, 4.4.1: chunks): the largest power of two of
  /// its members, as many again and so on, then halves of those. No cost asks for a part.
  void divide(const Group& group) {
    const std::uint32_t number = ++divided_;
    const std::size_t count = group.members.size();
    std::vector<std::pair<std::size_t, std::size_t>> work;  // first member, and how many; the last is next
    const std::size_t largest = std::bit_floor(count - 1);
    for (std::size_t first = 0; first < count; first += largest)
      work.insert(work.begin(), {first, std::min(largest, count - first)});
    while (!work.empty()) {
      const auto [first, size] = work.back();
      work.pop_back();
      if (size < 2) continue;
      const auto begin = group.members.begin() + static_cast<std::ptrdiff_t>(first);
      Group part{group.sharing, {begin, begin + static_cast<std::ptrdiff_t>(size)}, number};
      if (decides(part, false)) {
        take(std::move(part));
        continue;
      }
      const std::size_t half = std::bit_floor(size - 1);
      work.emplace_back(first + half, size - half);
      work.emplace_back(first, half);
    }
    const auto taken = [&](NodeId id) { return taken_[id]; };
    if (std::none_of(group.members.begin(), group.members.end(), taken)) return;
    for (const NodeId id : group.members) {
      if (!taken_[id]) parts_[id].insert(number);
    }
  }

  static constexpr double launch = static_cast<double>(launch_bytes);

  double saved_by(Sharing sharing, NodeId id) const {
    if (sharing == Sharing::shape) return launch;
    return launch + bytes(graph_[graph_[id].operands[sharing == Sharing::left ? 0 : 1]].type);
  }

  /// Whether operand `side` is concatenated in every run.
  bool concatenated(Sharing sharing, NodeId id, int side) const {
    const bool shared = (sharing == Sharing::left && side == 0) || (sharing == Sharing::right && side == 1);
    return !shared && !fixed_[graph_[id].operands[static_cast<std::size_t>(side)]];
  }
  double side_launch(Sharing sharing, NodeId id, int side) const {
    return concatenated(sharing, id, side) ? launch : 0;
  }

  double added_by(Sharing sharing, NodeId id) const {
    double added = stored_[id] ? launch + 2 * bytes(graph_[id].type) : 0;
    for (const int side : {0, 1}) {
      if (!concatenated(sharing, id, side)) continue;
      added += 2 * bytes(graph_[graph_[id].operands[static_cast<std::size_t>(side)]].type);
    }
    return added;
  }

  const Graph& graph_;
  const std::set<NodeId>& fresh_;
  Parts& parts_;
  std::uint32_t& divided_;
  const Decide& decide_;
  const std::vector<bool> fixed_;
  std::vector<std::uint32_t> depth_;  // matmuls on the longest path to the value, itself included
  const std::vector<bool> stored_;
  std::vector<bool> taken_;
  std::vector<Group> groups_;
};

/// Writes the graph anew, each group where its first member stood.
class Rewriter {
 public:
  Rewriter(const Graph& graph, std::vector<Group> groups, const Parts& parts)
      : graph_(graph),
        parts_before_(parts),
        result_(graph),
        groups_(std::move(groups)),
        group_of_(graph.nodes.size(), nobody),
        to_(graph.nodes.size(), nobody) {
    result_.nodes.clear();
    for (std::uint32_t i = 0; i < groups_.size(); ++i) {
      for (const NodeId id : groups_[i].members) group_of_[id] = i;
    }
  }

  Graph run() {
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) emit(id);
    renumber_outputs(result_, to_);
    return std::move(result_);
  }

  /// The GEMMs of the new graph that are groups.
  const std::set<NodeId>& merged() const { return merged_; }
  /// The parts of the new graph.
  Parts parts() const {
    Parts result = parts_;
    for (const auto& [id, of] : parts_before_) {
      if (group_of_[id] == nobody) result.emplace(to_[id], of);
    }
    return result;
  }

 private:
  static constexpr std::uint32_t nobody = ~std::uint32_t{0};

  /// Operand `i` of a node, or of a whole group, whose members have two each; none after the last.
  NodeId operand(NodeId id, std::size_t i) const {
    if (group_of_[id] == nobody) return i < graph_[id].operands.size() ? graph_[id].operands[i] : nobody;
    const std::vector<NodeId>& members = groups_[group_of_[id]].members;
    return i < 2 * members.size() ? graph_[members[i / 2]].operands[i % 2] : nobody;
  }

  /// The node after all that it needs: a member of a group may need what stands after the first one.
  void emit(NodeId root) {
    if (to_[root] != nobody) return;
    std::vector<std::pair<NodeId, std::size_t>> work = {{root, 0}};
    while (!work.empty()) {
      const NodeId id = work.back().first, next = operand(id, work.back().second++);
      if (next != nobody) {
        if (to_[next] == nobody) work.emplace_back(next, 0);
        continue;
      }
      work.pop_back();
      if (group_of_[id] != nobody) {
        merge(groups_[group_of_[id]]);
        continue;
      }
      Node node = graph_[id];
      for (NodeId& o : node.operands) o = to_[o];
      to_[id] = add(std::move(node));
    }
  }

  NodeId add(Node node) {
    result_.nodes.push_back(std::move(node));
    return static_cast<NodeId>(result_.nodes.size() - 1);
  }

  /// The innermost scope around all members.
  ScopeId common_scope(const Group& group) const {
    ScopeId common = graph_[group.members.front()].scope;
    for (const NodeId id : group.members) {
      // A parent has a smaller number than its children.
      for (ScopeId other = graph_[id].scope; common != other;) {
        ScopeId& deeper = common > other ? common : other;
        deeper = graph_.scopes[deeper].parent;
      }
    }
    return common;
  }

  NodeId reshaped(const Node& like, NodeId operand, std::vector<Dim> dims) {
    Node node{Op::reshape, NoAttr{},     {operand}, {result_[operand].type.dtype, std::move(dims)},
              like.scope,  like.location};
    return add(std::move(node));
  }

  /// The members' operands `side` along `axis`; stacked along a new first dim where it is -1. Groups with
  /// the same parts share it.
  NodeId concatenated(const Group& group, const Node& like, std::size_t side, std::int64_t axis) {
    std::vector<NodeId> parts;
    for (const NodeId id : group.members) parts.push_back(to_[graph_[id].operands[side]]);
    const auto [entry, added] = concats_.try_emplace({axis, parts}, nobody);
    if (!added) return entry->second;
    if (axis < 0) {
      for (NodeId& part : parts) {
        std::vector<Dim> dims = result_[part].type.dims;
        dims.insert(dims.begin(), 1);
        part = reshaped(like, part, std::move(dims));
      }
    }
    const auto at = static_cast<std::size_t>(std::max<std::int64_t>(axis, 0));
    Node node{Op::concat, AxisAttr{static_cast<std::int64_t>(at)},
              parts,      result_[parts.front()].type,
              like.scope, like.location};
    for (std::size_t i = 1; i < parts.size(); ++i) {
      node.type.dims[at] = node.type.dims[at] + result_[parts[i]].type.dims[at];
    }
    return entry->second = add(std::move(node));
  }

  void merge(const Group& group) {
    Node gemm = graph_[group.members.front()];
    gemm.scope = common_scope(group);
    const auto& flags = attr<MatmulAttr>(gemm);
    const std::int64_t rank = gemm.type.rank();
    std::size_t axis = 0;  // the result's axis along which members lie
    gemm.operands = {to_[gemm.operands[0]], to_[gemm.operands[1]]};
    if (group.sharing == Sharing::left) {
      axis = static_cast<std::size_t>(rank - 1);
      gemm.operands[1] = concatenated(group, gemm, 1, flags.transpose_b ? rank - 2 : rank - 1);
    } else if (group.sharing == Sharing::right) {
      axis = static_cast<std::size_t>(rank - 2);
      gemm.operands[0] = concatenated(group, gemm, 0, flags.transpose_a ? rank - 1 : rank - 2);
    } else {
      gemm.operands = {concatenated(group, gemm, 0, -1), concatenated(group, gemm, 1, -1)};
      gemm.type.dims.insert(gemm.type.dims.begin(), 0);
    }
    const bool stacked = group.sharing == Sharing::shape;
    const auto extent = [&](NodeId id) { return stacked ? Dim(1) : graph_[id].type.dims[axis]; };
    gemm.type.dims[axis] = 0;
    for (const NodeId id : group.members) gemm.type.dims[axis] = gemm.type.dims[axis] + extent(id);
    const Type all = gemm.type;
    const NodeId merged = add(std::move(gemm));
    merged_.insert(merged);
    if (group.part_of > 0) parts_[merged].insert(group.part_of);
    for (const NodeId id : group.members) {
      if (const auto part = parts_before_.find(id); part != parts_before_.end())
        parts_[merged].insert(part->second.begin(), part->second.end());
    }
    Dim start = 0;
    for (const NodeId id : group.members) {
      const Node& member = graph_[id];
      SliceAttr part{std::vector<Dim>(all.dims.size(), 0), all.dims,
                     std::vector<std::int64_t>(all.dims.size(), 1)};
      part.starts[axis] = start;
      part.limits[axis] = start = start + extent(id);
      Node slice{Op::slice, NoAttr{}, {merged}, all, member.scope, member.location};
      slice.type.dims[axis] = extent(id);
      slice.attr = std::move(part);
      const NodeId sliced = add(std::move(slice));
      to_[id] = stacked ? reshaped(member, sliced, member.type.dims) : sliced;
    }
  }

  const Graph& graph_;
  const Parts& parts_before_;
  Graph result_;
  const std::vector<Group> groups_;
  std::vector<std::uint32_t> group_of_;
  std::vector<NodeId> to_;
  std::set<NodeId> merged_;
  Parts parts_;
  std::map<std::pair<std::int64_t, std::vector<NodeId>>, NodeId> concats_;
};

}  // namespace

Graph merge_gemms(const Graph& graph, const Decide& decide) {
  Graph result = graph;
  std::set<NodeId> fresh;
  Parts parts;
  std::uint32_t divided = 0;
  // What one sharing made one may share an operand with others: the gates of a step, then the steps.
  for (;;) {
    std::vector<Group> groups = Grouping(result, fresh, parts, divided, decide).run();
    if (groups.empty()) return result;
    Rewriter rewriter(result, std::move(groups), parts);
    Graph next = rewriter.run();
    fresh = rewriter.merged();
    parts = rewriter.parts();
    result = std::move(next);
  }
}

}  // namespace fuse::ir
