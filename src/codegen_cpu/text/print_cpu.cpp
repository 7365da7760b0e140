// SPDX-License-Identifier: Apache-2.0
#include "codegen_cpu/text/print_cpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fuse/error.hpp>
#include <map>
#include <set>
#include <string>

#include "codegen_cpu/prelude/prelude.hpp"
#include "codegen_cpu/text/lane_values.hpp"
#include "codegen_cpu/text/running_extremes.hpp"
#include "codegen_cuda/text/kernel_text.hpp"
#include "ir/dims/dim_poly.hpp"
#include "ir/kernel/visit.hpp"
#include "os/parallel.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using detail::to_cxx;

namespace {

constexpr std::int64_t scratch_alignment = 64;

std::int64_t scratch_of(const Buffer& buffer) {
  const std::int64_t bytes = buffer.elements.constant() * static_cast<std::int64_t>(size_of(buffer.dtype));
  return (bytes + scratch_alignment - 1) / scratch_alignment * scratch_alignment;
}

class CpuPrinter : public KernelText {
 public:
  explicit CpuPrinter(const Kernel& kernel)
      : KernelText(kernel),
        lanes_(kernel),
        taken_(names_in(kernel)),
        is_result_(kernel.buffers.size()),
        used_by_lane_(kernel.vars.size()) {
    for (std::size_t i = 0; i < is_result_.size(); ++i)
      is_result_[i] = kernel.buffers[i].space == Space::global && kernel.buffers[i].written;
    note_uses(kernel.body);
    for (const Reduction& reduction : kernel.reductions) note_uses(reduction.region);
  }

  std::int64_t scratch_bytes = 0;

  void print() {
    line(comment(fmt::format("// {}: {}", kernel_.name, kernel_.summary)));
    line(fmt::format("FUSE_CPU_KERNEL({}) {{", kernel_.name));
    ++depth_;
    int argument = 0;
    for (const Buffer& buffer : kernel_.buffers) {
      if (buffer.space != Space::global) continue;
      const std::string_view type = type_in_text(buffer.dtype);
      line(buffer.written
               ? fmt::format("{0}* const {1} = reinterpret_cast<{0}*>(call->arguments[{2}]);", type,
                             buffer.name, argument++)
               : fmt::format(
                     "const {0}* const __restrict {1} = reinterpret_cast<const {0}*>(call->arguments[{2}]);",
                     type, buffer.name, argument++));
    }
    for (const Dim& extent : kernel_.extents)
      line(fmt::format("const {0} {1} = static_cast<{0}>(call->arguments[{2}]);", index_type(), extent.name(),
                       argument++));
    for (const Buffer& buffer : kernel_.buffers) {
      if (buffer.space != Space::shared) continue;
      line(fmt::format("{0}* const {1} = reinterpret_cast<{0}*>(call->scratch + {2});",
                       type_in_text(buffer.dtype), buffer.name, scratch_bytes));
      scratch_bytes += scratch_of(buffer);
    }
    if (std::find(is_result_.begin(), is_result_.end(), true) != is_result_.end())
      line(fmt::format("const bool stream = call->stream >= {};", has_tiles_ ? 1 : 2));
    line("for (long long block = call->first; block < call->last; ++block) {");
    ++depth_;
    for (const Buffer& buffer : kernel_.buffers) {
      if (buffer.space == Space::local)
        line(fmt::format("vec<{}> {}[{}];", type_in_text(buffer.dtype), buffer.name,
                         buffer.elements.to_string()));
    }
    body(kernel_.body);
    --depth_;
    line("}");
    --depth_;
    line("}");
  }

