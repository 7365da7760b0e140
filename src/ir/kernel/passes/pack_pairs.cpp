// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/pack_pairs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "ir/kernel/visit.hpp"

namespace fuse::kernel {
namespace {

/// Whether the half type has the value, NaNs but not infinities left out.
bool is_exact(double value, DType half) {
  return half == f16 ? static_cast<double>(fuse::half(value)) == value
                     : static_cast<double>(bfloat16(value)) == value;
}

/// One loop that is rewritten. Elements `2 p` and `2 p + 1` are computed in a trip.
class PairLoop {
 public:
  PairLoop(Kernel& kernel, std::set<std::string>& names, const std::map<VarId, const Rhs*>& outside,
           const For& loop)
      : kernel_(kernel), names_(names), outside_(outside), loop_(loop) {}

  /// Whether it may be rewritten, and loads or rounds something by pairs.
  bool wanted() {
    if (!loop_.unrolled || !loop_.begin.is(0) || !loop_.step.is(1) || loop_.end.constant() % 2 != 0)
      return false;
    std::set<VarId> combined;
    std::map<BufferId, std::vector<Index>> loaded, stored;
    for (const Stmt& stmt : loop_.body) {
      if (const auto* let = std::get_if<Let>(&stmt.node)) {
        inside_[let->var] = &let->rhs;
        if (const auto* load = std::get_if<Load>(&let->rhs)) loaded[load->buffer].push_back(load->index);
      } else if (const auto* store = std::get_if<Store>(&stmt.node)) {
        stored[store->buffer].push_back(store->index);
      } else if (const auto* combine = std::get_if<Combine>(&stmt.node)) {
        for (const VarId state : combine->state) {
          if (!combined.insert(state).second) return false;
        }
      } else {
        return false;
      }
    }
    // The second element's loads stand before the first one's stores.
    for (const auto& [buffer, indices] : stored) {
      for (const Index& index : loaded[buffer]) {
        if (std::any_of(indices.begin(), indices.end(), [&](const Index& other) { return index != other; }))
          return false;
      }
    }
    bool reads_state = false, has_pairs = false;
    for (const auto& [var, rhs] : inside_) {
      Rhs copy = *rhs;
      for_each_operand(copy,
                       [&](VarId& operand) { reads_state = reads_state || combined.contains(operand); });
      has_pairs =
          has_pairs || (is_half(type(var)) && !std::holds_alternative<Constant>(*rhs) && made_as_pair(var));
    }
    return has_pairs && !reads_state;
  }

  For run() {
    find_needed();
    name_ = unique("p");
    For result{.name = name_, .begin = 0, .end = loop_.end / 2, .unrolled = true, .body = {}};
    for (const Stmt& stmt : loop_.body) {
      body_ = &result.body;
      origin_ = stmt.origin;
      if (const auto* let = std::get_if<Let>(&stmt.node)) {
        add(*let);
      } else if (const auto* store = std::get_if<Store>(&stmt.node)) {
        add(*store);
      } else {
        const auto& combine = std::get<Combine>(stmt.node);
        for (int which = 0; which < 2; ++which) {
          Combine one = combine;
          for (VarId& incoming : one.incoming) incoming = element(incoming, which);
          append(std::move(one));
        }
      }
    }
    return result;
  }

 private:
  DType type(VarId var) const { return kernel_.vars[var].dtype; }

  const Rhs* definition(VarId var) const {
    if (const auto found = inside_.find(var); found != inside_.end()) return found->second;
    const auto found = outside_.find(var);
    return found == outside_.end() ? nullptr : found->second;
  }

  /// The f32 value that a half of the loop is rounded from; null for others.
  const VarId* rounded(VarId var) const {
    const auto found = inside_.find(var);
    const auto* compute = found == inside_.end() ? nullptr : std::get_if<Compute>(found->second);
    const bool rounds =
        compute && compute->op == ir::Op::convert && is_half(type(var)) && type(compute->operands[0]) == f32;
    return rounds ? &compute->operands[0] : nullptr;
  }

  /// The half that an f32 value widens, of that type; none for others.
  const VarId* widened(VarId var, DType half) const {
    const Rhs* const rhs = definition(var);
    const auto* compute = rhs ? std::get_if<Compute>(rhs) : nullptr;
    const bool widens = compute && compute->op == ir::Op::convert && type(compute->operands[0]) == half;
    return widens ? &compute->operands[0] : nullptr;
  }

