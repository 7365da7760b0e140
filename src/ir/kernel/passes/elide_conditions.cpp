// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/elide_conditions.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <string>

namespace fuse::kernel {
namespace {

class Elider {
 public:
  std::vector<Stmt> body(std::vector<Stmt> statements) {
    const std::map<std::string, Index, std::less<>> outer = values_;
    std::vector<Stmt> result;
    for (Stmt& stmt : statements) {
      if (auto* bind = std::get_if<Bind>(&stmt.node)) {
        values_.insert_or_assign(bind->name, bind->value);
      } else if (auto* data = std::get_if<BindData>(&stmt.node)) {
        values_.erase(data->name);
      } else if (auto* loop = std::get_if<For>(&stmt.node)) {
        values_.erase(loop->name);
        loop->body = body(std::move(loop->body));
      } else if (auto* branch = std::get_if<If>(&stmt.node)) {
        std::erase_if(branch->conditions, [&](const IndexLess& less) { return holds(less); });
        const std::size_t around = known_.size();
        known_.insert(known_.end(), branch->conditions.begin(), branch->conditions.end());
        branch->body = body(std::move(branch->body));
        known_.resize(around);
        if (branch->conditions.empty()) {
          std::move(branch->body.begin(), branch->body.end(), std::back_inserter(result));
          continue;
        }
      }
      result.push_back(std::move(stmt));
    }
    values_ = outer;
    return result;
  }

 private:
  bool holds(const IndexLess& less) const {
    if (std::find(known_.begin(), known_.end(), less) != known_.end()) return true;
    // The range of a bound name is that which its condition is to prove: its value has one of its own.
    const auto value = values_.find(less.index.name());
    const Index& index = value == values_.end() ? less.index : value->second;
    if (mentions_bound(index)) return false;
    return less.bound.is_constant() && !index.is_constant() && index.max() < less.bound.constant();
  }

  bool mentions_bound(const Index& index) const {
    const std::vector<Dim> symbols = index.symbols();
    return std::any_of(symbols.begin(), symbols.end(),
                       [&](const Dim& symbol) { return values_.contains(symbol.name()); });
  }

  std::map<std::string, Index, std::less<>> values_;  // the values of bound names in scope
  std::vector<IndexLess> known_;
};

}  // namespace

Kernel elide_conditions(Kernel kernel) {
  kernel.body = Elider().body(std::move(kernel.body));
  return kernel;
}

}  // namespace fuse::kernel
