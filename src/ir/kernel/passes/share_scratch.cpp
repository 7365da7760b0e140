// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/share_scratch.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "ir/kernel/visit.hpp"

namespace fuse::kernel {
namespace {

/// Stretches of the kernel between barriers of the block, numbered as they stand in the text. Two that a
/// thread may go between without a barrier, by a body that is left out or a next trip, are one.
class Stretches {
 public:
  explicit Stretches(const Kernel& kernel) : kernel_(kernel) {
    parents_.push_back(0);
    walk(kernel.body);
  }

  /// Those in which a buffer has to be left alone; none for one that other blocks read.
  std::optional<std::set<std::size_t>> in_use(BufferId buffer) const {
    const auto found = uses_.find(buffer);
    if (found == uses_.end() || read_by_others_.contains(buffer)) return std::nullopt;
    std::size_t first = found->second.front().stretch, last = found->second.back().stretch;
    for (const Body& loop : loops_) {
      const auto inside = [&](const Use& use) { return loop.first_use <= use.at && use.at < loop.end_use; };
      const auto earliest = std::find_if(found->second.begin(), found->second.end(), inside);
      if (earliest == found->second.end()) continue;
      const bool only = std::all_of(found->second.begin(), found->second.end(), inside);
      if (only && earliest->refills) continue;
      first = std::min(first, loop.first);  // what one trip leaves another may read
      last = std::max(last, loop.last);
    }
    std::set<std::size_t> result;
    for (std::size_t stretch = first; stretch <= last; ++stretch) result.insert(alike(stretch));
    return result;
  }

 private:
  struct Use {
    std::size_t at = 0;  ///< in the order of the text
    std::size_t stretch = 0;
    bool refills = false;  ///< a store in every trip of the outermost loop around
  };
  struct Body {
    std::size_t first = 0, last = 0;         ///< stretches
    std::size_t first_use = 0, end_use = 0;  ///< numbers
  };

  void walk(const std::vector<Stmt>& statements) {
    for (const Stmt& stmt : statements) {
      for_each_access(stmt, [&](BufferId buffer, bool writes) {
        if (kernel_.buffers[buffer].space == Space::shared)
          uses_[buffer].push_back({next_use_, now(), writes && every_trip_});
        ++next_use_;
      });
      if (const auto* let = std::get_if<Let>(&stmt.node)) {
        const auto* load = std::get_if<Load>(&let->rhs);
        if (load && load->rank) read_by_others_.insert(load->buffer);
      } else if (const auto* loop = std::get_if<For>(&stmt.node)) {
        loop->parallel == Parallel::serial ? maybe(*loop) : of_threads(*loop);
      } else if (const auto* branch = std::get_if<If>(&stmt.node)) {
        maybe(*branch);
      } else if (waits(stmt)) {
        parents_.push_back(parents_.size());
      }
    }
  }

  static bool waits(const Stmt& stmt) {
    return std::holds_alternative<Barrier>(stmt.node) || std::holds_alternative<GridBarrier>(stmt.node) ||
           std::holds_alternative<ClusterBarrier>(stmt.node);
  }

  void of_threads(const For& loop) {
    threads_.insert(loop.name);
    walk(loop.body);
  }

  void maybe(const For& loop) {
    Body body{.first = now(), .first_use = next_use_};
    const bool runs = loop.begin.max() < loop.end.min();
    const bool outer = std::exchange(every_trip_, depth_ == 0 || (every_trip_ && runs));
    ++depth_;
    walk(loop.body);
    --depth_;
    every_trip_ = outer;
    body.last = now();
    body.end_use = next_use_;
    unite(body.first, body.last);
    if (body.first != body.last) loops_.push_back(body);
  }

  void maybe(const If& branch) {
    const std::size_t before = now();
    const bool by_thread =
        std::all_of(branch.conditions.begin(), branch.conditions.end(), [&](const IndexLess& less) {
          const std::vector<Dim> symbols = less.index.symbols();
          return less.bound.is_constant() &&
                 std::all_of(symbols.begin(), symbols.end(),
                             [&](const Dim& symbol) { return threads_.contains(symbol.name()); });
        });
    const bool outer = std::exchange(every_trip_, every_trip_ && by_thread);
    walk(branch.body);
    every_trip_ = outer;
    unite(before, now());
  }

  std::size_t now() const { return parents_.size() - 1; }

  std::size_t alike(std::size_t stretch) const {
    while (parents_[stretch] != stretch) stretch = parents_[stretch];
    return stretch;
  }

  void unite(std::size_t one, std::size_t other) {
    const std::size_t a = alike(one), b = alike(other);
    parents_[std::max(a, b)] = std::min(a, b);
  }

  const Kernel& kernel_;
  std::vector<std::size_t> parents_;  // for each stretch, one that is the same
  std::map<BufferId, std::vector<Use>> uses_;
  std::set<BufferId> read_by_others_;
  std::vector<Body> loops_;                     // the loops that have barriers
  std::set<std::string, std::less<>> threads_;  // indices of parallel loops
  std::size_t next_use_ = 0;
  int depth_ = 0;           // the depth of serial loops
  bool every_trip_ = true;  // in every trip of the outermost loop some thread of the block comes here
};

/// The location of an array, and what else is there.
struct ScratchSlot {
  BufferId buffer = 0;
  std::set<std::size_t> in_use;
};

bool apart(const std::set<std::size_t>& a, const std::set<std::size_t>& b) {
  return std::none_of(a.begin(), a.end(), [&](std::size_t stretch) { return b.contains(stretch); });
}

}  // namespace

Kernel share_scratch(Kernel kernel) {
  const Stretches stretches(kernel);
  std::vector<ScratchSlot> slots;
  std::vector<BufferId> slot_of(kernel.buffers.size());
  std::iota(slot_of.begin(), slot_of.end(), BufferId{0});
  for (BufferId id = 0; id < kernel.buffers.size(); ++id) {
    const std::optional<std::set<std::size_t>> in_use = stretches.in_use(id);
    if (!in_use) continue;
    const auto slot = std::find_if(slots.begin(), slots.end(), [&](const ScratchSlot& each) {
      return kernel.buffers[each.buffer].dtype == kernel.buffers[id].dtype && apart(each.in_use, *in_use);
    });
    if (slot == slots.end()) {
      slots.push_back({id, *in_use});
      continue;
    }
    slot_of[id] = slot->buffer;
    slot->in_use.insert(in_use->begin(), in_use->end());
    Buffer& shared = kernel.buffers[slot->buffer];
    shared.elements = std::max(shared.elements.constant(), kernel.buffers[id].elements.constant());
  }
  std::vector<BufferId> renumbered(kernel.buffers.size());
  std::vector<Buffer> kept;
  for (BufferId id = 0; id < kernel.buffers.size(); ++id) {
    renumbered[id] = static_cast<BufferId>(kept.size());
    if (slot_of[id] == id) kept.push_back(std::move(kernel.buffers[id]));
  }
  kernel.buffers = std::move(kept);
  for_each_stmt(kernel.body, [&](Stmt& stmt) {
    rename_buffers(stmt, [&](BufferId buffer) { return renumbered[slot_of[buffer]]; });
  });
  return kernel;
}

}  // namespace fuse::kernel
