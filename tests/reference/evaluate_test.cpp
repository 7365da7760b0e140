// Whole graphs: order, lifetimes, dims, and what is said of wrong inputs.
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include "eval/bounds/error_bound.hpp"
#include "eval/parallel_for.hpp"
#include "reference/reference_support.hpp"
#include "support/sanitized.hpp"

namespace fuse::test {
namespace {

const DimRange batch_range{.min = 0, .max = 1024};

/// softmax of x f16[B, 4] over the last dim, with the conversions that the builder would insert.
ir::Graph softmax_graph() {
  Case test;
  test.graph.symbols.push_back({"B", batch_range});
  const Dim b = Dim::symbol("B", batch_range);
  const ir::Type row{f32, {b}}, full{f32, {b, 4}};
  test.graph.locations.emplace_back("model.cpp", 12);
  const NodeId x = test.add(Op::input, {}, ir::NameAttr{"x"}, {f16, {b, 4}});
  test.graph.nodes[x].location = 1;
  const NodeId wide = test.add(Op::convert, {x}, {}, full);
  const NodeId top = test.add(Op::reduce_max, {wide}, ir::DimsAttr{{1}}, row);
  const NodeId tops = test.add(Op::broadcast_in_dim, {top}, ir::DimsAttr{{0}}, full);
  const NodeId shifted = test.add(Op::sub, {wide, tops}, {}, full);
  const NodeId e = test.add(Op::exp, {shifted}, {}, full);
  const NodeId total = test.add(Op::reduce_sum, {e}, ir::DimsAttr{{1}}, row);
  const NodeId totals = test.add(Op::broadcast_in_dim, {total}, ir::DimsAttr{{0}}, full);
  const NodeId y = test.add(Op::div, {e, totals}, {}, full);
  test.output(test.add(Op::convert, {y}, {}, {f16, {b, 4}}));
  // Nothing reads this one, and it is not evaluated.
  test.add(Op::log, {wide}, {}, full);
  return test.graph;
}

auto batch_of(std::int64_t value) {
  return [value](std::string_view) { return value; };
}

}  // namespace

TEST_CASE("reference: softmax in both forms") {
  const ir::Graph graph = softmax_graph();
  const HostTensor x = reals(f16, {2, 4}, {0, 1, 2, 3, 5, 5, 5, -inf});
  const auto exact = runtime::evaluate(graph, {{"x", x}}, batch_of(2), Precision::exact).outputs.at("y");
  const double e1 = std::exp(-1), e2 = std::exp(-2), e3 = std::exp(-3), sum = ((e3 + e2) + e1) + 1;
  require_same(list(exact), {e3 / sum, e2 / sum, e1 / sum, 1 / sum, 1.0 / 3, 1.0 / 3, 1.0 / 3, 0});
  const auto rounded =
      runtime::evaluate(graph, {{"x", x}}, batch_of(2), Precision::same_type).outputs.at("y");
  for (std::size_t i = 0; i < 8; ++i) {
    const double value = rounded.real()[i];
    REQUIRE(value == static_cast<double>(half(value)));
    REQUIRE(std::fabs(value - exact.real()[i]) <=
            runtime::rounding_bound(exact.real()[i], 8 * runtime::ulp_of(exact.real()[i], f32), f16));
  }
  REQUIRE(rounded.to_host().data == exact.to_host().data);  // this far from a tie
  REQUIRE(rounded.dtype() == f16);
  REQUIRE(rounded.shape() == Extents{2, 4});
}

TEST_CASE("reference: zero-sized tensors run through a graph") {
  const HostTensor x = HostTensor::make(f16, {0, 4});
  const auto y =
      runtime::evaluate(softmax_graph(), {{"x", x}}, batch_of(0), Precision::same_type).outputs.at("y");
  REQUIRE(y.shape() == Extents{0, 4});
  REQUIRE(y.element_count() == 0);
}

TEST_CASE("reference: progress counts the ops that outputs need") {
  std::vector<std::size_t> seen;
  const HostTensor x = HostTensor::make(f16, {1, 4});
  runtime::evaluate(softmax_graph(), {{"x", x}}, batch_of(1), Precision::exact,
                    [&](std::size_t done, std::size_t total) {
                      REQUIRE(total == 10);
                      seen.push_back(done);
                    });
  REQUIRE(seen == std::vector<std::size_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
}

TEST_CASE("reference: what is wrong with an input is said by name") {
  const ir::Graph graph = softmax_graph();
  const auto run = [&](const runtime::Values& values, std::int64_t b) {
    return error_of([&] { runtime::evaluate(graph, values, batch_of(b), Precision::exact); });
  };
  const Error missing = run({{"z", HostTensor::make(f16, {2, 4})}}, 2);
  REQUIRE(missing.code() == ErrorCode::unbound);
  REQUIRE(missing.kind() == ErrorKind::user);
  REQUIRE_THAT(missing.what(), Catch::Contains("model.cpp:12") && Catch::Contains("input 'x' has no value") &&
                                   Catch::Contains("give it a tensor f16[2, 4]"));
  const Error dtype = run({{"x", HostTensor::make(f32, {2, 4})}}, 2);
  REQUIRE(dtype.code() == ErrorCode::dtype_mismatch);
  REQUIRE_THAT(dtype.what(), Catch::Contains("input 'x' is f32[2, 4], not f16[2, 4]"));
  const Error shape = run({{"x", HostTensor::make(f16, {3, 4})}}, 2);
  REQUIRE(shape.code() == ErrorCode::shape_mismatch);
  REQUIRE_THAT(shape.what(), Catch::Contains("input 'x' is f16[3, 4], not f16[2, 4]") &&
                                 Catch::Contains("the declared type is f16[B, 4]"));
  HostTensor torn = HostTensor::make(f16, {2, 4});
  torn.data.pop_back();
  const Error bytes = run({{"x", torn}}, 2);
  REQUIRE(bytes.code() == ErrorCode::buffer_size);
  REQUIRE_THAT(bytes.what(), Catch::Contains("takes 16 bytes, but has 15"));
  const Error range = run({{"x", HostTensor::make(f16, {2000, 4})}}, 2000);
  REQUIRE(range.code() == ErrorCode::invalid_extent);
  REQUIRE_THAT(range.what(), Catch::Contains("dim 'B' is 2000, outside of its range [0, 1024]"));
}

TEST_CASE("reference: a dim without a value") {
  const ir::Graph graph = softmax_graph();
  const Error none = error_of([&] { runtime::evaluate(graph, {}, {}, Precision::exact); });
  REQUIRE(none.code() == ErrorCode::unbound);
  REQUIRE_THAT(none.what(), Catch::Contains("dim 'B' has no value"));
  ir::Graph undeclared = graph;
  undeclared.symbols.clear();
  const Error unknown = error_of([&] { runtime::evaluate(undeclared, {}, batch_of(1), Precision::exact); });
  REQUIRE(unknown.code() == ErrorCode::unbound);
}

TEST_CASE("reference: sizes that do not exist are errors") {
  const DimRange range{.min = 0, .max = std::numeric_limits<std::int64_t>::max()};
  Case test;
  test.graph.symbols.push_back({"N", range});
  const Dim n = Dim::symbol("N", range);
  test.output(test.add(Op::iota, {}, ir::AxisAttr{0}, {i64, {n}}));
  const auto run = [&](std::int64_t size) {
    return error_of([&] { runtime::evaluate(test.graph, {}, batch_of(size), Precision::exact); });
  };
  REQUIRE(run(std::numeric_limits<std::int64_t>::max()).code() == ErrorCode::invalid_extent);
  if (sanitized()) return;  // its allocator aborts rather than throws
  // More than an address space; nothing this large is touched.
  REQUIRE(run(std::int64_t{1} << 59).code() == ErrorCode::out_of_memory);
}

TEST_CASE("reference: operands that differ for these dims") {
  const DimRange range{.min = 0, .max = 10};
  Case test;
  test.graph.symbols = {{"A", range}, {"B", range}};
  const Dim a = Dim::symbol("A", range), b = Dim::symbol("B", range);
  const NodeId x = test.add(Op::input, {}, ir::NameAttr{"x"}, {f32, {a}});
  const NodeId y = test.add(Op::input, {}, ir::NameAttr{"z"}, {f32, {b}});
  test.output(test.add(Op::add, {x, y}, {}, {f32, {a}}));
  const runtime::Values values = {{"x", HostTensor::make(f32, {2})}, {"z", HostTensor::make(f32, {3})}};
  const auto dims = [](std::string_view name) { return name == "A" ? 2 : 3; };
  const Error error = error_of([&] { runtime::evaluate(test.graph, values, dims, Precision::exact); });
  REQUIRE(error.code() == ErrorCode::shape_mismatch);
  REQUIRE_THAT(error.what(), Catch::Contains("add(f32[2], f32[3])"));
}

TEST_CASE("reference: a long chain needs neither stack nor memory for all of its values") {
  const auto peak_kilobytes = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  Case test;
  const ir::Type type = type_of(f32, {1 << 16});
  NodeId last = test.input(HostTensor::make(f32, {1 << 16}));
  const NodeId one = test.add(Op::constant, {}, ir::ConstantAttr{.real = 1}, type);
  // `one` stands first and is still needed, so every sum takes new storage: 2.6 GB if all were kept.
  const int ops = fewer(5000);
  for (int i = 0; i < ops; ++i) last = test.add(Op::add, {one, last}, {}, type);
  test.output(last);
  const auto before = peak_kilobytes();
  const ReferenceTensor y = test.run(Precision::same_type);
  REQUIRE(peak_kilobytes() - before < 1'000'000);
  REQUIRE(y.real().front() == ops);
  REQUIRE(y.real().back() == ops);
}

TEST_CASE("reference: masks come from the same-type form") {
  // 1/3 as f32 differs from 1/3 in double: only one of the forms knows what the device compares.
  Case test;
  const ir::Type type = type_of(f32, {1});
  const NodeId x = test.input(reals(f32, {1}, {3}));
  const NodeId third =
      test.add(Op::constant, {}, ir::ConstantAttr{.real = static_cast<float>(1.0 / 3)}, type);
  const NodeId r = test.add(Op::reciprocal, {x}, {}, type);
  test.output(test.add(Op::eq, {r, third}, {}, type_of(boolean, {1})));
  REQUIRE(int_list(test.run(Precision::same_type)) == Extents{1});
  REQUIRE(int_list(test.run(Precision::exact)) == Extents{0});
}

TEST_CASE("reference: parallel_for covers every index once and passes exceptions on") {
  std::vector<int> seen(1000, 0);
  runtime::reference::parallel_for(1000, 10, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) ++seen[i];
  });
  REQUIRE(seen == std::vector<int>(1000, 1));
  runtime::reference::parallel_for(0, 10, [](std::size_t, std::size_t) { FAIL("nothing to do"); });
  REQUIRE_THROWS_AS(runtime::reference::parallel_for(1000, 10,
                                                     [](std::size_t, std::size_t end) {
                                                       if (end == 1000) throw std::bad_alloc();
                                                     }),
                    std::bad_alloc);
}

}  // namespace fuse::test
