// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "base/access.hpp"
#include "builder_support.hpp"

using namespace fuse;
using namespace fuse::test;

TEST_CASE("100,000 ops are built in linear time", "[builder][scale]") {
  const auto seconds = [](int count) {
    const auto start = std::chrono::steady_clock::now();
    Graph g;
    const Tensor x = g.input("x", f32, {64, 64});
    Tensor y = x;
    for (int i = 0; i < count; ++i) y = y + x;
    g.output("y", y);
    REQUIRE(ir_of(g).nodes.size() == static_cast<std::size_t>(count) + 1);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  seconds(1000);
  const double small = seconds(10'000), large = seconds(100'000);
  INFO("10,000 ops: " << small << " s; 100,000 ops: " << large << " s");
  // Wide bounds: what is refused is quadratic growth, 100 times as long, on however slow a machine.
  REQUIRE(large < 40 * small + 0.5);
}
