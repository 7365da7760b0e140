// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/lower.hpp"

#include <fmt/format.h>

#include <algorithm>

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
  KernelLowering(const ir::Graph& graph, const schedule::Schedule& schedule, std::size_t index,
                 const std::string& name)
      : graph_(graph), schedule_(schedule), launch_(schedule.kernels[index]), builder_(graph, name) {}

  LoweredKernel run() {
    name_symbols();
    const auto rename = [this](const Dim& dim) { return this->rename(dim); };
    const bool combines = launch_.role == KernelSchedule::Role::combine;
    const bool partial = launch_.role == KernelSchedule::Role::partial;
    std::vector<BufferId> scratch = combines ? declare_scratch(false) : std::vector<BufferId>();
    ElementLowering elements(graph_, builder_, combines ? std::map<NodeId, BufferId>() : declare_inputs(),
                             rename);
    if (partial) scratch = declare_scratch(true);
    Lowering lowering{.graph = graph_,
                      .schedule = schedule_,
                      .launch = launch_,
                      .builder = builder_,
                      .elements = elements,
                      .rename = rename,
                      .outputs = partial ? std::map<NodeId, BufferId>() : declare_outputs(),
                      .scratch = std::move(scratch),
                      .results = rename(launch_.results),
                      .reduced = rename(launch_.reduced)};
    Kernel& kernel = builder_.kernel;
    kernel.block_threads = launch_.block_threads;
    kernel.index_type = launch_.index_type;
    kernel.grid = rename(launch_.grid);
    kernel.summary = summary();
    builder_.at(schedule_.piece.root);
    fill(lowering);
    collect_extents();
    return {std::move(kernel), std::move(bindings_), std::move(extents_)};
  }

 private:
  void fill(Lowering& lowering) const {
    switch (launch_.mapping) {
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

  std::map<NodeId, BufferId> declare_inputs() {
    std::map<NodeId, BufferId> buffers;
    for (const NodeId input : schedule_.piece.inputs) buffers[input] = declare(input, false);
    return buffers;
  }

  std::map<NodeId, BufferId> declare_outputs() {
    std::map<NodeId, BufferId> buffers;
    for (const NodeId result : results_of(schedule_.piece)) buffers[result] = declare(result, true);
    return buffers;
  }

  std::vector<BufferId> declare_scratch(bool written) {
    std::vector<BufferId> buffers;
    for (std::size_t i = 0; i < schedule_.scratch.size(); ++i) {
      bindings_.emplace_back(Scratch{i});
      buffers.push_back(builder_.buffer(i == 0 ? "part" : "part_index", schedule_.scratch[i], Space::global,
                                        rename(schedule_.scratch_elements), written));
    }
    return buffers;
  }

  std::string summary() const {
    const NodeId root = schedule_.piece.root;
    const std::string scope = graph_.scope_path(graph_[root].scope);
    const std::string what = schedule_.piece.stages.size() > 1
                                 ? stages_text(graph_, schedule_.piece.stages)
                                 : graph_.value_name(root) + ' ' + std::string(to_string(graph_[root].op));
    return fmt::format("{}{}: results {}{}", scope.empty() ? "" : scope + ", ", what,
                       rename(launch_.results).to_string(),
                       launch_.mapping == Mapping::element
                           ? std::string()
                           : fmt::format(", {} over {} each", schedule::to_string(launch_.mapping),
                                         rename(launch_.reduced).to_string()));
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
  const KernelSchedule& launch_;
  KernelBuilder builder_;
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
  return KernelLowering(graph, schedule, index, name).run();
}

}  // namespace fuse::codegen
