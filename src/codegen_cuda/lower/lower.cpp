// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/lower/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <unordered_set>

#include "codegen_cuda/lower/lowering_context.hpp"
#include "codegen_cuda/text/identifiers.hpp"
#include "schedule/segments/loop_shape.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;
using schedule::KernelSchedule;
using schedule::PhaseSchedule;

namespace {

class KernelLowering {
 public:
  KernelLowering(const ir::Graph& graph, const schedule::Schedule& schedule, const std::string& name)
      : graph_(graph), schedule_(schedule), builder_(graph, name) {
    name_symbols();
  }

  LoweredKernel one(const KernelSchedule& launch) {
    enter(schedule_.phases[launch.phase]);
    set_launch(launch);
    builder_.kernel.summary = summary(launch);
    const schedule::Section& section = phase_->sections[launch.section];
    declare_scratch(section.combines, false);
    declare_inputs(section);
    declare_scratch(section.leaves, true);
    if (launch.tested.empty()) {
      fill(launch, std::nullopt);
    } else {
      threads(launch, [&](const ThreadIndex& at) { fill(launch, at); });
    }
    return finish();
  }

  /// All launches of the schedule, one after the other.
  LoweredKernel cooperative() {
    const KernelSchedule& whole = schedule_.kernels.back();
    runs_all_ = true;
    set_launch(whole);
    builder_.kernel.blocks_per_sm = schedule_.blocks_per_sm;
    for (const PhaseSchedule& phase : schedule_.phases) declare_phase(phase);
    counter_ = builder_.buffer("barrier", i32, Space::global, schedule::barrier_counters(schedule_), true);
    bindings_.emplace_back(Counter{});
    threads(whole, [&](const ThreadIndex& at) {
      for (const PhaseSchedule& phase : schedule_.phases) fill(phase, at);
    });
    return finish();
  }

  /// The launches of the phases, one after the other, each block its own slices of them.
  LoweredKernel regional() {
    const KernelSchedule& whole = schedule_.kernels.back();
    set_launch(whole);
    for (const schedule::BlockValue& each : schedule_.in_block) {
      buffers_[each.value] =
          builder_.buffer("s" + graph_.value_name(each.value).substr(1), graph_[each.value].type.dtype,
                          Space::shared, each.elements, true);
    }
    for (const PhaseSchedule& phase : schedule_.phases) declare_phase(phase);
    threads(whole, [&](const ThreadIndex& at) {
      for (const PhaseSchedule& phase : schedule_.phases) {
        enter(phase);
        builder_.at(phase.computes.root);
        if (reads_fresh(phase)) {
          builder_.append(Barrier{});
          fresh_.clear();
        }
        slice_ = at.block;
        if (!schedule_.choices.tile.empty()) place_tile(at.block);
        fill(phase.kernels.front(), ThreadIndex{0, at.warp, at.lane});
        fresh_.insert(phase.computes.results.begin(), phase.computes.results.end());
      }
    });
    return finish();
  }

  /// The launches of the phases, each by a range of the blocks.
  LoweredKernel horizontal() {
    const KernelSchedule& whole = schedule_.kernels.back();
    set_launch(whole);
    for (const PhaseSchedule& phase : schedule_.phases) {
      enter(phase);
      std::string& summary = builder_.kernel.summary;
      summary += (summary.empty() ? "" : "; beside it ") + this->summary(phase.kernels.front());
      declare_inputs(phase.sections.front());
    }
    threads(whole, [&](const ThreadIndex& at) {
      std::vector<KernelBuilder::Alternative> ranges;
      Dim first = 0;
      for (const PhaseSchedule& phase : schedule_.phases) {
        const Dim blocks = rename(phase.kernels.front().grid), end = first + blocks;
        std::vector<IndexLess> conditions;
        if (!first.is(0)) conditions.push_back({first, at.block + 1});
        if (&phase != &schedule_.phases.back()) conditions.push_back({at.block, end});
        ranges.push_back({std::move(conditions), [this, &phase, at, first, blocks] {
                            enter(phase);
                            builder_.at(phase.computes.root);
                            Index own = at.block;
                            if (!first.is(0)) {
                              const std::string name = builder_.unique("own");
                              builder_.append(Bind{name, at.block - first});
                              own = Dim::index(name, blocks);
                            }
                            fill(phase.kernels.front(), ThreadIndex{own, at.warp, at.lane});
                          }});
        first = end;
      }
      builder_.alternatives(ranges);
    });
    return finish();
  }

