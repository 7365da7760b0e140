// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "codegen_cuda/element_lowering.hpp"
#include "codegen_cuda/kernel_builder.hpp"
#include "codegen_cuda/primitives.hpp"
#include "schedule/shape.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;
using schedule::KernelSchedule;
using schedule::Mapping;

namespace {

constexpr int warp = 32;

class KernelLowering {
 public:
  KernelLowering(const ir::Graph& graph, const schedule::Schedule& schedule, std::size_t index,
                 const std::string& name)
      : graph_(graph),
        schedule_(schedule),
        launch_(schedule.kernels[index]),
        root_(schedule.piece.root),
        builder_(graph, name) {}

  LoweredKernel run() {
    name_symbols();
    declare_inputs();
    declare_outputs();
    Kernel& kernel = builder_.kernel;
    kernel.block_threads = launch_.block_threads;
    kernel.index_type = launch_.index_type;
    kernel.grid = rename(launch_.grid);
    kernel.summary = summary();
    results_ = rename(launch_.results);
    reduced_ = rename(launch_.reduced);
    builder_.at(root_);
    switch (launch_.mapping) {
      case Mapping::element:
        element();
        break;
      case Mapping::row_warp:
        row_warp();
        break;
      case Mapping::row_block:
        row_block(1);
        break;
      case Mapping::column_tile:
        column_tile();
        break;
      case Mapping::split:
        row_block(schedule_.choices.parts);
        break;
      case Mapping::scan_warp:
        scan_warp();
        break;
      case Mapping::scan_thread:
        scan_thread();
        break;
    }
    collect_extents();
    return {std::move(kernel), std::move(bindings_), std::move(extents_)};
  }

 private:
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

  void declare_inputs() {
    std::map<NodeId, BufferId> buffers;
    if (launch_.role == KernelSchedule::Role::combine) {
      for (std::size_t i = 0; i < schedule_.scratch.size(); ++i) {
        scratch_.push_back(scratch_buffer(i, false));
      }
    } else {
      for (NodeId input : schedule_.piece.inputs) {
        const Dim size = rename(product(graph_[input].type.dims));
        buffers[input] =
            builder_.buffer(buffer_name(input), graph_[input].type.dtype, Space::global, size, false);
        bindings_.emplace_back(input);
      }
    }
    elements_.emplace(graph_, builder_, std::move(buffers), [this](const Dim& dim) { return rename(dim); });
  }

  BufferId scratch_buffer(std::size_t component, bool written) {
    bindings_.emplace_back(Scratch{component});
    return builder_.buffer(component == 0 ? "part" : "part_index", schedule_.scratch[component],
                           Space::global, rename(schedule_.scratch_elements), written);
  }

  void declare_outputs() {
    if (launch_.role == KernelSchedule::Role::partial) {
      for (std::size_t i = 0; i < schedule_.scratch.size(); ++i) scratch_.push_back(scratch_buffer(i, true));
      return;
    }
    const Dim size = rename(product(graph_[root_].type.dims));
    // An input may be the result only when nothing computes it: then the kernel copies.
    output_ = builder_.buffer(buffer_name(root_), graph_[root_].type.dtype, Space::global, size, true);
    bindings_.emplace_back(root_);
  }

  std::string summary() const {
    const std::string scope = graph_.scope_path(graph_[root_].scope);
    return fmt::format("{}{} {}: results {}{}", scope.empty() ? "" : scope + ", ", graph_.value_name(root_),
                       to_string(graph_[root_].op), rename(launch_.results).to_string(),
                       launch_.mapping == Mapping::element
                           ? std::string()
                           : fmt::format(", {} over {} each", schedule::to_string(launch_.mapping),
                                         rename(launch_.reduced).to_string()));
  }

  // A thread an element.
  void element() {
    const std::string block = builder_.unique("b"), thread = builder_.unique("t"),
                      name = builder_.unique("i");
    parallel(Parallel::grid, block, builder_.kernel.grid, [&] {
      parallel(Parallel::block, thread, launch_.block_threads, [&] {
        const Index i = bind(
            name,
            index(block, builder_.kernel.grid) * launch_.block_threads + index(thread, launch_.block_threads),
            results_);
        builder_.when({{i, results_}}, [&] {
          if (schedule_.piece.in_place) return update(i);
          const VarId value = elements_->value(root_, unflatten(i, elements_->dims(root_)));
          builder_.at(root_);
          builder_.append(Store{output_, i, value});
        });
      });
    });
  }

  /// Element i of the update, to its place in the operand that the result lies in.
  void update(const Index& i) {
    const NodeId update = graph_[root_].operands[1];
    Coordinates at = unflatten(i, elements_->dims(update));
    const VarId value = elements_->value(update, at);
    const Coordinates starts = elements_->starts(root_);
    for (std::size_t d = 0; d < at.size(); ++d) at[d] = at[d] + starts[d];
    builder_.at(root_);
    builder_.append(Store{output_, flatten(at, elements_->dims(root_)), value});
  }

