// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/hoist_invariants.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "ir/kernel/visit.hpp"

namespace fuse::kernel {
namespace {

/// What a loop's trips may change.
struct Changed {
  std::set<std::string, std::less<>> names;  ///< the names of indices
  std::set<VarId> vars;
  std::set<BufferId> buffers;
  bool waits = false;  ///< it waits for other threads, whose stores it may see then

  void add(const Stmt& stmt) {
    for_each_assigned(stmt, [&](VarId var) { vars.insert(var); });
    for_each_access(stmt, [&](BufferId buffer, bool writes) {
      if (writes) buffers.insert(buffer);
    });
    if (const auto* bind = std::get_if<Bind>(&stmt.node)) {
      names.insert(bind->name);
    } else if (const auto* data = std::get_if<BindData>(&stmt.node)) {
      names.insert(data->name);
    } else {
      waits = waits || std::holds_alternative<Barrier>(stmt.node) ||
              std::holds_alternative<GridBarrier>(stmt.node) ||
              std::holds_alternative<ClusterBarrier>(stmt.node) ||
              std::holds_alternative<ClusterArrive>(stmt.node) ||
              std::holds_alternative<ClusterWait>(stmt.node);
    }
  }

  bool changes(const Index& index) const {
    const std::vector<Dim> symbols = index.symbols();
    return std::any_of(symbols.begin(), symbols.end(),
                       [&](const Dim& symbol) { return names.contains(symbol.name()); });
  }
  bool changes(VarId var) const { return vars.contains(var); }

  bool changes(const Constant&) const { return false; }
  bool changes(const Compute& compute) const {
    return std::any_of(compute.operands.begin(), compute.operands.end(),
                       [&](VarId operand) { return changes(operand); });
  }
  bool changes(const Load& load) const {
    return waits || buffers.contains(load.buffer) || changes(load.index) ||
           (load.predicate && changes(*load.predicate)) || (load.rank && changes(*load.rank));
  }
  bool changes(const IndexValue& value) const { return changes(value.index); }
  bool changes(const IndexLess& less) const { return changes(less.index) || changes(less.bound); }
  bool changes(const Random& random) const {
    return changes(random.seed) || changes(random.offset) || changes(random.element);
  }
  bool changes(const Reciprocal& reciprocal) const { return changes(reciprocal.divisor); }
  bool changes(const Quotient& quotient) const {
    return changes(quotient.numerator) || changes(quotient.divisor);
  }
  bool changes(const Pair& pair) const { return changes(pair.first) || changes(pair.second); }
  bool changes(const PartOfPair& part) const { return changes(part.pair); }
};

bool surely_runs(const For& loop) { return loop.begin.max() < loop.end.min(); }

void hoist_from(std::vector<Stmt>& statements) {
  std::vector<Stmt> result;
  for (Stmt& stmt : statements) {
    if (std::vector<Stmt>* inner = body_of(stmt)) hoist_from(*inner);
    if (auto* loop = std::get_if<For>(&stmt.node);
        loop && loop->parallel == Parallel::serial && surely_runs(*loop)) {
      Changed changed;
      changed.names.insert(loop->name);
      for_each_stmt(std::as_const(loop->body), [&](const Stmt& inside) { changed.add(inside); });
      const auto moves = [&](const Stmt& inside) {
        if (const auto* data = std::get_if<BindData>(&inside.node)) {
          if (changed.changes(data->value) || changed.changes(data->extent)) return false;
          changed.names.erase(data->name);
          return true;
        }
        const auto* let = std::get_if<Let>(&inside.node);
        if (!let || std::visit([&](const auto& rhs) { return changed.changes(rhs); }, let->rhs)) return false;
        changed.vars.erase(let->var);
        return true;
      };
      std::vector<Stmt> stays;
      for (Stmt& inside : loop->body) (moves(inside) ? result : stays).push_back(std::move(inside));
      loop->body = std::move(stays);
    }
    result.push_back(std::move(stmt));
  }
  statements = std::move(result);
}

}  // namespace

Kernel hoist_invariants(Kernel kernel) {
  hoist_from(kernel.body);
  return kernel;
}

}  // namespace fuse::kernel
