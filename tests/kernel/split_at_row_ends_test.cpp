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

TEST_CASE("split_at_row_ends: conditions, ends and steps of loops are of one row, too", "[kernel]") {
  Kernel kernel = elide_conditions(lowered(scaled(16, 1000), {.splits = schedule::nest_of_elements(32)}));
  std::vector<Stmt>* lanes = nullptr;
  for_each_stmt(kernel.body, [&](Stmt& stmt) {
    const auto* const loop = std::get_if<For>(&stmt.node);
    if (loop && loop->parallel == Parallel::block) lanes = body_of(stmt);
  });
  REQUIRE(lanes);
  const Index i = Dim::index(std::get<Bind>(lanes->front().node).name, 16000), row = i / 1000,
              column = i % 1000;
  const auto behind = lanes->begin() + 1;
  If some{{{column + Dim::index("m", 99), row + 5}}, {behind, lanes->end()}};
  For loop{.name = "j", .begin = row, .end = row + 2, .step = column + 1, .body = {}};
  loop.body.push_back({Bind{"m", Dim::index("j", 99) + row}, {}});
  loop.body.push_back({std::move(some), {}});
  lanes->erase(behind, lanes->end());
  lanes->push_back({std::move(loop), {}});
  const std::string text = print(split_at_row_ends(kernel));
  INFO(text);
  for (const char* line :
       {"for j_row in [(4 * b) / 125, (4 * b) / 125 + 2) by t + 8 * ((4 * b) % 125) + 1 @serial {",
        "bind m_row = j_row + (4 * b) / 125\n", "if m_row + t + 8 * ((4 * b) % 125) < (4 * b) / 125 + 5 {",
        "for j in [i / 1000, i / 1000 + 2) by i % 1000 + 1 @serial {", "bind m = j + i / 1000\n",
        "if m + i % 1000 < i / 1000 + 5 {"})
    CHECK(text.find(line) != std::string::npos);
}

TEST_CASE("split_at_row_ends: rows that no block of lanes fits in stay", "[kernel]") {
  const Kernel kernel = split(scaled(64, 31));
  INFO(print(kernel));
  CHECK(loads_in(kernel) == Loads{.side_by_side = 1, .anywhere = 2});
}
