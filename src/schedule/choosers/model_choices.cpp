// SPDX-License-Identifier: Apache-2.0
#include "schedule/choosers/model_choices.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "base/divide_up.hpp"
#include "schedule/choosers/regional_choices.hpp"
#include "schedule/choosers/segment_cost.hpp"
#include "schedule/mapping/costly_columns.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "schedule/segments/loop_shape.hpp"
#include "schedule/segments/online_softmax.hpp"
#include "schedule/segments/staged.hpp"
#include "schedule/segments/transposed.hpp"
#include "schedule/segments/vector_width.hpp"
#include "target/residency.hpp"
#include "target/step_cost.hpp"

namespace fuse::schedule {

Choices with_threads(Choices choices, int threads) {
  const std::int64_t warps = threads / 32, of_row = units_of(choices.splits, 'c', Level::warp),
                     rows = units_of(choices.splits, 'r', Level::warp),
                     parts = units_of(choices.splits, 'c', Level::grid);
  if (walks_tiles(choices)) return choices.set('y', Level::warp, warps);
  if (!walks_elements(choices) || (rows > 1 && warps % of_row == 0))
    return choices.set('r', Level::warp, warps / of_row);
  if (parts > 1) choices.set('c', Level::grid, std::max<std::int64_t>(2, divide_up(parts * of_row, warps)));
  return choices.set('r', Level::warp, 1).set('c', Level::warp, warps);
}

namespace {

constexpr int lanes_limit = 1024;       // elements of a row that a warp walks in 32 steps
constexpr int block_limit = 16384;      // and a block of 256 threads in 64 steps
constexpr int fewest_lanes = 2;         // lanes that share a row
constexpr int lanes_of_line = 8;        // their accesses of 16 bytes are a cache line
constexpr int sector_bytes = 32;        // bytes that memory moves at a time
constexpr int usual_trips = 32;         // elements per lane of few: its share of combining is small
constexpr double gain_of_parts = 0.97;  // for less gain, no blocks share a row

/// The widest vector that leaves threads for half of the device, and as many as share a row.
int vector_of(const ir::Graph& graph, const Phase& phase, std::int64_t rows, std::int64_t row,
              const Target& target) {
  const double wanted = target.sms * target.max_threads_per_sm / 2.0;
  const double elements = static_cast<double>(rows) * static_cast<double>(row);
  const std::int64_t side_by_side = info(graph[dominant(phase)].op).relation == ir::Relation::reduce
                                        ? row / fewest_lanes
                                        : std::numeric_limits<std::int64_t>::max();
  if (elements < wanted) return 1;
  int vector = usual_vector(graph, phase);
  while (vector > 2 && elements / vector < wanted) vector /= 2;
  while (vector > 1 && vector > side_by_side) vector /= 2;
  return vector;
}

/// The blocks that share the rows of a phase with outer reductions: as many as run at a time and have rows,
/// unless what they leave for the combining launch is much compared to what the phase moves. `registers`: per
/// thread.
int blocks_for_columns(const ir::Graph& graph, const Phase& phase, Choices choices, const LoopShape& shape,
                       int registers, const Target& target) {
  constexpr int much = 16;
  choices.blocks = 1;
  choices.set('r', Level::grid, 1);
  const int most_an_sm = std::max(1, blocks_per_sm({.blocks = 1,
                                                    .threads = choices.block_threads(),
                                                    .registers = registers,
                                                    .shared_bytes = shared_bytes(graph, phase, choices)},
                                                   target));
  const int at_once = rows_at_once(choices);
  const std::int64_t busy = divide_up(product(shape.kept).hint(), at_once);
  int parts = 1;
  for (int a_sm = 1; a_sm <= most_an_sm; ++a_sm) {
    choices.set('r', Level::grid, std::clamp<std::int64_t>(busy, 1, std::int64_t{a_sm} * target.sms));
    const bool little = scratch_bytes(graph, phase, choices) * much <= moved_bytes(graph, phase);
    if (a_sm == 1 || little) parts = choices.blocks_per_row();
  }
  return parts;
}

/// The bytes of an element of the narrowest value that is read, or reduced.
int narrowest(const ir::Graph& graph, const Phase& phase) {
  std::size_t bytes = size_of(graph[graph[dominant(phase)].operands[0]].type.dtype);
  for (const ir::NodeId input : phase.inputs) bytes = std::min(bytes, size_of(graph[input].type.dtype));
  return static_cast<int>(bytes);
}

/// Fewer of a column's neighbours would leave a part of a sector. Values of 8 bytes, which take two registers
/// and two exchanges each, stay as they are.
int fewest_lanes_of(const ir::Graph& graph, const Phase& phase) {
  if (size_of(graph[dominant(phase)].type.dtype) > 4) return tile_columns;
  return std::clamp(sector_bytes / narrowest(graph, phase), fewest_tile_lanes, tile_columns);
}

/// The block sizes for blocks that share rows: powers of two, and what lies between them.
std::vector<int> block_sizes(const Target& target) {
  std::vector<int> sizes;
  for (int threads = 64; threads <= target.max_threads_per_block; threads *= 2) {
    sizes.push_back(threads);
    if (threads * 3 / 2 <= target.max_threads_per_block) sizes.push_back(threads * 3 / 2);
  }
  return sizes;
}

/// Whether neighbouring lanes have one result each, and walk down columns.
bool lanes_are_columns(const Choices& choices) { return fastest_lane(choices.splits) == 'r'; }

/// The choices with the largest blocks of half as many threads, a quarter and so on, whose shared memory
/// suffices.
Choices with_shared_memory(const ir::Graph& graph, const Phase& phase, Choices choices,
                           const Target& target) {
  while (shared_bytes(graph, phase, choices) > target.shared_per_block && choices.block_threads() > 32)
    choices = with_threads(std::move(choices), std::max(32, choices.block_threads() / 64 * 32));
  return choices;
}

/// Choices where each thread that walks a row has registers for what it caches of the row.
class RegisterCaching {
 public:
  RegisterCaching(const ir::Graph& graph, const Phase& phase, const Target& target, bool packed = false)
      : graph_(graph),
        phase_(phase),
        target_(target),
        packed_(packed),
        shape_(loop_shape(graph, phase)),
        values_(values_to_cache(graph, phase, packed)),
        wanted_(std::int64_t{target.sms} * target.max_threads_per_sm / 2) {}

