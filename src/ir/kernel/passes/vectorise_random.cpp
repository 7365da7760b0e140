// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/vectorise_random.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "ir/kernel/visit.hpp"

namespace fuse::kernel {
namespace {

constexpr std::int64_t most_numbers = 16;

/// What a loop makes itself: it is not there before the loop.
struct Made {
  std::set<std::string, std::less<>> names;  ///< the names of indices
  std::set<VarId> vars;

  explicit Made(const For& loop) : names({loop.name}) {
    for_each_stmt(loop.body, [&](const Stmt& stmt) {
      if (const auto* let = std::get_if<Let>(&stmt.node)) vars.insert(let->var);
      if (const auto* bind = std::get_if<Bind>(&stmt.node)) names.insert(bind->name);
      if (const auto* data = std::get_if<BindData>(&stmt.node)) names.insert(data->name);
    });
  }
};

/// The draw of the first trip, where the trips draw neighbours from a multiple of their number on.
std::optional<Random> first_draw(const For& loop, const Random& random, const Made& made) {
  if (made.vars.contains(random.seed) || made.vars.contains(random.offset)) return std::nullopt;
  const Dim zero = 0;
  Random first = random;
  first.element =
      random.element.substitute([&](std::string_view name) { return name == loop.name ? &zero : nullptr; });
  const std::vector<Dim> symbols = first.element.symbols();
  const bool outside = std::none_of(symbols.begin(), symbols.end(),
                                    [&](const Dim& symbol) { return made.names.contains(symbol.name()); });
  const bool side_by_side = random.element - first.element == Dim::index(loop.name, loop.end);
  if (!outside || !side_by_side || !(first.element % loop.end).is(0)) return std::nullopt;
  return first;
}

bool is_vector_loop(const For& loop) {
  if (!loop.unrolled || !loop.begin.is(0) || !loop.step.is(1)) return false;
  const std::int64_t trips = loop.end.constant();
  return trips > 1 && trips <= most_numbers && (trips & (trips - 1)) == 0;
}

class RandomVectoriser {
 public:
  explicit RandomVectoriser(Kernel& kernel) : kernel_(kernel), names_(names_in(kernel)) {}

  void body(std::vector<Stmt>& statements) {
    std::vector<Stmt> result;
    for (Stmt& stmt : statements) {
      if (std::vector<Stmt>* inner = body_of(stmt)) body(*inner);
      if (auto* loop = std::get_if<For>(&stmt.node); loop && is_vector_loop(*loop))
        draw_before(*loop, result);
      result.push_back(std::move(stmt));
    }
    statements = std::move(result);
  }

 private:
  void draw_before(For& loop, std::vector<Stmt>& before) {
    const Made made(loop);
    for (Stmt& stmt : loop.body) {
      auto* let = std::get_if<Let>(&stmt.node);
      const auto* random = let ? std::get_if<Random>(&let->rhs) : nullptr;
      if (!random) continue;
      if (const std::optional<Random> first = first_draw(loop, *random, made)) {
        const BufferId array = add_array(kernel_.vars[let->var], loop.end);
        before.push_back({VectorRandom{array, *first}, stmt.origin});
        let->rhs = Load{.buffer = array, .index = Dim::index(loop.name, loop.end)};
      }
    }
  }

  BufferId add_array(const Var& of, const Dim& elements) {
    const std::string base = of.name + "_v";
    std::string name = base;
    for (int n = 1; !names_.insert(name).second; ++n) name = base + '_' + std::to_string(n);
    kernel_.buffers.push_back({name, of.dtype, Space::local, elements, true});
    return static_cast<BufferId>(kernel_.buffers.size() - 1);
  }

  Kernel& kernel_;
  std::set<std::string> names_;
};

}  // namespace

Kernel vectorise_random(Kernel kernel) {
  RandomVectoriser(kernel).body(kernel.body);
  return kernel;
}

}  // namespace fuse::kernel