  // A warp a result; its lanes walk the reduced elements and combine by a butterfly.
  void row_warp() {
    const std::string block = builder_.unique("b"), warp_name = builder_.unique("warp"),
                      lane = builder_.unique("lane"), name = builder_.unique("row");
    const int warps = launch_.block_threads / warp;
    parallel(Parallel::grid, block, builder_.kernel.grid, [&] {
      parallel(Parallel::warp, warp_name, warps, [&] {
        parallel(Parallel::lane, lane, warp, [&] {
          const Index row =
              bind(name, index(block, builder_.kernel.grid) * warps + index(warp_name, warps), results_);
          builder_.when({{row, results_}}, [&] {
            const auto state = declare();
            accumulate(state, row, index(lane, warp), warp);
            builder_.append(WarpCombine{reduction_, state});
            builder_.when({{index(lane, warp), 1}}, [&] { store(state, row); });
          });
        });
      });
    });
  }

  // A block a result, or `parts` blocks: each warp combines its lanes, then the first warp combines the
  // warps.
  void row_block(int parts) {
    const std::string block = builder_.unique(parts == 1 ? "row" : "b"), warp_name = builder_.unique("warp"),
                      lane = builder_.unique("lane");
    const int warps = launch_.block_threads / warp;
    parallel(Parallel::grid, block, builder_.kernel.grid, [&] {
      parallel(Parallel::warp, warp_name, warps, [&] {
        parallel(Parallel::lane, lane, warp, [&] {
          const Index b = index(block, builder_.kernel.grid);
          const Index thread = index(warp_name, warps) * warp + index(lane, warp);
          const auto state = declare();
          const auto shared = shared_state(warps);
          accumulate(state, b / parts, (b % parts) * launch_.block_threads + thread,
                     launch_.block_threads * parts);
          builder_.append(WarpCombine{reduction_, state});
          builder_.when({{index(lane, warp), 1}}, [&] { put(shared, index(warp_name, warps), state); });
          builder_.append(Barrier{});
          builder_.when({{index(warp_name, warps), 1}}, [&] {
            const auto total = builder_.declare(reduction_, "total");
            builder_.when({{index(lane, warp), warps}},
                          [&] { take(shared, Dim::index(lane, warps), total); });
            builder_.append(WarpCombine{reduction_, total});
            builder_.when({{index(lane, warp), 1}}, [&] { store(total, b); });
          });
        });
      });
    });
  }

  // 32 results side by side; each warp walks every n-th reduced element, the first warp combines the warps.
  void column_tile() {
    const std::string block = builder_.unique("b"), warp_name = builder_.unique("warp"),
                      lane = builder_.unique("lane"), name = builder_.unique("column");
    const int warps = launch_.block_threads / warp;
    parallel(Parallel::grid, block, builder_.kernel.grid, [&] {
      parallel(Parallel::warp, warp_name, warps, [&] {
        parallel(Parallel::lane, lane, warp, [&] {
          const Index column =
              bind(name, index(block, builder_.kernel.grid) * warp + index(lane, warp), results_);
          const Index w = index(warp_name, warps);
          const auto state = declare();
          const auto shared = shared_state(warps * warp);
          builder_.when({{column, results_}}, [&] { accumulate(state, column, w, warps); });
          put(shared, w * warp + index(lane, warp), state);
          builder_.append(Barrier{});
          builder_.when({{w, 1}, {column, results_}}, [&] {
            const auto total = builder_.declare(reduction_, "total");
            const std::string other = builder_.unique("w");
            builder_.loop({.name = other, .begin = 0, .end = warps, .body = {}},
                          [&] { take(shared, index(other, warps) * warp + index(lane, warp), total); });
            store(total, column);
          });
        });
      });
    });
  }