  /// So many threads per row that each can cache its share of it, and that few rows fill half of the device.
  Choices rows(const Choices& alone) const {
    Choices choices = alone;
    choices.register_cache = most_cached;
    choices.packed = packed_;
    choices.set('c', Level::vector, vector_that_fits(alone.vector()));
    if (lanes_are_columns(alone)) {
      while (!fits(choices) && choices.block_threads() < target_.max_threads_per_block)
        choices.set('c', Level::warp, choices.block_threads() / 16);
      return barely_fits(choices) ? choices : alone;
    }
    const std::int64_t rows = product(shape_.kept).hint();
    const auto fills = [&](std::int64_t threads) { return rows >= wanted_ / threads || trips(choices) <= 4; };
    const bool in_warps = units_of(alone.splits, 'c', Level::warp) == 1;
    if (in_warps) {
      for (std::int64_t lanes = units_of(alone.splits, 'c', Level::lane); lanes <= 32; lanes *= 2) {
        choices.set('r', Level::lane, 32 / lanes).set('c', Level::lane, lanes);
        if (fits(choices) && fills(lanes)) return choices;
      }
    }
    const Choices by_warp = choices;
    const int vector = choices.vector();
    for (const int threads : block_sizes(target_)) {
      choices.splits = nest_of_blocks(threads, vector);
      if (fits(choices) && fills(threads)) return without_idle(choices);
    }
    if (packed_) return alone;  // what passes compute again also takes registers
    choices.splits = nest_of_blocks(
        static_cast<int>(std::bit_floor(static_cast<unsigned>(target_.max_threads_per_block))), vector);
    choices = without_idle(choices);
    if (barely_fits(choices)) return choices;
    return in_warps && barely_fits(by_warp) ? by_warp : alone;
  }

  /// Rows of which several blocks cache a part each and wait for each other after each pass: where one block
  /// caches too little, or there are too few rows to fill the device. The parts are those that fill it; the
  /// loops of `rows` stay where no parts fit.
  Choices parts(const Choices& rows) const {
    constexpr int fewest_trips = 4;
    const std::int64_t row = product(shape_.reduced).hint(), count = product(shape_.kept).hint();
    Choices best = rows;
    double least = gain_of_parts * phase_seconds(graph_, phase_, rows, target_);
    // A quarter of a multiprocessor's threads: with fewer registers than 128, threads that cache would spill.
    const int resident = target_.max_threads_per_sm / 4;
    const int widest = std::min(resident, target_.max_threads_per_block);
    for (int threads = static_cast<int>(std::bit_floor(static_cast<unsigned>(widest))); threads >= 64;
         threads /= 2) {
      const int vector = rows.vector(), slots = target_.sms * (resident / threads);
      const std::int64_t useful = row / (std::int64_t{std::max(fewest_trips, vector)} * threads);
      for (int parts = 2; parts <= std::min<std::int64_t>(slots, useful); parts *= 2) {
        Choices choices{.register_cache = most_cached, .packed = packed_};
        choices.splits = nest_of_shared_rows(threads, parts, vector, Level::cluster);
        consider_cluster(choices, best, least);
        choices.splits = nest_of_shared_rows(threads, parts, vector);
        const std::int64_t at_once = std::min<std::int64_t>(slots / parts, count);
        choices.blocks = static_cast<int>(at_once) * parts;
        // Where blocks take rows in turns, what is the same in each row takes registers too.
        const bool turns = product(shape_.kept).max() > at_once;
        if (!fits(choices) || (turns && registers(choices) > most_cached / 2)) continue;
        const double seconds = phase_seconds(graph_, phase_, choices, target_);
        if (seconds < least) best = choices, least = seconds;
      }
    }
    return best;
  }

