// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/text/print_cuda.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "codegen_cuda/primitives/primitives.hpp"
#include "codegen_cuda/text/kernel_text.hpp"
#include "ir/dims/dim_poly.hpp"
#include "ir/kernel/visit.hpp"
#include "os/parallel.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using detail::to_cxx;

namespace {

/// The primitives that a text calls, by their names in it.
std::set<std::string> called(std::string_view text) {
  std::set<std::string> found = {"kernel"};
  std::size_t at = 0;
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  while (at < text.size()) {
    if (text.substr(at, 2) == "//") at = std::min(text.find('\n', at), text.size());
    if (at >= text.size()) break;
    if (!is_word(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string word(text.substr(at, end - at));
    at = end;
    if (word == "FUSE_CLUSTER") {
      found.insert("cluster_size");
    } else if (word == "FUSE_SHARED") {
      found.insert("shared");
    } else if (word == "FUSE_SHARED_VECTORS") {
      found.insert("shared_vectors");
    } else if (word == "FUSE_LOCAL") {
      found.insert("local");
    } else if (find_primitive(word)) {
      found.insert(word);
    }
  }
  return found;
}

int min_blocks_per_sm(const Kernel& kernel) {
  return std::max(kernel.blocks_per_sm, kernel.min_blocks_per_sm);
}

class KernelPrinter : public KernelText {
 public:
  using KernelText::KernelText;

  bool cooperative = false;

  void print() {
    line(comment(fmt::format("// {}: {}", kernel_.name, kernel_.summary)));
    std::string params;
    const auto add = [&](const std::string& param) { params += (params.empty() ? "" : ", ") + param; };
    for (const Buffer& buffer : kernel_.buffers) {
      if (buffer.space != Space::global) continue;
      add(fmt::format("{}<{}{}> {}", buffer.ordered ? "ordered_global" : "global",
                      buffer.written ? "" : "const ", type_in_text(buffer.dtype), buffer.name));
    }
    for (const Dim& extent : kernel_.extents) add(fmt::format("{} {}", index_type(), extent.name()));
    const std::string cluster =
        kernel_.cluster > 1 ? fmt::format("FUSE_CLUSTER({}) ", kernel_.cluster) : std::string();
    line(fmt::format("{} {}{}({}) {{", launch_bounds(kernel_.block_threads, min_blocks_per_sm(kernel_)),
                     cluster, kernel_.name, params));
    ++depth_;
    const std::set<BufferId> vectors = accessed_by_vectors();
    for (BufferId id = 0; id < kernel_.buffers.size(); ++id) {
      const Buffer& buffer = kernel_.buffers[id];
      const std::string elements = buffer.elements.to_string();
      if (buffer.space == Space::shared) {
        line(fmt::format("FUSE_SHARED{}({}, {}, {});", vectors.contains(id) ? "_VECTORS" : "",
                         type_in_text(buffer.dtype), elements, buffer.name));
      } else if (buffer.space == Space::local) {
        line(fmt::format("FUSE_LOCAL({}, {}, {});", type_in_text(buffer.dtype), elements, buffer.name));
      }
    }
    body(kernel_.body);
    --depth_;
    line("}");
  }

 private:
  std::set<BufferId> accessed_by_vectors() const {
    std::set<BufferId> buffers;
    for_each_stmt(kernel_.body, [&](const Stmt& stmt) {
      if (const auto* load = std::get_if<VectorLoad>(&stmt.node)) buffers.insert(load->buffer);
      if (const auto* store = std::get_if<VectorStore>(&stmt.node)) buffers.insert(store->buffer);
    });
    return buffers;
  }
  std::string type_name(VarId var) const {
    const std::string_view element = type_in_text(type(var));
    return kernel_.vars[var].pair ? fmt::format("pair<{}>", element) : std::string(element);
  }

  [[noreturn]] void refuse(std::string_view what) const {
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::internal,
                 .message = fmt::format("kernel {}: {} is for a CPU's lanes", kernel_.name, what)});
  }

  void body(const std::vector<Stmt>& statements) {
    for (const Stmt& stmt : statements) {
      std::visit([&](const auto& node) { print(node, stmt.origin); }, stmt.node);
    }
  }

  std::string expression(const Compute& compute, DType result) const {
    std::vector<std::string> operands;
    for (VarId operand : compute.operands) operands.push_back(name(operand));
    return apply(compute.op, operands, type(compute.operands[0]), result);
  }

  std::string expression(const Rhs& rhs, DType result) const {
    if (const auto* constant = std::get_if<Constant>(&rhs)) return literal(*constant, result);
    if (const auto* compute = std::get_if<Compute>(&rhs)) return expression(*compute, result);
    if (const auto* value = std::get_if<IndexValue>(&rhs)) return to_cxx(value->index);
    if (const auto* less = std::get_if<IndexLess>(&rhs)) return condition(*less);
    if (const auto* random = std::get_if<Random>(&rhs)) {
      return fmt::format("random_uniform_{}({}, {}, {}, {})", to_string(result), name(random->seed),
                         name(random->offset), random->stream, to_cxx(random->element));
    }
    if (const auto* reciprocal = std::get_if<Reciprocal>(&rhs))
      return fmt::format("divisor_reciprocal({})", name(reciprocal->divisor));
    if (std::holds_alternative<Quotient>(rhs)) refuse("a quotient by a reciprocal");
    if (const auto* part = std::get_if<PartOfPair>(&rhs))
      return fmt::format("{}{}({})", part->second ? "second" : "first", result == f32 ? "_f32" : "",
                         name(part->pair));
    const auto& load = std::get<Load>(rhs);
    const std::string& from = kernel_.buffers[load.buffer].name;
    const std::string read =
        load.rank ? fmt::format("cluster_load({}, {}, {})", from, to_cxx(load.index), to_cxx(*load.rank))
                  : fmt::format("load({}, {})", from, to_cxx(load.index));
    if (!load.predicate) return read;
    return fmt::format("{} ? {} : {}", name(*load.predicate), read, zero(result));
  }

  std::string pair_expression(const Rhs& rhs, DType element) const {
    const std::string_view half = type_in_text(element);
    if (const auto* constant = std::get_if<Constant>(&rhs)) {
      const std::string value = real_literal(constant->real, false);
      return fmt::format("pair_of<{}>({}, {})", half, value, value);
    }
    if (const auto* pair = std::get_if<Pair>(&rhs))
      return fmt::format("pair_of<{}>({}, {})", half, name(pair->first), name(pair->second));
    if (const auto* load = std::get_if<Load>(&rhs))
      return fmt::format("load_pair({}, {})", kernel_.buffers[load->buffer].name, to_cxx(load->index));
    const auto& compute = std::get<Compute>(rhs);
    std::string operands;
    for (const VarId operand : compute.operands) operands += (operands.empty() ? "" : ", ") + name(operand);
    return fmt::format("{}_pair({})", to_string(compute.op), operands);
  }

  static std::string zero(DType type) {
    return is_half(type) ? fmt::format("{}{{}}", type_in_text(type)) : literal({}, type);
  }

  static std::string condition(const IndexLess& less) {
    if (less.bound.is(1)) return to_cxx(less.index) + " == 0";
    return fmt::format("{} < {}", to_cxx(less.index), to_cxx(less.bound));
  }

  void print(const Let& let, const Origin& origin) {
    const bool pair = kernel_.vars[let.var].pair;
    op_line(fmt::format("const {} {} = {};", type_name(let.var), name(let.var),
                        pair ? pair_expression(let.rhs, type(let.var)) : expression(let.rhs, type(let.var))),
            origin);
  }

  void print(const Declare& declare, const Origin& origin) {
    const Reduction& reduction = kernel_.reductions[declare.reduction];
    for (std::size_t i = 0; i < declare.state.size(); ++i) {
      const DType dtype = reduction.state[i];
      const std::string from =
          declare.initial.empty() ? literal(reduction.identity[i], dtype) : name(declare.initial[i]);
      op_line(fmt::format("{} {} = {};", type_in_text(dtype), name(declare.state[i]), from), origin);
    }
  }

  std::string combined(const Reduction& reduction, const std::string& left, const std::string& right) const {
    return apply(*reduction.single, {left, right}, reduction.state[0], reduction.state[0]);
  }

  /// The region with the state on its left, as statements of a block of its own.
  void region(const Reduction& reduction, const std::vector<std::string>& left,
              const std::vector<std::string>& right, const Origin& origin) {
    for (std::size_t i = 0; i < left.size(); ++i) {
      names_[reduction.left[i]] = left[i];
      names_[reduction.right[i]] = right[i];
    }
    body(reduction.region);
    for (std::size_t i = 0; i < left.size(); ++i) {
      op_line(fmt::format("{} = {};", left[i], name(reduction.result[i])), origin);
    }
  }

  void print(const Combine& combine, const Origin& origin) {
    const Reduction& reduction = kernel_.reductions[combine.reduction];
    if (reduction.single) {
      const std::string& state = name(combine.state[0]);
      op_line(fmt::format("{} = {};", state, combined(reduction, state, name(combine.incoming[0]))), origin);
      return;
    }
    line("{");
    ++depth_;
    region(reduction, names(combine.state), names(combine.incoming), origin);
    --depth_;
    line("}");
  }

  void print(const WarpCombine& combine, const Origin& origin) {
    const Reduction& reduction = kernel_.reductions[combine.reduction];
    // reduce_sum has the primitive warp_sum: one exchange where the device can.
    const std::string_view op = to_string(reduction.op);
    const std::string primitive = "warp_" + std::string(op.substr(op.find('_') + 1));
    if (combine.lanes == 32 && reduction.single && find_primitive(primitive)) {
      const std::string& state = name(combine.state[0]);
      op_line(fmt::format("{} = {}({});", state, primitive, state), origin);
      return;
    }
    line("#pragma unroll");
    line(fmt::format("for (int d = {}; d > {}; d >>= 1) {{", combine.stride * combine.lanes / 2,
                     combine.stride / 2));
    ++depth_;
    std::vector<std::string> others;
    for (std::size_t i = 0; i < combine.state.size(); ++i) {
      others.push_back("other" + std::to_string(i));
      op_line(fmt::format("const {} {} = shuffle_xor({}, d);", type_in_text(reduction.state[i]), others[i],
                          name(combine.state[i])),
              origin);
    }
    region(reduction, names(combine.state), others, origin);
    --depth_;
    line("}");
  }

  void print(const WarpScan& scan, const Origin& origin) {
    op_line(fmt::format("const {} {} = warp_scan_sum({}, {});", type_in_text(type(scan.result)),
                        name(scan.result), name(scan.incoming), name(scan.carry)),
            origin);
  }

  void print(const Store& store, const Origin& origin) {
    op_line(fmt::format("{}({}, {}, {});", kernel_.vars[store.value].pair ? "store_pair" : "store",
                        kernel_.buffers[store.buffer].name, to_cxx(store.index), name(store.value)),
            origin);
  }

  void print(const VectorLoad& load, const Origin& origin) {
    op_line(fmt::format("load_vector({}, {}, {});", kernel_.buffers[load.array].name,
                        kernel_.buffers[load.buffer].name, to_cxx(load.index)),
            origin);
  }

  void print(const VectorStore& store, const Origin& origin) {
    op_line(fmt::format("store_vector({}, {}, {});", kernel_.buffers[store.buffer].name, to_cxx(store.index),
                        kernel_.buffers[store.array].name),
            origin);
  }

  void print(const VectorDivide& divide, const Origin& origin) {
    op_line(
        fmt::format("divide_vector({}, {}, {}, {});", kernel_.buffers[divide.quotients].name,
                    kernel_.buffers[divide.numerators].name, name(divide.divisor), name(divide.reciprocal)),
        origin);
  }

  void print(const VectorRandom& vector, const Origin& origin) {
    const Random& first = vector.first;
    op_line(fmt::format("random_vector({}, {}, {}, {}, {});", kernel_.buffers[vector.array].name,
                        name(first.seed), name(first.offset), first.stream, to_cxx(first.element)),
            origin);
  }

  void print(const Prefetch&, const Origin&) { refuse("a prefetch"); }
  void print(const KeepPacked& kept, const Origin& origin) {
    op_line(fmt::format("keep_packed({});", kernel_.buffers[kept.array].name), origin);
  }

  void print(const Bind& bind, const Origin&) {
    line(fmt::format("const {} {} = {};", index_type(), bind.name, to_cxx(bind.value)));
  }

  void print(const BindData& bind, const Origin& origin) { op_line(clamped(bind), origin); }

  void print(const For& loop, const Origin&) {
    switch (loop.parallel) {
      case Parallel::grid:
        line(fmt::format("const {} {} = blockIdx.x;", index_type(), loop.name));
        break;
      case Parallel::block:
        line(fmt::format("const {} {} = threadIdx.x;", index_type(), loop.name));
        break;
      case Parallel::warp:
        line(fmt::format("const {} {} = threadIdx.x / 32;", index_type(), loop.name));
        break;
      case Parallel::lane:
        line(fmt::format("const {} {} = threadIdx.x % 32;", index_type(), loop.name));
        break;
      case Parallel::serial: {
        if (loop.unrolled) line("#pragma unroll");
        line(head_of(loop));
        ++depth_;
        body(loop.body);
        --depth_;
        line("}");
        return;
      }
    }
    body(loop.body);
  }

  void print(const If& branch, const Origin&) {
    std::string test;
    for (const IndexLess& less : branch.conditions) test += (test.empty() ? "" : " && ") + condition(less);
    line(fmt::format("if ({}) {{", test));
    ++depth_;
    body(branch.body);
    --depth_;
    line("}");
  }

  void print(const TransposeTile&, const Origin&) { refuse("a transpose of a tile"); }
  void print(const Barrier&, const Origin& origin) { op_line("block_barrier();", origin, true); }

  void print(const GridBarrier& barrier, const Origin& origin) {
    cooperative = true;
    const std::string& counter = kernel_.buffers[barrier.counter].name;
    op_line(barrier.group == 0
                ? fmt::format("grid_barrier({});", counter)
                : fmt::format("group_barrier({}, {}, {});", counter, barrier.first, barrier.group),
            origin, true);
  }

  void print(const ClusterBarrier& barrier, const Origin& origin) {
    op_line(barrier.shared ? "cluster_shared_barrier();" : "cluster_barrier();", origin, true);
  }
  void print(const ClusterArrive&, const Origin& origin) { op_line("cluster_arrive();", origin, true); }
  void print(const ClusterWait&, const Origin& origin) { op_line("cluster_wait();", origin, true); }
};

std::int64_t shared_bytes(const Kernel& kernel) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : kernel.buffers) {
    if (buffer.space != Space::shared) continue;
    bytes += buffer.elements.constant() * static_cast<std::int64_t>(size_of(buffer.dtype));
  }
  return bytes;
}

