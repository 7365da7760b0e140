// SPDX-License-Identifier: Apache-2.0
#include "sass_table/sass/executions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>

#include "ir/kernel/visit.hpp"

namespace fuse::bench::sass {
namespace {

using kernel::Stmt;

constexpr std::int64_t warp_size = 32;
constexpr std::int64_t most_evaluations = 4'000'000;  // of a kernel, over all blocks that are looked at
constexpr std::int64_t fewest_blocks = 16;

bool is_region(const Stmt& stmt) {
  if (const auto* loop = std::get_if<kernel::For>(&stmt.node))
    return loop->parallel == kernel::Parallel::serial;
  return std::holds_alternative<kernel::If>(stmt.node);
}

/// The regions of the kernel IR, in its order; the text's lines are not known yet.
void collect(const std::vector<Stmt>& body, std::size_t parent, std::vector<Region>& regions,
             std::map<const Stmt*, std::size_t>& of_statement) {
  for (const Stmt& stmt : body) {
    const std::vector<Stmt>* const inner = kernel::body_of(stmt);
    if (!inner) continue;
    std::size_t region = parent;
    if (is_region(stmt)) {
      const auto* const loop = std::get_if<kernel::For>(&stmt.node);
      region = regions.size();
      regions.push_back({.kind = loop ? Region::Kind::loop : Region::Kind::condition,
                         .parent = parent,
                         .unrolled = loop && loop->unrolled,
                         .trips = {}});
      of_statement[&stmt] = region;
    }
    collect(*inner, region, regions, of_statement);
  }
}

/// Finds the loops and conditions in the printed text: they stand there in the order of the kernel IR. The
/// loops over lane distances of a warp's combine are of the printer, which unrolls them.
void find_lines(std::string_view text, int first_line, std::vector<Region>& regions) {
  std::vector<std::size_t> open;  // region of each brace; 0: none of ours
  std::size_t next = 1;
  int line = first_line;
  regions[0].first_line = first_line;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view content = text.substr(at, end - at);
    at = end + 1;
    content = content.substr(0, content.find("//"));
    content.remove_prefix(std::min(content.find_first_not_of(' '), content.size()));
    const bool loop = content.starts_with("for (") && content.find(">>= 1)") == std::string_view::npos;
    const bool condition = content.starts_with("if (");
    std::size_t region = 0;
    if (loop || condition) {
      if (next == regions.size() || (regions[next].kind == Region::Kind::loop) != loop)
        throw std::runtime_error(
            fmt::format("line {} of the text is no loop or condition of the kernel IR", line));
      region = next++;
      regions[region].first_line = line;
    }
    for (const char c : content) {
      if (c == '{') open.push_back(region);
      if (c != '}') continue;
      if (open.empty()) throw std::runtime_error(fmt::format("line {} of the text closes nothing", line));
      regions[open.back()].last_line = line;
      open.pop_back();
    }
  }
  if (next != regions.size() || !open.empty())
    throw std::runtime_error("the text lacks loops or conditions of the kernel IR");
}

/// A value of each lane.
struct Value {
  bool uniform = true;
  std::array<std::int64_t, warp_size> of_lane{};