  /// There are as many clusters as rows: those that wait leave the device to others.
  void consider_cluster(const Choices& choices, Choices& best, double& least) const {
    if (choices.cluster() > target_.max_cluster || !fits(choices)) return;
    const double seconds = phase_seconds(graph_, phase_, choices, target_);
    if (seconds < least) best = choices, least = seconds;
  }

  /// The rows are shared by blocks that stay, with the fewest threads that have room for a row's share and
  /// its columns, and enough of them to fill half of the device.
  Choices columns(int vector) const {
    const int side_by_side = vector_that_fits(vector);
    Choices choices{.register_cache = values_.empty() ? 0 : most_cached};
    choices.splits =
        in_turns(nest_of_lanes(std::min(256, target_.max_threads_per_block), 32, side_by_side), 1);
    const bool by_warp = columns_fit_in(choices);
    int registers = fits(choices) || !by_warp ? 64 : 80;  // per thread: so many are enough for what fits
    choices.set('r', Level::grid, blocks_for_columns(graph_, phase_, choices, shape_, registers, target_));
    if (by_warp) return choices;
    Choices best = choices;
    const std::int64_t groups = product(shape_.reduced).hint() / side_by_side;
    for (int threads = 32; threads <= target_.max_threads_per_block; threads *= 2) {
      choices.splits = in_turns(nest_of_blocks(threads, side_by_side), 1);
      if (!columns_fit_in(choices)) {
        if (2 * threads <= target_.max_threads_per_block) continue;
        choices = with_room_left(without_idle(choices));
        registers = registers_alone(choices);
      }
      choices.set('r', Level::grid, blocks_for_columns(graph_, phase_, choices, shape_, registers, target_));
      best = choices;
      if (std::int64_t{choices.blocks_per_row()} * threads >= wanted_ || threads >= groups) break;
    }
    return best;
  }

 private:
  std::int64_t trips(const Choices& choices) const {
    return elements_per_thread(product(shape_.reduced), choices);
  }
  /// The registers per thread for what it caches and for its columns.
  std::int64_t registers(const Choices& choices) const {
    const std::int64_t elements = trips(choices);
    const std::int64_t all =
        cache_registers(graph_, values_, elements, packed_) + elements * column_words(graph_, phase_.stages);
    return packed_ ? all : std::max(elements, all);
  }
  /// The choices with fewer threads that walk the row in as many steps: no more than have work in the last
  /// one.
  Choices without_idle(Choices choices) const {
    const std::int64_t groups = (product(shape_.reduced).hint() + choices.vector() - 1) / choices.vector();
    if (groups == 0) return choices;
    const std::int64_t steps = divide_up(groups, choices.block_threads());
    const std::int64_t threads = divide_up(groups, steps);
    return choices.set('c', Level::warp, (threads + 31) / 32);
  }
  /// Threads that keep columns cache only as much of a row as these leave room for.
  Choices with_room_left(Choices choices) const {
    const std::int64_t left = room(choices) - trips(choices) * column_words(graph_, phase_.stages);
    choices.register_cache =
        values_.empty() ? 0 : static_cast<int>(std::clamp<std::int64_t>(left, 0, most_cached));
    return choices;
  }
  /// Threads walk whole vectors of a row: in a short row, narrower vectors are less to cache.
  int vector_that_fits(int vector) const {
    for (int narrower = vector; narrower > 0; narrower /= 2) {
      if (fits({.splits = nest_of_blocks(target_.max_threads_per_block, narrower)})) return narrower;
    }
    return vector;
  }
  bool fits(const Choices& choices) const {
    // With 64 registers per thread, two blocks of 512 threads fit on a multiprocessor.
    const int most = choices.block_threads() > 512 ? most_cached / 2 : most_cached;
    return trips(choices) > 0 && registers(choices) <= most;
  }
  /// Whether the columns fit: a row needs little besides them, where it is whole and no value takes two
  /// registers.
  bool columns_fit_in(const Choices& choices) const {
    const bool many =
        choices.block_threads() <= 512 && trips(choices) > 0 && is_whole(choices) && is_narrow();
    return fits(choices) || (many && registers(choices) <= most_cached * 5 / 4);
  }
  /// Whether all threads have equally much of a row.
  bool is_whole(const Choices& choices) const {
    return (product(shape_.reduced) % step_elements(choices)).is(0);
  }
  /// Whether values have at most four bytes, and so take one register each.
  bool is_narrow() const { return size_of(graph_[dominant(phase_)].type.dtype) <= 4; }
  /// The registers that a thread needs besides what it caches: for indices, sums and what a step loads. It
  /// needs more of them where some threads have no last step, since its condition keeps the compiler from
  /// sharing them.
  int others(const Choices& choices) const { return is_whole(choices) ? 16 : is_narrow() ? 40 : 48; }
  /// The registers per thread of a block that has a multiprocessor to itself.
  int registers_alone(const Choices& choices) const {
    const Residency one{.blocks = 1, .threads = choices.block_threads()};
    return static_cast<int>(share_of_block(one, target_).registers / target_.warp_size);
  }
  /// How many of these are left for what it caches.
  int room(const Choices& choices) const { return registers_alone(choices) - others(choices); }
  bool barely_fits(const Choices& choices) const {
    const int most = std::min(most_cached, room(choices));
    return trips(choices) > 0 && registers(choices) <= most;
  }

