// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_set>

#include "codegen_cuda/identifiers.hpp"
#include "codegen_cuda/lowering.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;
using schedule::KernelSchedule;
using schedule::Mapping;

namespace {

class KernelLowering {
 public:
  KernelLowering(const ir::Graph& graph, const schedule::Schedule& schedule, const std::string& name)
      : graph_(graph), schedule_(schedule), builder_(graph, name) {
    name_symbols();
  }

  LoweredKernel one(const KernelSchedule& launch) {
    const bool combines = launch.role == KernelSchedule::Role::combine;
    const bool partial = launch.role == KernelSchedule::Role::partial;
    set_launch(launch);
    builder_.kernel.summary = summary(launch);
    if (combines) declare_scratch(false);
    declare_inputs(launch);
    if (partial) declare_scratch(true);
    fill(launch, std::nullopt);
    return finish();
  }

  /// All launches of the schedule, one behind the other.
  LoweredKernel joined() {
    const KernelSchedule& whole = schedule_.kernels.back();
    set_launch(whole);
    builder_.kernel.summary = summary(schedule_.kernels[0]) + "; one kernel with what combines them";
    builder_.kernel.blocks_an_sm = schedule_.blocks_an_sm;
    const std::span launches = std::span(schedule_.kernels).first(schedule_.kernels.size() - 1);
    for (const KernelSchedule& launch : launches) declare_inputs(launch);
    declare_scratch(true);
    const BufferId counter = builder_.buffer("barrier", i32, Space::global, 1, true);
    bindings_.emplace_back(Counter{});
    const std::string block = builder_.unique("g"), warp = builder_.unique("warp"),
                      lane = builder_.unique("lane");
    const Dim grid = builder_.kernel.grid, warps = whole.block_threads / warp_size;
    parallel(Parallel::grid, block, grid, [&] {
      parallel(Parallel::warp, warp, warps, [&] {
        parallel(Parallel::lane, lane, warp_size, [&] {
          const ThreadIndex at{Dim::index(block, grid), Dim::index(warp, warps), Dim::index(lane, warp_size)};
          for (const KernelSchedule& launch : launches) {
            if (&launch != &launches.front()) {
              builder_.at(schedule_.piece.root);
              builder_.append(GridBarrier{counter});
            }
            fill(launch, at);
          }
        });
      });
    });
    return finish();
  }

 private:
  void set_launch(const KernelSchedule& launch) {
    Kernel& kernel = builder_.kernel;
    kernel.block_threads = launch.block_threads;
    kernel.index_type = launch.index_type;
    kernel.grid = rename(launch.grid);
  }

  void parallel(Parallel parallel, const std::string& name, const Dim& extent,
                const std::function<void()>& body) {
    builder_.loop({.name = name, .begin = 0, .end = extent, .parallel = parallel, .body = {}}, body);
  }

  LoweredKernel finish() {
    collect_extents();
    return {std::move(builder_.kernel), std::move(bindings_), std::move(extents_)};
  }

