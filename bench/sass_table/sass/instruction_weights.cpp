// SPDX-License-Identifier: Apache-2.0
#include "sass_table/sass/instruction_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>

#include "sass_table/sass/buffers.hpp"
#include "sass_table/sass/flow.hpp"
#include "sass_table/sass/opcodes.hpp"

namespace fuse::bench::sass {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines = {""};  // lines count from 1
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// How well an instruction tells where its code is. What has an effect stands where the condition for it
/// holds; reads are seldom moved; arithmetic goes wherever it suits.
enum class Witness : std::uint8_t { arithmetic, read, effect };

Witness witness_of(const Instruction& one) {
  const std::string base = one.base();
  if (!one.predicate.empty()) return Witness::arithmetic;
  if (stores_global(one) || base == "STS" || base == "BAR") return Witness::effect;
  return loads_global(one) || base == "LDS" || base == "SHFL" ? Witness::read : Witness::arithmetic;
}

class Weigher {
 public:
  Weigher(const Function& function, const Executions& executions, std::string_view text, int arch)
      : function_(function),
        executions_(executions),
        lines_(lines_of(text)),
        flow_(flow_of(function)),
        buffers_(buffers_of(function.code, static_cast<int>(executions.accessed.size()), arch)) {
    place_instructions();
    group_weight_.resize(flow_.groups);
    for (std::size_t i = 0; i < flow_.blocks.size(); ++i) {
      if (flow_.blocks[i].slow) continue;
      groups_.resize(flow_.groups);
      groups_[flow_.blocks[i].group].push_back(i);
    }
  }

  Weights run() {
    match_loops();
    share_trips();
    for (std::size_t i = 0; i < flow_.blocks.size(); ++i) {
      if (!flow_.blocks[i].slow) weigh(flow_.blocks[i].group);
    }
    for (const Block& block : flow_.blocks) {
      if (block.slow) continue;
      for (std::size_t i = block.first; i < block.last; ++i)
        result_.code.push_back({function_.code[i], *group_weight_[block.group], buffers_[i]});
    }
    list_slow();
    return std::move(result_);
  }

  /// Calls of routines that are not slow, by name, with how often a warp makes them.
  std::map<std::string, double> calls() const {
    std::map<std::string, double> result;
    for (const Block& block : flow_.blocks) {
      if (!block.slow && !block.callee.empty()) result[block.callee] += *group_weight_[block.group];
    }
    return result;
  }

 private:
  const Region& region(std::size_t i) const { return executions_.regions[i]; }

  bool is_loop(std::size_t i) const { return region(i).kind == Region::Kind::loop && !region(i).unrolled; }

  /// The region of each instruction, by its line. The table of lines of a cubin has no entry where only the
  /// location changes that a line was inlined at, so that an access may have the location of the one before
  /// it: then its buffer tells, where one region has all such accesses of it.
  void place_instructions() {
    for (std::size_t i = 0; i < function_.code.size(); ++i) {
      const Instruction& one = function_.code[i];
      regions_.push_back(executions_.region_of(one.line()));
      if (buffers_[i] < 0) continue;
      const Accessed& accessed = executions_.accessed[static_cast<std::size_t>(buffers_[i])];
      const std::set<std::size_t>& in = stores_global(one) ? accessed.stored_in : accessed.loaded_in;
      if (in.size() == 1) regions_[i] = *in.begin();
    }
  }

  /// The innermost region that has nearly all of the best witnesses among the instructions of the blocks, or
  /// most of the arithmetic where there is nothing else: a line may be that of a neighbour. `inside`: a
  /// region that has them.
  std::size_t vote(const std::vector<std::size_t>& blocks, std::size_t inside) const {
    std::array<std::map<std::size_t, int>, 3> votes;
    std::array<int, 3> total{};
    for (const std::size_t b : blocks) {
      for (std::size_t i = flow_.blocks[b].first; i < flow_.blocks[b].last; ++i) {
        if (function_.code[i].line() < region(0).first_line) continue;
        const auto witness = static_cast<std::size_t>(witness_of(function_.code[i]));
        ++total[witness];
        for (std::size_t at = regions_[i]; at != 0; at = region(at).parent) ++votes[witness][at];
      }
    }
    const std::size_t best = total[2] > 0 ? 2 : total[1] > 0 ? 1 : 0;
    const double needed = best > 0 ? 0.8 * total[best] : 0.5 * total[best] + 0.5;
    // Compilers join conditions that stand beside each other and are the same.
    const auto joined = [&](std::size_t i) {
      int sum = 0;
      for (std::size_t other = 1; other < executions_.regions.size(); ++other) {
        const bool same = region(i).kind == Region::Kind::condition && region(other).kind == region(i).kind &&
                          region(other).parent == region(i).parent && region(other).runs == region(i).runs;
        if (other == i || same) sum += votes[best][other];
      }
      return sum;
    };
    std::size_t found = inside;
    for (std::size_t i = 1; i < executions_.regions.size(); ++i) {
      if (region(i).parent == found && votes[best][i] > 0 && joined(i) >= needed) found = i;
    }
    return found;
  }