  const Constant* exact_constant(VarId var, DType half) const {
    const Rhs* const rhs = definition(var);
    const auto* constant = rhs ? std::get_if<Constant>(rhs) : nullptr;
    return constant && is_exact(constant->real, half) ? constant : nullptr;
  }

  /// The op of the loop that a half is the rounded result of, where pairs have it; null for others.
  const Compute* packed(VarId var) const {
    const VarId* const from = rounded(var);
    if (!from || !inside_.contains(*from)) return nullptr;
    const auto* compute = std::get_if<Compute>(inside_.at(*from));
    if (!compute || !info(compute->op).has(ir::Trait::pairs)) return nullptr;
    const DType half = type(var);
    const bool halves = std::all_of(compute->operands.begin(), compute->operands.end(), [&](VarId operand) {
      return widened(operand, half) || exact_constant(operand, half);
    });
    return halves ? compute : nullptr;
  }

  /// Whether the elements of the array lie side by side from a multiple of two on.
  bool pairs_up(BufferId buffer, const Index& index) const {
    if (kernel_.buffers[buffer].space != Space::local) return false;
    const Index first = at(index, 0);
    return (first % 2).is(0) && at(index, 1) == first + 1;
  }

  /// Whether a half is made as a pair, not of two single values.
  bool made_as_pair(VarId var) const {
    if (rounded(var)) return true;
    const auto found = inside_.find(var);
    if (found == inside_.end()) return false;
    if (std::holds_alternative<Constant>(*found->second)) return true;
    const auto* load = std::get_if<Load>(found->second);
    return load && !load->predicate && !load->rank && pairs_up(load->buffer, load->index);
  }

  // What is needed, users before what they use --------------------------------------------------------------

  void need(VarId var, bool pair) {
    if (is_half(type(var)) && made_as_pair(var)) pair = true;
    (pair ? pairs_ : singles_).insert(var);
  }

  void find_needed() {
    for (auto stmt = loop_.body.rbegin(); stmt != loop_.body.rend(); ++stmt) {
      if (const auto* store = std::get_if<Store>(&stmt->node)) {
        need(store->value, is_half(type(store->value)) && pairs_up(store->buffer, store->index));
      } else if (const auto* combine = std::get_if<Combine>(&stmt->node)) {
        for (const VarId incoming : combine->incoming) need(incoming, false);
      } else {
        const auto& let = std::get<Let>(stmt->node);
        if (pairs_.contains(let.var) || singles_.contains(let.var)) need_operands(let);
      }
    }
  }

  void need_operands(const Let& let) {
    if (const Compute* const compute = packed(let.var)) {
      for (const VarId operand : compute->operands) {
        if (const VarId* const half = widened(operand, type(let.var))) need(*half, true);
      }
    } else if (const VarId* const from = rounded(let.var)) {
      need(*from, false);
    } else {
      Rhs rhs = let.rhs;
      for_each_operand(rhs, [&](VarId& operand) { need(operand, false); });
    }
  }

  // Rewriting -----------------------------------------------------------------------------------------------

  void add(const Let& let) {
    if (pairs_.contains(let.var) && made_as_pair(let.var)) {
      add_pair(let);
    } else if (pairs_.contains(let.var) || singles_.contains(let.var)) {
      for (int which = 0; which < 2; ++which) made_single_[{let.var, which}] = single(let, which);
    }
  }

  void add_pair(const Let& let) {
    Rhs rhs = let.rhs;
    if (const Compute* const compute = packed(let.var)) {
      Compute op{compute->op, {}};
      for (const VarId operand : compute->operands) {
        const VarId* const half = widened(operand, type(let.var));
        op.operands.push_back(half ? pair(*half) : constant_pair(operand, type(let.var)));
      }
      rhs = std::move(op);
    } else if (const VarId* const from = rounded(let.var)) {
      rhs = Pair{element(*from, 0), element(*from, 1)};
    } else if (auto* load = std::get_if<Load>(&rhs)) {
      load->index = at(load->index, 0);
    }
    made_pair_[let.var] = define(let.var, type(let.var), std::move(rhs), true);
  }

