// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/kernel/kernel.hpp"

namespace fuse::kernel {
namespace {

class Printer {
 public:
  explicit Printer(const Kernel& kernel) : kernel_(kernel) {}
  std::string text;

  void print() {
    std::string params;
    const auto add = [&](const std::string& param) { params += (params.empty() ? "" : ", ") + param; };
    for (const Buffer& buffer : kernel_.buffers) {
      if (buffer.space == Space::global) add(declaration(buffer));
    }
    for (const Dim& extent : kernel_.extents) add(std::string(extent.name()));
    const std::string cluster = kernel_.cluster == 1 ? "" : fmt::format(" cluster {}", kernel_.cluster);
    line(fmt::format("kernel @{}({}) block {} grid {}{} index {} {{", kernel_.name, params,
                     kernel_.block_threads, kernel_.grid.to_string(), cluster,
                     fuse::to_string(kernel_.index_type)));
    ++depth_;
    for (const Buffer& buffer : kernel_.buffers) {
      if (buffer.space != Space::global) line(declaration(buffer));
    }
    for (std::size_t i = 0; i < kernel_.reductions.size(); ++i) {
      const Reduction& reduction = kernel_.reductions[i];
      line(fmt::format("reduction r{} {} ({}), ({}) -> ({}) {{", i, to_string(reduction.op),
                       names(reduction.left), names(reduction.right), names(reduction.result)));
      nested(reduction.region);
    }
    --depth_;
    nested(kernel_.body);
  }

 private:
  std::string declaration(const Buffer& buffer) const {
    constexpr const char* spaces[] = {"global", "shared", "local"};
    return fmt::format("{}: {}{} {}{}[{}]", buffer.name, buffer.ordered ? "ordered " : "",
                       spaces[static_cast<std::size_t>(buffer.space)], buffer.written ? "" : "const ",
                       fuse::to_string(buffer.dtype), buffer.elements.to_string());
  }

  void line(const std::string& content, const Origin& origin = {}) {
    text.append(2 * static_cast<std::size_t>(depth_), ' ');
    text += content;
    if (!origin.op.empty()) text += "  # " + origin.op + (origin.scope.empty() ? "" : "  " + origin.scope);
    text += '\n';
  }

  void nested(const std::vector<Stmt>& body) {
    ++depth_;
    for (const Stmt& stmt : body) {
      std::visit([&](const auto& node) { print(node, stmt.origin); }, stmt.node);
    }
    --depth_;
    line("}");
  }

  const std::string& name(VarId var) const { return kernel_.vars[var].name; }

  std::string names(const std::vector<VarId>& vars) const {
    std::string list;
    for (VarId var : vars) list += (list.empty() ? "" : ", ") + name(var);
    return list;
  }

  std::string element(BufferId buffer, const Index& index) const {
    return fmt::format("{}[{}]", kernel_.buffers[buffer].name, index.to_string());
  }

  std::string expression(const Constant& constant, DType dtype) const {
    return is_floating(dtype) ? fmt::format("constant {}", constant.real)
                              : fmt::format("constant {}", constant.integer);
  }
  std::string expression(const Compute& compute, DType) const {
    return fmt::format("{} {}", to_string(compute.op), names(compute.operands));
  }
  std::string expression(const Load& load, DType) const {
    return "load " + element(load.buffer, load.index) +
           (load.rank ? " of block " + load.rank->to_string() : "") +
           (load.predicate ? " where " + name(*load.predicate) : "");
  }
  std::string expression(const IndexValue& value, DType) const { return "index " + value.index.to_string(); }
  std::string expression(const IndexLess& less, DType) const {
    return less.index.to_string() + " < " + less.bound.to_string();
  }

  std::string expression(const Random& random, DType) const {
    return fmt::format("random {}, {}, element {}, stream {}", name(random.seed), name(random.offset),
                       random.element.to_string(), random.stream);
  }

  std::string expression(const Reciprocal& reciprocal, DType) const {
    return "reciprocal of " + name(reciprocal.divisor);
  }

  std::string expression(const Quotient& quotient, DType) const {
    return fmt::format("quotient {}, {} ({})", name(quotient.numerator), name(quotient.divisor),
                       name(quotient.reciprocal));
  }

  std::string expression(const Pair& pair, DType) const {
    return fmt::format("pair {}, {}", name(pair.first), name(pair.second));
  }
  std::string expression(const PartOfPair& part, DType) const {
    return fmt::format("{} of {}", part.second ? "second" : "first", name(part.pair));
  }