  // A warp a row of a scan: 32 elements at a time, the sum so far carried on.
  void scan_warp() {
    const std::string block = builder_.unique("b"), warp_name = builder_.unique("warp"),
                      lane = builder_.unique("lane"), name = builder_.unique("row");
    const int warps = launch_.block_threads / warp;
    const bool exclusive = ir::attr<ir::ScanAttr>(graph_[root_]).exclusive;
    parallel(Parallel::grid, block, builder_.kernel.grid, [&] {
      parallel(Parallel::warp, warp_name, warps, [&] {
        parallel(Parallel::lane, lane, warp, [&] {
          const Index row =
              bind(name, index(block, builder_.kernel.grid) * warps + index(warp_name, warps), results_);
          builder_.when({{row, results_}}, [&] {
            const VarId carry = declare()[0];
            const DType dtype = graph_[root_].type.dtype;
            const std::string first = builder_.unique("c");
            builder_.loop({.name = first, .begin = 0, .end = reduced_, .step = warp, .body = {}}, [&] {
              const Index c =
                  bind(builder_.unique("p"), Dim::index(first, reduced_) + index(lane, warp), reduced_);
              VarId inside = builder_.value(boolean, IndexLess{c, reduced_});
              if (exclusive) {
                const VarId after = builder_.value(boolean, IndexLess{0, c});
                inside = builder_.compute(ir::Op::logical_and, boolean, {inside, after});
              }
              VarId incoming =
                  elements_->value(graph_[root_].operands[0], scanned(row, exclusive ? c - 1 : c), inside);
              builder_.at(root_);
              if (exclusive) {
                const VarId zero = builder_.value(dtype, Constant{});
                incoming = builder_.compute(ir::Op::select, dtype, {inside, incoming, zero});
              }
              const VarId sum = builder_.variable(dtype);
              builder_.append(WarpScan{reduction_, carry, incoming, sum});
              builder_.when({{c, reduced_}}, [&] {
                builder_.append(Store{output_, flatten(scanned(row, c), elements_->dims(root_)), sum});
              });
              elements_->leave_scope();
            });
          });
        });
      });
    });
  }

  // A thread a row of a scan; neighbours read neighbouring elements where the rows are columns.
  void scan_thread() {
    const std::string block = builder_.unique("b"), thread = builder_.unique("t"),
                      name = builder_.unique("row");
    const bool exclusive = ir::attr<ir::ScanAttr>(graph_[root_]).exclusive;
    parallel(Parallel::grid, block, builder_.kernel.grid, [&] {
      parallel(Parallel::block, thread, launch_.block_threads, [&] {
        const Index row = bind(
            name,
            index(block, builder_.kernel.grid) * launch_.block_threads + index(thread, launch_.block_threads),
            results_);
        builder_.when({{row, results_}}, [&] {
          const VarId sum = declare()[0];
          const std::string at = builder_.unique("c");
          builder_.loop({.name = at, .begin = 0, .end = reduced_, .body = {}}, [&] {
            const Coordinates place = scanned(row, Dim::index(at, reduced_));
            const Index element = flatten(place, elements_->dims(root_));
            if (exclusive) builder_.append(Store{output_, element, sum});
            const VarId incoming = elements_->value(graph_[root_].operands[0], place);
            builder_.at(root_);
            builder_.append(Combine{reduction_, {sum}, {incoming}});
            if (!exclusive) builder_.append(Store{output_, element, sum});
            elements_->leave_scope();
          });
        });
      });
    });
  }

  /// Where the c-th element that a scan visits in a row is.
  Coordinates scanned(const Index& row, const Index& c) const {
    const bool reverse = ir::attr<ir::ScanAttr>(graph_[root_]).reverse;
    return operand_coordinates(row, reverse ? reduced_ - 1 - c : c);
  }

  static Index index(const std::string& name, const Dim& extent) { return Dim::index(name, extent); }

  void parallel(Parallel parallel, const std::string& name, const Dim& extent,
                const std::function<void()>& fill) {
    builder_.loop({.name = name, .begin = 0, .end = extent, .parallel = parallel, .body = {}}, fill);
  }

  Index bind(const std::string& name, const Index& value, const Dim& extent) {
    builder_.append(Bind{name, value});
    return Dim::index(name, extent);
  }

  std::vector<VarId> declare() {
    const bool scans = info(graph_[root_].op).relation == ir::Relation::scan;
    reduction_ = builder_.reduction(scans ? ir::Op::reduce_sum : graph_[root_].op,
                                    graph_[graph_[root_].operands[0]].type.dtype);
    return builder_.declare(reduction_, "acc");
  }

  /// for c in [first, reduced) by step: state = combine(state, element c of the result)
  void accumulate(const std::vector<VarId>& state, const Index& result, const Index& first, const Dim& step) {
    const std::string name = builder_.unique("c");
    builder_.loop({.name = name, .begin = first, .end = reduced_, .step = step, .body = {}}, [&] {
      const Index c = Dim::index(name, reduced_);
      std::vector<VarId> incoming;
      if (launch_.role == KernelSchedule::Role::combine) {
        for (std::size_t i = 0; i < scratch_.size(); ++i) {
          incoming.push_back(
              builder_.value(schedule_.scratch[i], Load{scratch_[i], result * reduced_ + c, {}}));
        }
      } else {
        incoming.push_back(elements_->value(graph_[root_].operands[0], operand_coordinates(result, c)));
        builder_.at(root_);
        if (schedule::reduction_state(graph_, graph_[root_]).size() == 2) {
          incoming.push_back(builder_.value(i64, IndexValue{c}));
        }
      }
      builder_.append(Combine{reduction_, state, incoming});
      elements_->leave_scope();
    });
  }

