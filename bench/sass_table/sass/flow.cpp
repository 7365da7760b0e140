// SPDX-License-Identifier: Apache-2.0
#include "sass_table/sass/flow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>

namespace fuse::bench::sass {
namespace {

using Edges = std::vector<std::vector<std::size_t>>;

bool always(const Instruction& one) { return one.predicate.empty() || one.predicate == "PT"; }

/// A branch whose predicate is among its operands: "BRA !P2, `(.L_x_11)".
bool predicated_operand(const Instruction& one) {
  return !one.operands.empty() && !one.operands[0].starts_with("`(");
}

bool is_branch(const Instruction& one) {
  const std::string base = one.base();
  return base == "BRA" || base == "EXIT" || base == "RET" || base == "CALL" || base == "BSYNC" ||
         base == "BRX" || base == "JMP" || base == "JMX" || base == "KILL";
}

/// BRA.DIV jumps where the warp has diverged, which it has not where all threads of it run.
bool of_diverged_warps(const Instruction& one) { return one.base() == "BRA" && one.has("DIV"); }

class Builder {
 public:
  explicit Builder(const Function& function) : function_(function), code_(function.code) {}

  Flow build() {
    make_blocks();
    make_edges();
    mark_slow();
    make_dominators();
    make_loops();
    make_groups();
    return std::move(flow_);
  }

 private:
  std::size_t label(const std::string& name) const {
    const auto at = function_.labels.find(name);
    if (at == function_.labels.end())
      throw std::runtime_error(fmt::format("{}: no label {}", function_.name, name));
    return at->second;
  }
  std::size_t block_at(std::size_t instruction) const {
    const auto after = std::upper_bound(flow_.blocks.begin(), flow_.blocks.end(), instruction,
                                        [](std::size_t i, const Block& block) { return i < block.first; });
    return static_cast<std::size_t>(after - flow_.blocks.begin()) - 1;
  }

  void make_blocks() {
    std::set<std::size_t> starts = {0};
    for (const auto& [name, at] : function_.labels) {
      if (at < code_.size()) starts.insert(at);
    }
    for (std::size_t i = 0; i + 1 < code_.size(); ++i) {
      if (is_branch(code_[i])) starts.insert(i + 1);
    }
    for (const std::size_t start : starts) {
      if (!flow_.blocks.empty()) flow_.blocks.back().last = start;
      flow_.blocks.push_back({.first = start, .last = code_.size()});
    }
  }

  /// Where a BSYNC goes on: behind the region that the BSSY of its barrier opened.
  std::size_t end_of_region(std::size_t sync) const {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < code_.size(); ++i) {
      if (code_[i].base() != "BSSY" || code_[i].operands[0] != code_[sync].operands[0]) continue;
      const std::size_t end = label(code_[i].target());
      if (end == sync + 1) return end;
      if (i < sync) found = end;
    }
    if (!found) throw std::runtime_error(fmt::format("{}: a BSYNC without BSSY", function_.name));
    return *found;
  }

  void make_edges() {
    for (std::size_t i = 0; i < flow_.blocks.size(); ++i) {
      Block& block = flow_.blocks[i];
      const Instruction& last = code_[block.last - 1];
      const std::string base = last.base();
      std::vector<std::size_t> to;
      bool falls = true;
      if (base == "BRA") {
        falls = !always(last) || predicated_operand(last);
        const std::size_t target = block_at(label(last.target()));
        if (of_diverged_warps(last)) {
          diverged_.insert(target);
        } else {
          to.push_back(target);
        }
      } else if (base == "EXIT" || base == "RET" || base == "KILL") {
        falls = !always(last);
      } else if (base == "BSYNC") {
        to.push_back(block_at(end_of_region(block.last - 1)));
        falls = !always(last);
      } else if (base == "CALL" && last.target().starts_with(".L")) {
        to.push_back(block_at(label(last.target())));  // a far jump
        falls = !always(last);
      } else if (base == "CALL") {
        block.callee = last.target();
      } else if (is_branch(last)) {
        throw std::runtime_error(
            fmt::format("{}: {} jumps to addresses that are not in the text", function_.name, last.opcode));
      }
      if (falls && i + 1 < flow_.blocks.size()) to.push_back(i + 1);
      std::sort(to.begin(), to.end());
      to.erase(std::unique(to.begin(), to.end()), to.end());
      block.next = to;
    }
    for (std::size_t i = 0; i < flow_.blocks.size(); ++i) {
      for (const std::size_t next : flow_.blocks[i].next) flow_.blocks[next].before.push_back(i);
    }
  }

