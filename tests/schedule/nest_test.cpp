// Nests: what is read off a list of splits, and which lists no kernel can have.
// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/nest.hpp"

#include <set>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "schedule/mapping/schedule.hpp"
#include "schedule_support.hpp"

using namespace fuse;            // NOLINT
using namespace fuse::schedule;  // NOLINT

namespace {

/// Rows of 1000 elements; 300 of them.
Nest rows(std::vector<Split> splits) {
  return {.dims = {{'r', 300}, {'c', 1000}}, .splits = std::move(splits)};
}

const Nest by_warp = rows({{'r', Level::grid},
                           {'r', Level::warp, 8},
                           {'c', Level::serial},
                           {'c', Level::lane, 32},
                           {'c', Level::vector, 4}});

}  // namespace

TEST_CASE("a nest: units and strides are read off the list", "[schedule]") {
  CHECK(to_string(by_warp) == "r:grid r:warp8 c:serial c:lane32 c:vector4");
  CHECK(defect_of(by_warp).empty());
  CHECK(units(by_warp, Level::grid).is(38));   // of 8 rows, the last of 4
  CHECK(units(by_warp, Level::serial).is(8));  // of 128 elements, the last of 104
  CHECK(units(by_warp, Level::cluster).is(1));
  CHECK(stride(by_warp, 0).is(8));
  CHECK(stride(by_warp, 2).is(128));
  CHECK(stride(by_warp, 3).is(4));
  CHECK(stride(by_warp, 4).is(1));
}

TEST_CASE("a nest: its units visit each element once", "[schedule]") {
  for (const Nest& nest :
       {by_warp, rows(parse_splits("r:serial r:grid5 r:warp8 c:serial c:lane32 c:vector4").value()),
        rows({{'r', Level::grid},
              {'r', Level::warp, 2},
              {'r', Level::lane, 4},
              {'c', Level::serial},
              {'c', Level::lane, 8}}),
        rows({{'r', Level::serial},
              {'r', Level::grid, 7},
              {'c', Level::serial},
              {'c', Level::grid, 3},
              {'c', Level::warp, 2},
              {'c', Level::lane, 32}})}) {
    INFO(to_string(nest));
    REQUIRE(defect_of(nest).empty());
    for (const Nest::LoopDim& dim : nest.dims) {
      Nest alone = nest;
      std::erase_if(alone.splits, [&](const Split& split) { return split.dim != dim.name; });
      std::multiset<std::int64_t> positions = {0};
      for (std::size_t i = 0; i < alone.splits.size(); ++i) {
        std::multiset<std::int64_t> next;
        for (const std::int64_t position : positions) {
          const std::int64_t count = units(alone, alone.splits[i].level).constant();
          for (std::int64_t unit = 0; unit < count; ++unit)
            next.insert(position + unit * stride(alone, i).constant());
        }
        positions = std::move(next);
      }
      for (std::int64_t element = 0; element < dim.extent.constant(); ++element) {
        if (positions.count(element) == 1) continue;
        FAIL(dim.name << " " << element << " is visited " << positions.count(element) << " times");
      }
    }
  }
}

TEST_CASE("a nest without its turns has a block for each", "[schedule]") {
  const auto blocks = [](std::string_view splits) {
    return to_string(without_turns(rows(parse_splits(splits).value())));
  };
  CHECK(blocks("r:serial r:grid5 r:warp8 c:serial c:lane32") == "r:grid r:warp8 c:serial c:lane32");
  CHECK(blocks("r:serial c:serial c:grid4 c:lane32") == "r:grid c:serial c:grid4 c:lane32");
  CHECK(blocks("r:grid c:serial c:lane32") == "r:grid c:serial c:lane32");
}

TEST_CASE("a nest that no kernel can have is refused with its reason", "[schedule]") {
  const auto why = [](std::vector<Split> splits) { return defect_of(rows(std::move(splits))); };
  const Split grid{'r', Level::grid}, serial{'c', Level::serial}, lanes{'c', Level::lane, 32};
  CHECK(why({grid, serial, lanes}).empty());
  CHECK(why({grid, serial, lanes, {'z', Level::warp, 4}}) == "z:warp4 splits no dim of the nest");
  CHECK(why({grid, {'c', Level::warp}, lanes}) == "c:warp has no fixed number of units");
  CHECK(why({grid, serial, {'c', Level::grid}, lanes}) == "2 splits take the rest of c");
  CHECK(why({grid, lanes}) == "the splits of c have 32 units for 1000 elements");
  CHECK(why({grid, serial, {'c', Level::lane, 16}}) == "the lanes of all splits are 16, and have to be 32");
  CHECK(why({grid, serial, {'c', Level::lane, 24}}) == "c:lane24 is no power of two");
  CHECK(why({grid, serial, {'c', Level::vector, 4}, lanes}) == "c:lane32 stands after a vector");
  const Nest unknown{.dims = {{'r', 300}, {'c', Dim::symbol("N", {.min = 1, .max = 64})}},
                     .splits = {grid, {'c', Level::warp, 2}, lanes}};
  CHECK(defect_of(unknown).empty());  // 64 units suffice for every N
}

TEST_CASE("a schedule whose nest has other threads than its launch is refused", "[schedule]") {
  Graph g("g");
  g.output("y", sum(g.input("x", f32, {300, 1000}), {1}));
  const Target target = target_profile("h200");
  const Compiled made = run_pipeline(ir_of(g), target);
  Schedule schedule = made.schedules.front();
  verify(made.graph, schedule, target);
  for (Split& split : schedule.kernels.front().nest.splits) {
    if (split.level == Level::warp) split.extent *= 2;
  }
  const std::string said = test::thrown_by([&] { verify(made.graph, schedule, target); });
  INFO(said);
  CHECK(said.find("nest r:grid") != std::string::npos);
}
