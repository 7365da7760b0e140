// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/cut.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_set>

#include "ir/graph/hash.hpp"
#include "ir/graph/memory_values.hpp"
#include "schedule/fusion/overwrite_order.hpp"
#include "schedule/segments/argument_limit.hpp"
#include "schedule/segments/gemm_epilogue.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;
using ir::Relation;
using ir::Trait;

// Bounds on what one kernel computes, so that its text stays small whatever the graph.
constexpr int max_depth = 200;    // ops on a path inside a segment
constexpr int max_movement = 12;  // of these, ops that change coordinates: each may multiply the index maps
constexpr std::size_t max_results = 3;  // buffers that a kernel writes: the value, or partials of a reduction

/// Whether it runs as a step of its own on stored operands; nothing is computed inside it.
bool is_opaque(const ir::Node& node) {
  const Relation relation = info(node.op).relation;
  return relation == Relation::contraction || relation == Relation::custom;
}

const char* why_it_ends(const ir::Node& node) {
  switch (info(node.op).relation) {
    case Relation::reduce:
      return "reduction";
    case Relation::scan:
      return "scan";
    case Relation::custom:
      return "custom";
    default:
      return "gemm";
  }
}

std::int64_t elements_hint(const ir::Node& node) { return product(node.type.dims).hint(); }

// Bounds on what a kernel computes or loads again for other coordinates (is_repeated, store_below).
constexpr double most_costly = 4;      // costly ops per element, for one value
constexpr double most_loads = 12;      // loads per element, for one value
constexpr std::size_t most_work = 64;  // costly ops and loads in the text for one element of a segment

/// A costly op, a load or a position for one element of a value. Ops on the path that change coordinates give
/// it a path of its own: the work is done again for each.
struct Work {
  NodeId node = 0;
  std::uint64_t path = 0;
  double share = 1;  ///< of the elements: a concat computes one of its operands for each
  auto operator<=>(const Work&) const = default;
};

/// What computing a value inside a segment costs: the stored values it reads and how long the paths are.
struct Reach {
  std::vector<NodeId> inputs;     // sorted
  std::vector<SymbolId> symbols;  // symbols that the kernel mentions, sorted
  int depth = 0;
  int movement = 0;
  std::vector<Work> work{};  // sorted; at most most_work + 1
};

class Partitioner {
 public:
  Partitioner(const ir::Graph& graph, const std::vector<GroupId>& group_of, const CutRules& rules,
              const analysis::Facts& facts)
      : graph_(graph),
        facts_(facts),
        storage_(storage_of(graph)),
        mentions_(graph),
        group_of_(group_of),
        rules_(rules),
        end_(graph.nodes.size()),
        reach_(graph.nodes.size()),
        users_(ir::users(graph)),
        epilogue_of_(graph.nodes.size(), nobody) {}