  void fill(const KernelSchedule& launch, const std::optional<ThreadIndex>& joined) {
    const auto rename = [this](const Dim& dim) { return this->rename(dim); };
    ElementLowering elements(graph_, builder_, inputs_, rename);
    Lowering lowering{.graph = graph_,
                      .schedule = schedule_,
                      .launch = launch,
                      .builder = builder_,
                      .elements = elements,
                      .rename = rename,
                      .outputs = declare_outputs(launch),
                      .scratch = scratch_,
                      .results = rename(launch.results),
                      .reduced = rename(launch.reduced),
                      .joined = joined};
    builder_.at(schedule_.piece.root);
    switch (launch.mapping) {
      case Mapping::element:
        return lower_elements(lowering);
      case Mapping::row_warp:
      case Mapping::row_block:
      case Mapping::column_tile:
      case Mapping::split:
        return lower_rows(lowering);
      case Mapping::scan_warp:
      case Mapping::scan_thread:
        return lower_scan(lowering);
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

  /// Symbols keep their names in the text unless C++ or the dialect uses them.
  void name_symbols() {
    for (const ir::Symbol& symbol : graph_.symbols) {
      const std::string name = builder_.unique(c_identifier(symbol.name));
      const Dim dim = Dim::symbol(name, symbol.range);
      if (name != symbol.name) renamed_.emplace(symbol.name, dim);
      symbols_.push_back({Dim::symbol(symbol.name, symbol.range), dim});
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

  /// What the launch reads of the piece's inputs.
  void declare_inputs(const KernelSchedule& launch) {
    const std::unordered_set<NodeId> read = values_of(launch);
    for (const NodeId input : schedule_.piece.inputs) {
      if (read.contains(input) && !inputs_.contains(input)) inputs_[input] = declare(input, false);
    }
  }

  /// All that a launch computes and what that is computed of; a combining one starts from the parts.
  std::unordered_set<NodeId> values_of(const KernelSchedule& launch) const {
    const schedule::Piece& piece = schedule_.piece;
    const bool combines = launch.role == KernelSchedule::Role::combine;
    const std::unordered_set<NodeId> inside(piece.nodes.begin(), piece.nodes.end());
    std::unordered_set<NodeId> seen, parts;
    std::vector<NodeId> work;
    for (const schedule::Stage& stage : stages_of(graph_, piece, launch.role)) {
      const bool reduces = info(graph_[stage.root].op).relation == ir::Relation::reduce;
      if (combines && reduces) parts.insert(stage.root);
      work.push_back(stage.root);
    }
    while (!work.empty()) {
      const NodeId id = work.back();
      work.pop_back();
      if (!seen.insert(id).second || !inside.contains(id) || parts.contains(id)) continue;
      work.insert(work.end(), graph_[id].operands.begin(), graph_[id].operands.end());
    }
    return seen;
  }

  std::map<NodeId, BufferId> declare_outputs(const KernelSchedule& launch) {
    std::map<NodeId, BufferId> buffers;
    const bool partial = launch.role == KernelSchedule::Role::partial;
    const std::vector<NodeId> results = results_of(schedule_.piece);
    for (const schedule::Stage& stage : stages_of(graph_, schedule_.piece, launch.role)) {
      // What it makes parts of, the combining launch stores.
      if (partial && (launch.mapping == Mapping::split || is_column(stage.form))) continue;
      if (std::find(results.begin(), results.end(), stage.root) != results.end())
        buffers[stage.root] = declare(stage.root, true);
    }
    return buffers;
  }

  void declare_scratch(bool written) {
    const bool columns = schedule::has_columns(schedule_.piece);
    for (std::size_t i = 0; i < schedule_.scratch.size(); ++i) {
      bindings_.emplace_back(Scratch{i});
      scratch_.push_back(builder_.buffer(i == 0 || columns ? "part" : "part_index", schedule_.scratch[i],
                                         Space::global, rename(schedule_.scratch_elements), written));
    }
  }

  std::string summary(const KernelSchedule& launch) const {
    const NodeId root = schedule_.piece.root;
    const std::string scope = graph_.scope_path(graph_[root].scope);
    const std::string what = schedule_.piece.stages.size() > 1
                                 ? stages_text(graph_, schedule_.piece.stages)
                                 : graph_.value_name(root) + ' ' + std::string(to_string(graph_[root].op));
    return fmt::format("{}{}: results {}{}", scope.empty() ? "" : scope + ", ", what,
                       rename(launch.results).to_string(),
                       launch.mapping == Mapping::element
                           ? std::string()
                           : fmt::format(", {} over {} each", schedule::to_string(launch.mapping),
                                         rename(launch.reduced).to_string()));
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
  std::map<NodeId, BufferId> inputs_;
  std::vector<BufferId> scratch_;
  std::map<std::string, Dim, std::less<>> renamed_;
  std::vector<std::pair<Dim, Dim>> symbols_;
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
        if (const auto* load = std::get_if<Load>(&let->rhs)) add(load->index);
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
  return launch.role == KernelSchedule::Role::joined ? lowering.joined() : lowering.one(launch);
}

}  // namespace fuse::codegen
