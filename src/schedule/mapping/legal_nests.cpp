// SPDX-License-Identifier: Apache-2.0
#include "schedule/mapping/legal_nests.hpp"

#include <algorithm>
#include <utility>

#include "base/divide_up.hpp"
#include "schedule/mapping/schedule.hpp"
#include "schedule/segments/online_softmax.hpp"
#include "schedule/segments/staged.hpp"
#include "schedule/segments/transposed.hpp"
#include "schedule/segments/vector_width.hpp"

namespace fuse::schedule {
namespace {

/// A list of splits under construction, without those of one unit.
class Splits {
 public:
  Splits& add(char dim, Level level, int extent = 0) {
    if (extent != 1) splits_.push_back({dim, level, extent});
    return *this;
  }
  /// Splits the rest of a dim over blocks, or over the turns of so many blocks.
  Splits& rest(char dim, int turns) {
    if (turns == 0) return add(dim, Level::grid);
    return add(dim, Level::serial).add(dim, Level::grid, turns);
  }
  std::vector<Split> take() { return std::move(splits_); }

 private:
  std::vector<Split> splits_;
};

class Enumeration {
 public:
  Enumeration(const ir::Graph& graph, const Phase& phase, const Target& target, const NestNumbers& numbers,
              const std::function<void(const Choices&)>& visit)
      : graph_(graph),
        phase_(phase),
        target_(target),
        numbers_(numbers),
        visit_(visit),
        segment_(segment_of(phase, no_group, "")) {}

  void run() {
    if (info(graph_[dominant(phase_)].op).relation == ir::Relation::reduce) {
      rows();
    } else if (info(graph_[dominant(phase_)].op).relation == ir::Relation::scan) {
      scans();
    } else {
      elements();
      if (transposed(graph_, phase_)) tiles();
    }
  }

 private:
  void elements() { in_blocks('r', 'r', 'r'); }
  void tiles() { in_blocks('t', 'y', 'x'); }

  /// Blocks take the dim `outer`: their warps lie along the dim `down`, and lanes and vectors along `along`.
  void in_blocks(char outer, char down, char along) {
    for (const int turns : numbers_.turns) {
      for (const int warps : numbers_.warps) {
        for (const int vector : numbers_.vectors) {
          Splits splits = Splits().rest(outer, turns);
          if (down != outer) splits.add(down, Level::serial);
          splits.add(down, Level::warp, warps).add(along, Level::lane, 32).add(along, Level::vector, vector);
          consider({.splits = splits.take()});
        }
      }
    }
  }

  void scans() {
    for (const int turns : numbers_.turns) {
      for (const int warps : numbers_.warps) {
        for (const char along : {'c', 'r'}) {
          Splits splits = Splits().rest('r', turns).add('r', Level::warp, warps).add('c', Level::serial);
          consider({.splits = splits.add(along, Level::lane, 32).take()});
        }
      }
    }
  }

  void rows() {
    for (const int turns : numbers_.turns) {
      for (const int warps : numbers_.warps) {
        for (const int parts : numbers_.blocks_per_row) {
          for (const Level level : {Level::grid, Level::cluster}) {
            if (parts == 1 && level == Level::cluster) continue;
            for (const int walking : numbers_.warps) {
              const Splits outer = Splits(Splits().rest('r', turns).add('r', Level::warp, warps))
                                       .add('c', Level::serial)
                                       .add('c', level, parts)
                                       .add('c', Level::warp, walking);
              lanes(outer);
            }
          }
        }
      }
    }
  }

  void lanes(const Splits& outer) {
    for (const int lanes : numbers_.lanes) {
      for (const bool rows_first : {false, true}) {
        const bool both = lanes > 1 && lanes < 32;
        if (!both && rows_first) continue;
        Splits inner = outer;
        if (rows_first) inner.add('r', Level::lane, lanes).add('c', Level::lane, 32 / lanes);
        if (!rows_first) inner.add('c', Level::lane, 32 / lanes).add('r', Level::lane, lanes);
        for (const char dim : {'c', 'r'}) {
          for (const int vector : numbers_.vectors) {
            if (vector == 1 && dim == 'r') continue;
            rewrites(Splits(inner).add(dim, Level::vector, vector).take());
          }
        }
      }
    }
  }