  /// Loops of the kernel IR that the text does not ask to unroll, from `region` out to `outer`, innermost
  /// first.
  std::vector<std::size_t> loops_between(std::size_t from, std::size_t outer) const {
    std::vector<std::size_t> result;
    for (std::size_t at = from; at != outer && at != 0; at = region(at).parent) {
      if (is_loop(at)) result.push_back(at);
    }
    return result;
  }

  std::vector<std::size_t> own_blocks(std::size_t loop) const {
    std::vector<std::size_t> result;
    for (const std::size_t block : flow_.loops[loop].blocks) {
      if (flow_.blocks[block].loop == loop) result.push_back(block);
    }
    return result;
  }

  void match_loops() {
    loop_region_.resize(flow_.loops.size());
    loop_weight_.resize(flow_.loops.size());
    for (std::size_t i = 0; i < flow_.loops.size(); ++i) {
      const Loop& loop = flow_.loops[i];
      const std::size_t outer = loop.parent == no_loop ? 0 : loop_region_[loop.parent];
      std::vector<std::size_t> between = loops_between(vote(loop.blocks, outer), outer);
      if (between.empty()) {
        if (waits(loop)) {
          loop_region_[i] = outer;
          continue;
        }
        throw std::runtime_error(
            fmt::format("{}: the loop at /*{:04x}*/ (lines {}) is none of the kernel IR", function_.name,
                        function_.code[flow_.blocks[loop.header].first].address, end_lines(loop)));
      }
      // The jump back is on the line of its `for`, where the outermost was not unrolled away.
      std::size_t matched = between.back();
      for (const std::size_t latch : loop.latches) {
        const int line = function_.code[flow_.blocks[latch].last - 1].line();
        for (const std::size_t candidate : between) {
          if (region(candidate).first_line == line) matched = candidate;
        }
      }
      loop_region_[i] = matched;
    }
  }

  /// A loop that no `for` of the kernel is, on the line of a barrier.
  bool waits(const Loop& loop) {
    for (const std::size_t block : loop.blocks) {
      for (std::size_t i = flow_.blocks[block].first; i < flow_.blocks[block].last; ++i) {
        const int line = function_.code[i].line();
        if (line <= 0 || static_cast<std::size_t>(line) >= lines_.size()) continue;
        if (lines_[static_cast<std::size_t>(line)].find("_barrier(") == std::string_view::npos) return false;
      }
    }
    const auto line = static_cast<std::size_t>(function_.code[flow_.blocks[loop.header].first].line());
    std::string_view content = lines_[line];
    content.remove_prefix(std::min(content.find_first_not_of(' '), content.size()));
    result_.waits.push_back(fmt::format("line {}: {}", line, content.substr(0, content.find(';') + 1)));
    waiting_.push_back(&loop);
    return true;
  }

  std::string end_lines(const Loop& loop) const {
    std::string result;
    for (const std::size_t block : loop.blocks) {
      const Instruction& last = function_.code[flow_.blocks[block].last - 1];
      result += fmt::format("{}{}", result.empty() ? "" : ", ", last.line());
    }
    return result;
  }

  /// What a trip of a loop does once, as the SASS has it. Stores of buffers tell best how often it is
  /// repeated, since they are neither moved nor merged; loads may go in front of the loop.
  enum class Trace : std::uint8_t { stores, loads, shared, others };
  /// By region, and by buffer or location in the text: how often.
  using Traces = std::map<std::tuple<std::size_t, int, std::vector<int>, std::string>, int>;