bool communicates(const std::set<std::string>& primitives) {
  for (const std::string& name : primitives) {
    if (find_primitive(name)->communicates) return true;
  }
  return false;
}

struct Printed {
  std::string text;
  KernelInfo info;  ///< its lines are counted from the text's first
  std::set<std::string> primitives;
};

Printed printed_kernel(const Kernel& kernel) {
  KernelPrinter printer(kernel);
  printer.print();
  Printed result{.text = std::move(printer.text) + '\n',
                 .info = {.name = kernel.name,
                          .block_threads = kernel.block_threads,
                          .cooperative = printer.cooperative,
                          .blocks_per_sm = kernel.blocks_per_sm,
                          .min_blocks_per_sm = min_blocks_per_sm(kernel),
                          .cluster = kernel.cluster,
                          .shared_bytes = shared_bytes(kernel),
                          .lines = std::move(printer.lines)},
                 .primitives = {}};
  result.info.params = params_of(kernel);
  result.primitives = called(result.text);
  result.info.communicates = communicates(result.primitives);
  return result;
}

}  // namespace

std::string prelude_of(std::string_view body) {
  const std::set<std::string> used = called(body);
  return cuda_prelude({used.begin(), used.end()}) + '\n';
}

Source print_cuda(const std::string& name, const std::vector<Kernel>& kernels,
                  const std::vector<CustomText>& customs, const PrintOptions& options) {
  std::vector<Printed> printed(kernels.size());
  parallel_for(options.threads, kernels.size(),
               [&](std::size_t i) { printed[i] = printed_kernel(kernels[i]); });
  Source source;
  source.name = name;
  std::set<std::string> used;
  int first_line = 0;
  for (Printed& one : printed) {
    used.insert(one.primitives.begin(), one.primitives.end());
    for (OpLine& line : one.info.lines) line.line += first_line;
    for (const char c : one.text) first_line += c == '\n';
    source.starts.push_back(source.body.size());
    source.body += one.text;
    source.kernels.push_back(std::move(one.info));
  }
  for (const CustomText& custom : customs) {
    KernelInfo info{.name = custom.name,
                    .params = custom.params,
                    .block_threads = custom.block_threads,
                    .cooperative = custom.cooperative,
                    .shared_bytes = custom.shared_bytes};
    const std::set<std::string> mine = called(custom.source);
    used.insert(mine.begin(), mine.end());
    info.communicates = communicates(mine);
    const std::string text = custom.source + (custom.source.ends_with('\n') ? "\n" : "\n\n");
    for (const char c : text) {
      if (c != '\n') continue;
      info.lines.push_back(
          {first_line++, custom.origin.op, custom.origin.scope, custom.origin.location, false});
    }
    source.starts.push_back(source.body.size());
    source.body += text;
    source.kernels.push_back(std::move(info));
  }
  source.primitives.assign(used.begin(), used.end());
  source.prelude = cuda_prelude(source.primitives) + '\n';
  const int offset = source.body_line();
  for (KernelInfo& info : source.kernels) {
    for (OpLine& line : info.lines) line.line += offset;
  }
  return source;
}

}  // namespace fuse::codegen