  /// Slow: what calls a slow routine, what is reached from there alone, what can go nowhere else.
  void mark_slow() {
    std::vector<bool> reached(flow_.blocks.size());
    std::vector<std::size_t> open = {0};
    reached[0] = true;
    while (!open.empty()) {
      const std::size_t block = open.back();
      open.pop_back();
      for (const std::size_t next : flow_.blocks[block].next) {
        if (!reached[next]) reached[next] = true, open.push_back(next);
      }
    }
    const auto slow = [&](std::size_t i) { return flow_.blocks[i].slow; };
    for (std::size_t i = 0; i < flow_.blocks.size(); ++i) {
      Block& block = flow_.blocks[i];
      block.slow = !reached[i] || is_slow_name(block.callee);
      if (diverged_.contains(i)) block.routine = diverged_warps;
      if (block.slow && !block.callee.empty() && block.routine.empty()) block.routine = block.callee;
    }
    const auto take_routine = [&](Block& block, const std::vector<std::size_t>& from) {
      for (const std::size_t other : from) {
        if (block.routine.empty()) block.routine = flow_.blocks[other].routine;
      }
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 1; i < flow_.blocks.size(); ++i) {
        Block& block = flow_.blocks[i];
        const bool after =
            !block.before.empty() && std::all_of(block.before.begin(), block.before.end(), slow);
        const bool ahead = !block.next.empty() && std::all_of(block.next.begin(), block.next.end(), slow);
        if (block.slow ? !block.routine.empty() : !after && !ahead) continue;
        block.slow = true;
        const std::string known = block.routine;
        if (after) take_routine(block, block.before);
        if (ahead) take_routine(block, block.next);
        changed = changed || block.routine != known;
      }
    }
    for (Block& block : flow_.blocks) {
      std::erase_if(block.next, slow);
      std::erase_if(block.before, slow);
    }
  }