 private:
  void note_uses(const std::vector<Stmt>& statements) {
    for (const Stmt& stmt : statements) {
      has_tiles_ = has_tiles_ || std::holds_alternative<TransposeTile>(stmt.node);
      if (const auto* let = std::get_if<Let>(&stmt.node)) {
        if (const auto* load = std::get_if<Load>(&let->rhs)) is_result_[load->buffer] = false;
        note_operands(let->rhs);
      } else if (const auto* store = std::get_if<Store>(&stmt.node)) {
        used_by_lane_[store->value] = true;
      } else if (const auto* combine = std::get_if<Combine>(&stmt.node)) {
        for (const VarId var : combine->incoming) used_by_lane_[var] = true;
      } else if (const auto* declare = std::get_if<Declare>(&stmt.node)) {
        for (const VarId var : declare->initial) used_by_lane_[var] = true;
      } else if (const auto* scan = std::get_if<WarpScan>(&stmt.node)) {
        used_by_lane_[scan->incoming] = true;
      } else if (const auto* data = std::get_if<BindData>(&stmt.node)) {
        used_by_lane_[data->value] = true;
      } else if (const auto* loop = std::get_if<For>(&stmt.node)) {
        note_uses(loop->body);
      } else if (const auto* branch = std::get_if<If>(&stmt.node)) {
        note_uses(branch->body);
      }
    }
  }

  void note_operands(const Rhs& rhs) {
    const auto* const compute = std::get_if<Compute>(&rhs);
    const std::vector<VarId> of = compute ? compute->operands : std::vector<VarId>();
    const bool compares = compute && info(compute->op).result == ir::ResultClass::boolean && of.size() == 2;
    if (compares && (!differs(of[0]) || !differs(of[1]))) return;
    Rhs copy = rhs;
    for_each_operand(copy, [&](VarId& var) { used_by_lane_[var] = true; });
  }