  explicit Value(std::int64_t value = 0) { of_lane.fill(value); }
};

using Mask = std::array<bool, warp_size>;

/// Whether a condition or the ends of a loop inside depend on `name`.
bool control_depends(const std::vector<Stmt>& body, const std::string& name) {
  std::set<std::string, std::less<>> names = {name};
  bool found = false;
  const auto has = [&](const Dim& dim) {
    for (const Dim& symbol : dim.symbols()) {
      if (names.contains(symbol.name())) return true;
    }
    return false;
  };
  kernel::for_each_stmt(body, [&](const Stmt& stmt) {
    if (const auto* bind = std::get_if<kernel::Bind>(&stmt.node)) {
      if (has(bind->value)) names.insert(bind->name);
    } else if (const auto* condition = std::get_if<kernel::If>(&stmt.node)) {
      for (const kernel::IndexLess& less : condition->conditions)
        found = found || has(less.index) || has(less.bound);
    } else if (const auto* loop = std::get_if<kernel::For>(&stmt.node)) {
      found = found || has(loop->begin) || has(loop->end) || has(loop->step);
    }
  });
  return found;
}

/// Whether blocks differ in what they run.
bool blocks_differ(const std::vector<Stmt>& body) {
  for (const Stmt& stmt : body) {
    const auto* loop = std::get_if<kernel::For>(&stmt.node);
    if (loop && loop->parallel == kernel::Parallel::grid && control_depends(loop->body, loop->name))
      return true;
    if (loop && loop->parallel != kernel::Parallel::serial && blocks_differ(loop->body)) return true;
  }
  return false;
}

/// Runs the loops and conditions of one warp, whose lanes go on together.
class Warp {
 public:
  Warp(const kernel::Kernel& kernel, const std::map<const Stmt*, std::size_t>& of_statement,
       std::vector<Region>& regions, const DimValues& symbols)
      : kernel_(kernel), of_statement_(of_statement), regions_(regions), symbols_(symbols) {}

  std::int64_t run(std::int64_t block, std::int64_t warp, double share) {
    block_ = block, warp_ = warp;
    values_.clear();
    for (const auto& [name, value] : symbols_) values_.emplace(name, Value(value));
    Mask mask{};
    for (std::int64_t lane = 0; lane < warp_size; ++lane)
      mask[static_cast<std::size_t>(lane)] = warp * warp_size + lane < kernel_.block_threads;
    walk(kernel_.body, mask, share);
    return evaluations_;
  }

 private:
  /// The symbols of an expression, which stands in the kernel as long as this.
  const std::vector<std::string>& symbols_of(const Dim& dim) {
    const auto [at, fresh] = names_.try_emplace(&dim);
    if (fresh) {
      for (const Dim& symbol : dim.symbols()) at->second.emplace_back(symbol.name());
    }
    return at->second;
  }

  Value value_of(const Dim& dim) {
    if (dim.is_constant()) return Value(dim.constant());
    std::vector<std::pair<std::string_view, const Value*>> known;
    bool uniform = true;
    for (const std::string& name : symbols_of(dim)) {
      const auto at = values_.find(name);
      if (at == values_.end())
        throw std::runtime_error(fmt::format("{} has no value in kernel {}", name, kernel_.name));
      known.emplace_back(name, &at->second);
      uniform = uniform && at->second.uniform;
    }
    Value result;
    result.uniform = uniform;
    for (std::size_t lane = 0; lane < warp_size; ++lane) {
      if (uniform && lane > 0) {
        result.of_lane[lane] = result.of_lane[0];
        continue;
      }
      ++evaluations_;
      result.of_lane[lane] = dim.evaluate([&](std::string_view name) {
        for (const auto& [of, value] : known) {
          if (of == name) return value->of_lane[lane];
        }
        return std::int64_t{0};  // symbols() has them all
      });
    }
    return result;
  }

  static bool any(const Mask& mask) { return std::find(mask.begin(), mask.end(), true) != mask.end(); }

  void walk(const std::vector<Stmt>& body, const Mask& mask, double share) {
    for (const Stmt& stmt : body) {
      if (const auto* bind = std::get_if<kernel::Bind>(&stmt.node)) {
        values_.insert_or_assign(bind->name, value_of(bind->value));
      } else if (const auto* data = std::get_if<kernel::BindData>(&stmt.node)) {
        values_.insert_or_assign(data->name, Value(0));  // an index that is data
      } else if (const auto* condition = std::get_if<kernel::If>(&stmt.node)) {
        walk_condition(*condition, regions_[of_statement_.at(&stmt)], mask, share);
      } else if (const auto* loop = std::get_if<kernel::For>(&stmt.node)) {
        if (loop->parallel == kernel::Parallel::serial) {
          walk_loop(*loop, regions_[of_statement_.at(&stmt)], mask, share);
        } else {
          values_.insert_or_assign(loop->name, parallel_value(loop->parallel));
          walk(loop->body, mask, share);
        }
      }
    }
  }