  const ir::Graph& graph_;
  const Phase& phase_;
  const Target& target_;
  const bool packed_;
  const LoopShape shape_;
  const std::vector<CachedValue> values_;
  const std::int64_t wanted_;  // threads that fill half of the device
};

/// Several blocks per row, where there are fewer rows than fill the device and a split costs clearly less.
Choices shared_rows(const ir::Graph& graph, const Phase& phase, const Choices& whole, int vector,
                    const Target& target) {
  constexpr std::int64_t fewest_trips = 8, most_parts = 16;
  Choices best = whole;
  double least = gain_of_parts * phase_seconds(graph, phase, whole, target);
  const std::int64_t useful =
      product(loop_shape(graph, phase).reduced).hint() / (fewest_trips * whole.block_threads());
  for (std::int64_t parts = 2; parts <= std::min(useful, most_parts); parts *= 2) {
    Choices choices = {.splits = nest_of_shared_rows(whole.block_threads(), static_cast<int>(parts), vector)};
    const double seconds = phase_seconds(graph, phase, choices, target);
    if (seconds < least) best = std::move(choices), least = seconds;
  }
  return best;
}

Choices choices_alone(const ir::Graph& graph, const Phase& phase, const Target& target) {
  const ir::Node& root = graph[dominant(phase)];
  const int block = std::min(256, target.max_threads_per_block);
  const ir::Relation relation = info(root.op).relation;
  if (relation == ir::Relation::scan) {
    const LoopShape scanned = loop_shape(graph, root);
    return {.splits = scanned.inner ? nest_of_scans_by_warps(std::min(128, block))
                                    : nest_of_scans_by_threads(block)};
  }
  if (relation != ir::Relation::reduce) {
    const auto values = transposed(graph, phase);
    int side_by_side = values ? tile_vector(graph, phase, *values) : 0;
    while (side_by_side > 0 && tile_bytes(graph, *values, side_by_side) > target.shared_per_block)
      side_by_side /= 2;
    if (side_by_side > 0) return {.splits = nest_of_tiles(block, side_by_side)};
    const int vector = vector_of(graph, phase, 1, product(root.type.dims).hint(), target);
    return {.splits = nest_of_elements(block, vector)};
  }
  const LoopShape shape = loop_shape(graph, root);
  const std::int64_t results = product(shape.kept).hint();
  const std::int64_t reduced = product(shape.reduced).hint();
  if (!shape.inner && results >= tile_columns)
    return {.splits = nest_of_columns(
                block, tile_lanes(product(shape.kept), target.sms, fewest_lanes_of(graph, phase)))};
  const int vector = vector_of(graph, phase, results, reduced, target);
  if (reduced <= lanes_limit) {
    const std::int64_t groups = divide_up(reduced, vector);
    const auto threads = static_cast<int>(std::clamp<std::int64_t>(groups, fewest_lanes, 32));
    int lanes = has_columns(phase) ? 32 : static_cast<int>(std::bit_ceil(static_cast<unsigned>(threads)));
    const std::int64_t wanted = std::int64_t{target.sms} * target.max_threads_per_sm / 2;
    const int element_bytes = narrowest(graph, phase);
    const bool rows_alone = std::none_of(phase.stages.begin(), phase.stages.end(), [](const Stage& stage) {
      return stage.form == Stage::Form::element;
    });
    const auto pays = [&](int fewer) {
      // Lanes that walk a row in several steps touch whole lines in each; or, in two steps, what memory moves
      // at a time, where only values of rows are made: one access hardly pays for the start of a thread.
      const bool sectors =
          rows_alone && groups <= 2 * fewer && fewer * vector * element_bytes >= sector_bytes;
      const bool whole = fewer >= lanes_of_line || groups <= fewer || sectors;
      return whole && reduced <= std::int64_t{fewer} * usual_trips && results >= wanted / fewer;
    };
    while (!has_columns(phase) && lanes > fewest_lanes && pays(lanes / 2)) lanes /= 2;
    return {.splits = nest_of_lanes(std::min(128, block), lanes, vector)};
  }
  // The blocks of a split row would have to pass on what stages cache of it.
  const bool alone = phase.stages.size() <= 1;
  const Choices whole = {.splits = nest_of_blocks(block, vector)};
  if (!alone || reduced <= block_limit || results >= 2 * std::int64_t{target.sms}) return whole;
  if (results * 2 >= target.sms) return shared_rows(graph, phase, whole, vector, target);
  const std::int64_t wave =
      std::max<std::int64_t>(2, 2 * std::int64_t{target.sms} / std::max<std::int64_t>(results, 1));
  const std::int64_t useful = reduced / (8 * std::int64_t{block});
  const auto parts = std::clamp<std::int64_t>(useful, 2, std::min<std::int64_t>(wave, 1024));
  return {.splits = nest_of_shared_rows(block, static_cast<int>(parts), vector)};
}

/// The blocks whose rows are as much as is in flight where memory moves most, two or more on a
/// multiprocessor. More would leave more partials to combine: an H200 summed the columns of bf16[65536, 1024]
/// in 40.4 us by 264 blocks of 256 threads, in 42.1 by 528 and in 48.1 by 132.
int blocks_that_fill(const Choices& choices, double row_bytes, const Target& target) {
  const double bytes = std::max(1.0, row_bytes * static_cast<double>(rows_at_once(choices)));
  const auto enough = static_cast<int>(std::ceil(bytes_in_flight / bytes));
  return std::max(2, enough) * target.sms;
}

/// The choices with blocks that share the rows and keep the columns, where that is faster than to walk down
/// them.
Choices across(const ir::Graph& graph, const Phase& phase, const Choices& down, const Target& target) {
  const std::optional<Phase> rows = across_rows(graph, phase);
  if (!rows || !lanes_are_columns(down)) return down;
  const LoopShape shape = loop_shape(graph, *rows);
  const std::int64_t row = product(shape.reduced).hint();
  int vector = vector_of(graph, *rows, product(shape.kept).hint(), row, target);
  while (vector > 1 && std::int64_t{vector} * 32 > row)
    vector /= 2;  // all lanes of a warp have something to do
  Choices choices = RegisterCaching(graph, *rows, target).columns(vector);
  choices.across = true;
  const int enough = blocks_that_fill(choices, static_cast<double>(row) * narrowest(graph, phase), target);
  choices.set('r', Level::grid, std::min(choices.blocks_per_row(), enough));
  if (target.barrier_seconds < target.launch_seconds) choices.blocks = choices.blocks_per_row();
  choices = with_shared_memory(graph, *rows, std::move(choices), target);
  if (!columns_fit(graph, *rows, choices, target)) return down;
  const bool gains = phase_seconds(graph, phase, choices, target) < phase_seconds(graph, phase, down, target);
  return gains ? choices : down;
}

/// The choices with columns side by side in each thread, by accesses as wide as memory takes. The lanes of a
/// row make a line, so that the others of a warp have rows of their own. Blocks share the rows where there
/// are few columns: as many blocks as fill each multiprocessor with two. An H200 summed the columns of
/// bf16[65536, 1024] in 37.8 us in this way, by lines of 256 bytes in 38.6, of 64 in 41.5, by blocks of 512
/// threads in 38.0, of 1024 in 57.6.
std::optional<Choices> side_by_side(const ir::Graph& graph, const Phase& phase, const Target& target) {
  constexpr int line_bytes = 128, most_blocks_per_sm = 2, fewest_trips = 4, most_words = 24;
  const LoopShape shape = loop_shape(graph, phase);
  // Hints of symbols may multiply to what the next power of two of is no number.
  constexpr std::int64_t most = std::int64_t{1} << 60;
  const std::int64_t columns = std::min(most, product(shape.kept).hint()),
                     rows = std::min(most, product(shape.reduced).hint());
  int words = 0;  // words per thread and column: what it loads and what it reduces that to
  // The hints of symbolic extents may multiply beyond 63 bits.
  const double elements = static_cast<double>(rows) * static_cast<double>(columns);
  for (const ir::NodeId input : phase.inputs)
    words += static_cast<double>(product(graph[input].type.dims).hint()) >= elements ? 1 : 0;
  for (const Stage& stage : phase.stages) {
    if (stage.form != Stage::Form::inner_reduce) continue;
    for (const DType dtype : reduction_state(graph, stage)) words += size_of(dtype) > 4 ? 2 : 1;
  }
  int vector = widest_row_vector(graph, phase);
  while (vector > 1 && vector * words > most_words) vector /= 2;
  if (vector == 1) return std::nullopt;
  const auto power = [](std::int64_t n) {
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1))));
  };
  const std::int64_t vectors = divide_up(columns, vector);
  const std::int64_t line = std::clamp<std::int64_t>(line_bytes / (vector * narrowest(graph, phase)), 1, 32);
  // Few rows take few of a block's threads: the others take columns.
  const std::int64_t row_lanes = std::min(32 / std::min(power(vectors), line), power(rows));
  const std::int64_t lanes = 32 / row_lanes;
  for (int threads = std::min(256, target.max_threads_per_block); threads > 32; threads /= 2) {
    const std::int64_t warps = threads / 32,
                       row_warps = std::min(warps, std::max<std::int64_t>(1, power(rows) / row_lanes));
    const std::int64_t at_a_time = lanes * (warps / row_warps);  // vectors of columns per block
    const std::int64_t groups = std::max<std::int64_t>(1, divide_up(vectors, at_a_time));
    const int at_once = blocks_per_sm({.blocks = 1, .threads = threads, .registers = 64}, target);
    const std::int64_t blocks = std::int64_t{std::min(most_blocks_per_sm, at_once)} * target.sms;
    const std::int64_t parts =
        std::min({blocks / groups, rows / (row_warps * row_lanes * fewest_trips), std::int64_t{1024}});
    Choices choices{.splits = nest_of_columns(static_cast<int>(32 * row_warps), static_cast<int>(lanes))};
    choices.set('r', Level::warp, warps / row_warps)
        .set('c', Level::grid, parts)
        .set('r', Level::vector, vector);
    if (parts > 1 && target.barrier_seconds < target.launch_seconds)
      choices.blocks = static_cast<int>(parts * groups);
    if (shared_bytes(graph, phase, choices) <= target.shared_per_block) return choices;
  }
  return std::nullopt;
}

