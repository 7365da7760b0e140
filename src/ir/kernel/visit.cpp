// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/visit.hpp"

#include <algorithm>

namespace fuse::kernel {

std::vector<Stmt>* body_of(Stmt& stmt) {
  if (auto* loop = std::get_if<For>(&stmt.node)) return &loop->body;
  if (auto* branch = std::get_if<If>(&stmt.node)) return &branch->body;
  return nullptr;
}

const std::vector<Stmt>* body_of(const Stmt& stmt) {
  if (const auto* loop = std::get_if<For>(&stmt.node)) return &loop->body;
  if (const auto* branch = std::get_if<If>(&stmt.node)) return &branch->body;
  return nullptr;
}

void for_each_stmt(std::vector<Stmt>& body, const std::function<void(Stmt&)>& f) {
  for (Stmt& stmt : body) {
    f(stmt);
    if (std::vector<Stmt>* inner = body_of(stmt)) for_each_stmt(*inner, f);
  }
}

void for_each_stmt(const std::vector<Stmt>& body, const std::function<void(const Stmt&)>& f) {
  for (const Stmt& stmt : body) {
    f(stmt);
    if (const std::vector<Stmt>* inner = body_of(stmt)) for_each_stmt(*inner, f);
  }
}

void for_each_index(Stmt& stmt, const std::function<void(Index&)>& f) {
  if (auto* let = std::get_if<Let>(&stmt.node)) {
    if (auto* load = std::get_if<Load>(&let->rhs)) {
      f(load->index);
      if (load->rank) f(*load->rank);
    }
    if (auto* value = std::get_if<IndexValue>(&let->rhs)) f(value->index);
    if (auto* less = std::get_if<IndexLess>(&let->rhs)) f(less->index);
    if (auto* random = std::get_if<Random>(&let->rhs)) f(random->element);
  } else if (auto* store = std::get_if<Store>(&stmt.node)) {
    f(store->index);
  } else if (auto* prefetch = std::get_if<Prefetch>(&stmt.node)) {
    f(prefetch->index);
  } else if (auto* load = std::get_if<VectorLoad>(&stmt.node)) {
    f(load->index);
  } else if (auto* store = std::get_if<VectorStore>(&stmt.node)) {
    f(store->index);
  } else if (auto* random = std::get_if<VectorRandom>(&stmt.node)) {
    f(random->first.element);
  } else if (auto* bind = std::get_if<Bind>(&stmt.node)) {
    f(bind->value);
  } else if (auto* loop = std::get_if<For>(&stmt.node)) {
    if (loop->parallel == Parallel::serial) f(loop->begin);
  }
}

namespace {

/// The walk over a statement that may change, and over one that may not.
template <class Statement, class F>
void accesses(Statement& stmt, const F& f) {
  if (auto* let = std::get_if<Let>(&stmt.node)) {
    if (auto* load = std::get_if<Load>(&let->rhs)) f(load->buffer, false);
  } else if (auto* store = std::get_if<Store>(&stmt.node)) {
    f(store->buffer, true);
  } else if (auto* load = std::get_if<VectorLoad>(&stmt.node)) {
    f(load->buffer, false);
    f(load->array, true);
  } else if (auto* store = std::get_if<VectorStore>(&stmt.node)) {
    f(store->array, false);
    f(store->buffer, true);
  } else if (auto* divide = std::get_if<VectorDivide>(&stmt.node)) {
    f(divide->numerators, false);
    f(divide->quotients, true);
  } else if (auto* random = std::get_if<VectorRandom>(&stmt.node)) {
    f(random->array, true);
  } else if (auto* kept = std::get_if<KeepPacked>(&stmt.node)) {
    f(kept->array, false);
    f(kept->array, true);
  } else if (auto* tile = std::get_if<TransposeTile>(&stmt.node)) {
    f(tile->buffer, false);
    f(tile->buffer, true);
  } else if (auto* barrier = std::get_if<GridBarrier>(&stmt.node)) {
    f(barrier->counter, true);
  }
}

}  // namespace

void for_each_access(const Stmt& stmt, const std::function<void(BufferId, bool)>& f) { accesses(stmt, f); }

void rename_buffers(Stmt& stmt, const std::function<BufferId(BufferId)>& f) {
  std::vector<BufferId*> mentions;  // a place that is read and written is here twice
  accesses(stmt, [&](BufferId& buffer, bool) { mentions.push_back(&buffer); });
  if (auto* prefetch = std::get_if<Prefetch>(&stmt.node)) mentions.push_back(&prefetch->buffer);
  std::sort(mentions.begin(), mentions.end());
  mentions.erase(std::unique(mentions.begin(), mentions.end()), mentions.end());
  for (BufferId* buffer : mentions) *buffer = f(*buffer);
}

void for_each_assigned(const Stmt& stmt, const std::function<void(VarId)>& f) {
  const auto all = [&](const std::vector<VarId>& vars) {
    for (const VarId var : vars) f(var);
  };
  if (const auto* let = std::get_if<Let>(&stmt.node)) {
    f(let->var);
  } else if (const auto* declare = std::get_if<Declare>(&stmt.node)) {
    all(declare->state);
  } else if (const auto* combine = std::get_if<Combine>(&stmt.node)) {
    all(combine->state);
  } else if (const auto* warp = std::get_if<WarpCombine>(&stmt.node)) {
    all(warp->state);
  } else if (const auto* scan = std::get_if<WarpScan>(&stmt.node)) {
    all({scan->carry, scan->result});
  }
}

void for_each_operand(Rhs& rhs, const std::function<void(VarId&)>& f) {
  if (auto* compute = std::get_if<Compute>(&rhs)) {
    for (VarId& operand : compute->operands) f(operand);
  } else if (auto* load = std::get_if<Load>(&rhs)) {
    if (load->predicate) f(*load->predicate);
  } else if (auto* random = std::get_if<Random>(&rhs)) {
    f(random->seed);
    f(random->offset);
  } else if (auto* reciprocal = std::get_if<Reciprocal>(&rhs)) {
    f(reciprocal->divisor);
  } else if (auto* quotient = std::get_if<Quotient>(&rhs)) {
    f(quotient->numerator);
    f(quotient->divisor);
    f(quotient->reciprocal);
  } else if (auto* pair = std::get_if<Pair>(&rhs)) {
    f(pair->first);
    f(pair->second);
  } else if (auto* part = std::get_if<PartOfPair>(&rhs)) {
    f(part->pair);
  }
}

std::set<std::string> names_in(const Kernel& kernel) {
  std::set<std::string> names;
  for (const Buffer& buffer : kernel.buffers) names.insert(buffer.name);
  for (const Dim& extent : kernel.extents) names.insert(std::string(extent.name()));
  for (const Var& var : kernel.vars) names.insert(var.name);
  for_each_stmt(kernel.body, [&](const Stmt& stmt) {
    if (const auto* loop = std::get_if<For>(&stmt.node)) {
      names.insert(loop->name);
      if (!loop->next.empty()) names.insert(loop->next);
    }
    if (const auto* bind = std::get_if<Bind>(&stmt.node)) names.insert(bind->name);
    if (const auto* data = std::get_if<BindData>(&stmt.node)) names.insert(data->name);
  });
  return names;
}

}  // namespace fuse::kernel
