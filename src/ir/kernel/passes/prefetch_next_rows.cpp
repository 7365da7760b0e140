// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/prefetch_next_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/access.hpp"
#include "ir/dims/dim_poly.hpp"
#include "ir/kernel/visit.hpp"

namespace fuse::kernel {
namespace {

// What all prefetches for one row may take of the first cache and of the second one.
constexpr std::int64_t most_near_bytes = 8 << 10, most_bytes = 256 << 10;
// An access of all lanes, side by side.
constexpr std::int64_t lanes_of_access = 32;

bool divides(const Index& index) {
  if (!poly_of(index)) return false;
  for (const detail::DimTerm& term : poly_of(index)->terms) {
    for (const detail::Atom& factor : term.factors) {
      using Kind = detail::DimAtom::Kind;
      if (factor->kind != Kind::symbol && factor->kind != Kind::index) return true;
    }
  }
  return false;
}

/// A loop whose trips read rows: the grid, or blocks that take rows in turns. `next` is the row after this
/// one.
struct Rows {
  std::string name{};
  Index next{};
  std::int64_t bytes = 0;         ///< that are asked for already
  std::vector<Prefetch> asked{};  ///< what these are, with the loop's index called `walk`
};

class Prefetcher {
 public:
  explicit Prefetcher(Kernel& kernel) : kernel_(kernel), names_(names_in(kernel)) {
    for (const Dim& extent : kernel.extents) known_.emplace(extent.name(), extent);
  }

  void body(std::vector<Stmt>& statements, Rows& rows) {
    const auto outside = known_;
    for (std::size_t i = 0; i < statements.size(); ++i) {
      if (const auto* bind = std::get_if<Bind>(&statements[i].node)) note(*bind);
      if (auto* branch = std::get_if<If>(&statements[i].node)) body(branch->body, rows);
      auto* const loop = std::get_if<For>(&statements[i].node);
      if (!loop) continue;
      known_.insert_or_assign(loop->name, Dim::index(loop->name, loop->end));
      if (loop->parallel == Parallel::grid) {
        grid(*loop);
      } else if (loop->parallel != Parallel::serial) {
        body(loop->body, rows);
      } else if (has_loops(loop->body)) {
        Rows turns{loop->name, Dim::index(loop->name, loop->end) + loop->step};
        body(loop->body, turns);
      } else if (i + 1 < statements.size()) {
        const auto behind =
            std::find_if(statements.begin() + static_cast<std::ptrdiff_t>(i) + 1, statements.end(),
                         [](const Stmt& stmt) { return std::holds_alternative<For>(stmt.node); });
        if (behind != statements.end()) ask(*loop, std::get<For>(behind->node), rows);
      }
    }
    known_ = outside;
  }

 private:
  static bool has_loops(const std::vector<Stmt>& statements) {
    return std::any_of(statements.begin(), statements.end(), [](const Stmt& stmt) {
      const std::vector<Stmt>* const inner = body_of(stmt);
      return std::holds_alternative<For>(stmt.node) || (inner && has_loops(*inner));
    });
  }

  void grid(For& loop) {
    std::string next = loop.name + "_next";
    for (int n = 1; names_.contains(next); ++n) next = fmt::format("{}_next_{}", loop.name, n);
    Rows blocks{loop.name, Dim::index(next, loop.end)};
    body(loop.body, blocks);
    bool used = false;
    for_each_stmt(loop.body, [&](Stmt& stmt) {
      if (!std::holds_alternative<Prefetch>(stmt.node)) return;
      for (const Dim& symbol : std::get<Prefetch>(stmt.node).index.symbols())
        used = used || symbol.name() == next;
    });
    if (used) loop.next = next;
  }

  /// The expression without names that bindings give; none where it depends on data or on another loop.
  std::optional<Index> resolved(const Index& index) const {
    for (const Dim& symbol : index.symbols()) {
      if (!known_.contains(symbol.name())) return std::nullopt;
    }
    return index.substitute([&](std::string_view name) { return &known_.find(name)->second; });
  }

  void note(const Bind& bind) {
    known_.erase(bind.name);
    if (std::optional<Index> value = resolved(bind.value)) known_.emplace(bind.name, std::move(*value));
  }

  /// What the statements load, and would load elsewhere for the next row.
  void collect(const std::vector<Stmt>& statements, const Rows& rows, std::vector<Stmt>& out) {
    for (const Stmt& stmt : statements) {
      if (const auto* bind = std::get_if<Bind>(&stmt.node)) note(*bind);
      if (const auto* branch = std::get_if<If>(&stmt.node)) collect(branch->body, rows, out);
      const auto* const let = std::get_if<Let>(&stmt.node);
      const auto* const load = let ? std::get_if<Load>(&let->rhs) : nullptr;
      if (!load || load->rank) continue;
      const Buffer& buffer = kernel_.buffers[load->buffer];
      if (buffer.space != Space::global || buffer.written) continue;
      const std::optional<Index> index = resolved(load->index);
      if (!index || divides(*index)) continue;
      const Index next = index->substitute(rows.name, rows.next);
      if (next != *index) out.push_back({Prefetch{load->buffer, next}, stmt.origin});
    }
  }

  void ask(const For& loop, For& behind, Rows& rows) {
    const bool alike = behind.parallel == Parallel::serial && loop.begin == behind.begin &&
                       loop.end == behind.end && loop.step == behind.step;
    if (!alike || rows.name.empty()) return;
    const auto outside = known_;
    known_.insert_or_assign(loop.name, Dim::index(behind.name, behind.end));
    std::vector<Stmt> loads, prefetches;
    collect(loop.body, rows, loads);
    known_ = outside;
    const std::int64_t trips = ceil_div(loop.end - loop.begin, loop.step).hint();
    for (Stmt& stmt : loads) {
      auto& prefetch = std::get<Prefetch>(stmt.node);
      const Prefetch same{prefetch.buffer,
                          prefetch.index.substitute(behind.name, Dim::index("walk", behind.end))};
      const bool asked = std::any_of(rows.asked.begin(), rows.asked.end(), [&](const Prefetch& other) {
        return other.buffer == same.buffer && other.index == same.index;
      });
      const std::int64_t bytes =
          lanes_of_access * static_cast<std::int64_t>(size_of(kernel_.buffers[prefetch.buffer].dtype));
      if (asked || trips > (most_bytes - rows.bytes) / bytes) continue;
      rows.bytes += trips * bytes;
      rows.asked.push_back(same);
      prefetches.push_back(std::move(stmt));
    }
    for (Stmt& stmt : prefetches) std::get<Prefetch>(stmt.node).cache = rows.bytes <= most_near_bytes ? 1 : 2;
    behind.body.insert(behind.body.begin(), std::make_move_iterator(prefetches.begin()),
                       std::make_move_iterator(prefetches.end()));
  }

  Kernel& kernel_;
  const std::set<std::string> names_;
  std::map<std::string, Index, std::less<>> known_;
};

}  // namespace

Kernel prefetch_next_rows(Kernel kernel) {
  Rows none;
  Prefetcher(kernel).body(kernel.body, none);
  return kernel;
}

}  // namespace fuse::kernel
