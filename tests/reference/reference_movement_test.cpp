// Ops that move elements, and sources.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "reference/reference_support.hpp"

namespace fuse::test {
namespace {

// 0, 1, 2, ... so that a result names the elements it took.
HostTensor counting(Extents shape, DType dtype = i64) {
  HostTensor tensor = HostTensor::make(dtype, std::move(shape));
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set_int(i, i);
  return tensor;
}

Extents move(Op op, std::vector<HostTensor> inputs, ir::Attr attr, Extents shape) {
  return int_list(run_op(op, std::move(inputs), std::move(attr), i64, std::move(shape), Precision::exact));
}

}  // namespace

TEST_CASE("reference: broadcast_in_dim") {
  const ir::DimsAttr last{{1}}, first{{0}};
  REQUIRE(move(Op::broadcast_in_dim, {counting({3})}, last, {2, 3}) == Extents{0, 1, 2, 0, 1, 2});
  REQUIRE(move(Op::broadcast_in_dim, {counting({2})}, first, {2, 3}) == Extents{0, 0, 0, 1, 1, 1});
  REQUIRE(move(Op::broadcast_in_dim, {counting({2, 1, 2})}, ir::DimsAttr{{0, 1, 2}}, {2, 2, 2}) ==
          Extents{0, 1, 0, 1, 2, 3, 2, 3});
  REQUIRE(move(Op::broadcast_in_dim, {counting({})}, ir::DimsAttr{}, {2, 2}) == Extents{0, 0, 0, 0});
  REQUIRE(move(Op::broadcast_in_dim, {counting({1})}, first, {0, 4}).empty());
  REQUIRE(move(Op::broadcast_in_dim, {counting({2, 2})}, ir::DimsAttr{{0, 2}}, {2, 2, 2}) ==
          Extents{0, 1, 0, 1, 2, 3, 2, 3});
}

TEST_CASE("reference: transpose against coordinates") {
  const Extents shape = {2, 3, 4};
  std::vector<std::int64_t> permutation = {0, 1, 2};
  do {
    Extents result;
    for (const std::int64_t p : permutation) result.push_back(shape[static_cast<std::size_t>(p)]);
    const Extents got = move(Op::transpose, {counting(shape)}, ir::DimsAttr{permutation}, result);
    std::size_t next = 0;
    std::int64_t at[3];
    for (at[0] = 0; at[0] < result[0]; ++at[0]) {
      for (at[1] = 0; at[1] < result[1]; ++at[1]) {
        for (at[2] = 0; at[2] < result[2]; ++at[2]) {
          std::int64_t own[3];
          for (std::size_t i = 0; i < 3; ++i) own[permutation[i]] = at[i];
          REQUIRE(got[next++] == (own[0] * 3 + own[1]) * 4 + own[2]);
        }
      }
    }
  } while (std::next_permutation(permutation.begin(), permutation.end()));
}

TEST_CASE("reference: slice with strides") {
  const ir::SliceAttr rows{{1, 0}, {3, 4}, {1, 1}};
  REQUIRE(move(Op::slice, {counting({3, 4})}, rows, {2, 4}) == Extents{4, 5, 6, 7, 8, 9, 10, 11});
  const ir::SliceAttr steps{{0, 1}, {3, 4}, {2, 2}};
  REQUIRE(move(Op::slice, {counting({3, 4})}, steps, {2, 2}) == Extents{1, 3, 9, 11});
  const ir::SliceAttr nothing{{2, 0}, {2, 4}, {1, 1}};
  REQUIRE(move(Op::slice, {counting({3, 4})}, nothing, {0, 4}).empty());
  const ir::SliceAttr outside{{2, 0}, {5, 4}, {1, 1}};
  const Error error = error_of([&] { move(Op::slice, {counting({3, 4})}, outside, {3, 4}); });
  REQUIRE(error.code() == ErrorCode::invalid_extent);
  REQUIRE_THAT(error.what(), Catch::Contains("the slice [2, 5) of axis 0 is outside of its extent 3"));
}

TEST_CASE("reference: concat and reshape") {
  const HostTensor a = counting({2, 2}), b = integers(i64, {2, 1}, {10, 11}),
                   none = HostTensor::make(i64, {2, 0});
  REQUIRE(move(Op::concat, {a, none, b, a}, ir::AxisAttr{1}, {2, 5}) ==
          Extents{0, 1, 10, 0, 1, 2, 3, 11, 2, 3});
  REQUIRE(move(Op::concat, {a, a}, ir::AxisAttr{0}, {4, 2}) == Extents{0, 1, 2, 3, 0, 1, 2, 3});
  REQUIRE(move(Op::reshape, {counting({2, 6})}, {}, {3, 4}) == Extents{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const Error error = error_of([&] { move(Op::reshape, {counting({2, 6})}, {}, {5}); });
  REQUIRE(error.code() == ErrorCode::shape_mismatch);
  REQUIRE_THAT(error.what(), Catch::Contains("reshape(i64[2, 6])"));
}

TEST_CASE("reference: gather clamps its indices") {
  const HostTensor indices = integers(i32, {2, 2}, {2, -5, 99, 0});
  REQUIRE(move(Op::gather, {counting({3, 2}), indices}, ir::AxisAttr{0}, {2, 2, 2}) ==
          Extents{4, 5, 0, 1, 4, 5, 0, 1});
  REQUIRE(move(Op::gather, {counting({2, 3}), integers(i64, {2}, {2, 0})}, ir::AxisAttr{1}, {2, 2}) ==
          Extents{2, 0, 5, 3});
  REQUIRE(move(Op::gather, {counting({3}), integers(i64, {}, {1})}, ir::AxisAttr{0}, {}) == Extents{1});
  REQUIRE(move(Op::gather, {counting({3, 2}), HostTensor::make(i32, {0})}, ir::AxisAttr{0}, {0, 2}).empty());
  const Error error = error_of([&] {
    move(Op::gather, {HostTensor::make(i64, {0}), integers(i64, {1}, {0})}, ir::AxisAttr{0}, {1});
  });
  REQUIRE_THAT(error.what(), Catch::Contains("gathered from an axis of extent 0"));
}

TEST_CASE("reference: movement keeps the bits of floats") {
  const HostTensor x = reals(f16, {2, 2}, {-0.0, inf, nan, 6.1e-5});
  const auto got = run_op(Op::transpose, {x}, ir::DimsAttr{{1, 0}}, f16, {2, 2}, Precision::same_type);
  require_same(list(got), {-0.0, nan, inf, x.get(3)});
}

TEST_CASE("reference: sources") {
  REQUIRE(move(Op::iota, {}, ir::AxisAttr{0}, {2, 3}) == Extents{0, 0, 0, 1, 1, 1});
  REQUIRE(move(Op::iota, {}, ir::AxisAttr{1}, {2, 3}) == Extents{0, 1, 2, 0, 1, 2});
  REQUIRE(move(Op::iota, {}, ir::AxisAttr{0}, {0}).empty());
  require_same(list(run_op(Op::iota, {}, ir::AxisAttr{0}, f32, {3}, Precision::same_type)), {0, 1, 2});
  require_same(list(run_op(Op::constant, {}, ir::ConstantAttr{.real = -0.0}, f16, {2}, Precision::exact)),
               {-0.0, -0.0});
  REQUIRE(move(Op::constant, {}, ir::ConstantAttr{.integer = 1LL << 60}, {1}) == Extents{1LL << 60});

  const DimRange range{.min = 1, .max = 100};
  Case test;
  test.graph.symbols.push_back({"B", range});
  const Dim b = Dim::symbol("B", range);
  const NodeId size = test.add(Op::dim_size, {}, ir::DimAttr{b * 4 + 1}, type_of(i64, {}));
  test.output(test.add(Op::broadcast_in_dim, {size}, ir::DimsAttr{}, {i64, {b}}));
  const auto result = runtime::evaluate(
      test.graph, {}, [](std::string_view) { return 3; }, Precision::exact);
  REQUIRE(int_list(result.outputs.at("y")) == Extents{13, 13, 13});
}

}  // namespace fuse::test