  [[noreturn]] void refuse(std::string_view what) const {
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::internal,
                 .message = fmt::format("kernel {}: the cpu device has no {}", kernel_.name, what)});
  }

  void body(const std::vector<Stmt>& statements) {
    for (const Stmt& stmt : statements) {
      std::visit([&](const auto& node) { print(node, stmt.origin); }, stmt.node);
    }
  }

  bool differs(VarId var) const { return lanes_.differs(var); }
  /// Whether the value is an index that is only compared with values that are the same for all lanes.
  bool is_compared(const Let& let) const {
    const auto* const value = std::get_if<IndexValue>(&let.rhs);
    return value && lanes_.differs(value->index) && !used_by_lane_[let.var];
  }

  std::string type_of(VarId var) const {
    const std::string_view element = type_in_text(type(var));
    return differs(var) ? fmt::format("vec<{}>", element) : std::string(element);
  }
  /// The value for each lane, whatever it is.
  std::string in_lanes(VarId var) const { return differs(var) ? name(var) : in_lanes(name(var), type(var)); }
  static std::string in_lanes(const std::string& value, DType type) {
    return fmt::format("all<{}>({})", type_in_text(type), value);
  }
  static std::string condition(const IndexLess& less) {
    return fmt::format("{} < {}", to_cxx(less.index), to_cxx(less.bound));
  }
  /// A name that the kernel does not have: the prefix, and the next number.
  std::string new_name(std::string_view prefix, int& next) const {
    std::string name;
    do name = fmt::format("{}{}", prefix, next++);
    while (taken_.contains(name));
    return name;
  }
  std::string new_mask() { return new_name("mask", masks_); }
  std::string with_mask() const { return mask_.empty() ? "" : ", " + mask_; }

  std::string applied(ir::Op op, const std::vector<std::string>& operands, DType operand,
                      DType result) const {
    if (op == ir::Op::select) return fmt::format("select({}, {}, {})", operands[0], operands[1], operands[2]);
    return apply(op, operands, operand, result);
  }

  std::string expression(const Compute& compute, DType result) const {
    const bool by_lane = std::any_of(compute.operands.begin(), compute.operands.end(),
                                     [&](VarId operand) { return differs(operand); });
    std::vector<std::string> operands;
    for (std::size_t i = 0; i < compute.operands.size(); ++i) {
      const VarId operand = compute.operands[i];
      const bool chosen = compute.op == ir::Op::select && i > 0;
      operands.push_back(by_lane && chosen ? in_lanes(operand) : name(operand));
    }
    return applied(compute.op, operands, type(compute.operands[0]), result);
  }

  std::string load_text(const Load& load, DType result) const {
    if (load.rank) refuse("clusters");
    const std::string from = kernel_.buffers[load.buffer].name, index = to_cxx(load.index);
    const std::string zero =
        is_half(result) ? fmt::format("{}{{}}", type_in_text(result)) : literal({}, result);
    const bool by_lane = lanes_.differs(load.index);
    if (kernel_.buffers[load.buffer].space == Space::local) {
      if (by_lane) refuse("index by lane into a thread's own array");
      return fmt::format("{}[{}]", from, index);
    }
    const std::string_view how =
        has_tiles_ && kernel_.buffers[load.buffer].space == Space::global ? "load_and_ask_for_next" : "load";
    if (!load.predicate)
      return by_lane ? fmt::format("{}({}, {}{})", how, from, index, with_mask())
                     : fmt::format("load({}, {})", from, index);
    const VarId predicate = *load.predicate;
    const std::string& test = name(predicate);
    if (!differs(predicate)) {
      if (!by_lane) return fmt::format("{} ? load({}, {}) : {}", test, from, index, zero);
      return fmt::format("{} ? load({}, {}{}) : {}", test, from, index, with_mask(), in_lanes(zero, result));
    }
    const std::string where =
        mask_.empty() ? fmt::format("full({})", test) : fmt::format("({} & {})", mask_, test);
    if (by_lane) return fmt::format("load({}, {}, {})", from, index, where);
    // All lanes read one element; it is read only where the mask has a lane.
    return fmt::format("select({0}, all<{4}>(any({0}) ? load({1}, {2}) : {3}), all<{4}>({3}))", where, from,
                       index, zero, type_in_text(result));
  }

  std::string expression(const Let& let) const {
    const DType result = type(let.var);
    const Rhs& rhs = let.rhs;
    if (const auto* constant = std::get_if<Constant>(&rhs)) return literal(*constant, result);
    if (const auto* compute = std::get_if<Compute>(&rhs)) return expression(*compute, result);
    if (const auto* value = std::get_if<IndexValue>(&rhs))
      return lanes_.differs(value->index)
                 ? fmt::format("{}<{}>({})", is_compared(let) ? "compared_index" : "index_value",
                               type_in_text(result), to_cxx(value->index))
                 : to_cxx(value->index);
    if (const auto* less = std::get_if<IndexLess>(&rhs))
      return lanes_.differs(*less) ? fmt::format("as_value({})", condition(*less)) : condition(*less);
    if (const auto* random = std::get_if<Random>(&rhs);
        random && (differs(random->seed) || differs(random->offset))) {
      const std::string element = to_cxx(random->element);
      return fmt::format("random_each_{}({}, {}, {}, {})", to_string(result), in_lanes(random->seed),
                         in_lanes(random->offset), random->stream,
                         lanes_.differs(random->element) ? fmt::format("lanes({})", element)
                                                         : fmt::format("all<{}>({})", index_type(), element));
    }
    if (const auto* random = std::get_if<Random>(&rhs))
      return fmt::format("random_uniform_{}({}, {}, {}, {})", to_string(result), name(random->seed),
                         name(random->offset), random->stream, to_cxx(random->element));
    if (const auto* load = std::get_if<Load>(&rhs)) return load_text(*load, result);
    if (const auto* reciprocal = std::get_if<Reciprocal>(&rhs))
      return fmt::format("divisor_reciprocal({})", in_lanes(reciprocal->divisor));
    if (const auto* quotient = std::get_if<Quotient>(&rhs)) {
      if (!differs(let.var))
        return fmt::format("divide({}, {})", name(quotient->numerator), name(quotient->divisor));
      return fmt::format("divide({}, {}, {})", in_lanes(quotient->numerator), in_lanes(quotient->divisor),
                         name(quotient->reciprocal));
    }
    refuse("pairs");
  }

  void print(const Let& let, const Origin& origin) {
    op_line(fmt::format("const {} {} = {};", is_compared(let) ? "auto" : type_of(let.var), name(let.var),
                        expression(let)),
            origin);
  }

  void print(const Declare& declare, const Origin& origin) {
    const Reduction& reduction = kernel_.reductions[declare.reduction];
    for (std::size_t i = 0; i < declare.state.size(); ++i) {
      const DType dtype = reduction.state[i];
      const std::string from = declare.initial.empty()
                                   ? in_lanes(literal(reduction.identity[i], dtype), dtype)
                                   : in_lanes(declare.initial[i]);
      op_line(fmt::format("vec<{}> {} = {};", type_in_text(dtype), name(declare.state[i]), from), origin);
    }
  }

  /// Assigns a value to the state, in the lanes of the mask alone.
  void assign(const std::string& state, const std::string& value, const Origin& origin) {
    op_line(mask_.empty() ? fmt::format("{} = {};", state, value)
                          : fmt::format("{0} = select({1}, {2}, {0});", state, mask_, value),
            origin);
  }

  /// The region with the state on its left, as statements of a block of its own.
  void region(const Reduction& reduction, const std::vector<std::string>& left,
              const std::vector<std::string>& right, const Origin& origin) {
    for (std::size_t i = 0; i < left.size(); ++i) {
      names_[reduction.left[i]] = left[i];
      names_[reduction.right[i]] = right[i];
    }
    body(reduction.region);
    for (std::size_t i = 0; i < left.size(); ++i) assign(left[i], in_lanes(reduction.result[i]), origin);
  }

  void print(const Combine& combine, const Origin& origin) {
    const Reduction& reduction = kernel_.reductions[combine.reduction];
    std::vector<std::string> incoming;
    for (const VarId var : combine.incoming) incoming.push_back(in_lanes(var));
    if (reduction.single) {
      const std::string& state = name(combine.state[0]);
      if (const auto running = running_.find(combine.state[0]); running != running_.end()) {
        // The state is one of the values already, so that lanes outside of the mask may take it again.
        op_line(fmt::format("take({}, {});", running->second,
                            mask_.empty() ? incoming[0]
                                          : fmt::format("select({}, {}, {})", mask_, incoming[0], state)),
                origin);
        return;
      }
      assign(state, applied(*reduction.single, {state, incoming[0]}, reduction.state[0], reduction.state[0]),
             origin);
      return;
    }
    line("{");
    ++depth_;
    for (std::size_t i = 0; i < incoming.size(); ++i) {
      if (!differs(combine.incoming[i])) {
        op_line(fmt::format("const auto incoming{} = {};", i, incoming[i]), origin);
        incoming[i] = fmt::format("incoming{}", i);
      }
    }
    region(reduction, names(combine.state), incoming, origin);
    --depth_;
    line("}");
  }

  void print(const WarpCombine& combine, const Origin& origin) {
    if (!mask_.empty()) refuse("exchange between some lanes of a warp");
    const Reduction& reduction = kernel_.reductions[combine.reduction];
    const std::string_view op = to_string(reduction.op);
    const std::string primitive = "warp_" + std::string(op.substr(op.find('_') + 1));
    const bool known = op == "reduce_sum" || op == "reduce_prod" || op == "reduce_max" || op == "reduce_min";
    if (combine.lanes == 32 && reduction.single && known) {
      const std::string& state = name(combine.state[0]);
      op_line(fmt::format("{} = {}({});", state, primitive, state), origin);
      return;
    }
    for (int d = combine.stride * combine.lanes / 2; d > combine.stride / 2; d /= 2) {
      line("{");
      ++depth_;
      std::vector<std::string> others;
      for (std::size_t i = 0; i < combine.state.size(); ++i) {
        others.push_back("other" + std::to_string(i));
        op_line(fmt::format("const vec<{}> {} = shuffle_xor<{}>({});", type_in_text(reduction.state[i]),
                            others[i], d, name(combine.state[i])),
                origin);
      }
      if (reduction.single) {
        const std::string& state = name(combine.state[0]);
        assign(state, applied(*reduction.single, {state, others[0]}, reduction.state[0], reduction.state[0]),
               origin);
      } else {
        region(reduction, names(combine.state), others, origin);
      }
      --depth_;
      line("}");
    }
  }

  void print(const WarpScan& scan, const Origin& origin) {
    if (!mask_.empty()) refuse("exchange between some lanes of a warp");
    op_line(fmt::format("const vec<{}> {} = warp_scan_sum({}, {});", type_in_text(type(scan.result)),
                        name(scan.result), in_lanes(scan.incoming), name(scan.carry)),
            origin);
  }

  void print(const Store& store, const Origin& origin) {
    const Buffer& buffer = kernel_.buffers[store.buffer];
    const std::string index = to_cxx(store.index);
    const bool by_lane = lanes_.differs(store.index);
    if (buffer.space == Space::local) {
      if (by_lane) refuse("index by lane into a thread's own array");
      assign(fmt::format("{}[{}]", buffer.name, index), in_lanes(store.value), origin);
      return;
    }
    if (by_lane || differs(store.value)) {
      const char* const how = !by_lane                   ? "store_one("
                              : is_result_[store.buffer] ? "store_result(stream, "
                                                         : "store(";
      op_line(fmt::format("{}{}, {}, {}{});", how, buffer.name, index, in_lanes(store.value), with_mask()),
              origin);
    } else {
      op_line(fmt::format("store({}, {}, {});", buffer.name, index, name(store.value)), origin);
    }
  }

  void print(const Prefetch& prefetch, const Origin& origin) {
    op_line(fmt::format("prefetch<{}>({}, {});", prefetch.cache, kernel_.buffers[prefetch.buffer].name,
                        to_cxx(prefetch.index)),
            origin);
  }
  void print(const VectorLoad&, const Origin&) { refuse("accesses of several elements in a lane"); }
  void print(const VectorStore&, const Origin&) { refuse("accesses of several elements in a lane"); }
  void print(const VectorDivide&, const Origin&) { refuse("divisions of several elements in a lane"); }
  void print(const VectorRandom&, const Origin&) { refuse("draws of several elements in a lane"); }
  void print(const KeepPacked&, const Origin&) { refuse("packed registers"); }

  void print(const Bind& bind, const Origin&) {
    line(fmt::format("const {} {} = {};", lanes_.differs(bind.value) ? "auto" : index_type(), bind.name,
                     to_cxx(bind.value)));
  }

  void print(const BindData& bind, const Origin& origin) {
    if (differs(bind.value)) {
      op_line(fmt::format("const vec<{0}> {1} = clamped_index<{0}>({2}, {3});", index_type(), bind.name,
                          name(bind.value), to_cxx(bind.extent)),
              origin);
      return;
    }
    op_line(clamped(bind), origin);
  }

  void print(const For& loop, const Origin&) {
    switch (loop.parallel) {
      case Parallel::grid:
        line(fmt::format("const {0} {1} = static_cast<{0}>(block);", index_type(), loop.name));
        if (!loop.next.empty())
          line(fmt::format(
              "const {0} {1} = static_cast<{0}>(block + 1 < call->last ? block + 1 : call->next);",
              index_type(), loop.next));
        break;
      case Parallel::warp:
        line(fmt::format("const {} {} = 0;", index_type(), loop.name));
        break;
      case Parallel::block:
      case Parallel::lane:
        line(fmt::format("const run<{}> {}{{0}};", index_type(), loop.name));
        break;
      case Parallel::serial:
        serial(loop);
        return;
    }
    body(loop.body);
  }

  void serial(const For& loop) {
    if (lanes_.differs(loop.step)) refuse("step by lane");
    std::vector<VarId> begun;
    for (const auto& [state, maximum] : running_extremes(kernel_, loop)) {
      const auto [running, added] = running_.try_emplace(state);
      if (!added) continue;  // by a loop around this one
      begun.push_back(state);
      running->second = new_name("running", runnings_);
      line(fmt::format("running_{} {}({});", maximum ? "maximum" : "minimum", running->second, name(state)));
    }
    if (lanes_.differs(loop.begin) || lanes_.differs(loop.end))
      by_lane(loop);
    else
      of_all_lanes(loop);
    for (const VarId state : begun) {
      line(fmt::format("{} = value_of({});", name(state), running_.at(state)));
      running_.erase(state);
    }
  }

  void of_all_lanes(const For& loop) {
    line(head_of(loop));
    ++depth_;
    body(loop.body);
    --depth_;
    line("}");
  }

  /// A loop whose bounds differ by lane runs as long as one lane has an iteration.
  void by_lane(const For& loop) {
    const std::string before = mask_;
    const std::string begin = lanes_.differs(loop.begin)
                                  ? to_cxx(loop.begin)
                                  : fmt::format("{}({})", index_type(), to_cxx(loop.begin));
    line(fmt::format("for (auto {0} = {1};; {0} = {0} + {2}) {{", loop.name, begin, to_cxx(loop.step)));
    ++depth_;
    mask_ = new_mask();
    line(fmt::format("const auto {} = as_mask({}({} < {}));", mask_, before.empty() ? "" : before + " & ",
                     loop.name, to_cxx(loop.end)));
    line(fmt::format("if (!any({})) break;", mask_));
    body(loop.body);
    --depth_;
    line("}");
    mask_ = before;
  }

  /// Conditions that are the same for all lanes are branches; the others are a mask, and a branch around what
  /// no lane does.
  void print(const If& branch, const Origin&) {
    std::string test, where = mask_;
    bool masked = false;
    for (const IndexLess& less : branch.conditions) {
      if (!lanes_.differs(less)) {
        test += (test.empty() ? "" : " && ") + condition(less);
        continue;
      }
      where += fmt::format("{}({})", where.empty() ? "" : " & ", condition(less));
      masked = true;
    }
    if (!test.empty()) {
      line(fmt::format("if ({}) {{", test));
      ++depth_;
    }
    if (masked) {
      const std::string before = mask_;
      mask_ = new_mask();
      line(fmt::format("const auto {} = as_mask({});", mask_, where));
      line(fmt::format("if (any({})) {{", mask_));
      ++depth_;
      body(branch.body);
      --depth_;
      line("}");
      mask_ = before;
    } else {
      body(branch.body);
    }
    if (!test.empty()) {
      --depth_;
      line("}");
    }
  }

  void print(const TransposeTile& tile, const Origin& origin) {
    op_line(fmt::format("transpose_tile({});", kernel_.buffers[tile.buffer].name), origin);
  }

  // The lanes of a warp do each statement together, and a block is one warp.
  void print(const Barrier&, const Origin&) {}
  void print(const GridBarrier&, const Origin&) { refuse("barrier of several blocks"); }
  void print(const ClusterBarrier&, const Origin&) { refuse("clusters"); }
  void print(const ClusterArrive&, const Origin&) { refuse("clusters"); }
  void print(const ClusterWait&, const Origin&) { refuse("clusters"); }

  const LaneValues lanes_;
  const std::set<std::string> taken_;
  std::vector<bool> is_result_;     ///< of each buffer: the kernel writes it and does not read it
  std::vector<bool> used_by_lane_;  ///< of each variable: more than compared with what all lanes have
  bool has_tiles_ = false;          ///< it reads and writes pieces of rows that lie apart
  std::string mask_{};              ///< of the lanes that do what is printed; empty: all of them
  int masks_ = 0;
  std::map<VarId, std::string> running_{};  ///< the running extreme that stands for a state, by its name
  int runnings_ = 0;
};