  VarId single(const Let& let, int which) {
    if (const auto* compute = std::get_if<Compute>(&let.rhs); compute && compute->op == ir::Op::convert) {
      const VarId half = compute->operands[0];
      if (type(let.var) == f32 && made_pair_.contains(half))
        return define(let.var, f32, PartOfPair{made_pair_.at(half), which == 1});
    }
    Stmt copy{let, origin_};
    for_each_index(copy, [&](Index& index) { index = at(index, which); });
    Rhs rhs = std::move(std::get<Let>(copy.node).rhs);
    for_each_operand(rhs, [&](VarId& operand) { operand = element(operand, which); });
    return define(let.var, type(let.var), std::move(rhs));
  }

  void add(const Store& store) {
    if (pairs_.contains(store.value) && pairs_up(store.buffer, store.index))
      return append(Store{store.buffer, at(store.index, 0), pair(store.value)});
    for (int which = 0; which < 2; ++which)
      append(Store{store.buffer, at(store.index, which), element(store.value, which)});
  }

  /// The value of element 2 p + which.
  VarId element(VarId var, int which) {
    if (const auto found = made_single_.find({var, which}); found != made_single_.end()) return found->second;
    const auto made = made_pair_.find(var);
    if (made == made_pair_.end()) return var;  // the same for all elements
    return made_single_[{var, which}] = define(var, type(var), PartOfPair{made->second, which == 1});
  }

  VarId pair(VarId half) {
    if (const auto found = made_pair_.find(half); found != made_pair_.end()) return found->second;
    return made_pair_[half] = define(half, type(half), Pair{element(half, 0), element(half, 1)}, true);
  }

  VarId constant_pair(VarId f32_constant, DType half) {
    const std::pair<VarId, DType> key{f32_constant, half};
    if (const auto found = constants_.find(key); found != constants_.end()) return found->second;
    return constants_[key] = define(f32_constant, half, *exact_constant(f32_constant, half), true);
  }

  Index at(const Index& index, int which) const {
    const Index element = 2 * Dim::index(name_.empty() ? loop_.name : name_, loop_.end / 2) + which;
    return index.substitute([&](std::string_view name) { return name == loop_.name ? &element : nullptr; });
  }

  VarId define(VarId like, DType dtype, Rhs rhs, bool pair = false) {
    kernel_.vars.push_back({unique(kernel_.vars[like].name), dtype, pair});
    const auto var = static_cast<VarId>(kernel_.vars.size() - 1);
    append(Let{var, std::move(rhs)});
    return var;
  }

  void append(decltype(Stmt::node) node) { body_->push_back({std::move(node), origin_}); }

  std::string unique(const std::string& base) {
    std::string name = base;
    for (int n = 1; !names_.insert(name).second; ++n) name = base + '_' + std::to_string(n);
    return name;
  }

  Kernel& kernel_;
  std::set<std::string>& names_;
  // The definitions of values that are defined once, before the loop.
  const std::map<VarId, const Rhs*>& outside_;
  const For& loop_;
  std::map<VarId, const Rhs*> inside_;
  std::set<VarId> pairs_, singles_;  // what is needed as which
  std::map<VarId, VarId> made_pair_;
  std::map<std::pair<VarId, int>, VarId> made_single_;
  std::map<std::pair<VarId, DType>, VarId> constants_;
  std::string name_;
  std::vector<Stmt>* body_ = nullptr;
  Origin origin_;
};

class Packer {
 public:
  explicit Packer(Kernel& kernel) : kernel_(kernel), names_(names_in(kernel)) {}

  void body(std::vector<Stmt>& statements) {
    const std::map<VarId, const Rhs*> around = outside_;
    for (Stmt& stmt : statements) {
      if (const auto* let = std::get_if<Let>(&stmt.node)) outside_[let->var] = &let->rhs;
      if (auto* loop = std::get_if<For>(&stmt.node)) {
        PairLoop pairs(kernel_, names_, outside_, *loop);
        if (pairs.wanted()) {
          *loop = pairs.run();
          continue;
        }
      }
      if (std::vector<Stmt>* inner = body_of(stmt)) body(*inner);
    }
    outside_ = around;
  }

 private:
  Kernel& kernel_;
  std::set<std::string> names_;
  std::map<VarId, const Rhs*> outside_;
};

}  // namespace

Kernel pack_pairs(Kernel kernel) {
  Packer(kernel).body(kernel.body);
  return kernel;
}

}  // namespace fuse::kernel