  std::array<Traces, 4> traces_of(const std::vector<std::size_t>& blocks, std::size_t loop) const {
    std::array<Traces, 4> traces;
    const auto of = [&](Trace kind) -> Traces& { return traces[static_cast<std::size_t>(kind)]; };
    for (const std::size_t b : blocks) {
      for (std::size_t i = flow_.blocks[b].first; i < flow_.blocks[b].last; ++i) {
        const Instruction& one = function_.code[i];
        const std::size_t at = regions_[i];
        if (at == 0 || !executions_.inside(at, loop) || !loops_between(at, loop).empty()) continue;
        const std::string base = one.base();
        if (buffers_[i] >= 0) {
          ++of(stores_global(one) ? Trace::stores : Trace::loads)[{at, buffers_[i], {}, one.opcode}];
        } else {
          ++of(base == "LDS" || base == "STS" ? Trace::shared
                                              : Trace::others)[{at, -1, one.lines, one.opcode}];
        }
      }
    }
    return traces;
  }

  /// How often blocks repeat the body of a loop; 0 where they are no more than a part of it. `all`: the
  /// traces of every block.
  double copies(const std::vector<std::size_t>& blocks, std::size_t loop,
                const std::array<Traces, 4>& all) const {
    const std::array<Traces, 4> traces = traces_of(blocks, loop);
    std::size_t kind = 0;
    while (kind + 1 < all.size() && all[kind].empty()) ++kind;
    if (traces[kind].empty() || 2 * traces[kind].size() < all[kind].size()) return 0;
    std::vector<double> found;
    for (const auto& [key, count] : traces[kind]) {
      double each = 1;  // of unrolled loops inside
      for (std::size_t at = std::get<0>(key); at != loop; at = region(at).parent) {
        if (region(at).kind == Region::Kind::loop && region(at).entries > 0)
          each *= region(at).runs / region(at).entries;
      }
      if (each > 0) found.push_back(count / each);
    }
    if (found.empty()) return 0;
    std::sort(found.begin(), found.end());
    const bool some_may_miss = kind == static_cast<std::size_t>(Trace::loads);
    return std::max(1.0, std::round(some_may_miss ? found.back() : found[(found.size() - 1) / 2]));
  }

  /// Groups other than those that every entry of their loop, or of the kernel, passes.
  bool conditional(std::size_t group) const {
    const Block& first = flow_.blocks[groups_[group].front()];
    const std::size_t header = first.loop == no_loop ? 0 : flow_.loops[first.loop].header;
    return flow_.blocks[header].group != group;
  }

  std::size_t home(std::size_t group) const {  // the region of its loop
    const std::size_t loop = flow_.blocks[groups_[group].front()].loop;
    return loop == no_loop ? 0 : loop_region_[loop];
  }

  /// The loops of the SASS that are one loop of the kernel IR: an unrolled one, what is left of it, and
  /// straight code. The longest takes as many trips as it can, the next of what is left, and so on.
  void share_trips() {
    struct Segment {
      double copies = 0;
      std::optional<std::size_t> loop;  // or straight code that runs once at most
      std::size_t group = 0;
    };
    std::map<std::size_t, std::vector<Segment>> segments;
    std::vector<std::size_t> every_block;
    for (const std::vector<std::size_t>& group : groups_)
      every_block.insert(every_block.end(), group.begin(), group.end());
    std::map<std::size_t, std::array<Traces, 4>> all;
    const auto copies_in = [&](const std::vector<std::size_t>& blocks, std::size_t loop) {
      const auto at = all.find(loop);
      return copies(blocks, loop, at != all.end() ? at->second : all[loop] = traces_of(every_block, loop));
    };
    for (std::size_t i = 0; i < flow_.loops.size(); ++i) {
      if (is_waiting(i)) continue;
      segments[loop_region_[i]].push_back({std::max(1.0, copies_in(own_blocks(i), loop_region_[i])), i});
    }
    for (std::size_t group = 0; group < flow_.groups; ++group) {
      if (!conditional(group)) continue;
      for (const std::size_t loop : loops_between(vote(groups_[group], home(group)), home(group))) {
        const double found = copies_in(groups_[group], loop);
        if (found > 0) segments[loop].push_back({found, {}, group});
      }
    }
    for (auto& [at, list] : segments) {
      std::sort(list.begin(), list.end(), [](const Segment& a, const Segment& b) {
        return a.copies != b.copies ? a.copies > b.copies : a.loop.has_value() > b.loop.has_value();
      });
      std::vector<double> runs(list.size());
      for (const auto& [trips, entries] : region(at).trips) {
        double left = static_cast<double>(trips);
        for (std::size_t i = 0; i < list.size();) {
          // Equal segments stand for copies of a loop around them.
          std::size_t same = i;
          while (same < list.size() && list[same].copies == list[i].copies &&
                 list[same].loop.has_value() == list[i].loop.has_value())
            ++same;
          double times = std::floor(left / list[i].copies);
          if (!list[i].loop) times = std::min(times, 1.0);
          left -= times * list[i].copies;
          for (; i < same; ++i) runs[i] += entries * times;
        }
      }
      for (std::size_t i = 0; i < list.size(); ++i) {
        double equal = 0;
        for (const Segment& other : list)
          equal += other.copies == list[i].copies && other.loop.has_value() == list[i].loop.has_value();
        const double weight = runs[i] / equal;
        if (list[i].loop) {
          loop_weight_[*list[i].loop] = weight;
        } else {
          straight_[list[i].group] = weight;
        }
      }
    }
  }

