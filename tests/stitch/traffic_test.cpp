// What stitched kernels move, counted by the emulated device. SPDX-License-Identifier: Apache-2.0
#include "stitch/stitch_support.hpp"
#include "support/stitch_graphs.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

TEST_CASE("a row that fits in registers is loaded once", "[stitch][emulated]") {
  for (const StitchGraph& each : stitch_graphs()) {
    const runtime::Traffic traffic = large_traffic(each.build(f32, 288, 1024));
    INFO(each.name << ": " << traffic.requested() << " bytes, " << traffic.sectors() << " in sectors; floor "
                   << traffic.floor);
    CHECK(traffic.floor > 0);
    const bool fits = std::string(each.name) != "group_norm";  // a group has 288 * 64 elements
    CHECK(static_cast<double>(traffic.requested()) <=
          (fits ? 1.05 : 2.0) * static_cast<double>(traffic.floor));
    CHECK(static_cast<double>(traffic.sectors()) <= (fits ? 1.10 : 2.0) * static_cast<double>(traffic.floor));
  }
}

TEST_CASE("the floor of a table has the rows that are loaded", "[stitch][emulated]") {
  Graph g;
  const Tensor table = g.parameter("table", f32, {1024, 512});  // 2 MB
  g.output("y", gather(table, g.input("rows", i32, {100}), 0) * 2);
  CHECK(large_traffic(g).floor == 100 * 512 * 4);
}

TEST_CASE("a copy reads what it writes", "[stitch][emulated]") {
  Graph g;
  g.output("y", g.input("x", f32, {1024, 512}));  // 2 MB
  const runtime::Traffic traffic = large_traffic(g);
  CHECK(traffic.load == 1024 * 512 * 4);
  CHECK(traffic.store == 1024 * 512 * 4);
  CHECK(traffic.sectors() == traffic.requested());
  CHECK(traffic.floor == traffic.requested());
}