/// The choices with the widest vectors that leave no thread more to walk.
Choices widened(const ir::Graph& graph, const Phase& phase, Choices choices) {
  const Dim row = product(loop_shape(graph, phase).reduced);
  const std::int64_t trips = elements_per_thread(row, choices);
  const int widest = trips > 0 ? usual_vector(graph, phase) : 1;
  for (Choices wider = choices; wider.vector() < widest; choices = wider) {
    wider.set('c', Level::vector, 2 * std::int64_t{wider.vector()});
    if (elements_per_thread(row, wider) > trips) break;
  }
  return choices;
}

/// The choices with online sums where that saves a walk over rows that nothing caches.
Choices online(const ir::Graph& graph, const Phase& phase, const Choices& choices, const Target& target) {
  if (!with_online_softmax(graph, phase)) return choices;
  Choices result = choices;
  result.online_softmax = true;
  const bool gains =
      phase_seconds(graph, phase, result, target) < phase_seconds(graph, phase, choices, target);
  return gains ? result : choices;
}

/// Where threads cache nothing, what passes load again stays in shared memory: as much of a row as leaves
/// slots for half of the threads.
Choices in_shared_memory(const ir::Graph& graph, const Phase& phase, const Choices& choices,
                         const Target& target) {
  if (choices.register_cache > 0) return choices;
  const Phase run = staged(graph, phase, choices);
  std::int64_t bytes = 0;  // bytes per element, in all rows of a block
  for (const CachedValue& loaded : loaded_values(graph, run))
    bytes += rows_at_once(choices) * static_cast<std::int64_t>(size_of(graph[loaded.node].type.dtype));
  if (bytes == 0) return choices;
  const std::int64_t part = target.shared_per_sm * choices.block_threads() / (target.max_threads_per_sm / 2);
  const std::int64_t share = part / target.shared_unit * target.shared_unit - target.shared_reserved;
  const std::int64_t left =
      std::min<std::int64_t>(target.shared_per_block, share) - shared_bytes(graph, run, choices);
  const std::int64_t trip = step_elements(choices);
  const std::int64_t most = product(loop_shape(graph, phase).reduced).max();
  const std::int64_t trips = std::min(left / bytes / trip, (most - 1) / trip + 1);
  Choices result = choices;
  result.register_cache = 0;
  result.shared_cache = static_cast<int>(trips * trip);
  const bool gains =
      trips > 0 && phase_seconds(graph, phase, result, target) < phase_seconds(graph, phase, choices, target);
  return gains ? result : choices;
}

