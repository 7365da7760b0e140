// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/prefetch_next_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
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

// What all prefetches for a block may take of the first cache and of the second one.
constexpr std::int64_t most_near_bytes = 8 << 10, most_bytes = 256 << 10;
constexpr std::int64_t lanes_of_walk = 32;

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

class Prefetcher {
 public:
  explicit Prefetcher(Kernel& kernel) : kernel_(kernel) {
    for (const Dim& extent : kernel.extents) known_.emplace(extent.name(), extent);
  }

  void body(std::vector<Stmt>& statements) {
    for (std::size_t i = 0; i < statements.size(); ++i) {
      if (auto* bind = std::get_if<Bind>(&statements[i].node)) note(*bind);
      auto* const loop = std::get_if<For>(&statements[i].node);
      if (!loop) continue;
      if (loop->parallel == Parallel::serial) {
        const auto next =
            std::find_if(statements.begin() + static_cast<std::ptrdiff_t>(i) + 1, statements.end(),
                         [](const Stmt& stmt) { return std::holds_alternative<For>(stmt.node); });
        if (next != statements.end()) ask(*loop, std::get<For>(next->node));
        continue;
      }
      const Index index = Dim::index(loop->name, loop->end);
      if (loop->parallel == Parallel::grid) block_ = index;
      known_.emplace(loop->name, index);
      body(loop->body);
    }
  }

 private:
  /// The expression without names that bindings give; none where it depends on data or on another loop.
  std::optional<Index> resolved(const Index& index) const {
    for (const Dim& symbol : index.symbols()) {
      if (!known_.contains(symbol.name())) return std::nullopt;
    }
    return index.substitute([&](std::string_view name) { return &known_.find(name)->second; });
  }

  void note(const Bind& bind) {
    if (std::optional<Index> value = resolved(bind.value))
      known_.insert_or_assign(bind.name, std::move(*value));
  }

  /// What the statements load and the next block would load elsewhere.
  void collect(const std::vector<Stmt>& statements, std::vector<Stmt>& out) {
    for (const Stmt& stmt : statements) {
      if (const auto* bind = std::get_if<Bind>(&stmt.node)) note(*bind);
      if (const auto* branch = std::get_if<If>(&stmt.node)) collect(branch->body, out);
      const auto* const let = std::get_if<Let>(&stmt.node);
      const auto* const load = let ? std::get_if<Load>(&let->rhs) : nullptr;
      if (!load || load->rank) continue;
      const Buffer& buffer = kernel_.buffers[load->buffer];
      if (buffer.space != Space::global || buffer.written) continue;
      const std::optional<Index> index = resolved(load->index);
      if (!index || divides(*index)) continue;
      const Index next = index->substitute(block_.name(), block_ + 1);
      const bool known = std::any_of(out.begin(), out.end(), [&](const Stmt& made) {
        const auto& prefetch = std::get<Prefetch>(made.node);
        return prefetch.buffer == load->buffer && prefetch.index == next;
      });
      if (next != *index && !known) out.push_back({Prefetch{load->buffer, next}, stmt.origin});
    }
  }

  void ask(const For& loop, For& other) {
    const bool alike = other.parallel == Parallel::serial && loop.begin == other.begin &&
                       loop.end == other.end && loop.step == other.step;
    if (!alike || block_.name().empty()) return;
    const auto outside = known_;
    known_.emplace(loop.name, Dim::index(other.name, other.end));
    std::vector<Stmt> prefetches;
    collect(loop.body, prefetches);
    known_ = outside;
    std::int64_t bytes = 0;
    for (const Stmt& stmt : prefetches) {
      const DType type = kernel_.buffers[std::get<Prefetch>(stmt.node).buffer].dtype;
      bytes += lanes_of_walk * static_cast<std::int64_t>(size_of(type));
    }
    const std::int64_t trips = ceil_div(loop.end - loop.begin, loop.step).hint();
    if (bytes == 0 || trips > most_bytes / bytes) return;
    for (Stmt& stmt : prefetches)
      std::get<Prefetch>(stmt.node).cache = trips * bytes <= most_near_bytes ? 1 : 2;
    other.body.insert(other.body.begin(), std::make_move_iterator(prefetches.begin()),
                      std::make_move_iterator(prefetches.end()));
  }

  Kernel& kernel_;
  Index block_{};  // the number of the block
  std::map<std::string, Index, std::less<>> known_;
};

}  // namespace

Kernel prefetch_next_rows(Kernel kernel) {
  Prefetcher(kernel).body(kernel.body);
  return kernel;
}

}  // namespace fuse::kernel