  bool is_waiting(std::size_t loop) const {
    return std::find(waiting_.begin(), waiting_.end(), &flow_.loops[loop]) != waiting_.end();
  }

  /// The group that decides whether this one runs: of the nearest block above that is not in a deeper loop.
  std::size_t above(std::size_t group) const {
    const std::size_t loop = flow_.blocks[groups_[group].front()].loop;
    for (std::size_t block = flow_.dominator[groups_[group].front()];; block = flow_.dominator[block]) {
      const Block& at = flow_.blocks[block];
      if (flow_.inside(loop, at.loop) && at.group != group) return at.group;
      if (block == 0) throw std::runtime_error(function_.name + ": a block that nothing leads to");
    }
  }

  double weigh(std::size_t group) {
    if (group_weight_[group]) return *group_weight_[group];
    double weight = 0;
    const std::size_t loop = flow_.blocks[groups_[group].front()].loop;
    if (!conditional(group)) {
      weight = loop == no_loop ? 1 : is_waiting(loop) ? weigh(above(group)) : loop_weight_[loop];
      region_of_group_[group] = home(group);
    } else {
      const std::size_t over = above(group);
      weight = weigh(over);
      const std::size_t mine = vote(groups_[group], home(group));
      region_of_group_[group] = mine;
      if (const auto straight = straight_.find(group); straight != straight_.end()) {
        weight = straight->second;
      } else {
        for (std::size_t at = mine; at != 0 && !executions_.inside(region_of_group_[over], at);
             at = region(at).parent) {
          if (region(at).kind == Region::Kind::condition && region(at).entries > 0)
            weight *= region(at).runs / region(at).entries;
        }
      }
    }
    group_weight_[group] = weight;
    return weight;
  }

  void list_slow() {
    for (const Block& block : flow_.blocks) {
      if (!block.slow || block.routine.empty()) continue;  // nothing leads to what has none
      auto at = std::find_if(result_.slow.begin(), result_.slow.end(),
                             [&](const Unweighted& u) { return u.routine == block.routine; });
      if (at == result_.slow.end()) at = result_.slow.insert(at, {.routine = block.routine});
      at->calls += !block.callee.empty();
      at->instructions += static_cast<int>(block.last - block.first);
    }
  }

  const Function& function_;
  const Executions& executions_;
  const std::vector<std::string_view> lines_;
  const Flow flow_;
  const std::vector<int> buffers_;                // of each instruction
  std::vector<std::size_t> regions_;              // of each instruction
  std::vector<std::vector<std::size_t>> groups_;  // their blocks
  std::vector<std::size_t> loop_region_;          // of each loop of the SASS: the loop of the kernel IR
  std::vector<double> loop_weight_;               // how often a warp runs its body
  std::vector<const Loop*> waiting_;
  std::map<std::size_t, double> straight_;  // of groups that are what is left of a loop
  std::map<std::size_t, std::size_t> region_of_group_;
  std::vector<std::optional<double>> group_weight_;
  Weights result_;
};

}  // namespace

Weights weights_of(const std::vector<Function>& functions, const Executions& executions,
                   std::string_view text, int arch) {
  Weigher weigher(functions.front(), executions, text, arch);
  Weights weights = weigher.run();
  for (const auto& [name, times] : weigher.calls()) {
    const auto callee = std::find_if(functions.begin(), functions.end(),
                                     [&, &name = name](const Function& f) { return f.name == name; });
    if (callee == functions.end())
      throw std::runtime_error(
          fmt::format("{} calls {}, which is not in its text", functions.front().name, name));
    const Flow flow = flow_of(*callee);
    if (!flow.loops.empty())
      throw std::runtime_error(fmt::format("{} calls {}, which has a loop", functions.front().name, name));
    for (const Block& block : flow.blocks) {
      for (std::size_t i = block.first; i < block.last && !block.slow; ++i)
        weights.code.push_back({callee->code[i], times});
    }
  }
  return weights;
}

}  // namespace fuse::bench::sass