/// Whether what is loaded takes at most half of the registers of what passes would cache.
bool packs(const ir::Graph& graph, const Phase& phase) {
  constexpr int elements = 4;  // of any type, these fill registers
  const std::int64_t packed = cache_registers(graph, loaded_values(graph, phase), elements, true);
  return packed > 0 && 2 * packed <= cache_registers(graph, cached_values(graph, phase), elements, false);
}

/// The choices where registers cache what was loaded as it came, so that more of the rows is on a
/// multiprocessor: where its blocks are large, and nothing costly is computed again. Clusters, whose waits
/// leave time, also do costly work again if memory takes nearly as long.
Choices packed(const ir::Graph& graph, const Phase& phase, const Choices& alone, const Choices& unpacked,
               const Target& target) {
  constexpr int enough_blocks = 8;       // on a multiprocessor
  constexpr int much_work = 8;           // instructions per element: a costly op
  constexpr double time_for_work = 1.2;  // relative to that of the bytes
  const bool few = unpacked.register_cache == 0 || splits_rows(unpacked) ||
                   unpacked.block_threads() * enough_blocks > target.max_threads_per_sm;
  if (!few || !packs(graph, phase)) return unpacked;
  const RegisterCaching caching(graph, phase, target, true);
  const Choices choices = caching.parts(caching.rows(alone));
  const int work = instructions(graph, phase, loaded_values(graph, phase));
  const bool repeats = work - instructions(graph, phase, cached_values(graph, phase)) >= much_work;
  const LoopShape shape = loop_shape(graph, phase);
  const double elements =
      static_cast<double>(product(shape.kept).hint()) * static_cast<double>(product(shape.reduced).hint());
  const double of_work = 2.0 * work * elements / target.flops_f32,
               of_bytes = static_cast<double>(moved_bytes(graph, phase)) / target.bandwidth;
  if (repeats && (choices.cluster() == 1 || of_work > time_for_work * of_bytes)) return unpacked;
  for (const CachedValue& loaded : loaded_values(graph, phase)) {
    if (static_cast<std::size_t>(choices.vector()) * size_of(graph[loaded.node].type.dtype) % 4 != 0)
      return unpacked;
  }
  const bool gains = choices.packed && phase_seconds(graph, phase, choices, target) <
                                           phase_seconds(graph, phase, unpacked, target);
  return gains ? choices : unpacked;
}

