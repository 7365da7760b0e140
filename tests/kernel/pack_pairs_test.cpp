// Halves computed two at a time. SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/pack_pairs.hpp"

#include "ir/kernel/passes/vectorise.hpp"
#include "kernel/kernel_support.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "support/stitch_cases.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using kernel::Kernel;

namespace {

Kernel packed(const Graph& g, int vector) {
  Kernel result =
      kernel::pack_pairs(kernel::vectorise(lowered(g, {.splits = schedule::nest_of_elements(128, vector)})));
  kernel::verify(result, target_profile("h200").shared_per_block);
  return result;
}

std::size_t pairs_of(const Kernel& kernel, const std::string& what) {
  const std::string text = print(kernel);
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

template <class F>
Graph of_halves(DType dtype, F&& body) {
  Graph g("halves");
  const Tensor x = g.input("x", dtype, {512, 256}), y = g.input("y", dtype, {512, 256});
  g.output("z", body(g, x, y));
  return g;
}

}  // namespace

TEST_CASE("pack_pairs computes neighbours of a half type at once", "[kernel]") {
  const Graph g =
      of_halves(bf16, [](Graph&, const Tensor& x, const Tensor& y) { return max(x * 0.5 + y, 0); });
  const Kernel before = kernel::vectorise(lowered(g, {.splits = schedule::nest_of_elements(128, 8)}));
  check_golden("kernel/pack_pairs.txt", print(before) + print(packed(g, 8)));
}

TEST_CASE("every op of Trait::pairs has pairs, others are computed in f32", "[kernel]") {
  for (const DType dtype : {f16, bf16}) {
    const auto all =
        packed(of_halves(dtype, [](Graph&, const Tensor& x,
                                   const Tensor& y) { return min(abs(-(x - y)), max(x + y, x * y)); }),
               8);
    INFO(print(all));
    for (const char* op : {"neg", "abs", "sub", "add", "mul", "max", "min"})
      CHECK(pairs_of(all, std::string(" = ") + op + " ") == 1);
    CHECK(pairs_of(all, "= convert ") == 0);
    const auto exponential =
        packed(of_halves(dtype, [](Graph&, const Tensor& x, const Tensor& y) { return exp(x) / y; }), 8);
    INFO(print(exponential));
    CHECK(pairs_of(exponential, "= exp ") == 2);  // one for each element
    CHECK(pairs_of(exponential, "= div ") == 2);
  }
}

TEST_CASE("a constant that the half type does not have is not packed", "[kernel]") {
  // In f32 from the start: x converted, times a third, rounded once.
  const Graph g = of_halves(bf16, [](Graph&, const Tensor& x, const Tensor&) {
    return convert(convert(x, f32) * (1.0 / 3), bf16);
  });
  const Kernel kernel = packed(g, 8);
  INFO(print(kernel));
  CHECK(pairs_of(kernel, ": f32 = mul ") == 2);
  CHECK(pairs_of(kernel, "2 x bf16 = pair ") == 1);
}

TEST_CASE("f32, and elements that are walked one by one, have no pairs", "[kernel]") {
  const auto sum = [](Graph&, const Tensor& x, const Tensor& y) { return x + y; };
  CHECK(pairs_of(packed(of_halves(f32, sum), 4), "2 x ") == 0);
  CHECK(pairs_of(packed(of_halves(bf16, sum), 1), "2 x ") == 0);
}

TEST_CASE("values read from pairs one at a time: masks, selects, sums of a row", "[kernel][emulated]") {
  for (const DType dtype : {f16, bf16}) {
    Graph g("mixed");
    const Tensor x = g.input("x", dtype, {64, 256}), y = g.input("y", dtype, {64, 256});
    const Tensor mask = x > y;
    const Tensor chosen = select(mask, x * y, y - x);
    g.output("chosen", chosen);
    g.output("total", sum(chosen, {1}));
    g.output("largest", max(chosen + 1, 0));
    const fuzz::Outcome outcome =
        fuzz::run_alone(case_of(g, {.profile = "h200", .checked = true, .optimization = 0}));
    INFO(outcome.text);
    CHECK(to_string(outcome.verdict) == to_string(fuzz::Verdict::ok));
  }
}