  Partition run() {
    find_epilogues();
    mark_forced();
    find_updates();
    if (rules_.views) find_views();
    mark_shared_and_large();
    release_values_of_one_segment();
    drop_stored_slices();
    Partition result;
    result.storage = storage_;
    result.stored.resize(graph_.nodes.size());
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      result.stored[id] = ir::is_given(graph_[id]) || !end_[id].empty();
      if (!end_[id].empty() && !views_.assembled.contains(id)) result.segments.push_back(collect(id));
    }
    result.views = std::move(views_);
    update_in_place(result);
    return result;
  }

 private:
  /// Updates that can be in place have memory of their own, and so has what is computed from what they
  /// overwrite and needed after them: no kernel then reads what its own steps have written over.
  void find_updates() {
    UpdateFinder finder(graph_, storage_);
    std::vector<bool> in_memory;  // what GEMMs and user kernels read of others may become views
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      in_memory.push_back(stored(id) && !(info(graph_[id].op).has(Trait::movement) && is_operand(id)));
    }
    for (UpdateChain& chain : finder.chains(rules_.decide, in_place_.choices)) {
      const std::vector<NodeId> values = finder.read_before(chain, in_memory);
      // A result in a temporary buffer is written twice and read once more, which takes one more step, and
      // its kernel reads the old contents.
      double bytes = 4 * bytes_hint(chain.donor) + rules_.launch_bytes;
      for (const NodeId id : values) bytes -= 2 * bytes_hint(id) + rules_.launch_bytes;
      if (bytes < 0) {
        refuse(chain, fmt::format("storing {} before it would cost more", graph_.value_name(values.front())));
        continue;
      }
      for (const NodeId id : values) store_before_update(id);
      for (const NodeId update : chain.updates) mark(update, "update");
      chains_.push_back(std::move(chain));
    }
  }

  double bytes_hint(NodeId id) const {
    return static_cast<double>(elements_hint(graph_[id])) *
           static_cast<double>(size_of(graph_[id].type.dtype));
  }

  void store_before_update(NodeId id) {
    if (const NodeId result = epilogue_of_[id]; result != nobody) {  // the GEMM ends here after all
      matmuls_.erase(result);
      extra_.erase(result);
      epilogue_of_[id] = nobody;
    }
    if (end_[id].empty() || is_operand(id)) end_[id] = "update";
  }

  bool is_operand(NodeId id) const { return end_[id] == gemm_operand || end_[id] == custom_operand; }

  void refuse(const UpdateChain& chain, std::string why) {
    for (InPlaceChoice& choice : in_place_.choices) {
      if (choice.output == chain.output) choice.refused = std::move(why);
    }
  }

  /// Says so in the choice, too. What is computed from the old contents was stored before, but a view may
  /// have taken its place.
  bool reads_what_it_overwrites(Partition& partition, const UpdateChain& chain) const {
    NodeId before = chain.donor;
    for (const NodeId update : chain.updates) {
      for (const NodeId input : collect(update, true).inputs) {
        if (memory_of(partition, input) != before) continue;
        for (InPlaceChoice& choice : partition.in_place.choices) {
          if (choice.output == chain.output)
            choice.refused = fmt::format("the kernel of {} reads {}", graph_.value_name(update),
                                         graph_.value_name(before));
        }
        return true;
      }
      before = update;
    }
    return false;
  }

  /// The updates' segments write what they change alone, after all that reads what they overwrite.
  void update_in_place(Partition& partition) {
    partition.in_place = std::move(in_place_);
    const auto remake = [&](const UpdateChain& chain, bool in_place) {
      for (const NodeId update : chain.updates) {
        const auto segment = std::find_if(partition.segments.begin(), partition.segments.end(),
                                          [&](const Segment& each) { return each.root == update; });
        *segment = collect(update, in_place);
      }
    };
    for (const UpdateChain& chain : chains_) remake(chain, true);
    std::erase_if(chains_, [&](const UpdateChain& chain) {
      if (!reads_what_it_overwrites(partition, chain)) return false;
      remake(chain, false);
      return true;
    });
    order_overwrites(graph_, partition, chains_, [&](const UpdateChain& chain) { remake(chain, false); });
  }

  /// A matmul in one group with the op after it makes that op's value.
  void find_epilogues() {
    const std::vector<bool> in_memory = ir::memory_values(graph_);
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (info(graph_[id].op).relation != Relation::contraction || group_of_[id] == no_group) continue;
      const auto epilogue = gemm_epilogue(graph_, id, users_, in_memory);
      if (!epilogue || group_of_[epilogue->result] != group_of_[id]) continue;
      const auto both = [&] { return std::vector{id, epilogue->result}; };
      if (!decided(rules_.decide, ir::Question::epilogue, graph_, epilogue->result, true, both)) continue;
      epilogue_of_[id] = epilogue->result;
      matmuls_.emplace(epilogue->result, id);
      const bool adds = epilogue->kind == EpilogueKind::bias || epilogue->kind == EpilogueKind::add;
      if (adds) extra_.emplace(epilogue->result, epilogue->operand);
    }
  }

  /// Whether a GEMM or a user's kernel makes it: everything that it reads is stored.
  bool is_opaque_root(NodeId id) const { return is_opaque(graph_[id]) || matmuls_.count(id) != 0; }

  void mark(NodeId id, const char* why) {
    if (!ir::is_given(graph_[id]) && end_[id].empty()) end_[id] = why;
  }

  void mark_forced() {
    for (const ir::Output& output : graph_.outputs) mark(storage_[output.node], "output");
    mark_rules();
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      const ir::Node& node = graph_[id];
      if (!ends_segment(node)) continue;
      end_[epilogue_of_[id] == nobody ? id : epilogue_of_[id]] = why_it_ends(node);
      if (!is_opaque(node)) continue;
      const char* why = info(node.op).relation == Relation::custom ? custom_operand : gemm_operand;
      for (NodeId operand : node.operands) mark(storage_[operand], why);
    }
    for (const auto& [result, operand] : extra_) mark(storage_[operand], gemm_operand);
  }

  /// A slice that is a view has no step; a concat that its operands' steps write has none of its own.
  void find_views() {
    MemoryUse use{.storage = storage_, .in_place = std::vector<bool>(graph_.nodes.size())};
    for (const UpdateChain& chain : chains_) {
      for (const NodeId update : chain.updates) use.in_place[update] = true;
    }
    use.dense.resize(graph_.nodes.size());
    use.has_epilogue.resize(graph_.nodes.size());
    for (const ir::Node& node : graph_.nodes) {
      if (info(node.op).relation != Relation::custom) continue;
      for (const NodeId operand : node.operands) use.dense[storage_[operand]] = true;
    }
    for (const auto& [result, operand] : extra_) use.dense[storage_[operand]] = true;
    for (const auto& [result, matmul] : matmuls_) use.has_epilogue[matmul] = true;
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      use.stored.push_back(stored(id));
      use.operand.push_back(is_operand(id));
    }
    std::vector<NodeId> computed;
    views_ = choose_views(graph_, use, facts_, {rules_.launch_bytes, rules_.decide}, computed);
    for (const NodeId id : computed) mark(id, "concat operand");
    for (const ViewChoice& choice : views_.choices) {
      if (choice.taken() && !views_.assembled.contains(choice.value)) end_[choice.value].clear();
    }
  }

  /// What became too large for one kernel since then has memory of its own after all.
  void drop_stored_slices() {
    for (ViewChoice& choice : views_.choices) {
      if (!choice.taken() || views_.assembled.contains(choice.value) || end_[choice.value].empty()) continue;
      views_.drop(graph_, choice.value);
      choice.refused = "a kernel needs it in memory of its own (" + end_[choice.value] + ")";
    }
  }

  bool crosses(NodeId operand, NodeId user) const {
    return group_of_[operand] != no_group && group_of_[user] != no_group &&
           group_of_[operand] != group_of_[user];
  }

  void mark_rules() {
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      const ir::Node& node = graph_[id];
      const bool repeats = info(node.op).relation == Relation::broadcast;
      for (const NodeId operand : node.operands) {
        if (rules_.groups_are_kernels && crosses(operand, id)) mark(storage_[operand], "group");
        if (rules_.costly_broadcast && repeats && info(graph_[operand].op).has(Trait::costly)) {
          mark(operand, "costly broadcast");
        }
      }
    }
  }

  bool stored(NodeId id) const { return ir::is_given(graph_[id]) || !end_[id].empty(); }

  /// Values that several segments use are stored when computing them again would read two or more tensors of
  /// their size; paths are cut where a segment would grow past the bounds above.
  void mark_shared_and_large() {
    const std::vector<bool> shared =
        rules_.recompute ? std::vector<bool>(graph_.nodes.size()) : shared_between_segments();
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (ir::is_given(graph_[id]) || views_.assembled.contains(id)) continue;
      Reach reach = reach_of(id);
      if (end_[id].empty()) {
        if (!fits(reach)) {
          cut_operands(id);
          reach = reach_of(id);
        }
        if (reach.work.size() > most_work) {
          store_below(id);
          reach = reach_of(id);
        }
        const std::int64_t size = size_to_share(id, shared);
        const auto large = std::count_if(reach.inputs.begin(), reach.inputs.end(),
                                         [&](NodeId input) { return elements_hint(graph_[input]) >= size; });
        const auto nodes = [&] { return computed_with(id); };
        const Relation relation = info(graph_[id].op).relation;
        const bool computes = relation != Relation::reshape && relation != Relation::broadcast;
        const bool may_share = shared[id] && (large >= 2 || (large == 1 && computes));
        const bool repeated = !rules_.recompute && is_repeated(id, reach);
        const bool stores = repeated || (may_share && large >= 2);
        if ((may_share || repeated) &&
            decided(rules_.decide, ir::Question::store, graph_, id, stores, nodes)) {
          end_[repeated ? storage_[id] : id] = repeated ? "repeated" : "shared";
          if (repeated && storage_[id] != id) reach = reach_of(id);
        }
      } else if (!is_opaque_root(id) && !fits(reach)) {
        cut_operands(id);
        reach = reach_of(id);
      }
      reach_[id] = std::move(reach);
    }
  }

  /// The elements of what several segments would load. Where slices are all that reads the value, and two of
  /// them or more would be stored one by one, the value is stored instead.
  std::int64_t size_to_share(NodeId id, const std::vector<bool>& shared) const {
    std::int64_t largest = 0, parts = 0;
    for (const NodeId user : users_[id]) {
      if (graph_[user].op != ir::Op::slice) return elements_hint(graph_[id]);
      if (!shared[user]) continue;
      largest = std::max(largest, elements_hint(graph_[user]));
      ++parts;
    }
    return parts > 1 ? largest : elements_hint(graph_[id]);
  }

  /// What a segment that ends at the value would compute, in graph order.
  std::vector<NodeId> computed_with(NodeId root) const {
    std::vector<NodeId> nodes = {root};
    std::unordered_set<NodeId> seen = {root};
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const NodeId operand : graph_[nodes[i]].operands) {
        if (!stored(operand) && seen.insert(operand).second) nodes.push_back(operand);
      }
    }
    std::sort(nodes.begin(), nodes.end());
    return nodes;
  }

  bool fits(const Reach& reach) const {
    const std::size_t arguments = reach.inputs.size() + reach.symbols.size() + max_results;
    return reach.inputs.size() <= rules_.max_inputs && reach.depth <= max_depth &&
           reach.movement <= max_movement && bytes_an_argument * arguments <= rules_.argument_bytes;
  }

  /// Whether its users would compute it again, for several elements each, at a cost past a small factor.
  /// Slices of it that do not overlap are one use; what a broadcast repeats is not counted.
  bool is_repeated(NodeId id, const Reach& reach) const {
    double uses = 0;
    bool same_element = false;
    const double elements = std::max<double>(1, static_cast<double>(elements_hint(graph_[id])));
    for (const NodeId user : users_[id]) {
      const ir::Node& node = graph_[user];
      // Positions and what surrounds a value are read as they are.
      const bool is_moved = node.operands[0] == id || info(node.op).relation == Relation::concat;
      const auto occurrences =
          static_cast<double>(std::count(node.operands.begin(), node.operands.end(), id));
      switch (is_moved ? info(node.op).relation : Relation::identity) {
        case Relation::slice:
        case Relation::gather:
        case Relation::dynamic_slice:
          uses += static_cast<double>(elements_hint(node)) / elements;
          break;
        case Relation::permute:
        case Relation::concat:
        case Relation::reverse:
        case Relation::pad:
        case Relation::update:
          uses += occurrences;
          break;
        default:
          same_element = true;
      }
    }
    uses += same_element ? 1 : 0;
    return uses > 1 && repeats_much(uses, reach);
  }

  bool repeats_much(double uses, const Reach& reach) const {
    double costly = 0, loads = 0;
    for (const Work& work : reach.work) {
      if (stored(work.node)) {
        loads += work.share;
      } else if (info(graph_[work.node].op).has(Trait::costly)) {
        costly += work.share;
      }
    }
    return uses * costly > most_costly || (loads > 1 && uses * loads > most_loads);
  }

  /// Stores what ops that change coordinates read, the nearest below the value, so that its text stays small.
  void store_below(NodeId id) {
    std::vector<NodeId> path = {id};
    std::vector<NodeId> work = {id};
    std::unordered_set<NodeId> seen = {id};
    while (!work.empty()) {
      const NodeId user = work.back();
      work.pop_back();
      const bool moves = info(graph_[user].op).relation != Relation::identity;
      for (const NodeId operand : graph_[user].operands) {
        if (stored(operand) || info(graph_[operand].op).has(Trait::source) || !seen.insert(operand).second)
          continue;
        if (moves && storage_[operand] == operand && reach_[operand].work.size() > 1) {
          end_[operand] = "size";
        } else {
          work.push_back(operand);
          path.push_back(operand);
        }
      }
    }
    std::sort(path.begin(), path.end());
    for (const NodeId each : path) reach_[each] = reach_of(each);
  }

  void cut_operands(NodeId id) {
    for (NodeId operand : graph_[id].operands) {
      // A reshape of what is stored reads one value anyway.
      const bool read = stored(operand) || stored(storage_[operand]);
      if (!read && !info(graph_[operand].op).has(Trait::source)) end_[operand] = "size";
    }
  }

  Reach reach_of(NodeId id) const {
    Reach result;
    const ir::Node& node = graph_[id];
    result.symbols = mentions_.of(id);
    for (NodeId operand : node.operands) {
      if (stored(operand)) {
        result.inputs.push_back(operand);
        continue;
      }
      const Reach& below = reach_[operand];
      result.inputs.insert(result.inputs.end(), below.inputs.begin(), below.inputs.end());
      if (!below.symbols.empty()) result.symbols = merged(result.symbols, below.symbols);
      result.depth = std::max(result.depth, below.depth);
      result.movement = std::max(result.movement, below.movement);
    }
    result.work = work_of(id);
    std::sort(result.inputs.begin(), result.inputs.end());
    result.inputs.erase(std::unique(result.inputs.begin(), result.inputs.end()), result.inputs.end());
    ++result.depth;
    if (info(node.op).has(Trait::movement) && info(node.op).relation != Relation::broadcast) {
      // A concat computes every operand's element at its own coordinates: it multiplies the work by its
      // arity.
      result.movement += std::max(1, static_cast<int>(std::bit_width(node.operands.size())));
    }
    return result;
  }

  /// The work of a segment that loads the value, if it computes the value on each path instead.
  std::vector<Work> work_through(NodeId id, const std::vector<Work>& with_loads) const {
    std::vector<Work> work;
    for (const Work& each : with_loads) {
      if (each.node != id) {
        work.push_back(each);
        continue;
      }
      for (const Work& more : reach_[id].work)
        work.push_back(
            {more.node, ir::Hasher().add(each.path).add(more.path).value(), each.share * more.share});
    }
    std::sort(work.begin(), work.end());
    work.erase(std::unique(work.begin(), work.end()), work.end());
    return work;
  }

  double share_of(NodeId part, const ir::Node& whole) const {
    const auto elements = static_cast<double>(std::max<std::int64_t>(1, elements_hint(whole)));
    return static_cast<double>(elements_hint(graph_[part])) / elements;
  }

  std::vector<Work> work_of(NodeId id) const {
    const ir::Node& node = graph_[id];
    const bool moves = info(node.op).relation != Relation::identity;
    std::vector<Work> work;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const NodeId operand = node.operands[i];
      // The path through each operand of a concat is another one.
      const auto along = [&](std::uint64_t path) {
        return moves ? ir::Hasher().add(path).add(std::uint64_t{id}).add(i).value() : path;
      };
      const double share = node.op == ir::Op::concat ? share_of(operand, node) : 1;
      if (stored(operand)) {
        work.push_back({operand, along(0), share});
      } else {
        for (const Work& each : reach_[operand].work)
          work.push_back({each.node, along(each.path), share * each.share});
      }
    }
    const bool counts = node.operands.empty() && node.op != ir::Op::constant;  // positions are computed, too
    if (counts || info(node.op).has(Trait::costly)) work.push_back({id, 0});
    std::sort(work.begin(), work.end());
    work.erase(std::unique(work.begin(), work.end()), work.end());
    if (work.size() > most_work + 1) work.resize(most_work + 1);
    return work;
  }

  /// Whether slices that do not overlap are all that reads the value, and one segment uses each of them.
  bool is_used_in_parts(NodeId id, const std::vector<bool>& shared) const {
    constexpr std::size_t most_parts = 16;
    const std::vector<NodeId>& users = users_[id];
    const auto is_part = [&](NodeId user) {
      return graph_[user].op == ir::Op::slice && !shared[user] && !crosses(id, user);
    };
    if (users.size() > most_parts || !std::all_of(users.begin(), users.end(), is_part)) return false;
    for (std::size_t i = 0; i < users.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (!are_apart(ir::attr<ir::SliceAttr>(graph_[users[i]]), ir::attr<ir::SliceAttr>(graph_[users[k]])))
          return false;
      }
    }
    return true;
  }

  static bool are_apart(const ir::SliceAttr& a, const ir::SliceAttr& b) {
    for (std::size_t axis = 0; axis < a.starts.size(); ++axis) {
      if ((b.starts[axis] - a.limits[axis]).min() >= 0 || (a.starts[axis] - b.limits[axis]).min() >= 0)
        return true;
    }
    return false;
  }

  /// Which of the values are used by more than one segment, given the ends so far. `keep(id, segments)` is
  /// called for each value that one segment uses, or several in parts, users before operands, and may remove
  /// an end.
  template <class Keep>
  std::vector<bool> uses_by_segments(Keep&& keep) const {
    std::vector<bool> shared(graph_.nodes.size());
    std::vector<NodeId> segment(graph_.nodes.size(), nobody);  // the one segment that uses it so far
    std::map<NodeId, std::vector<NodeId>> segments_of_parts;   // of what counts as a segment for its operands
    for (NodeId id = static_cast<NodeId>(graph_.nodes.size()); id-- > 0;) {
      // Several segments that each use a part of it compute no element twice.
      const bool in_parts = shared[id] && is_used_in_parts(id, shared);
      if (in_parts) shared[id] = false;
      const NodeId whose = segment[id];
      if (in_parts) {
        std::vector<NodeId>& roots = segments_of_parts[id];
        for (const NodeId user : users_[id]) roots.push_back(end_[user].empty() ? segment[user] : user);
        keep(id, roots);
      } else if (!shared[id] && whose != nobody) {
        const auto found = segments_of_parts.find(whose);
        keep(id, found == segments_of_parts.end() ? std::vector{whose} : found->second);
      }
      const bool many = end_[id].empty() && shared[id];
      const NodeId mine = end_[id].empty() && !in_parts ? whose : id;  // in parts: as if it were a segment
      // What lies in the memory of another value is computed by nobody.
      if (end_[id].empty() && (whose == nobody || views_.of.contains(id))) continue;
      for (NodeId operand : graph_[id].operands) {
        // Another group may need the value: this counts as a second segment.
        const bool again = segment[operand] != nobody && segment[operand] != mine;
        if (many || again || crosses(operand, id)) shared[operand] = true;
        segment[operand] = mine;
      }
    }
    return shared;
  }

  std::vector<bool> shared_between_segments() const {
    return uses_by_segments([](NodeId, const std::vector<NodeId>&) {});
  }

  /// A value that was stored because several segments computed its user belongs to one, once that user is
  /// stored; or a part of it to each.
  void release_values_of_one_segment() {
    uses_by_segments([this](NodeId id, std::vector<NodeId> roots) {
      if (end_[id] != "shared") return;
      std::sort(roots.begin(), roots.end());
      roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
      std::vector<Reach> wholes;
      double uses = 0;
      for (const NodeId root : roots) {
        if (root == nobody || end_[root].empty() || is_opaque_root(root)) return;
        const Reach &reach = reach_[root], &more = reach_[id];
        Reach& whole =
            wholes.emplace_back(Reach{merged(reach.inputs, more.inputs), merged(reach.symbols, more.symbols),
                                      reach.depth + more.depth, reach.movement + more.movement});
        std::erase(whole.inputs, id);
        whole.work = work_through(id, reach.work);
        if (!fits(whole) || whole.work.size() > most_work) return;
        double paths = 0;
        for (const Work& each : reach.work) paths += each.node == id ? each.share : 0;
        uses += paths * std::min(1.0, share_of(root, graph_[id]));
      }
      if (uses > 1 && repeats_much(uses, reach_[id])) return;
      for (std::size_t i = 0; i < roots.size(); ++i) reach_[roots[i]] = std::move(wholes[i]);
      end_[id].clear();
    });
  }

  /// Makes the segment of a GEMM or a user's kernel.
  Segment collect_opaque(NodeId root) const {
    const auto matmul = matmuls_.find(root);
    const NodeId step = matmul == matmuls_.end() ? root : matmul->second;
    const bool custom = info(graph_[step].op).relation == Relation::custom;
    Segment segment{.kind = custom ? Segment::Kind::custom : Segment::Kind::gemm,
                    .root = root,
                    .nodes = {root},
                    .results = {root},
                    .group = group_of_[root],
                    .end = end_[root]};
    if (step != root) segment.nodes = {step, root};
    for (NodeId operand : graph_[step].operands) segment.inputs.push_back(storage_[operand]);
    if (const auto extra = extra_.find(root); extra != extra_.end()) {
      segment.inputs.push_back(storage_[extra->second]);
    }
    return segment;
  }

  /// `in_place`: operand 0 of the root is not read.
  Segment collect(NodeId root, bool in_place = false) const {
    if (is_opaque_root(root)) return collect_opaque(root);
    std::vector<NodeId> nodes = {root}, inputs;
    std::vector<NodeId> work = {root};
    std::unordered_set<NodeId> seen = {root};
    while (!work.empty()) {
      const NodeId id = work.back();
      work.pop_back();
      for (std::size_t i = in_place && id == root ? 1 : 0; i < graph_[id].operands.size(); ++i) {
        const NodeId operand = graph_[id].operands[i];
        if (!seen.insert(operand).second) continue;
        if (stored(operand)) {
          inputs.push_back(operand);
        } else {
          nodes.push_back(operand);
          work.push_back(operand);
        }
      }
    }
    std::sort(nodes.begin(), nodes.end());
    std::sort(inputs.begin(), inputs.end());
    Phase phase = phase_of(graph_, root, std::move(nodes), std::move(inputs));
    phase.in_place = in_place;
    return segment_of(std::move(phase), group_of_[root], end_[root]);
  }

  static constexpr const char* gemm_operand = "gemm operand";
  static constexpr const char* custom_operand = "custom operand";

  const ir::Graph& graph_;
  const analysis::Facts& facts_;
  const std::vector<NodeId> storage_;
  const Mentions mentions_;
  const std::vector<GroupId>& group_of_;
  const CutRules& rules_;
  Views views_;
  InPlace in_place_;                 // the choices
  std::vector<UpdateChain> chains_;  // updates to be in place
  std::vector<std::string> end_;     // why a segment ends at the node; empty: none does
  std::vector<Reach> reach_;
  static constexpr NodeId nobody = ~NodeId{0};
  const std::vector<std::vector<NodeId>> users_;
  std::vector<NodeId> epilogue_of_;   // for a matmul, the op after it that its GEMM computes too
  std::map<NodeId, NodeId> matmuls_;  // for such an op, the matmul
  std::map<NodeId, NodeId> extra_;    // and what it adds
};

}  // namespace

bool ends_segment(const ir::Node& node) {
  const Relation relation = info(node.op).relation;
  return relation == Relation::reduce || relation == Relation::contraction || relation == Relation::scan ||
         relation == Relation::custom;
}

// A reshape of a stored value is a view. Which values are stored follows from what needs a buffer, so views
// are resolved first for everything and used only where the operand turns out to be stored.
std::vector<NodeId> storage_of(const ir::Graph& graph) {
  std::vector<NodeId> storage(graph.nodes.size());
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const ir::Node& node = graph[id];
    storage[id] = info(node.op).relation == Relation::reshape ? storage[node.operands[0]] : id;
  }
  return storage;
}

Partition cut_into_segments(const ir::Graph& graph, const std::vector<GroupId>& group_of,
                            const CutRules& rules, const analysis::Facts& facts) {
  return Partitioner(graph, group_of, rules, facts).run();
}

}  // namespace fuse::schedule
