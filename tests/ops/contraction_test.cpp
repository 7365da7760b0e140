// Contractions: any batch, contracted and free dims, against the reference's own loops over them.
// SPDX-License-Identifier: Apache-2.0
#include "base/access.hpp"
#include "passes/open_contractions.hpp"
#include "support/op_sweep.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

struct ContractionCase {
  Shape a, b;
  ContractionDims dims;
};
const std::vector<ContractionCase> contraction_cases = {
    {{3, 4}, {4, 5}, {{}, {}, {1}, {0}}},                      // matmul
    {{4, 3}, {5, 4}, {{}, {}, {0}, {1}}},                      // both transposed
    {{2, 3, 4}, {2, 4, 5}, {{0}, {0}, {2}, {1}}},              // batched
    {{3, 2, 4}, {5, 4, 2}, {{1}, {2}, {2}, {1}}},              // batch in the middle and at the end
    {{2, 3, 4, 5}, {5, 3, 6}, {{}, {}, {1, 3}, {1, 0}}},       // two contracted, in another order
    {{2, 3, 4}, {2, 3, 4}, {{0, 1}, {0, 1}, {2}, {2}}},        // nothing free
    {{2, 3}, {4, 5}, {{}, {}, {}, {}}},                        // nothing contracted: an outer product
    {{7}, {7}, {{}, {}, {0}, {0}}},                            // a dot product
    {{2, 5, 3, 4}, {4, 5, 2, 6}, {{0, 1}, {2, 1}, {3}, {0}}},  // two batch dims, in another order
    {{3, 0}, {0, 2}, {{}, {}, {1}, {0}}},                      // an empty sum
    {{2, 2, 1, 3, 2}, {2, 3, 2, 2}, {{4}, {2}, {3, 0}, {1, 3}}},
};

}  // namespace

TEST_CASE("ops: contractions of any dims, in every type", "[ops][device]") {
  OpSweep sweep("contraction");
  for (const ContractionCase& item : contraction_cases) {
    std::int64_t k = 1;
    for (const std::int64_t axis : item.dims.contract_a) k *= item.a[static_cast<std::size_t>(axis)];
    for (const DType dtype : {f64, f32, f16, bf16}) {
      const Tensor a = sweep.input(dtype, item.a), b = sweep.input(dtype, item.b);
      const DType wide = is_half(dtype) ? f32 : dtype;
      for (const DType result : {dtype, wide}) {
        // |a b| < 16
        sweep.expect(describe(ir::Op::contraction, dtype, item.a), contraction(a, b, item.dims, result),
                     [=](std::size_t, double exact) {
                       return runtime::matmul_bound(k, 16.0 * static_cast<double>(k), exact, wide, result);
                     });
      }
    }
  }
  sweep.run_on_test_devices();
}

TEST_CASE("ops: a contraction with symbolic extents", "[ops][device]") {
  for (const std::int64_t n : {1, 5}) {
    OpSweep sweep("symbolic_contraction");
    const Dim N = sweep.graph().dim("N", {.min = 1, .max = 1000, .hint = 64});
    const Tensor a = sweep.input(f32, {3, n, 4, 2}, {3, N, 4, 2}),
                 b = sweep.input(f32, {n, 4, 2, 6}, {N, 4, 2, 6});
    sweep.expect("heads", contraction(a, b, {{1}, {0}, {2, 3}, {1, 2}}), [](std::size_t, double exact) {
      return runtime::matmul_bound(8, 16.0 * 8, exact, f32, f32);
    });
    sweep.run_on_test_devices({{"N", n}});
  }
}

TEST_CASE("open_contractions moves only what does not lie right", "[passes]") {
  const auto ops = [](Shape a, Shape b, ContractionDims dims) {
    Graph g("g");
    const auto of = [&](const char* name, const Shape& shape) { return g.input(name, f32, dims_of(shape)); };
    g.output("y", contraction(of("a", a), of("b", b), std::move(dims)));
    std::string text;
    for (const ir::Node& node : ir::open_contractions(ir_of(g)).nodes) {
      if (!std::holds_alternative<ir::NameAttr>(node.attr)) text += std::string(to_string(node.op)) + ' ';
    }
    return text;
  };
  CHECK(ops({3, 4}, {4, 5}, {{}, {}, {1}, {0}}) == "matmul ");
  CHECK(ops({4, 3}, {5, 4}, {{}, {}, {0}, {1}}) == "matmul ");
  CHECK(ops({2, 3, 4}, {2, 5, 4}, {{0}, {0}, {2}, {2}}) == "matmul ");
  CHECK(ops({3, 2, 4}, {2, 4, 5}, {{1}, {0}, {2}, {1}}) == "transpose matmul ");
  CHECK(ops({3, 4, 2}, {4, 2, 5}, {{}, {}, {1, 2}, {0, 1}}) == "reshape reshape matmul ");
}

TEST_CASE("ops: what a contraction refuses", "[ops][device]") {
  Graph g("refused");
  const Tensor a = g.input("a", f32, {3, 4}), b = g.input("b", f32, {5, 4}), i = g.input("i", i32, {4});
  CHECK_THROWS_WITH(contraction(a, b, {{}, {}, {0}, {0}}),
                    Catch::Contains("contracted extents differ: 3 of dim 0"));
  CHECK_THROWS_WITH(contraction(a, b, {{}, {}, {1}, {}}),
                    Catch::Contains("1 contracted dim of a and 0 of b"));
  CHECK_THROWS_WITH(contraction(a, b, {{1}, {1}, {1}, {1}}), Catch::Contains("named twice"));
  CHECK_THROWS_WITH(contraction(i, i, {{}, {}, {0}, {0}}), Catch::Contains("not defined for i32"));
  CHECK_THROWS_WITH(contraction(a, b, {{}, {}, {2}, {1}}), Catch::Contains("axis 2 is out of range"));
}
