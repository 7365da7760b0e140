// What random inputs are drawn positive for. SPDX-License-Identifier: Apache-2.0
#include "fusec/values/input_wishes.hpp"

#include <cmath>
#include <fuse/fuse.hpp>

#include "base/access.hpp"
#include "fusec/values/inputs.hpp"
#include "support/catch.hpp"

namespace fuse {

TEST_CASE("inputs: what a logarithm, a root, a power or a divisor reaches is positive", "[fusec]") {
  Graph g;
  const Tensor a = g.input("a", f32, {64}), b = g.input("b", f32, {64}), c = g.input("c", f32, {8, 8}),
               d = g.input("d", f32, {64}), e = g.input("e", f32, {64}), plain = g.input("plain", f32, {64}),
               squared = g.input("squared", f32, {64}), divisor = g.input("divisor", i32, {64});
  g.output("log", log(reverse(a, {0}) * b));
  g.output("root", sqrt(sum(convert(c, f64), {0})));
  g.output("pow", pow(d, plain));
  g.output("quotient", (plain - e) / e);
  g.output("norm", rsqrt(mean(squared * squared)));
  g.output("whole", convert(plain, i32) / divisor);

  const fusec::Inputs inputs = fusec::make_inputs(ir_of(g), {}, {}, 3);
  for (const auto& [name, tensor] : inputs.values) {
    INFO(name);
    bool positive = true;
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) positive &= tensor.get(i) > 0;
    CHECK(positive == (name != "plain" && name != "squared"));
  }
}

}  // namespace fuse