 private:
  /// Notes where the block's tile of the last phase begins.
  void place_tile(const Index& block) {
    const std::vector<int>& tile = schedule_.choices.tile;
    std::vector<Dim> counts = schedule::tile_counts(graph_[schedule_.segment.root].type.dims, tile);
    for (Dim& count : counts) count = rename(count);
    tile_ = unflatten(block, counts);
    for (std::size_t i = 0; i < tile.size(); ++i) tile_[i] = tile_[i] * tile[i];
  }

  BlockTile tile_of(const PhaseSchedule& phase) const {
    BlockTile result{.first = tile_, .extents = {}};
    const std::vector<std::int64_t> extents = schedule::extents_of(phase.windows, schedule_.choices.tile);
    for (std::size_t i = 0; i < extents.size(); ++i) {
      result.first[i] = result.first[i] + phase.windows[i].low;
      result.extents.emplace_back(extents[i]);
    }
    return result;
  }

  /// All threads of the launch.
  void threads(const KernelSchedule& launch, const std::function<void(const ThreadIndex&)>& fill) {
    const std::string block = builder_.unique("g"), warp = builder_.unique("warp"),
                      lane = builder_.unique("lane");
    const Dim grid = builder_.kernel.grid, warps = launch.block_threads / warp_size;
    parallel(Parallel::grid, block, grid, [&] {
      parallel(Parallel::warp, warp, warps, [&] {
        parallel(Parallel::lane, lane, warp_size, [&] {
          fill({Dim::index(block, grid), Dim::index(warp, warps), Dim::index(lane, warp_size)});
        });
      });
    });
  }

  void set_launch(const KernelSchedule& launch) {
    Kernel& kernel = builder_.kernel;
    kernel.block_threads = launch.block_threads;
    kernel.index_type = launch.index_type;
    kernel.cluster = launch.cluster;
    kernel.min_blocks_per_sm = launch.min_blocks_per_sm;
    kernel.grid = rename(launch.grid);
  }

  void parallel(Parallel parallel, const std::string& name, const Dim& extent,
                const std::function<void()>& body) {
    builder_.loop({.name = name, .begin = 0, .end = extent, .parallel = parallel, .body = {}}, body);
  }

  /// Its arrays are those of the schedule after those of the phases before it.
  void enter(const PhaseSchedule& phase) {
    phase_ = &phase;
    first_scratch_ = 0;
    for (const PhaseSchedule* each = schedule_.phases.data(); each != &phase; ++each)
      first_scratch_ += each->scratch.size();
    scratch_.resize(schedule_.scratch.size());
  }

  /// Declares its inputs, unless an earlier phase makes them, where it leaves partial results, and what later
  /// phases read of it.
  void declare_phase(const PhaseSchedule& phase) {
    enter(phase);
    std::string& summary = builder_.kernel.summary;
    summary += (summary.empty() ? "" : "; then ") + this->summary(phase.kernels.front());
    if (phase.kernels.size() > 1) summary += "; one kernel with what combines them";
    for (const schedule::Section& section : phase.sections) declare_inputs(section);
    for (const schedule::Section& section : phase.sections) declare_scratch(section.leaves, true);
    if (schedule_.phases.size() == 1) return;
    for (const NodeId result : phase.computes.results) {
      if (!buffers_.contains(result)) buffers_[result] = declare(result, true);
    }
  }

  /// Fills a phase of the cooperative kernel, after a barrier where it reads what earlier ones left.
  void fill(const PhaseSchedule& phase, const ThreadIndex& at) {
    enter(phase);
    if (reads_fresh(phase)) grid_barrier();
    if (splits_rows(phase.choices)) {
      fill(phase.kernels.back(), at);
    } else {
      for (const KernelSchedule& launch : phase.kernels) {
        if (launch.role == KernelSchedule::Role::cooperative) continue;
        if (&launch != &phase.kernels.front()) grid_barrier();
        fill(launch, at);
      }
    }
    fresh_.insert(phase.computes.results.begin(), phase.computes.results.end());
  }

