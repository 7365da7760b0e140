// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/divide_by_invariants.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "ir/kernel/visit.hpp"

namespace fuse::kernel {
namespace {

// The fewest divisions that pay for the one which makes the reciprocal.
constexpr std::int64_t fewest_divisions = 4, fewest_divisions_of_lanes = 2;

// The most elements of a vector: their numerators and quotients take registers.
constexpr std::int64_t most_divided = 8;

/// At least as many trips of the innermost loops; a loop that is not unrolled counts as enough.
std::int64_t trips_of(const std::vector<Stmt>& body) {
  std::int64_t most = 1;
  for (const Stmt& stmt : body) {
    const std::vector<Stmt>* const inner = body_of(stmt);
    if (!inner) continue;
    const auto* loop = std::get_if<For>(&stmt.node);
    const bool serial = loop && loop->parallel == Parallel::serial;
    if (serial && !loop->unrolled) return fewest_divisions;
    most = std::max(most, (serial ? loop->end.constant() - loop->begin.constant() : 1) * trips_of(*inner));
  }
  return most;
}

bool pays(const For& loop, std::int64_t fewest) {
  if (loop.parallel != Parallel::serial) return false;
  if (!loop.unrolled) return true;
  return (loop.end.constant() - loop.begin.constant()) * trips_of(loop.body) >= fewest;
}

const Compute* division(const Kernel& kernel, const Stmt& stmt) {
  const auto* let = std::get_if<Let>(&stmt.node);
  const auto* compute = let ? std::get_if<Compute>(&let->rhs) : nullptr;
  return compute && compute->op == ir::Op::div && kernel.vars[let->var].dtype == f32 ? compute : nullptr;
}

std::set<VarId> assigned_in(const std::vector<Stmt>& body) {
  std::set<VarId> vars;
  for_each_stmt(body,
                [&](const Stmt& stmt) { for_each_assigned(stmt, [&](VarId var) { vars.insert(var); }); });
  return vars;
}

/// What a part of a loop's body needs from what stands before it, and does to memory.
struct Effects {
  std::set<BufferId> loads, stores;
  bool loads_memory = false, stores_memory = false;  ///< memory that is not a thread's own
};

class Divider {
 public:
  Divider(Kernel& kernel, bool by_lanes) : kernel_(kernel), by_lanes_(by_lanes), names_(names_in(kernel)) {}

  void body(std::vector<Stmt>& statements) {
    std::vector<Stmt> result;
    for (Stmt& stmt : statements) {
      auto* loop = std::get_if<For>(&stmt.node);
      std::vector<VarId> mine;  // divisors whose reciprocals stand before this loop
      if (loop && pays(*loop, by_lanes_ ? fewest_divisions_of_lanes : fewest_divisions))
        mine = add_reciprocals(*loop, result);
      if (!by_lanes_ && loop && loop->unrolled && !reciprocals_.empty() &&
          loop->end.constant() <= most_divided) {
        split(std::move(stmt), result);
      } else {
        if (std::vector<Stmt>* inner = body_of(stmt)) body(*inner);
        result.push_back(std::move(stmt));
      }
      for (const VarId divisor : mine) reciprocals_.erase(divisor);
    }
    if (!reciprocals_.empty()) divide_each(result);
    statements = std::move(result);
  }

 private:
  /// Adds reciprocals of the divisors in the loop that it does not change and that no loop around has
  /// already.
  std::vector<VarId> add_reciprocals(const For& loop, std::vector<Stmt>& before) {
    const std::set<VarId> changed = assigned_in(loop.body);
    std::vector<VarId> added;
    for_each_stmt(loop.body, [&](const Stmt& stmt) {
      const Compute* const found = division(kernel_, stmt);
      if (!found) return;
      const VarId divisor = found->operands[1];
      if (changed.contains(divisor) || reciprocals_.contains(divisor)) return;
      const VarId reciprocal = variable(kernel_.vars[divisor].name + "_r", f32);
      Stmt& made = before.emplace_back();
      made.origin = stmt.origin;
      made.node = Let{reciprocal, Reciprocal{divisor}};
      reciprocals_[divisor] = reciprocal;
      added.push_back(divisor);
    });
    return added;
  }

  bool is_wanted(const Stmt& stmt) const {
    const Compute* const found = division(kernel_, stmt);
    return found && reciprocals_.contains(found->operands[1]);
  }