/// The choices with rows split over as many of these blocks as have a vector for each thread: blocks that
/// wait for the others at a barrier may as well read.
Choices with_all_blocks(const ir::Graph& graph, const Phase& phase, Choices choices, int blocks) {
  const KernelSchedule launch = launches(graph, staged(graph, phase, choices), choices)[0];
  const std::int64_t groups = std::max<std::int64_t>(1, launch.tiles.hint() / choices.blocks_per_row());
  const std::int64_t vectors =
      launch.reduced.hint() / (std::int64_t{choices.block_threads()} * choices.vector());
  const std::int64_t parts = std::min(blocks / groups, vectors);
  return parts > choices.blocks_per_row() ? choices.set('c', Level::grid, parts) : choices;
}

/// Phases of a kernel have blocks of one size, as many as the device holds of them and any phase needs.
/// `alone`: the choices of each phase as a kernel of its own.
std::optional<KernelChoices> choices_of_phases(const ir::Graph& graph, const Segment& segment,
                                               const std::vector<Choices>& alone, int threads,
                                               const Target& target) {
  constexpr int registers = 64;
  KernelChoices choices;
  std::int64_t tiles = 1;
  for (std::size_t i = 0; i < segment.phases.size(); ++i) {
    Choices own = alone[i];
    own.blocks = 0;
    for (Split& split : own.splits) split.level = split.level == Level::cluster ? Level::grid : split.level;
    own = with_threads(std::move(own), threads);
    own.shared_cache = 0;  // it was for blocks of another size, without other phases
    for (const KernelSchedule& launch : launches(graph, staged(graph, segment.phases[i], own), own))
      tiles = std::max(tiles, launch.tiles.hint());
    // Columns that blocks of one kernel combine take their shared memory, however many blocks there are.
    if (has_columns(staged(graph, segment.phases[i], own))) own.blocks = 1;
    choices.phases.push_back(own);
  }
  const int an_sm = blocks_per_sm({.blocks = 1,
                                   .threads = threads,
                                   .registers = registers,
                                   .shared_bytes = shared_bytes(graph, segment, choices)},
                                  target);
  choices.blocks = static_cast<int>(std::min<std::int64_t>(tiles, std::int64_t{an_sm} * target.sms));
  for (std::size_t i = 0; i < segment.phases.size(); ++i) {
    Choices& own = choices.phases[i];
    const Phase phase = staged(graph, segment.phases[i], own);
    if (splits_rows(own)) own = with_all_blocks(graph, segment.phases[i], std::move(own), choices.blocks);
    if (splits_rows(own) && own.blocks_per_row() > choices.blocks) return std::nullopt;
    if (has_columns(phase) && !columns_fit(graph, phase, own, target)) return std::nullopt;
    if (splits_rows(own) || has_columns(phase)) own.blocks = choices.blocks;
  }
  if (shared_bytes(graph, segment, choices) > target.shared_per_block || an_sm == 0) return std::nullopt;
  return choices;
}

