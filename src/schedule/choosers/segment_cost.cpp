// SPDX-License-Identifier: Apache-2.0
#include "schedule/choosers/segment_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "schedule/choosers/tile_cost.hpp"
#include "schedule/regional/slices.hpp"
#include "schedule/segments/loop_shape.hpp"
#include "schedule/segments/staged.hpp"
#include "target/step_cost.hpp"

namespace fuse::schedule {
namespace {

/// The bytes, limited so that sums of a few of them fit: extents may take all of 63 bits.
std::int64_t bounded(double bytes) { return static_cast<std::int64_t>(std::min(bytes, 0x1p58)); }

double bytes_of(const Dim& elements, DType dtype) {
  return static_cast<double>(elements.hint()) * static_cast<double>(size_of(dtype));
}

std::int64_t bytes_of(const ir::Graph& graph, const std::vector<ir::NodeId>& values) {
  double sum = 0;
  for (const ir::NodeId id : values) sum += bytes_of(product(graph[id].type.dims), graph[id].type.dtype);
  return bounded(sum);
}

/// The bytes of an element of the narrowest value that is read.
std::size_t narrowest_input(const ir::Graph& graph, const Phase& phase) {
  std::size_t bytes = size_of(f64);
  for (const ir::NodeId input : phase.inputs) bytes = std::min(bytes, size_of(graph[input].type.dtype));
  return bytes;
}

/// The factor by which reading again is faster than reading from memory. What blocks read again lies in the
/// L2 cache, where that has room for the inputs of all blocks that run at a time.
double reread_speed(const KernelSchedule& launch, std::int64_t inputs, const Target& target) {
  constexpr double speed_of_second_level = 8;
  const double grid = std::max(1.0, static_cast<double>(launch.grid.hint()));
  if (is_cpu(target)) {  // one thread has just read it
    const bool fits = static_cast<double>(inputs) / grid <= static_cast<double>(2 * target.shared_per_block);
    return fits ? speed_of_second_level : 1;
  }
  const double at_once = std::max(1.0, target.sms * (target.max_threads_per_sm / 2.0 / launch.block_threads));
  const double resident = static_cast<double>(inputs) / grid * std::min(grid, at_once);
  return resident <= static_cast<double>(target.l2_bytes) ? l2_speed : 1;
}

/// Whether threads cache all that passes need again, which are these values.
bool caches_rows(const ir::Graph& graph, const std::vector<CachedValue>& values, const Choices& choices,
                 const Dim& row) {
  const std::int64_t trips = elements_per_thread(row, choices);
  return trips > 0 && cache_registers(graph, values, trips, choices.packed) <= choices.register_cache;
}

/// What is cached of the values that a pass leaves for later ones.
std::vector<CachedValue> cached_by(const ir::Graph& graph, const Phase& phase, const Choices& choices,
                                   const Dim& row) {
  std::vector<CachedValue> values = values_to_cache(graph, phase, choices.packed);
  if (caches_rows(graph, values, choices, row)) return values;
  return choices.shared_cache > 0 ? loaded_values(graph, phase) : std::vector<CachedValue>();
}

/// The number of passes over the rows after which all threads of a row wait for each other.
int meetings(const Phase& phase) {
  std::set<int> passes;
  for (const Stage& stage : phase.stages) {
    if (stage.form == Stage::Form::inner_reduce) passes.insert(stage.pass);
  }
  return static_cast<int>(passes.size());
}

/// The passes that load the rows again: all but the first, for what is not cached.
double rereads(const ir::Graph& graph, const Phase& phase, const Choices& choices) {
  if (phase.stages.size() < 2) return 0;
  std::vector<bool> walked(static_cast<std::size_t>(last_pass(phase.stages) + 1));
  for (const Stage& stage : phase.stages) {
    if (stage.form != Stage::Form::column && walks(stage.form))
      walked[static_cast<std::size_t>(stage.pass)] = true;
  }
  const auto passes = static_cast<int>(std::count(walked.begin(), walked.end(), true));
  const bool loops = info(graph[dominant(phase)].op).relation == ir::Relation::reduce;
  if (passes < 2 || !loops) return 0;
  const std::vector<KernelSchedule> kernels = launches(graph, phase, choices);
  if (caches_rows(graph, values_to_cache(graph, phase, choices.packed), choices, kernels[0].reduced))
    return 0;
  const double row = std::max(1.0, static_cast<double>(kernels[0].reduced.hint()));
  return (passes - 1) * std::max(0.0, 1 - choices.shared_cache * kernels[0].cluster / row);
}

/// Threads that walk down columns access one element at a time. This many of these accesses are in flight in
/// each: an H200 moved sums of columns in f32 and bf16 at 57, 75 and 97% of a copy's rate with 11, 22 and 45
/// KB of them on a multiprocessor, of the 32 KB that its share of the bandwidth brings in a microsecond.
double reached_down_columns(const ir::Graph& graph, const Phase& phase, const KernelSchedule& launch,
                            const Residency& residency, const Target& target) {
  constexpr double accesses = 11, latency = 1e-6;
  std::size_t bytes = narrowest_input(graph, phase);
  if (launch.role == KernelSchedule::Role::combine) bytes = size_of(f32);
  const double threads = std::min<double>(
      target.max_threads_per_sm, static_cast<double>(residency.blocks) * residency.threads / target.sms);
  return threads * accesses * static_cast<double>(bytes) / (target.bandwidth * latency / target.sms);
}

/// Whether the elements that are reduced lie apart in memory, and what lies side by side are the results.
bool walks_down(const ir::Graph& graph, const Phase& phase) {
  return info(graph[dominant(phase)].op).relation == ir::Relation::reduce && !loop_shape(graph, phase).inner;
}

/// The bytes that memory moves for nothing, since it moves whole sectors, where a warp that walks down has
/// fewer neighbours than fill one.
double wasted_bytes(const ir::Graph& graph, const Phase& phase, const Choices& choices, std::int64_t inputs) {
  constexpr double sector = 32;
  if (!walks_down(graph, phase)) return 0;
  std::size_t bytes = narrowest_input(graph, phase);
  const std::vector<Split>& splits = choices.splits;
  const auto touched =
      static_cast<double>(units_of(splits, 'r', Level::lane) * units_of(splits, 'r', Level::vector));
  const auto columns = static_cast<double>(product(loop_shape(graph, phase).kept).hint());
  const auto element = static_cast<double>(bytes);
  const double moved = std::min(sector, columns * element) / (touched * element);
  return std::max(0.0, moved - 1) * static_cast<double>(inputs);
}

bool columns_side_by_side(const Choices& choices) {
  return walks_elements(choices) && units_of(choices.splits, 'r', Level::vector) > 1;
}

/// Threads that take columns side by side walk down them by wide accesses, of which a few are in flight in
/// each: an H200 moved sums of columns in f32 and bf16 at 95 and 86% of a copy's rate and more with two
/// blocks of 256 threads on a multiprocessor, by accesses of 16 bytes.
double reached_side_by_side(const ir::Graph& graph, const Phase& phase, const Choices& choices,
                            const KernelSchedule& launch, const Target& target) {
  constexpr double accesses = 4;
  std::size_t bytes = narrowest_input(graph, phase);
  const double blocks = std::min(std::max(1.0, static_cast<double>(launch.grid.hint()) / target.sms),
                                 static_cast<double>(target.max_threads_per_sm / launch.block_threads));
  const double in_flight =
      blocks * launch.block_threads * accesses * static_cast<double>(bytes) * choices.vector();
  const double busy = std::min(1.0, static_cast<double>(launch.grid.hint()) / target.sms);
  return busy * std::min(1.0, in_flight / bytes_in_flight);
}

/// The seconds in which a thread takes the partials that blocks left, one after another: the first is in the
/// time of the barrier, or of the launch. Columns side by side are as many values per thread, which lie
/// apart.
double seconds_of_taking(const Choices& choices, const KernelSchedule& combining, const Target& target) {
  if (is_cpu(target)) return 0;  // it is in the traffic of the launch
  constexpr double of_value = 0.15e-6, of_values_apart = 0.5e-6;
  const auto takers = [](const std::vector<Split>& splits, char dim, bool by_warps) {
    return units_of(splits, dim, Level::lane) * (by_warps ? units_of(splits, dim, Level::warp) : 1);
  };
  const std::int64_t parts = choices.blocks_per_row() - 1;
  if (columns_side_by_side(choices))
    return of_values_apart *
           static_cast<double>(parts / takers(choices.splits, 'c', warps_take_partials(choices)));
  return of_value * static_cast<double>(parts / takers(combining.nest.splits, 'p', true));
}

/// How well a launch keeps memory busy.
struct Flow {
  double share = 1;  ///< share of the bandwidth that its accesses reach
  double drain = 0;  ///< seconds in which only its last blocks run
};

/// A block that caches its part of a row moves nothing for a while: until the first loads arrive, between the
/// passes, and where it waits for its cluster, which takes longer the more blocks it has. So others have to
/// keep memory busy. An H200 reached these shares of a copy's rate. For rows of bf16, with 64 KB of them on a
/// multiprocessor, it was 89% with one block per row, 86, 83, 64, and 58% with clusters of 2, 4, 8, and 16
/// blocks, and 75% with 8 blocks and one wait instead of two. For rows of f32, twice the bytes, it was 97%
/// with one block, 95 and 91% with 8 and 16.
Flow flow_of_cached_rows(const Phase& phase, const Choices& choices, const KernelSchedule& launch,
                         std::int64_t moved, const Target& target) {
  constexpr int registers = 64;
  constexpr double idle = 2.5e-6, start_of_cluster = 0.8e-6, wait_for_16 = 1.4e-6;
  const int slots = std::max(
      1, blocks_per_sm({.blocks = 1, .threads = launch.block_threads, .registers = registers}, target));
  const double grid = std::max(1.0, static_cast<double>(launch.grid.hint()));
  const double busy = static_cast<double>(moved) / grid / (target.bandwidth / target.sms);
  const double wait =
      target.cluster_seconds + wait_for_16 * choices.blocks_per_row() * choices.blocks_per_row() / 256;
  const double waits = choices.cluster() > 1 ? start_of_cluster + meetings(phase) * wait : 0;
  const double waves = grid / (static_cast<double>(slots) * target.sms);
  return {.share = std::max(0.01, slots * busy / (busy + idle + waits)),
          .drain = waves > 1 ? (busy + waits) * (1 - 1 / waves) : 0};
}

/// Whether neighbouring lanes have a value each, whose elements lie apart in memory.
bool lanes_walk_down(const ir::Graph& graph, const Phase& phase, const KernelSchedule& launch) {
  if (launch.nest.dims[0].name == 'c') return true;  // this launch combines the partials of columns
  return walks_down(graph, phase) && fastest_lane(launch.nest.splits) == 'r';
}

Flow flow_of(const ir::Graph& graph, const Phase& phase, const Choices& choices, const KernelSchedule& launch,
             const Residency& residency, const Target& target) {
  if (is_cpu(target)) return {};  // a block is one thread, which waits for nobody
  if (lanes_walk_down(graph, phase, launch))
    return {.share = reached_down_columns(graph, phase, launch, residency, target)};
  const bool by_warps =
      launch.role == KernelSchedule::Role::whole && units_of(choices.splits, 'c', Level::warp) > 1;
  const bool by_blocks = by_warps || choices.cluster() > 1;
  if (!by_blocks || has_columns(phase) || choices.register_cache == 0 ||
      cached_by(graph, phase, choices, launch.reduced).empty())
    return {};
  return flow_of_cached_rows(phase, choices, launch, moved_bytes(graph, phase), target);
}

/// The arithmetic of the elements that are walked several times.
double operations_of(const ir::Graph& graph, const Phase& phase, const Choices& choices,
                     const KernelSchedule& launch) {
  if (last_pass(phase.stages) == 0) return 0;
  const std::vector<CachedValue> cached = cached_by(graph, phase, choices, launch.reduced);
  return 2.0 * instructions(graph, phase, cached) * static_cast<double>(launch.results.hint()) *
         static_cast<double>(launch.reduced.hint());
}

/// The seconds of one phase; blocks that split rows in one kernel wait for each other after each pass.
double phase_seconds(const ir::Graph& graph, const Phase& cut, const Choices& choices,
                     std::int64_t most_blocks, const Target& target) {
  const Phase phase = staged(graph, cut, choices);
  const std::int64_t scratch = scratch_bytes(graph, phase, choices);
  const std::int64_t inputs = bytes_of(graph, phase.inputs);
  const std::int64_t moved = moved_bytes(graph, phase) + bounded(wasted_bytes(graph, phase, choices, inputs));
  const std::vector<KernelSchedule> kernels = launches(graph, phase, choices);
  const bool cooperative = kernels.back().role == KernelSchedule::Role::cooperative;
  const auto again = bounded(rereads(graph, phase, choices) * static_cast<double>(inputs) /
                             reread_speed(kernels[0], inputs, target));
  if (columns_side_by_side(choices)) {
    const double share = reached_side_by_side(graph, phase, choices, kernels[0], target);
    const double handoff = cooperative ? target.barrier_seconds : target.launch_seconds;
    const bool hands_off = kernels.size() > 1;  // blocks of a cluster take columns from each other
    const double taking = hands_off ? handoff + seconds_of_taking(choices, kernels[1], target) : 0;
    return memory_cost(moved + 2 * scratch, share, target).seconds + taking;
  }
  if (cooperative && splits_rows(choices)) {
    const std::int64_t at_once = choices.blocks / choices.blocks_per_row();
    const double groups =
        std::ceil(static_cast<double>(kernels[0].results.hint()) / static_cast<double>(at_once));
    const Residency residency{.blocks = choices.blocks, .threads = choices.block_threads()};
    const double waits = groups * static_cast<double>(kernels.size() - 2);
    return kernel_cost(moved + again + 2 * scratch, residency, target).seconds +
           waits * target.barrier_seconds;
  }
  double sum = 0;
  for (const KernelSchedule& launch : kernels) {
    if (launch.role == KernelSchedule::Role::cooperative) continue;
    // Where blocks take rows in turns, no more blocks than turns have work.
    const Residency residency{.blocks = std::min({launch.grid.hint(), launch.tiles.hint(), most_blocks}),
                              .threads = launch.block_threads};
    const bool combines = launch.role == KernelSchedule::Role::combine;
    std::int64_t bytes = scratch;
    if (splits_stages(phase, choices) && choices.cluster() == 1) {
      bytes += combines ? moved : inputs;
    } else if (!combines) {
      bytes += moved + again;
    }
    const Flow flow = flow_of(graph, phase, choices, launch, residency, target);
    const double operations = combines ? 0 : operations_of(graph, phase, choices, launch);
    sum += kernel_cost(bytes, residency, target, flow.share, operations).seconds + flow.drain;
  }
  if (has_columns(phase) && kernels.size() > 1) sum += seconds_of_taking(choices, kernels[1], target);
  if (choices.cluster() > 1) sum += meetings(phase) * target.cluster_seconds;
  // Between two launches of one kernel, its blocks wait for each other.
  if (cooperative) sum += target.barrier_seconds - target.launch_seconds;
  return sum;
}

}  // namespace

std::int64_t moved_bytes(const ir::Graph& graph, const Phase& phase) {
  // An update in place writes what it updates alone.
  if (phase.in_place) return bytes_of(graph, phase.inputs) + bytes_of(graph, {graph[phase.root].operands[1]});
  return bytes_of(graph, phase.inputs) + bytes_of(graph, phase.results);
}

std::int64_t scratch_bytes(const ir::Graph& graph, const Phase& phase, const Choices& choices) {
  double sum = 0;
  for (const ScratchArray& array : scratch_of(graph, phase, choices))
    sum += bytes_of(array.elements, array.dtype);
  return bounded(sum);
}

double phase_seconds(const ir::Graph& graph, const Phase& phase, const Choices& choices,
                     const Target& target) {
  return phase_seconds(graph, phase, choices, std::numeric_limits<std::int64_t>::max(), target);
}

namespace {

/// The least that blocks of rows take, however little they move: each waits for its loads, and where its
/// threads meet, and only so many run at a time. Not measured. 0: nothing is known.
double seconds_of_waves(const ir::Graph& graph, const Segment& segment, const KernelChoices& choices,
                        const Target& target) {
  constexpr int registers = 64;
  constexpr double idle = 1.5e-6, meeting = 0.5e-6;
  if (is_cpu(target)) return 0;
  double sum = 0;
  for (std::size_t i = 0; i < segment.phases.size(); ++i) {
    const Choices& own = choices.phases[i];
    const Phase phase = staged(graph, segment.phases[i], own);
    if (info(graph[dominant(phase)].op).relation != ir::Relation::reduce || has_columns(phase)) continue;
    const bool by_warps = units_of(own.splits, 'c', Level::warp) > 1;
    for (const KernelSchedule& launch : launches(graph, phase, own)) {
      if (launch.role != KernelSchedule::Role::whole || lanes_walk_down(graph, phase, launch)) continue;
      const int slots = std::max(
          1, blocks_per_sm({.blocks = 1, .threads = launch.block_threads, .registers = registers}, target));
      const double waves =
          static_cast<double>(launch.grid.hint()) / (static_cast<double>(slots) * target.sms);
      sum += waves * (idle + (by_warps ? meetings(phase) * meeting : 0));
    }
  }
  return sum == 0 ? 0 : target.launch_seconds + sum;
}

/// Whether threads move whole vectors at the hints.
bool moves_vectors(const KernelSchedule& launch) {
  return std::all_of(launch.tested.begin(), launch.tested.end(),
                     [&](const Dim& dim) { return dim.hint() % launch.vector == 0; });
}

/// The instructions of all threads of the first launch, which walks what the phase reads. Threads without an
/// element walk along.
double instructions_of(const ir::Graph& graph, const Phase& phase, const Choices& choices) {
  constexpr double of_step = 4;  // the loop, an index and a comparison
  // The SASS of a layer norm's gradients for an H200 issues about 50 instructions per reduction and thread,
  // where several warps reduce. Half as many by the lanes of one warp are an estimate.
  constexpr double by_lanes = 25, by_warps = 50;
  const KernelSchedule launch = launches(graph, phase, choices).front();
  double elements = 1;
  for (const Level level :
       {Level::grid, Level::cluster, Level::warp, Level::lane, Level::serial, Level::vector})
    elements *= static_cast<double>(units(launch.nest, level).hint());
  const double vector = choices.vector();
  const auto values = static_cast<double>(phase.inputs.size() + phase.results.size());
  const double of_element = instructions(graph, phase, cached_by(graph, phase, choices, launch.reduced)) +
                            (of_step + values) / (moves_vectors(launch) ? vector : 1);
  const auto reductions =
      static_cast<double>(std::count_if(phase.stages.begin(), phase.stages.end(), [](const Stage& stage) {
        return stage.form == Stage::Form::inner_reduce;
      }));
  const auto blocks = static_cast<double>(units_of(choices.splits, 'c', Level::grid) *
                                          units_of(choices.splits, 'c', Level::cluster));
  const double threads = static_cast<double>(choices.block_threads()) * blocks / rows_at_once(choices);
  return elements * of_element + static_cast<double>(launch.results.hint()) * threads * reductions *
                                     (threads > 32 ? by_warps : by_lanes);
}

/// Those of all phases; none for halo tiles.
double seconds_of_issue(const ir::Graph& graph, const Segment& segment, const KernelChoices& choices,
                        const Target& target) {
  if (is_cpu(target) || !choices.tile.empty()) return 0;
  double instructions = 0;
  for (std::size_t i = 0; i < segment.phases.size(); ++i) {
    const Choices& own = choices.phases[i];
    instructions += instructions_of(graph, staged(graph, segment.phases[i], own), own);
  }
  return 2 * instructions / target.flops_f32;
}

/// The ranges of blocks run at a time, as far as there are slots. So no phase takes less than on a device
/// that has room only for what the largest leaves, and all together no less than memory takes for what they
/// move.
double seconds_of_horizontal(const ir::Graph& graph, const Segment& segment, const KernelChoices& choices,
                             const Target& target) {
  constexpr int registers = 64;
  const int slots = blocks_per_sm({.blocks = 1,
                                   .threads = choices.block_threads(),
                                   .registers = registers,
                                   .shared_bytes = shared_bytes(graph, segment, choices)},
                                  target);
  const std::int64_t most_blocks = std::int64_t{std::max(1, slots)} * target.sms;
  double end = target.launch_seconds, moved = 0, before = 0;  // bytes, and blocks of the ranges before
  for (std::size_t i = 0; i < segment.phases.size(); ++i) {
    const Phase& phase = segment.phases[i];
    const Choices& own = choices.phases[i];
    // A range begins when the ranges before it leave slots.
    const double late = before > 0 ? std::max(0.0, 1 - static_cast<double>(most_blocks) / before) : 0;
    const double start = (end - target.launch_seconds) * late;
    end = std::max(end, start + phase_seconds(graph, phase, own, most_blocks, target));
    moved += static_cast<double>(moved_bytes(graph, phase));
    before += static_cast<double>(launches(graph, staged(graph, phase, own), own)[0].grid.hint());
  }
  return std::max(end, memory_cost(bounded(moved), 1, target).seconds);
}

}  // namespace

double seconds_of(const BlockWork& work, const Residency& residency, const Target& target) {
  const double blocks = static_cast<double>(residency.blocks),
               at_once = std::max(1, blocks_per_sm(residency, target)),
               waves = blocks / (at_once * target.sms);
  const double own = work.moved / blocks / (target.bandwidth / target.sms);  // of a block alone
  const double of_wave = std::max(at_once * own, work.idle + work.stalls + own);
  const double memory = work.stalls + at_once * own + std::max(0.0, waves - 1) * of_wave;
  const double arithmetic =
      kernel_cost(0, residency, target, 1, work.operations).seconds - target.launch_seconds;
  return target.launch_seconds + std::max(memory, arithmetic);
}

double regional_seconds(const ir::Graph& graph, const Segment& segment, const KernelChoices& choices,
                        const Slices& slices, std::int64_t shared, const Target& target) {
  constexpr int registers = 64;
  constexpr double meeting = 0.5e-6, of_turn_with_barrier = 0.2e-6;
  const Residency residency{.blocks = std::max<std::int64_t>(1, slices.count.hint() / choices.slices),
                            .threads = choices.block_threads(),
                            .registers = registers,
                            .shared_bytes = shared};
  BlockWork work{.moved = static_cast<double>(bytes_of(graph, segment.inputs)) +
                          static_cast<double>(bytes_of(graph, segment.results))};
  for (std::size_t i = 0; i < segment.phases.size(); ++i) {
    const Choices& own = choices.phases[i];
    const Phase phase = staged(graph, segment.phases[i], own);
    for (const ir::NodeId input : phase.inputs) {
      if (std::binary_search(segment.results.begin(), segment.results.end(), input))
        work.moved += static_cast<double>(bytes_of(graph, {input})) / l2_speed;
    }
    const KernelSchedule launch = launches(graph, phase, own)[0];
    const double results = static_cast<double>(slices.results[i].hint()) * choices.slices;
    work.idle += meeting * meetings(phase);
    const bool meets = units_of(own.splits, 'c', Level::warp) > 1;
    work.stalls += (meets ? of_turn_with_barrier : BlockWork::turn) *
                   std::max(0.0, std::ceil(results / rows_at_once(own)) - 1);
    work.stalls += i > 0 ? BlockWork::wait : 0;
    const std::int64_t inputs = bytes_of(graph, phase.inputs);
    work.moved += rereads(graph, phase, own) * static_cast<double>(inputs) / l2_speed +
                  wasted_bytes(graph, phase, own, inputs);
    work.operations += operations_of(graph, phase, own, launch);
  }
  return seconds_of(work, residency, target);
}

double segment_seconds(const ir::Graph& graph, const Segment& segment, const KernelChoices& choices,
                       const Target& target) {
  if (segment.horizontal()) return seconds_of_horizontal(graph, segment, choices, target);
  if (!choices.tile.empty())
    return TileCost(graph, segment, halo_tiles(graph, segment.phases, segment.results).value(), target)
        .seconds(choices.tile, choices.block_threads());
  if (segment.regional())
    return regional_seconds(graph, segment, choices, slices_of(graph, segment.phases).value(),
                            shared_bytes(graph, segment, choices), target);
  if (segment.phases.size() == 1) return phase_seconds(graph, segment.phases[0], choices.phases[0], target);
  double sum = 0;
  for (std::size_t i = 0; i < segment.phases.size(); ++i) {
    sum += phase_seconds(graph, segment.phases[i], choices.phases[i], choices.blocks, target);
    if (i > 0) sum += target.barrier_seconds - target.launch_seconds;
  }
  return sum;
}

double seconds_of_any(const ir::Graph& graph, const Segment& segment, const KernelChoices& choices,
                      const Target& target) {
  constexpr double hidden = 0.25;
  const double issue = seconds_of_issue(graph, segment, choices, target);
  return std::max({segment_seconds(graph, segment, choices, target),
                   seconds_of_waves(graph, segment, choices, target), target.launch_seconds + issue}) +
         hidden * issue;
}

}  // namespace fuse::schedule