  void rewrites(const std::vector<Split>& splits) {
    Choices choices{.splits = splits};
    caches(choices);
    if (across_rows(graph_, phase_)) {
      choices.across = true;
      caches(choices);
      choices.across = false;
    }
    if (!with_online_softmax(graph_, phase_)) return;
    choices.online_softmax = true;
    caches(choices);
  }

  void caches(Choices choices) {
    const bool again = !cached_values(graph_, staged(graph_, phase_, choices)).empty();
    std::vector<int> accumulators = {1};
    accumulators.insert(accumulators.end(), numbers_.accumulators.begin(), numbers_.accumulators.end());
    for (const int several : accumulators) {
      choices.accumulators = several;
      handoffs(choices);
      if (again) each_cache(choices);
    }
  }

  void each_cache(Choices choices) {
    for (const int registers : numbers_.register_cache) {
      choices.register_cache = registers;
      handoffs(choices);
      choices.packed = true;
      handoffs(choices);
      choices.packed = false;
    }
    choices.register_cache = 0;
    // A block of a cluster fills whole steps of its threads.
    const auto step = static_cast<int>(choices.cluster() > 1 ? step_elements(choices) / choices.cluster()
                                                             : choices.vector());
    for (const int shared : numbers_.shared_cache) {
      choices.shared_cache = divide_up(shared, step) * step;
      handoffs(choices);
    }
  }

  /// Launches combine what blocks leave for each other, or one cooperative kernel does.
  void handoffs(Choices choices) {
    const Phase run = staged(graph_, phase_, choices);
    const bool apart =
        splits_rows(choices) && choices.cluster() == 1;  // nothing is cached from launch to launch
    if (!apart || choices.register_cache == 0) consider(choices);
    if (!has_columns(run) && !apart) return;
    choices.blocks = has_columns(run)
                         ? choices.blocks_per_row()
                         : choices.blocks_per_row() * std::max(1, target_.sms / choices.blocks_per_row());
    consider(choices);
  }

  void consider(Choices choices) {
    if (!misfit(graph_, segment_, {{choices}}, target_).empty()) return;
    visit_(choices);
    if (!numbers_.row_to_row || choices.splits.front() != Split{'r', Level::serial}) return;
    for (const int which : {1, 2, 3}) {
      choices.ahead = (which & 1) != 0;
      choices.invariants = (which & 2) != 0;
      if (misfit(graph_, segment_, {{choices}}, target_).empty()) visit_(choices);
    }
  }

  const ir::Graph& graph_;
  const Phase& phase_;
  const Target& target_;
  const NestNumbers& numbers_;
  const std::function<void(const Choices&)>& visit_;
  const Segment segment_;
};

}  // namespace

NestNumbers few_numbers(const ir::Graph& graph, const Phase& phase, const Target& target) {
  NestNumbers numbers{.warps = {1, 4, 8, 16, 32},
                      .lanes = {1, 8, 32},
                      .vectors = {1},
                      .blocks_per_row = {1, 4, 8, 16},
                      .turns = {0, 2 * target.sms},
                      .register_cache = {16, 32}};
  const int widest = std::max(widest_vector(graph, phase), widest_row_vector(graph, phase));
  if (widest > 1) numbers.vectors.push_back(widest);
  return numbers;
}

void each_legal_nest(const ir::Graph& graph, const Phase& phase, const Target& target,
                     const NestNumbers& numbers, const std::function<void(const Choices&)>& visit) {
  Enumeration(graph, phase, target, numbers, visit).run();
}

std::string structure_of(const Choices& choices) {
  std::vector<Split> splits = choices.splits;
  for (Split& split : splits) split.extent = 0;
  std::string text = to_string(splits);
  if (choices.blocks > 0) text += ", barrier";
  if (choices.register_cache > 0) text += choices.packed ? ", packed" : ", register_cache";
  if (choices.shared_cache > 0) text += ", shared";
  if (choices.accumulators > 1) text += ", accumulators";
  if (choices.ahead) text += ", ahead";
  if (choices.invariants) text += ", invariants";
  if (choices.online_softmax) text += ", online_softmax";
  if (choices.across) text += ", across";
  return text;
}

}  // namespace fuse::schedule
