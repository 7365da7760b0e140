// Lanes that are in one row get a body in which the row is one number, and the others keep theirs.
// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/split_at_row_ends.hpp"

#include <map>

#include "codegen_cpu/text/lane_values.hpp"
#include "ir/kernel/passes/elide_conditions.hpp"
#include "ir/kernel/visit.hpp"
#include "kernel/kernel_support.hpp"
#include "schedule/nest/usual_nests.hpp"

using namespace fuse;          // NOLINT
using namespace fuse::kernel;  // NOLINT
using namespace fuse::test;    // NOLINT

namespace {

/// y = x * scale + bias, whose rows have `length` elements: a scale for each row, a bias for each column.
void add_scaled(Graph& g, const Dim& rows, const Dim& length) {
  const Tensor x = g.input("x", f32, {rows, length}), scale = g.input("scale", f32, {rows}),
               bias = g.input("bias", f32, {length});
  g.output("y", x * broadcast_in_dim(scale, {rows, length}, {0}) + broadcast_to(bias, {rows, length}));
}
Graph scaled(std::int64_t rows, std::int64_t length) {
  Graph g("scaled");
  add_scaled(g, rows, length);
  return g;
}

Kernel split(const Graph& graph) {
  const schedule::Choices choices{.splits = schedule::nest_of_elements(32)};
  Kernel kernel = split_at_row_ends(elide_conditions(lowered(graph, choices)));
  verify(kernel, target_profile("h200").shared_per_block);
  return kernel;
}

struct Loads {
  int from_one_place = 0, side_by_side = 0, anywhere = 0;
  bool operator==(const Loads&) const = default;
};

/// How the lanes read, by how far what neighbours read is apart.
Loads loads_in(const Kernel& kernel) {
  const codegen::LaneValues lanes(kernel);
  std::map<std::string, Index> values;
  Loads loads;
  for_each_stmt(kernel.body, [&](const Stmt& stmt) {
    if (const auto* bind = std::get_if<Bind>(&stmt.node)) values.insert_or_assign(bind->name, bind->value);
    const auto* const let = std::get_if<Let>(&stmt.node);
    const auto* const load = let ? std::get_if<Load>(&let->rhs) : nullptr;
    if (!load) return;
    const Index index = load->index.substitute([&](std::string_view name) {
      const auto value = values.find(std::string(name));
      return value == values.end() ? nullptr : &value->second;
    });
    const Dim first = 0, last = 31;
    const auto at = [&](const Dim& lane) {
      return index.substitute([&](std::string_view name) { return name == "t" ? &lane : nullptr; });
    };
    if (!lanes.differs(load->index))
      ++loads.from_one_place;
    else if ((at(last) - at(first)).is(31))
      ++loads.side_by_side;
    else
      ++loads.anywhere;
  });
  return loads;
}

int conditions_in(const Kernel& kernel) {
  int count = 0;
  for_each_stmt(kernel.body, [&](const Stmt& stmt) {
    if (const auto* branch = std::get_if<If>(&stmt.node))
      count += static_cast<int>(branch->conditions.size());
  });
  return count;
}

}  // namespace

TEST_CASE("split_at_row_ends: rows of whole blocks have one body", "[kernel]") {
  const Kernel kernel = split(scaled(8, 1024));
  INFO(print(kernel));
  CHECK(loads_in(kernel) == Loads{.from_one_place = 1, .side_by_side = 2});
  CHECK(conditions_in(kernel) == 0);
}

TEST_CASE("split_at_row_ends: blocks that have the end of a row keep the general body", "[kernel]") {
  const Kernel kernel = split(scaled(16, 1000));
  INFO(print(kernel));
  CHECK(loads_in(kernel) == Loads{.from_one_place = 1, .side_by_side = 3, .anywhere = 2});
  CHECK(conditions_in(kernel) == 2);
}

TEST_CASE("split_at_row_ends: rows whose length is known at run time", "[kernel]") {
  Graph g("scaled");
  add_scaled(g, g.dim("B", {.min = 0, .max = 99}), g.dim("T", {.min = 0, .max = 999}));
  const Kernel kernel = split(g);
  INFO(print(kernel));
  CHECK(loads_in(kernel) == Loads{.from_one_place = 1, .side_by_side = 3, .anywhere = 2});
}

TEST_CASE("split_at_row_ends: rows that no block of lanes fits in stay", "[kernel]") {
  const Kernel kernel = split(scaled(64, 31));
  INFO(print(kernel));
  CHECK(loads_in(kernel) == Loads{.side_by_side = 1, .anywhere = 2});
}