  /// Turns divisions that stand in a loop which is not split into divisions of a vector of one element each;
  /// what lanes hold is such a vector already.
  void divide_each(std::vector<Stmt>& statements) {
    std::vector<Stmt> result;
    for (Stmt& stmt : statements) {
      if (!is_wanted(stmt)) {
        result.push_back(std::move(stmt));
        continue;
      }
      auto& let = std::get<Let>(stmt.node);
      const Compute compute = std::get<Compute>(let.rhs);
      if (by_lanes_) {
        let.rhs = Quotient{compute.operands[0], compute.operands[1], reciprocals_.at(compute.operands[1])};
        result.push_back(std::move(stmt));
        continue;
      }
      const BufferId numerators = array(let.var, "_n", 1), quotients = array(let.var, "_q", 1);
      result.push_back({Store{numerators, 0, compute.operands[0]}, stmt.origin});
      result.push_back(
          {VectorDivide{quotients, numerators, compute.operands[1], reciprocals_.at(compute.operands[1])},
           stmt.origin});
      let.rhs = Load{quotients, 0, {}, {}};
      result.push_back(std::move(stmt));
    }
    statements = std::move(result);
  }

  /// The unrolled loop up to its first division, the division of all elements, and the rest of the loop,
  /// which is treated in the same way. A loop that cannot be split stays as it is.
  void split(Stmt stmt, std::vector<Stmt>& result) {
    auto& loop = std::get<For>(stmt.node);
    const auto at =
        std::find_if(loop.body.begin(), loop.body.end(), [&](const Stmt& s) { return is_wanted(s); });
    std::optional<std::vector<Stmt>> rest;
    if (at == loop.body.end()) {
      body(loop.body);
    } else if (loop.begin.is(0) && loop.step.is(1)) {
      rest = rest_of(loop, at - loop.body.begin());
    }
    if (!rest) {
      result.push_back(std::move(stmt));
      return;
    }
    const Origin origin = stmt.origin, of_division = at->origin;
    const auto& let = std::get<Let>(at->node);
    const Compute compute = std::get<Compute>(let.rhs);
    const std::int64_t trips = loop.end.constant();
    const BufferId numerators = array(let.var, "_n", trips), quotients = array(let.var, "_q", trips);
    const VarId quotient = let.var;
    loop.body.erase(at, loop.body.end());
    const Index element = Dim::index(loop.name, loop.end);
    loop.body.push_back({Store{numerators, element, compute.operands[0]}, of_division});
    append_passed(loop, *rest, origin);
    For second{.name = unique(loop.name), .begin = 0, .end = loop.end, .unrolled = true, .body = {}};
    const Index other = Dim::index(second.name, second.end);
    second.body.push_back({Let{quotient, Load{quotients, element, {}, {}}}, of_division});
    std::move(rest->begin(), rest->end(), std::back_inserter(second.body));
    for_each_stmt(second.body, [&](Stmt& inside) {
      for_each_index(inside, [&](Index& index) {
        index = index.substitute([&](std::string_view name) { return name == loop.name ? &other : nullptr; });
      });
    });
    result.push_back(std::move(stmt));
    result.push_back(
        {VectorDivide{quotients, numerators, compute.operands[1], reciprocals_.at(compute.operands[1])},
         of_division});
    split({std::move(second), origin}, result);
  }

