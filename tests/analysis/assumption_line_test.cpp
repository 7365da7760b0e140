// What a user could write so that the compiler knows more. SPDX-License-Identifier: Apache-2.0
#include "analysis/assumption_line.hpp"

#include <fuse/core.hpp>
#include <vector>

#include "base/access.hpp"
#include "support/catch.hpp"

namespace fuse::test {
namespace {

TEST_CASE("an assumption is a line of C++, and none where it cannot hold", "[analysis][facts]") {
  Graph g("g");
  const Dim s = g.dim("S", {.min = 8, .max = 64}), t = g.dim("T", {.min = 1, .max = 64}),
            u = g.dim("U", {.min = 100, .max = 200});
  g.output("y", exp(g.input("x", f32, {s, t, u})));
  const auto line = [&](const std::vector<DimRelation>& relations) {
    return analysis::assumption_line(ir_of(g), relations);
  };
  CHECK(line({equal(s, t)}) == "g.assume(equal(S, T));");
  CHECK(line({divisible(s * t, 16), at_most(u, 128)}) ==
        "g.assume(divisible(S * T, 16)); g.assume(at_most(U, 128));");
  CHECK(line({one_or(t, s)}) == "g.assume(one_or(T, S));");
  CHECK(line({}).empty());
  CHECK(line({equal(s, u)}).empty());
  CHECK(line({equal(s, t), equal(t, u)}).empty());
  CHECK(line({equal(Dim(3), Dim(4))}).empty());
}

}  // namespace
}  // namespace fuse::test