/// Phases side by side have blocks of one size: of those that the phases would have alone, the one with which
/// all together take least.
std::optional<KernelChoices> choices_of_horizontal(const ir::Graph& graph, const Segment& segment,
                                                   std::vector<Choices> alone, const Target& target) {
  std::set<int> sizes;
  bool same_registers = true;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    alone[i] = in_one_launch(graph, segment.phases[i], std::move(alone[i]), target);
    if (has_columns(staged(graph, segment.phases[i], alone[i]))) return std::nullopt;
    sizes.insert(alone[i].block_threads());
    same_registers = same_registers && alone[i].registers == alone[0].registers;
  }
  std::optional<KernelChoices> best;
  double least = 0;
  for (const int threads : sizes) {
    KernelChoices choices;
    for (const Choices& each : alone) {
      Choices own = each;
      if (own.block_threads() != threads) {
        own = with_threads(std::move(own), threads);
        own.shared_cache = 0;  // it was for blocks of another size
      }
      if (!same_registers) own.registers = 0;
      choices.phases.push_back(std::move(own));
    }
    if (shared_bytes(graph, segment, choices) > target.shared_per_block) continue;
    const double seconds = segment_seconds(graph, segment, choices, target);
    if (!best || seconds < least) best = std::move(choices), least = seconds;
  }
  return best;
}

}  // namespace

Choices in_one_launch(const ir::Graph& graph, const Phase& phase, Choices choices, const Target& target) {
  if (choices.across) choices = choices_alone(graph, phase, target);
  choices.blocks = 0;
  return choices.set('c', Level::grid, 1).set('c', Level::cluster, 1);
}

namespace {

/// The choices with costly columns once per block, where that has enough rows for it.
Choices with_columns_once(const ir::Graph& graph, const Phase& phase, Choices choices, const Target& target) {
  constexpr std::int64_t enough_rows = 4;  // of a block
  const Phase run = staged(graph, phase, choices);
  const bool reduces = info(graph[dominant(run)].op).relation == ir::Relation::reduce;
  if (!reduces || splits_rows(choices) || costly_columns(graph, run).empty()) return choices;
  const KernelSchedule launch = launches(graph, run, choices)[0];
  if (launch.results.hint() / enough_rows < launch.grid.hint()) return choices;
  Choices once = choices;
  once.columns_once = true;
  return shared_bytes(graph, run, once) <= target.shared_per_block ? once : choices;
}

Choices choices_by_model(const ir::Graph& graph, const Phase& phase, const Target& target) {
  Choices choices = choices_alone(graph, phase, target);
  if (info(graph[dominant(phase)].op).relation != ir::Relation::reduce) return choices;
  const bool down = lanes_are_columns(choices);
  const std::optional<Choices> wide = side_by_side(graph, phase, target);
  if (wide && !down) return *wide;  // the elements of its rows lie apart
  const auto seconds = [&](const Choices& each) { return phase_seconds(graph, phase, each, target); };
  if (const Choices by_rows = across(graph, phase, choices, target); by_rows.across)
    return wide && seconds(*wide) <= seconds(by_rows) ? *wide : by_rows;
  if (wide && seconds(*wide) <= seconds(choices)) return *wide;
  if (phase.stages.size() == 1) return widened(graph, phase, choices);
  const RegisterCaching caching(graph, phase, target);
  const Choices uncached = choices;
  choices = has_columns(phase) ? caching.columns(choices.vector()) : caching.rows(choices);
  const bool by_rows = !lanes_are_columns(choices) && !splits_rows(choices);
  if (!has_columns(phase)) choices = online(graph, phase, choices, target);
  if (by_rows && !has_columns(phase))
    choices = packed(graph, phase, uncached, caching.parts(in_shared_memory(graph, phase, choices, target)),
                     target);
  if (has_columns(phase) && target.barrier_seconds < target.launch_seconds)
    choices.blocks = choices.blocks_per_row();
  choices = with_shared_memory(graph, phase, std::move(choices), target);
  return widened(graph, phase, choices);
}

}  // namespace

Choices model_choices(const ir::Graph& graph, const Phase& phase, const Target& target) {
  return with_columns_once(graph, phase, choices_by_model(graph, phase, target), target);
}

std::optional<KernelChoices> model_choices(const ir::Graph& graph, const Segment& segment,
                                           const Target& target) {
  std::vector<Choices> alone;
  for (const Phase& phase : segment.phases) alone.push_back(model_choices(graph, phase, target));
  if (alone.size() == 1) return KernelChoices{.phases = std::move(alone)};
  if (segment.regional()) return regional_choices(graph, segment, alone, target);
  if (segment.horizontal()) return choices_of_horizontal(graph, segment, std::move(alone), target);
  std::optional<KernelChoices> best;
  double least = 0;
  for (int threads = target.max_threads_per_block; threads >= 64; threads /= 2) {
    std::optional<KernelChoices> choices = choices_of_phases(graph, segment, alone, threads, target);
    if (!choices) continue;
    const double seconds = segment_seconds(graph, segment, *choices, target);
    if (!best || seconds < least) best = std::move(choices), least = seconds;
  }
  return best;
}

}  // namespace fuse::schedule