  bool reads_fresh(const PhaseSchedule& phase) const {
    const std::vector<NodeId>& inputs = phase.computes.inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](NodeId input) { return fresh_.contains(input); });
  }

  void grid_barrier() {
    builder_.at(phase_->computes.root);
    builder_.append(GridBarrier{.counter = counter_});
    fresh_.clear();
  }

  /// The barrier of the phase: of all blocks where they share one row at a time.
  void row_barrier() {
    if (schedule::row_groups(*phase_) == 0) return grid_barrier();
    std::int64_t first = 1;
    for (const PhaseSchedule* each = schedule_.phases.data(); each != phase_; ++each)
      first += schedule::row_groups(*each);
    builder_.at(phase_->computes.root);
    builder_.append(
        GridBarrier{.counter = counter_, .first = first, .group = phase_->choices.blocks_per_row()});
  }

  LoweredKernel finish() {
    collect_extents();
    return {std::move(builder_.kernel), std::move(bindings_), std::move(extents_)};
  }

  /// What the launch does; where it tests symbols, by vectors or one by one.
  void fill(const KernelSchedule& launch, const std::optional<ThreadIndex>& cooperative) {
    const std::map<NodeId, BufferId> outputs = declare_outputs(launch);
    if (launch.tested.empty()) return fill(*phase_, launch, cooperative, outputs);
    Index rests = 0;
    for (const Dim& symbol : launch.tested) rests = rests + rename(symbol) % launch.vector;
    const bool is_cooperative = launch.role == KernelSchedule::Role::cooperative;
    const std::size_t number = is_cooperative ? phase_->kernels.size() - 1 : launch.section;
    builder_.either(
        rests, [&] { as_multiples(launch, [&] { fill(*phase_, launch, cooperative, outputs); }); },
        [&] {
          const PhaseSchedule alone = without_vectors(*phase_);
          fill(alone, alone.kernels[number], cooperative, outputs);
        });
  }

  /// Names what is tested as multiples of the vector: so every index shows what divides it.
  void as_multiples(const KernelSchedule& launch, const std::function<void()>& fill) {
    const auto before = renamed_;
    for (const Dim& symbol : launch.tested) {
      const std::int64_t vector = launch.vector;
      const std::string name = builder_.unique(c_identifier(fmt::format("{}_over{}", symbol.name(), vector)));
      builder_.append(Bind{name, rename(symbol) / vector});
      const DimRange range = ir::quotient_range(
          {.name = name, .range = {symbol.min(), symbol.max(), symbol.hint()}, .factor = vector});
      renamed_.insert_or_assign(std::string(symbol.name()), vector * Dim::symbol(name, range));
    }
    fill();
    renamed_ = before;
  }

  void fill(const PhaseSchedule& phase, const KernelSchedule& launch,
            const std::optional<ThreadIndex>& cooperative, const std::map<NodeId, BufferId>& outputs) {
    const auto rename = [this](const Dim& dim) { return this->rename(dim); };
    std::map<NodeId, BufferId> inputs;
    for (const NodeId input : phase.computes.inputs) {
      if (const auto found = buffers_.find(input); found != buffers_.end()) inputs.insert(*found);
    }
    ValueEmitter elements(graph_, builder_, inputs, rename, schedule_.starts);
    if (slice_) {
      for (const schedule::BlockValue& each : schedule_.in_block) {
        if (tile_.empty()) {
          elements.begin_at(each.value, *slice_ * rename(each.of_block));
        } else {
          BlockTile box = tile_of(schedule_.phases[each.phase]);
          elements.keep_box(each.value, std::move(box.first), std::move(box.extents));
        }
      }
    }
    const auto first = scratch_.begin() + static_cast<std::ptrdiff_t>(first_scratch_);
    Lowering lowering{.graph = graph_,
                      .phase = phase,
                      .launch = launch,
                      .section = phase.sections[launch.section],
                      .builder = builder_,
                      .elements = elements,
                      .rename = rename,
                      .outputs = outputs,
                      .scratch = {first, first + static_cast<std::ptrdiff_t>(phase.scratch.size())},
                      .results = rename(launch.results),
                      .reduced = rename(launch.reduced),
                      .blocks = runs_all_ ? builder_.kernel.grid : rename(launch.grid),
                      .cooperative = cooperative,
                      .row_barrier = [this] { row_barrier(); },
                      .slice = tile_.empty() ? slice_ : std::nullopt,
                      .tile = tile_.empty() ? std::nullopt : std::optional(tile_of(phase))};
    builder_.at(phase.computes.root);
    if (schedule::walks_tiles(phase.choices)) return lower_tiles(lowering);
    switch (info(graph_[schedule::dominant(phase.computes)].op).relation) {
      case ir::Relation::reduce:
        return lower_rows(lowering);
      case ir::Relation::scan:
        return lower_scan(lowering);
      default:
        return lower_elements(lowering);
    }
  }

  /// All symbols at once: one's new name may be another's old one.
  Dim rename(const Dim& dim) const {
    if (renamed_.empty()) return dim;
    return dim.substitute([&](std::string_view name) {
      const auto found = renamed_.find(name);
      return found == renamed_.end() ? nullptr : &found->second;
    });
  }

  /// Symbols keep their names in the text unless C++ or the dialect uses them. One that is a multiple of 8 is
  /// 8 times its quotient, which the kernel gets: so every index shows what divides it.
  void name_symbols() {
    for (const ir::Symbol& symbol : graph_.symbols) {
      const bool divided = symbol.factor > 1;
      const std::string wanted =
          divided ? symbol.name + "_over" + std::to_string(symbol.factor) : symbol.name;
      const std::string name = builder_.unique(c_identifier(wanted));
      const Dim dim = Dim::symbol(name, quotient_range(symbol));
      if (name != symbol.name) renamed_.emplace(symbol.name, symbol.factor * dim);
      symbols_.push_back({Dim::symbol(symbol.name, symbol.range) / symbol.factor, dim});
    }
    for (const schedule::SliceStart& start : schedule_.starts) {
      const std::string_view argument = start.argument.name();
      if (renamed_.contains(argument)) continue;
      const DimRange range{start.argument.min(), start.argument.max(), start.argument.hint()};
      const Dim dim = Dim::symbol(builder_.unique("start"), range);
      renamed_.emplace(argument, dim);
      symbols_.push_back({start.argument, dim});
    }
  }

  std::string buffer_name(NodeId id) const {
    const std::string name = graph_.value_name(id).substr(1);
    return ir::is_given(graph_[id]) ? name : "t" + name;
  }

  BufferId declare(NodeId id, bool written) {
    bindings_.emplace_back(id);
    return builder_.buffer(buffer_name(id), graph_[id].type.dtype, Space::global,
                           rename(product(graph_[id].type.dims)), written);
  }

  void declare_inputs(const schedule::Section& section) {
    for (const NodeId input : section.inputs) {
      if (!buffers_.contains(input)) buffers_[input] = declare(input, false);
      const std::vector<NodeId>& ahead = phase_->ahead;
      const bool overwritten =
          is_overwrite([&](const schedule::Overwrite& each) { return each.input == input; });
      if (overwritten || std::find(ahead.begin(), ahead.end(), input) != ahead.end())
        builder_.kernel.buffers[buffers_[input]].ordered = true;
    }
  }

  /// Both pointers of an overwrite are to the same memory.
  template <class Is>
  bool is_overwrite(const Is& is) const {
    const std::vector<schedule::Overwrite>& all = phase_->computes.overwrites;
    return std::any_of(all.begin(), all.end(), is);
  }

  std::map<NodeId, BufferId> declare_outputs(const KernelSchedule& launch) {
    std::map<NodeId, BufferId> buffers;
    const auto add = [&](NodeId root) {
      const auto found = buffers_.find(root);
      buffers[root] = found == buffers_.end() ? declare(root, true) : found->second;
      if (is_overwrite([&](const schedule::Overwrite& each) { return each.result == root; }))
        builder_.kernel.buffers[buffers[root]].ordered = true;
    };
    if (launch.role != KernelSchedule::Role::cooperative) {
      for (const NodeId root : phase_->sections[launch.section].stores) add(root);
      return buffers;
    }
    const std::vector<NodeId>& results = phase_->computes.results;
    for (const schedule::Stage& stage : phase_->computes.stages) {
      if (std::find(results.begin(), results.end(), stage.root) != results.end()) add(stage.root);
    }
    return buffers;
  }

  void declare_scratch(const std::vector<schedule::Stage>& reductions, bool written) {
    for (const schedule::Stage& stage : reductions) {
      std::size_t array = scratch_index(graph_, phase_->computes, stage.root) + first_scratch_;
      const char* name = "part";
      for (const DType dtype : schedule::reduction_state(graph_, stage)) {
        bindings_.emplace_back(Scratch{array});
        scratch_[array] =
            builder_.buffer(name, dtype, Space::global, rename(schedule_.scratch[array].elements), written);
        name = stage.maximum ? "part_sum" : "part_index";
        ++array;
      }
    }
  }

  std::string summary(const KernelSchedule& launch) const {
    const NodeId root = phase_->computes.root;
    const std::string scope = graph_.scope_path(graph_[root].scope);
    const std::string what = phase_->computes.stages.size() > 1
                                 ? stages_text(graph_, phase_->computes.stages)
                                 : graph_.value_name(root) + ' ' + std::string(to_string(graph_[root].op));
    const std::string each =
        launch.reduced.is(1) ? "" : fmt::format(" of {} each", rename(launch.reduced).to_string());
    const std::vector<schedule::Split>& splits =
        launch.nest.splits.empty() ? phase_->choices.splits : launch.nest.splits;
    return fmt::format("{}{}: results {}{}, by {}", scope.empty() ? "" : scope + ", ", what,
                       rename(launch.results).to_string(), each, schedule::to_string(splits));
  }

  /// The symbols that the kernel mentions become parameters.
  void collect_extents() {
    const std::vector<Dim> used = mentioned_symbols(builder_.kernel);
    for (const auto& [original, renamed] : symbols_) {
      if (std::find(used.begin(), used.end(), renamed) == used.end()) continue;
      builder_.kernel.extents.push_back(renamed);
      extents_.push_back(original);
    }
  }

  static std::vector<Dim> mentioned_symbols(const Kernel& kernel);

  const ir::Graph& graph_;
  const schedule::Schedule& schedule_;
  KernelBuilder builder_;
  const PhaseSchedule* phase_ = nullptr;
  std::map<NodeId, BufferId> buffers_;  // the buffers of inputs, and of what phases store
  std::unordered_set<NodeId> fresh_;    // stored since the last barrier of the grid, or of the block
  std::vector<BufferId> scratch_;       // the schedule's arrays
  std::size_t first_scratch_ = 0;       // the phase's first of these
  BufferId counter_ = 0;
  std::map<std::string, Dim, std::less<>> renamed_;
  std::vector<std::pair<Dim, Dim>> symbols_;
  bool runs_all_ = false;         // the launches of the schedule, one after the other
  std::optional<Index> slice_{};  // the block of a regional kernel
  Coordinates tile_{};            // where its tile of the last phase begins
  std::vector<Binding> bindings_;
  std::vector<Dim> extents_;
};