  Value parallel_value(kernel::Parallel parallel) const {
    Value result(parallel == kernel::Parallel::grid ? block_ : warp_);
    if (parallel != kernel::Parallel::lane && parallel != kernel::Parallel::block) return result;
    result.uniform = false;
    for (std::int64_t lane = 0; lane < warp_size; ++lane) {
      result.of_lane[static_cast<std::size_t>(lane)] =
          parallel == kernel::Parallel::block ? warp_ * warp_size + lane : lane;
    }
    return result;
  }

  void walk_condition(const kernel::If& condition, Region& region, Mask mask, double share) {
    region.entries += share;
    for (const kernel::IndexLess& less : condition.conditions) {
      const Value index = value_of(less.index), bound = value_of(less.bound);
      for (std::size_t lane = 0; lane < warp_size; ++lane)
        mask[lane] = mask[lane] && index.of_lane[lane] < bound.of_lane[lane];
    }
    if (!any(mask)) return;
    region.runs += share;
    walk(condition.body, mask, share);
  }

  void walk_loop(const kernel::For& loop, Region& region, Mask mask, double share) {
    region.entries += share;
    const Value begin = value_of(loop.begin), end = value_of(loop.end), step = value_of(loop.step);
    std::array<std::int64_t, warp_size> trips{};
    std::int64_t most = 0;
    for (std::size_t lane = 0; lane < warp_size; ++lane) {
      if (!mask[lane] || begin.of_lane[lane] >= end.of_lane[lane]) continue;
      trips[lane] = (end.of_lane[lane] - begin.of_lane[lane] - 1) / step.of_lane[lane] + 1;
      most = std::max(most, trips[lane]);
    }
    region.trips[most] += share;
    region.runs += share * static_cast<double>(most);
    if (most == 0) return;
    // A body that asks nothing of the loop's variable is the same on each trip.
    const bool same = !depends_on(loop.body, loop.name);
    const std::int64_t walks = same ? 1 : most;
    for (std::int64_t i = 0; i < walks; ++i) {
      Value value = begin;
      value.uniform = begin.uniform && step.uniform;
      for (std::size_t lane = 0; lane < warp_size; ++lane) {
        value.of_lane[lane] += i * step.of_lane[lane];
        mask[lane] = mask[lane] && i < trips[lane];
      }
      values_.insert_or_assign(loop.name, value);
      walk(loop.body, mask, same ? share * static_cast<double>(most) : share);
    }
  }

  bool depends_on(const std::vector<Stmt>& body, const std::string& name) {
    const auto [at, fresh] = dependent_.try_emplace(&body);
    if (fresh) at->second = control_depends(body, name);
    return at->second;
  }