struct Printed {
  std::string text;
  KernelInfo info;
};

Printed printed_for_cpu(const Kernel& kernel) {
  if (kernel.block_threads != 32 || kernel.cluster != 1)
    throw Error(
        {.kind = ErrorKind::internal,
         .code = ErrorCode::internal,
         .message = fmt::format("kernel {}: the cpu device runs blocks of one warp, not of {} threads",
                                kernel.name, kernel.block_threads)});
  CpuPrinter printer(kernel);
  printer.print();
  Printed result{.text = std::move(printer.text) + '\n',
                 .info = {.name = kernel.name,
                          .block_threads = kernel.block_threads,
                          .shared_bytes = printer.scratch_bytes,
                          .lines = std::move(printer.lines)}};
  result.info.params = params_of(kernel);
  return result;
}

}  // namespace

Source print_cpu(const std::string& name, const std::vector<Kernel>& kernels, int threads) {
  std::vector<Printed> printed(kernels.size());
  parallel_for(threads, kernels.size(), [&](std::size_t i) { printed[i] = printed_for_cpu(kernels[i]); });
  Source source;
  source.name = name;
  source.prelude = cpu_prelude();
  int next_line = source.body_line();
  for (Printed& one : printed) {
    for (OpLine& each : one.info.lines) each.line += next_line;
    next_line += static_cast<int>(std::count(one.text.begin(), one.text.end(), '\n'));
    source.starts.push_back(source.body.size());
    source.body += one.text;
    source.kernels.push_back(std::move(one.info));
  }
  return source;
}

}  // namespace fuse::codegen