  void print(const Let& let, const Origin& origin) {
    const Var& var = kernel_.vars[let.var];
    const std::string rhs =
        std::visit([&](const auto& node) { return expression(node, var.dtype); }, let.rhs);
    line(fmt::format("let {}: {}{} = {}", var.name, var.pair ? "2 x " : "", fuse::to_string(var.dtype), rhs),
         origin);
  }
  void print(const Declare& declare, const Origin& origin) {
    const std::string from =
        declare.initial.empty() ? fmt::format("identity of r{}", declare.reduction) : names(declare.initial);
    line(fmt::format("declare {} = {}", names(declare.state), from), origin);
  }
  void print(const Combine& combine, const Origin& origin) {
    line(fmt::format("combine r{} ({}) with ({})", combine.reduction, names(combine.state),
                     names(combine.incoming)),
         origin);
  }
  void print(const WarpCombine& combine, const Origin& origin) {
    std::string lanes = combine.lanes == 32 ? "" : fmt::format(" of {} lanes", combine.lanes);
    if (combine.stride > 1) lanes += fmt::format(" {} apart", combine.stride);
    line(fmt::format("warp_combine r{} ({}){}", combine.reduction, names(combine.state), lanes), origin);
  }
  void print(const WarpScan& scan, const Origin& origin) {
    line(fmt::format("let {} = warp_scan r{} ({}) of {}", name(scan.result), scan.reduction, name(scan.carry),
                     name(scan.incoming)),
         origin);
  }
  void print(const Store& store, const Origin& origin) {
    line(fmt::format("store {} = {}", element(store.buffer, store.index), name(store.value)), origin);
  }
  void print(const Prefetch& prefetch, const Origin& origin) {
    line(fmt::format("prefetch {} to L{}", element(prefetch.buffer, prefetch.index), prefetch.cache), origin);
  }
  void print(const VectorLoad& load, const Origin& origin) {
    line(fmt::format("vector_load {} = {}", kernel_.buffers[load.array].name,
                     element(load.buffer, load.index)),
         origin);
  }
  void print(const VectorStore& store, const Origin& origin) {
    line(fmt::format("vector_store {} = {}", element(store.buffer, store.index),
                     kernel_.buffers[store.array].name),
         origin);
  }
  void print(const VectorDivide& divide, const Origin& origin) {
    line(fmt::format("vector_divide {} = {} by {} ({})", kernel_.buffers[divide.quotients].name,
                     kernel_.buffers[divide.numerators].name, name(divide.divisor), name(divide.reciprocal)),
         origin);
  }
  void print(const VectorRandom& random, const Origin& origin) {
    line(fmt::format("vector_random {} = {}", kernel_.buffers[random.array].name,
                     expression(random.first, f32)),
         origin);
  }
  void print(const KeepPacked& kept, const Origin& origin) {
    line(fmt::format("keep_packed {}", kernel_.buffers[kept.array].name), origin);
  }
  void print(const Bind& bind, const Origin&) {
    line(fmt::format("bind {} = {}", bind.name, bind.value.to_string()));
  }
  void print(const BindData& bind, const Origin& origin) {
    line(fmt::format("bind {} = clamp {} below {}", bind.name, name(bind.value), bind.extent.to_string()),
         origin);
  }
  void print(const For& loop, const Origin&) {
    const std::string step = loop.step.is(1) ? "" : " by " + loop.step.to_string();
    line(fmt::format("for {} in [{}, {}){} @{}{}{} {{", loop.name, loop.begin.to_string(),
                     loop.end.to_string(), step, to_string(loop.parallel), loop.unrolled ? " unrolled" : "",
                     loop.next.empty() ? "" : " next " + loop.next));
    nested(loop.body);
  }
  void print(const If& branch, const Origin&) {
    std::string test;
    for (const IndexLess& less : branch.conditions) {
      test += fmt::format("{}{} < {}", test.empty() ? "" : " and ", less.index.to_string(),
                          less.bound.to_string());
    }
    line(fmt::format("if {} {{", test));
    nested(branch.body);
  }
  void print(const TransposeTile& tile, const Origin& origin) {
    line("transpose " + kernel_.buffers[tile.buffer].name, origin);
  }
  void print(const Barrier&, const Origin& origin) { line("barrier block", origin); }
  void print(const GridBarrier& barrier, const Origin& origin) {
    const std::string& counter = kernel_.buffers[barrier.counter].name;
    line(barrier.group == 0
             ? "barrier grid " + counter
             : fmt::format("barrier groups of {} {}[{}..]", barrier.group, counter, barrier.first),
         origin);
  }
  void print(const ClusterBarrier& barrier, const Origin& origin) {
    line(barrier.shared ? "barrier cluster of shared memory" : "barrier cluster", origin);
  }
  void print(const ClusterArrive&, const Origin& origin) { line("arrive cluster", origin); }
  void print(const ClusterWait&, const Origin& origin) { line("wait cluster", origin); }

  const Kernel& kernel_;
  int depth_ = 0;
};

}  // namespace

std::string print(const Kernel& kernel) {
  Printer printer(kernel);
  printer.print();
  return printer.text;
}

}  // namespace fuse::kernel