  const kernel::Kernel& kernel_;
  const std::map<const Stmt*, std::size_t>& of_statement_;
  std::vector<Region>& regions_;
  const DimValues& symbols_;
  std::map<const Dim*, std::vector<std::string>> names_;
  std::map<std::string, Value, std::less<>> values_;
  std::map<const std::vector<Stmt>*, bool> dependent_;
  std::int64_t block_ = 0, warp_ = 0, evaluations_ = 0;
};

/// Adds what the statements access, at the runs of their regions.
void add_accesses(const kernel::Kernel& kernel, const std::vector<Stmt>& body, std::size_t region,
                  const std::map<const Stmt*, std::size_t>& of_statement, Executions& result) {
  const auto add = [&](kernel::BufferId id, std::int64_t elements, bool stores) {
    const kernel::Buffer& buffer = kernel.buffers[id];
    if (buffer.space != kernel::Space::global) return;
    const auto global = [](const kernel::Buffer& b) { return b.space == kernel::Space::global; };
    const auto index = std::count_if(kernel.buffers.begin(), kernel.buffers.begin() + id, global);
    Accessed& accessed = result.accessed[static_cast<std::size_t>(index)];
    (stores ? accessed.stored_in : accessed.loaded_in).insert(region);
    (stores ? accessed.stored : accessed.loaded) += result.regions[region].runs *
                                                    static_cast<double>(elements) *
                                                    static_cast<double>(size_of(buffer.dtype));
  };
  for (const Stmt& stmt : body) {
    if (const auto* let = std::get_if<kernel::Let>(&stmt.node)) {
      if (const auto* load = std::get_if<kernel::Load>(&let->rhs)) add(load->buffer, 1, false);
    } else if (const auto* store = std::get_if<kernel::Store>(&stmt.node)) {
      add(store->buffer, 1, true);
    } else if (const auto* wide = std::get_if<kernel::VectorLoad>(&stmt.node)) {
      add(wide->buffer, kernel.buffers[wide->array].elements.constant(), false);
    } else if (const auto* wide = std::get_if<kernel::VectorStore>(&stmt.node)) {
      add(wide->buffer, kernel.buffers[wide->array].elements.constant(), true);
    } else if (const std::vector<Stmt>* const inner = kernel::body_of(stmt)) {
      const auto at = of_statement.find(&stmt);
      add_accesses(kernel, *inner, at == of_statement.end() ? region : at->second, of_statement, result);
    }
  }
}

}  // namespace

std::size_t Executions::region_of(int line) const {
  std::size_t found = 0;
  for (std::size_t i = 1; i < regions.size(); ++i) {
    // What decides about a condition stands on its line, and outside of it.
    const int first = regions[i].first_line + (regions[i].kind == Region::Kind::condition ? 1 : 0);
    if (first <= line && line <= regions[i].last_line) found = i;
  }
  return found;
}

bool Executions::inside(std::size_t region, std::size_t outer) const {
  while (region != outer && region != 0) region = regions[region].parent;
  return region == outer;
}

Executions executions_of(const kernel::Kernel& kernel, std::string_view text, int first_line,
                         const DimValues& extents, std::int64_t grid) {
  Executions result;
  result.regions.push_back({.entries = 1, .runs = 1, .trips = {}});
  result.accessed.resize(static_cast<std::size_t>(
      std::count_if(kernel.buffers.begin(), kernel.buffers.end(),
                    [](const kernel::Buffer& buffer) { return buffer.space == kernel::Space::global; })));
  std::map<const Stmt*, std::size_t> of_statement;
  collect(kernel.body, 0, result.regions, of_statement);
  find_lines(text, first_line, result.regions);

  const std::int64_t warps = (kernel.block_threads + warp_size - 1) / warp_size;
  result.warps = grid * warps;
  if (grid == 0) return result;

  // One block tells what the others cost. Where there is no time for all: the middles of as many stretches of
  // the grid as there is time for.
  std::vector<Region> scratch = result.regions;
  std::int64_t evaluations = 1;
  for (std::int64_t warp = 0; warp < warps; ++warp)
    evaluations += Warp(kernel, of_statement, scratch, extents).run(0, warp, 1);
  const std::int64_t blocks = blocks_differ(kernel.body)
                                  ? std::min(grid, std::max(fewest_blocks, most_evaluations / evaluations))
                                  : 1;
  Warp walker(kernel, of_statement, result.regions, extents);
  const double share = 1.0 / static_cast<double>(blocks * warps);
  for (std::int64_t i = 0; i < blocks; ++i) {
    const std::int64_t block = (2 * i + 1) * grid / (2 * blocks);
    for (std::int64_t warp = 0; warp < warps; ++warp) walker.run(block, warp, share);
  }
  add_accesses(kernel, kernel.body, 0, of_statement, result);
  return result;
}

}  // namespace fuse::bench::sass