std::vector<Dim> KernelLowering::mentioned_symbols(const Kernel& kernel) {
  std::vector<Dim> found;
  const auto add = [&](const Dim& dim) {
    for (const Dim& symbol : dim.symbols()) found.push_back(symbol);
  };
  std::vector<const std::vector<Stmt>*> work = {&kernel.body};
  while (!work.empty()) {
    const std::vector<Stmt>& body = *work.back();
    work.pop_back();
    for (const Stmt& stmt : body) {
      if (const auto* let = std::get_if<Let>(&stmt.node)) {
        if (const auto* load = std::get_if<Load>(&let->rhs)) {
          add(load->index);
          if (load->rank) add(*load->rank);
        }
        if (const auto* value = std::get_if<IndexValue>(&let->rhs)) add(value->index);
        if (const auto* less = std::get_if<IndexLess>(&let->rhs)) add(less->index), add(less->bound);
        if (const auto* random = std::get_if<Random>(&let->rhs)) add(random->element);
      } else if (const auto* store = std::get_if<Store>(&stmt.node)) {
        add(store->index);
      } else if (const auto* bind = std::get_if<Bind>(&stmt.node)) {
        add(bind->value);
      } else if (const auto* data = std::get_if<BindData>(&stmt.node)) {
        add(data->extent);
      } else if (const auto* loop = std::get_if<For>(&stmt.node)) {
        if (loop->parallel == Parallel::serial) add(loop->begin), add(loop->end), add(loop->step);
        work.push_back(&loop->body);
      } else if (const auto* branch = std::get_if<If>(&stmt.node)) {
        for (const IndexLess& condition : branch->conditions) add(condition.index), add(condition.bound);
        work.push_back(&branch->body);
      }
    }
  }
  return found;
}

}  // namespace

LoweredKernel lower(const ir::Graph& graph, const schedule::Schedule& schedule, std::size_t index,
                    const std::string& name) {
  KernelLowering lowering(graph, schedule, name);
  const KernelSchedule& launch = schedule.kernels[index];
  switch (launch.role) {
    case KernelSchedule::Role::cooperative:
      return lowering.cooperative();
    case KernelSchedule::Role::regional:
      return lowering.regional();
    case KernelSchedule::Role::horizontal:
      return lowering.horizontal();
    default:
      return lowering.one(launch);
  }
}

}  // namespace fuse::codegen
