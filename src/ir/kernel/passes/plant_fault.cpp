// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/plant_fault.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "ir/kernel/visit.hpp"

namespace fuse::kernel {
namespace {

using FaultKind = PlantedFault::Kind;

constexpr std::pair<FaultKind, std::string_view> fault_names[] = {{FaultKind::barrier, "barrier"},
                                                                  {FaultKind::extent, "extent"},
                                                                  {FaultKind::overlap, "overlap"},
                                                                  {FaultKind::fence, "fence"}};

/// Goes over all sites in their order; stops where `visit` says that it has what it wants.
class FaultWalk {
 public:
  /// For a site, the fault, what it is, and how to plant it.
  using Visit = std::function<bool(const FaultSite&, const std::function<void()>& plant)>;

  FaultWalk(std::vector<Kernel>& kernels, const Visit& visit) : kernels_(kernels), visit_(visit) {}

  bool run() {
    for (kernel_ = 0; kernel_ < kernels_.size(); ++kernel_) {
      if (body(kernels_[kernel_].body) || arrays(kernels_[kernel_])) return true;
    }
    return false;
  }

 private:
  bool site(FaultKind kind, int by, const std::string& what, const std::function<void()>& plant) {
    return visit_({{kind, next_[kind], by}, kernel_, what}, plant);
  }

  bool extent(Index& bound, const std::string& what, bool may_grow) {
    for (const int by : {1, -1}) {
      if (by > 0 && !may_grow) continue;
      if (site(FaultKind::extent, by, what, [&] { bound = bound + by; })) return true;
    }
    ++next_[FaultKind::extent];
    return false;
  }

  bool body(std::vector<Stmt>& statements) {
    for (std::size_t i = 0; i < statements.size(); ++i) {
      Stmt& stmt = statements[i];
      const auto leave_out = [&] { statements.erase(statements.begin() + static_cast<std::ptrdiff_t>(i)); };
      if (auto* loop = std::get_if<For>(&stmt.node)) {
        const std::string what = fmt::format("while {} < {}", loop->name, loop->end.to_string());
        if (loop->parallel == Parallel::serial && extent(loop->end, what, !skips_what_follows(*loop)))
          return true;
        if (body(loop->body)) return true;
      } else if (auto* branch = std::get_if<If>(&stmt.node)) {
        for (IndexLess& less : branch->conditions) {
          const std::string what = fmt::format("if {} < {}", less.index.to_string(), less.bound.to_string());
          if (extent(less.bound, what, std::find(implied_.begin(), implied_.end(), less) == implied_.end()))
            return true;
        }
        const std::size_t outer = implied_.size();
        implied_.insert(implied_.end(), branch->conditions.begin(), branch->conditions.end());
        if (body(branch->body)) return true;
        implied_.resize(outer);
      } else if (const char* what = barrier_without_fence(stmt)) {
        if (site(FaultKind::barrier, 0, what, leave_out)) return true;
        ++next_[FaultKind::barrier];
      } else if (const char* what = barrier_of_blocks(stmt)) {
        if (site(FaultKind::barrier, 0, what, leave_out)) return true;
        ++next_[FaultKind::barrier];
        if (site(FaultKind::fence, 0, what, [&] { stmt.node = Barrier{}; })) return true;
        ++next_[FaultKind::fence];
      }
    }
    return false;
  }

  /// The name of a barrier that does not both stop blocks and order memory; else null.
  static const char* barrier_without_fence(const Stmt& stmt) {
    if (std::holds_alternative<Barrier>(stmt.node)) return "barrier block";
    if (std::holds_alternative<ClusterArrive>(stmt.node)) return "arrive cluster";
    return std::holds_alternative<ClusterWait>(stmt.node) ? "wait cluster" : nullptr;
  }

  /// The name of a barrier in which blocks wait for each other; else null.
  static const char* barrier_of_blocks(const Stmt& stmt) {
    if (const auto* barrier = std::get_if<GridBarrier>(&stmt.node))
      return barrier->group > 0 ? "barrier groups" : "barrier grid";
    return std::holds_alternative<ClusterBarrier>(stmt.node) ? "barrier cluster" : nullptr;
  }

