// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/vectorise.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "ir/kernel/visit.hpp"

namespace fuse::kernel {
namespace {

constexpr std::int64_t most_elements = 16;

/// How often a loop touches each buffer, in its nested statements too.
struct Touched {
  std::map<BufferId, int> loads, stores;
};

Touched touched_in(const std::vector<Stmt>& body) {
  Touched touched;
  for_each_stmt(body, [&](const Stmt& stmt) {
    if (const auto* let = std::get_if<Let>(&stmt.node)) {
      if (const auto* load = std::get_if<Load>(&let->rhs)) ++touched.loads[load->buffer];
    } else if (const auto* store = std::get_if<Store>(&stmt.node)) {
      ++touched.stores[store->buffer];
    } else if (const auto* vector = std::get_if<VectorLoad>(&stmt.node)) {
      ++touched.loads[vector->buffer];
    } else if (const auto* vector = std::get_if<VectorStore>(&stmt.node)) {
      ++touched.stores[vector->buffer];
    }
  });
  return touched;
}

class Vectoriser {
 public:
  explicit Vectoriser(Kernel& kernel) : kernel_(kernel), names_(names_in(kernel)) {}

  void body(std::vector<Stmt>& statements) {
    std::vector<Stmt> result;
    for (Stmt& stmt : statements) {
      if (std::vector<Stmt>* inner = body_of(stmt)) body(*inner);
      before_.clear();
      after_.clear();
      if (auto* loop = std::get_if<For>(&stmt.node); loop && is_vector(*loop)) loop_body(*loop);
      std::move(before_.begin(), before_.end(), std::back_inserter(result));
      result.push_back(std::move(stmt));
      std::move(after_.begin(), after_.end(), std::back_inserter(result));
    }
    statements = std::move(result);
  }

 private:
  static bool is_vector(const For& loop) {
    if (!loop.unrolled || !loop.begin.is(0) || !loop.step.is(1)) return false;
    const std::int64_t trips = loop.end.constant();
    return trips > 1 && trips <= most_elements && (trips & (trips - 1)) == 0;
  }

  void loop_body(For& loop) {
    const Touched touched = touched_in(loop.body);
    std::set<std::string, std::less<>> inside = {loop.name};
    for (const Stmt& stmt : loop.body) {
      if (const auto* bind = std::get_if<Bind>(&stmt.node)) inside.insert(bind->name);
      if (const auto* data = std::get_if<BindData>(&stmt.node)) inside.insert(data->name);
    }
    // The location of the first of the elements; none where they do not lie side by side from a multiple on.
    const auto first = [&](BufferId buffer, const Index& index) -> std::optional<Index> {
      const Buffer& memory = kernel_.buffers[buffer];
      const std::int64_t trips = loop.end.constant();
      if (memory.space == Space::local ||
          trips * static_cast<std::int64_t>(size_of(memory.dtype)) > vector_bytes)
        return std::nullopt;
      const Dim zero = 0;
      const Index base =
          index.substitute([&](std::string_view name) { return name == loop.name ? &zero : nullptr; });
      const std::vector<Dim> symbols = base.symbols();
      const bool outside = std::none_of(symbols.begin(), symbols.end(),
                                        [&](const Dim& symbol) { return inside.contains(symbol.name()); });
      if (!outside || !(base % trips).is(0) || !(index - base == Dim::index(loop.name, loop.end)))
        return std::nullopt;
      return base;
    };
    for (Stmt& stmt : loop.body) {
      if (auto* let = std::get_if<Let>(&stmt.node)) {
        auto* load = std::get_if<Load>(&let->rhs);
        if (!load || load->predicate || load->rank || touched.stores.contains(load->buffer)) continue;
        if (const std::optional<Index> base = first(load->buffer, load->index)) {
          const BufferId array = add_array(load->buffer, loop.end);
          before_.push_back({VectorLoad{array, load->buffer, *base}, stmt.origin});
          *load = {.buffer = array, .index = Dim::index(loop.name, loop.end)};
        }
      } else if (auto* store = std::get_if<Store>(&stmt.node)) {
        if (touched.loads.contains(store->buffer) || touched.stores.at(store->buffer) > 1) continue;
        if (const std::optional<Index> base = first(store->buffer, store->index)) {
          const BufferId array = add_array(store->buffer, loop.end);
          after_.push_back({VectorStore{store->buffer, array, *base}, stmt.origin});
          store->buffer = array;
          store->index = Dim::index(loop.name, loop.end);
        }
      }
    }
  }

  BufferId add_array(BufferId of, const Dim& elements) {
    const std::string base = kernel_.buffers[of].name + "_v";
    std::string name = base;
    for (int n = 1; !names_.insert(name).second; ++n) name = base + '_' + std::to_string(n);
    kernel_.buffers.push_back({name, kernel_.buffers[of].dtype, Space::local, elements, true});
    return static_cast<BufferId>(kernel_.buffers.size() - 1);
  }

  Kernel& kernel_;
  std::set<std::string> names_;
  std::vector<Stmt> before_, after_;  // the statements before and after the loop at hand
};

}  // namespace

Kernel vectorise(Kernel kernel) {
  Vectoriser(kernel).body(kernel.body);
  return kernel;
}

}  // namespace fuse::kernel