  /// Of each node: the nearest that every path to it from `entry` passes. For few hundred nodes.
  static std::vector<std::size_t> dominators(std::size_t entry, const Edges& next, const Edges& before) {
    const std::size_t none = next.size();
    std::vector<std::size_t> order, position(next.size(), none), result(next.size(), none);
    std::vector<std::pair<std::size_t, std::size_t>> stack = {{entry, 0}};
    std::vector<bool> seen(next.size());
    seen[entry] = true;
    while (!stack.empty()) {
      auto& [node, edge] = stack.back();
      if (edge < next[node].size()) {
        const std::size_t to = next[node][edge++];
        if (!seen[to]) seen[to] = true, stack.emplace_back(to, 0);
      } else {
        order.push_back(node);
        stack.pop_back();
      }
    }
    std::reverse(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
    result[entry] = entry;
    for (bool changed = true; changed;) {
      changed = false;
      for (const std::size_t node : order) {
        if (node == entry) continue;
        std::size_t best = none;
        for (std::size_t from : before[node]) {
          if (result[from] == none) continue;
          if (best == none) {
            best = from;
            continue;
          }
          while (from != best) {
            while (position[from] > position[best]) from = result[from];
            while (position[best] > position[from]) best = result[best];
          }
        }
        if (result[node] != best) result[node] = best, changed = true;
      }
    }
    return result;
  }

  static bool dominates(const std::vector<std::size_t>& dominator, std::size_t a, std::size_t b) {
    for (;; b = dominator[b]) {
      if (a == b) return true;
      if (b >= dominator.size() || dominator[b] == b || dominator[b] >= dominator.size()) return false;
    }
  }

  void make_dominators() {
    const std::size_t end = flow_.blocks.size();  // one node behind all that leave
    Edges next(end + 1), before(end + 1);
    for (std::size_t i = 0; i < end; ++i) {
      const Block& block = flow_.blocks[i];
      if (block.slow) continue;
      next[i] = block.next;
      before[i] = block.before;
      const Instruction& last = code_[block.last - 1];
      if (block.next.empty() || last.base() == "EXIT" || last.base() == "RET") {
        next[i].push_back(end);
        before[end].push_back(i);
      }
    }
    flow_.dominator = dominators(0, next, before);
    post_dominator_ = dominators(end, before, next);
  }

  void make_loops() {
    std::vector<Loop> loops;
    for (std::size_t i = 0; i < flow_.blocks.size(); ++i) {
      if (flow_.blocks[i].slow) continue;
      for (const std::size_t header : flow_.blocks[i].next) {
        if (!dominates(flow_.dominator, header, i)) continue;
        auto at = std::find_if(loops.begin(), loops.end(), [&](const Loop& l) { return l.header == header; });
        if (at == loops.end()) {
          loops.push_back({.header = header, .blocks = {header}, .latches = {}});
          at = loops.end() - 1;
        }
        at->latches.push_back(i);
        std::vector<std::size_t> open = {i};
        while (!open.empty()) {
          const std::size_t block = open.back();
          open.pop_back();
          if (std::find(at->blocks.begin(), at->blocks.end(), block) != at->blocks.end()) continue;
          at->blocks.push_back(block);
          for (const std::size_t from : flow_.blocks[block].before) open.push_back(from);
        }
      }
    }
    std::sort(loops.begin(), loops.end(),
              [](const Loop& a, const Loop& b) { return a.blocks.size() > b.blocks.size(); });
    for (std::size_t i = 0; i < loops.size(); ++i) {
      loops[i].parent = flow_.blocks[loops[i].header].loop;
      for (const std::size_t block : loops[i].blocks) flow_.blocks[block].loop = i;
    }
    flow_.loops = std::move(loops);
  }

  void make_groups() {
    std::vector<std::size_t> leaders;
    for (std::size_t i = 0; i < flow_.blocks.size(); ++i) {
      Block& block = flow_.blocks[i];
      if (block.slow) continue;
      const auto same = [&](std::size_t leader) {
        const Block& other = flow_.blocks[leader];
        if (other.loop != block.loop) return false;
        return (dominates(flow_.dominator, leader, i) && dominates(post_dominator_, i, leader)) ||
               (dominates(flow_.dominator, i, leader) && dominates(post_dominator_, leader, i));
      };
      const auto at = std::find_if(leaders.begin(), leaders.end(), same);
      block.group = static_cast<std::size_t>(at - leaders.begin());
      if (at == leaders.end()) leaders.push_back(i);
    }
    flow_.groups = leaders.size();
  }

  const Function& function_;
  const std::vector<Instruction>& code_;
  Flow flow_;
  std::set<std::size_t> diverged_;  // blocks that diverged warps alone run
  std::vector<std::size_t> post_dominator_;
};

}  // namespace

bool is_slow_name(const std::string& name) {
  // The f64 routines are entered where a quotient or a root is not ordinary; their names do not say so.
  const std::string own = name.substr(name.rfind('$') + 1);  // behind the kernel's
  for (const char* part : {"slow", "div_rn_f64_full", "dsqrt_rn_f64_mediumpath", "rcp_f64"}) {
    if (own.find(part) != std::string::npos) return true;
  }
  return false;
}

bool Flow::inside(std::size_t loop, std::size_t outer) const {
  while (loop != outer && loop != no_loop) loop = loops[loop].parent;
  return loop == outer;
}

Flow flow_of(const Function& function) {
  if (function.code.empty()) throw std::runtime_error(function.name + ": no code");
  return Builder(function).build();
}

}  // namespace fuse::bench::sass