  /// The body is: c = a formula of the counter; if c < bound. One more trip has no such c.
  static bool skips_what_follows(const For& loop) {
    if (loop.body.size() < 2) return false;
    const auto* bind = std::get_if<Bind>(&loop.body.front().node);
    const auto* branch = std::get_if<If>(&loop.body.back().node);
    const bool plain = std::all_of(loop.body.begin(), loop.body.end() - 1,
                                   [](const Stmt& stmt) { return std::holds_alternative<Bind>(stmt.node); });
    if (!plain || !bind || !branch || branch->conditions.size() != 1) return false;
    const IndexLess& guard = branch->conditions[0];
    if (guard.index.name() != bind->name || !guard.bound.is_constant()) return false;
    const Dim none = 0, further = loop.end;
    const Dim least =
        bind->value.substitute([&](std::string_view name) { return name == loop.name ? &further : &none; });
    return least.is_constant() && least.constant() >= guard.bound.constant();
  }

  /// Statements from the first store to the last use, numbered through the kernel.
  struct Use {
    std::size_t first = ~std::size_t{0}, last = 0;
  };
  static std::map<BufferId, Use> uses(const std::vector<Stmt>& statements) {
    std::map<BufferId, Use> result;
    std::size_t at = 0;
    for_each_stmt(statements, [&](const Stmt& stmt) {
      ++at;
      for_each_access(stmt, [&](BufferId buffer, bool writes) {
        Use& use = result[buffer];
        if (writes) use.first = std::min(use.first, at);
        use.last = at;
      });
    });
    return result;
  }

  /// Each array over the next of its type and space that is in use with it.
  bool arrays(Kernel& kernel) {
    const std::map<BufferId, Use> used = uses(kernel.body);
    for (BufferId a = 0; a < kernel.buffers.size(); ++a) {
      const Buffer& first = kernel.buffers[a];
      if (first.space == Space::global) continue;
      for (BufferId b = a + 1; b < kernel.buffers.size(); ++b) {
        const Buffer& second = kernel.buffers[b];
        if (second.space != first.space || second.dtype != first.dtype) continue;
        const Use one = used.at(a), other = used.at(b);
        if (one.last <= other.first || other.last <= one.first) continue;
        if (site(FaultKind::overlap, 0, second.name + " over " + first.name, [&] { alias(kernel, a, b); }))
          return true;
        ++next_[FaultKind::overlap];
        break;
      }
    }
    return false;
  }

  static void alias(Kernel& kernel, BufferId a, BufferId b) {
    if (kernel.buffers[b].elements.constant() > kernel.buffers[a].elements.constant()) std::swap(a, b);
    for_each_stmt(kernel.body, [&](Stmt& stmt) {
      rename_buffers(stmt, [&](BufferId buffer) { return buffer == b ? a : buffer; });
    });
  }

  std::vector<Kernel>& kernels_;
  const Visit& visit_;
  std::size_t kernel_ = 0;
  std::map<FaultKind, std::size_t> next_;
  std::vector<IndexLess> implied_;  // the conditions around
};

}  // namespace

std::string to_string(const PlantedFault& fault) {
  const auto name = std::find_if(std::begin(fault_names), std::end(fault_names),
                                 [&](const auto& each) { return each.first == fault.kind; });
  return fmt::format("{}.{}{}", name->second, fault.site, fault.by > 0 ? "+1" : fault.by < 0 ? "-1" : "");
}

std::optional<PlantedFault> parse_fault(std::string_view text) {
  const std::size_t dot = text.find('.');
  const auto name = std::find_if(std::begin(fault_names), std::end(fault_names),
                                 [&](const auto& each) { return each.second == text.substr(0, dot); });
  if (name == std::end(fault_names)) return std::nullopt;
  PlantedFault fault{.kind = name->first};
  std::string_view rest = text.substr(dot + 1);  // without a dot the whole text, which is no number
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), fault.site);
  if (error != std::errc()) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  if (rest == "+1") fault.by = 1;
  if (rest == "-1") fault.by = -1;
  const bool by = fault.kind == FaultKind::extent;
  if (by != (fault.by != 0) || (!by && !rest.empty())) return std::nullopt;
  return fault;
}

std::vector<FaultSite> fault_sites(const std::vector<Kernel>& kernels) {
  std::vector<Kernel> same = kernels;
  std::vector<FaultSite> sites;
  FaultWalk(same, [&](const FaultSite& site, const auto&) {
    sites.push_back(site);
    return false;
  }).run();
  std::stable_sort(sites.begin(), sites.end(),
                   [](const FaultSite& a, const FaultSite& b) { return a.fault.kind < b.fault.kind; });
  return sites;
}

bool plant_fault(std::vector<Kernel>& kernels, const PlantedFault& fault) {
  return FaultWalk(kernels,
                   [&](const FaultSite& site, const auto& plant) {
                     if (site.fault != fault) return false;
                     plant();
                     return true;
                   })
      .run();
}

}  // namespace fuse::kernel