  /// What stands after the division, with the values from before it that are made again there; none where the
  /// trips of the two parts cannot be separated. Values that are not made again are noted in passed_.
  std::optional<std::vector<Stmt>> rest_of(const For& loop, std::ptrdiff_t division) {
    const auto middle = loop.body.begin() + division;
    const std::vector<Stmt> first(loop.body.begin(), middle);
    std::vector<Stmt> rest(middle + 1, loop.body.end());
    Effects before, behind;
    if (!effects(first, before) || !effects(rest, behind)) return std::nullopt;
    if ((before.stores_memory && (behind.loads_memory || behind.stores_memory)) ||
        shares(before.stores, behind.loads) || shares(before.loads, behind.stores) ||
        shares(before.stores, behind.stores))
      return std::nullopt;
    std::set<VarId> used;
    for (Stmt& stmt : rest) {
      if (auto* let = std::get_if<Let>(&stmt.node))
        for_each_operand(let->rhs, [&](VarId& v) { used.insert(v); });
      if (const auto* store = std::get_if<Store>(&stmt.node)) used.insert(store->value);
      if (const auto* data = std::get_if<BindData>(&stmt.node)) used.insert(data->value);
      if (const auto* combine = std::get_if<Combine>(&stmt.node))
        used.insert(combine->incoming.begin(), combine->incoming.end());
    }
    std::vector<Stmt> again;
    passed_.clear();
    for (std::size_t i = first.size(); i-- > 0;) {
      const Stmt& stmt = first[i];
      if (const auto* combine = std::get_if<Combine>(&stmt.node)) {
        if (std::any_of(combine->state.begin(), combine->state.end(),
                        [&](VarId v) { return used.contains(v); }))
          return std::nullopt;
      } else if (const auto* data = std::get_if<BindData>(&stmt.node)) {
        used.insert(data->value);
        again.push_back(stmt);
      } else if (std::holds_alternative<Bind>(stmt.node)) {
        again.push_back(stmt);
      } else if (const auto* let = std::get_if<Let>(&stmt.node); let && used.contains(let->var)) {
        const auto* load = std::get_if<Load>(&let->rhs);
        const bool own = load && kernel_.buffers[load->buffer].space == Space::local && !load->predicate;
        if (own || std::holds_alternative<Constant>(let->rhs)) {
          again.push_back(stmt);
        } else {
          passed_.push_back(let->var);
        }
      }
    }
    rest.insert(rest.begin(), std::make_move_iterator(again.rbegin()), std::make_move_iterator(again.rend()));
    return rest;
  }

  /// Values of the first part that the second one reads go from trip to trip in arrays of the thread's own.
  void append_passed(For& loop, std::vector<Stmt>& rest, const Origin& origin) {
    const Index element = Dim::index(loop.name, loop.end);
    std::vector<Stmt> taken;
    for (const VarId var : std::exchange(passed_, {})) {
      const BufferId kept = array(var, "_k", loop.end.constant());
      loop.body.push_back({Store{kept, element, var}, origin});
      taken.push_back({Let{var, Load{kept, element, {}, {}}}, origin});
    }
    rest.insert(rest.begin(), std::make_move_iterator(taken.begin()), std::make_move_iterator(taken.end()));
  }

  /// False for a body with loops, conditions or waits.
  bool effects(const std::vector<Stmt>& body, Effects& effects) const {
    for (const Stmt& stmt : body) {
      const bool plain = std::holds_alternative<Let>(stmt.node) || std::holds_alternative<Store>(stmt.node) ||
                         std::holds_alternative<Combine>(stmt.node) ||
                         std::holds_alternative<Bind>(stmt.node) ||
                         std::holds_alternative<BindData>(stmt.node);
      if (!plain) return false;
      for_each_access(stmt, [&](BufferId buffer, bool writes) {
        const bool own = kernel_.buffers[buffer].space == Space::local;
        (writes ? effects.stores : effects.loads).insert(buffer);
        if (!own) (writes ? effects.stores_memory : effects.loads_memory) = true;
      });
    }
    return true;
  }

  static bool shares(const std::set<BufferId>& a, const std::set<BufferId>& b) {
    return std::any_of(a.begin(), a.end(), [&](BufferId id) { return b.contains(id); });
  }

  std::string unique(const std::string& base) {
    std::string name = base;
    for (int n = 1; !names_.insert(name).second; ++n) name = base + '_' + std::to_string(n);
    return name;
  }

  VarId variable(const std::string& base, DType dtype) {
    kernel_.vars.push_back({unique(base), dtype});
    return static_cast<VarId>(kernel_.vars.size() - 1);
  }

  BufferId array(VarId of, const char* suffix, std::int64_t elements) {
    const Var& var = kernel_.vars[of];
    kernel_.buffers.push_back({unique(var.name + suffix), var.dtype, Space::local, elements, true});
    return static_cast<BufferId>(kernel_.buffers.size() - 1);
  }

  Kernel& kernel_;
  const bool by_lanes_;
  std::set<std::string> names_;
  std::map<VarId, VarId> reciprocals_;  // the reciprocals of the divisors that the loops around do not change
  std::vector<VarId> passed_;
};

}  // namespace

Kernel divide_by_invariants(Kernel kernel) {
  Divider(kernel, false).body(kernel.body);
  return kernel;
}

Kernel divide_lanes_by_invariants(Kernel kernel) {
  Divider(kernel, true).body(kernel.body);
  return kernel;
}

}  // namespace fuse::kernel