  Coordinates operand_coordinates(const Index& result, const Index& reduced) const {
    const schedule::LoopShape shape = schedule::loop_shape(graph_, graph_[root_]);
    const auto renamed = [&](std::vector<Dim> dims) {
      for (Dim& dim : dims) dim = rename(dim);
      return dims;
    };
    const Coordinates kept = unflatten(result, renamed(shape.kept));
    const Coordinates inner = unflatten(reduced, renamed(shape.reduced));
    Coordinates at;
    std::size_t k = 0, r = 0;
    for (const bool is_reduced : shape.is_reduced) at.push_back(is_reduced ? inner[r++] : kept[k++]);
    return at;
  }

  std::vector<BufferId> shared_state(int elements) {
    std::vector<BufferId> shared;
    for (DType dtype : builder_.kernel.reductions[reduction_].state) {
      shared.push_back(builder_.buffer(shared.empty() ? "shared_acc" : "shared_index", dtype, Space::shared,
                                       elements, true));
    }
    return shared;
  }

  void put(const std::vector<BufferId>& shared, const Index& at, const std::vector<VarId>& state) {
    for (std::size_t i = 0; i < shared.size(); ++i) builder_.append(Store{shared[i], at, state[i]});
  }

  void take(const std::vector<BufferId>& shared, const Index& at, const std::vector<VarId>& state) {
    std::vector<VarId> incoming;
    for (std::size_t i = 0; i < shared.size(); ++i) {
      incoming.push_back(builder_.value(builder_.kernel.buffers[shared[i]].dtype, Load{shared[i], at, {}}));
    }
    builder_.append(Combine{reduction_, state, incoming});
  }

  void store(const std::vector<VarId>& state, const Index& at) {
    if (launch_.role == KernelSchedule::Role::partial) return put(scratch_, at, state);
    builder_.append(Store{output_, at, state.back()});  // argmax stores the position
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
  NodeId root_;
  KernelBuilder builder_;
  std::optional<ElementLowering> elements_;
  std::map<std::string, Dim, std::less<>> renamed_;
  std::vector<std::pair<Dim, Dim>> symbols_;
  std::vector<Binding> bindings_;
  std::vector<Dim> extents_;
  std::vector<BufferId> scratch_;
  BufferId output_ = 0;
  ReductionId reduction_ = 0;
  Dim results_, reduced_;
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

// What a parameter may not be called: words of C++, macros that compilers predefine, and CUDA's own
// variables.
constexpr std::array reserved = {
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char8_t",
    "char16_t",
    "char32_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "final",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "import",
    "inline",
    "int",
    "long",
    "module",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "override",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
    "linux",
    "unix",
    "assert",
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "warpSize",
};

/// Words of C++, and expf, exp, ...: what the op table's spellings call.
bool is_taken(const std::string& name) {
  static const std::unordered_set<std::string> words = [] {
    std::unordered_set<std::string> result(reserved.begin(), reserved.end());
    for (int op = 0; op < ir::op_count; ++op) {
      const std::string_view spelling = info(static_cast<ir::Op>(op)).cuda;
      const auto at = spelling.find('@');
      if (at == std::string_view::npos) continue;
      result.emplace(spelling.substr(0, at));
      result.emplace(std::string(spelling.substr(0, at)) + 'f');
    }
    return result;
  }();
  return words.contains(name);
}

}  // namespace

std::string c_identifier(std::string_view name) {
  std::string result;
  for (const char c : name) {
    const bool letter =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
    // A run of other characters becomes one underscore: doubled ones belong to the implementation.
    if (letter && !(c == '_' && !result.empty() && result.back() == '_')) result += c;
    if (!letter && !result.empty() && result.back() != '_') result += '_';
  }
  const bool digit = !result.empty() && result[0] >= '0' && result[0] <= '9';
  if (result.empty() || digit || result[0] == '_') result = 'n' + result;
  // A name followed by "(" in the text is a function of the dialect; parameters stay away from all of them.
  // Macros are spelled in capitals; there are too many to list.
  const bool capitals = result.size() > 1 && std::none_of(result.begin(), result.end(),
                                                          [](char c) { return c >= 'a' && c <= 'z'; });
  const bool taken = capitals || is_taken(result) || find_primitive(result) != nullptr;
  return taken ? result + '_' : result;
}

LoweredKernel lower(const ir::Graph& graph, const schedule::Schedule& schedule, std::size_t index,
                    const std::string& name) {
  return KernelLowering(graph, schedule, index, name).run();
}

}  // namespace fuse::codegen
