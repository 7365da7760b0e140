// Extents that tensors state: what follows from dim_size and numbers is an expression of symbols.
// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <fuse/fuse.hpp>
#include <string>
#include <vector>

#include "analysis/guards.hpp"
#include "base/access.hpp"
#include "support/catch.hpp"
#include "support/error_info.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

TEST_CASE("a shape value is an expression of symbols", "[versions][shape_values]") {
  Graph g("shapes");
  const Dim b = g.dim("B", {.min = 1, .max = 64}), t = g.dim("T", {.min = 0, .max = 512});
  const Tensor rows = g.dim_size(b), words = g.dim_size(t);
  CHECK(extent_of(rows) == b);
  CHECK(extent_of(rows * words + 3) == b * t + 3);
  CHECK(extent_of((words + 7) / 8) == (t + 7) / 8);
  CHECK(extent_of(words % rows) == t % b);
  CHECK(extent_of(maximum(rows, 100)) == 100);
  CHECK(extent_of(minimum(rows, 100)) == b);
  CHECK(extent_of(-(rows - 65)) == 65 - b);
  CHECK(extent_of(convert(convert(rows, i32), i64)) == b);
  const auto one = [&](const Tensor& x) { return reshape(x, {1}); };
  const Tensor shape = concat({one(rows), one(words), g.constant(i64, 12, {2})}, 0);
  CHECK(extents_of(shape) == std::vector<Dim>{b, t, 12, 12});
  CHECK(extents_of(slice(shape, 0, 1, 3)) == std::vector<Dim>{t, 12});
  CHECK(extents_of(reverse(shape, {0})) == std::vector<Dim>{12, 12, t, b});
  CHECK(extents_of(gather(shape, g.iota(i64, {2}, 0), 0)) == std::vector<Dim>{b, t});
  CHECK(extent_of(prod(shape)) == 144 * b * t);
  CHECK(extent_of(sum(shape)) == b + t + 24);
  CHECK(extents_of(shape * 2)[0] == 2 * b);
}

TEST_CASE("a reshape to a computed shape needs no guard", "[versions][shape_values]") {
  Graph g("reshaped");
  const Dim b = g.dim("B", {.min = 1, .max = 64}), t = g.dim("T", {.min = 1, .max = 512});
  const Tensor x = g.input("x", f32, {b, t, 4});
  const auto one = [&](const Tensor& of) { return reshape(of, {1}); };
  const Tensor rows = g.dim_size(b) * g.dim_size(t);
  const Tensor flat = reshape(x, extents_of(concat({one(rows), g.constant(i64, 4, {1})}, 0)));
  CHECK(flat.dims() == std::vector<Dim>{b * t, 4});
  g.output("y", sum(flat, {1}));
  CHECK(analysis::guards_of(ir_of(g)).empty());
  Session session(compile(g, Device::reference()), {{"B", 1}, {"T", 2}});
  session.set("x", {1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F, 7.0F, 8.0F});
  session.run();
  CHECK(session.get<float>("y") == std::vector<float>{10, 26});
}

TEST_CASE("what states no extent is refused, and the op is named", "[versions][shape_values]") {
  Graph g("refused");
  const Dim b = g.dim("B", {.min = 0, .max = 64}), t = g.dim("T", {.min = 0, .max = 64});
  const Tensor n = g.input("n", i64, {}), rows = g.dim_size(b), words = g.dim_size(t);
  const auto message = [](const std::function<void()>& f) {
    const ErrorInfo info = error_info(f);
    CHECK(info.code == ErrorCode::invalid_argument);
    CHECK(info.location.line > 0);
    return info.message;
  };
  CHECK(message([&] { extent_of(n * rows); }) == "%n, input of type i64[], is data");
  CHECK(message([&] { extent_of(words / rows); }).find("may divide by 0") != std::string::npos);
  CHECK(message([&] { extent_of((words - rows) / 2); }).find("what is negative") != std::string::npos);
  CHECK(message([&] { extent_of(maximum(words, rows)); }).find("is T or B, by the dims") !=
        std::string::npos);
  CHECK(message([&] { extent_of(abs(words)); }).find("no op that is followed") != std::string::npos);
  CHECK(message([&] { extent_of(g.constant(f32, 3)); }).find("is no integer") != std::string::npos);
  CHECK(message([&] { extents_of(rows); }) == "it is no vector");
  CHECK(message([&] { extent_of(g.constant(i64, 3, {2})); }) == "it is no scalar");
  CHECK(message([&] { extents_of(g.iota(i64, {65}, 0)); }).find("up to 64 numbers") != std::string::npos);
  CHECK(message([&] { extents_of(g.iota(i64, {b}, 0)); }).find("up to 64 numbers") != std::string::npos);
  CHECK(message([&] { extent_of(convert(rows * 1'000'000'000, i32)); }).find("beyond 32 bits") !=
        std::string::npos);
  CHECK(error_info([] { extent_of(3); }).message != "");
}

TEST_CASE("shape values that are long, or wrap, are refused or right", "[versions][shape_values]") {
  Graph g("limits");
  const Dim b = g.dim("B", {.min = 0, .max = 9});
  const Dim c = g.dim("C", {.min = 2, .max = 2147483647}),
            d = g.dim("D", {.min = 100, .max = std::int64_t{1} << 40});
  Tensor chain = g.dim_size(b);
  for (int i = 0; i < 100'000; ++i) chain = chain + 1;
  CHECK(extent_of(chain) == b + 100'000);
  Tensor power = g.dim_size(b);
  for (int i = 0; i < 40; ++i) power = power * power;
  CHECK(error_info([&] { extent_of(power); }).message.find("too long an expression") != std::string::npos);
  const Tensor product = g.dim_size(d) * g.dim_size(c);
  CHECK(extent_of(product) == c * d);
  CHECK(error_info([&] { extent_of(product / g.dim_size(c)); }).message.find("beyond 64 bits") !=
        std::string::npos);
  const Tensor low = minimum(g.constant(i64, -8589934592), 8);
  CHECK(error_info([&] { extent_of(convert(low, i32)); }).message.find("beyond 32 bits") !=
        std::string::npos);
}

namespace {

/// The sums of the first rows, as many as a tensor says.
Graph sums_of_rows(DType count) {
  Graph g("rows");
  const Tensor x = g.input("x", f32, {8, 4}), n = g.input("n", count, {});
  const Dim rows = g.data_dim("N", n + 1, {.min = 0, .max = 8});
  g.output("y", sum(slice(x, 0, 0, rows), {1}));
  return g;
}

}  // namespace

TEST_CASE("an extent that is data is compared with what prepare was given", "[versions][shape_values]") {
  const Executable executable = compile(sums_of_rows(i64), Device::reference());
  Session session(executable, {{"N", 3}});
  std::vector<float> x(32);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i / 4);
  session.set("x", x);
  for (const std::int64_t n : {2, 1, 7}) {
    session.set("n", std::vector<std::int64_t>{n});
    session.run();
    CHECK(session.get<std::byte>("N_holds") == std::vector<std::byte>{static_cast<std::byte>(n == 2)});
    if (n == 2) CHECK(session.get<float>("y") == std::vector<float>{0, 4, 8});
  }
  const auto code = [](const std::function<void(Graph&)>& f) {
    Graph g("refused");
    return error_info([&] { f(g); }).code;
  };
  CHECK(code([](Graph& g) { g.data_dim("N", g.input("n", f32, {})); }) == ErrorCode::dtype_mismatch);
  CHECK(code([](Graph& g) { g.data_dim("N", g.input("n", i64, {1})); }) == ErrorCode::shape_mismatch);
  CHECK(code([](Graph& g) {
          g.output("N_holds", g.input("x", f32, {}));
          g.data_dim("N", g.input("n", i64, {}));
        }) == ErrorCode::duplicate_name);
  Graph twice("twice");  // what is refused leaves nothing behind
  const Tensor n = twice.input("n", i32, {});
  twice.output("N_holds", n);
  CHECK(error_info([&] { twice.data_dim("N", n); }).message.find("which data_dim makes") !=
        std::string::npos);
  CHECK_NOTHROW(twice.dim("N"));
  CHECK(code([](Graph& g) { Graph("other").data_dim("N", g.input("n", i64, {})); }) ==
        ErrorCode::wrong_graph);
}

TEST_CASE("an i32 is compared with an extent beyond its range", "[versions][shape_values]") {
  Graph g("wide");
  const Tensor n = g.input("n", i32, {});
  const Dim rows = g.data_dim("N", n, {.min = 0, .max = std::int64_t{1} << 33});
  g.output("y", g.dim_size(rows));
  Session session(compile(g, Device::reference()), {{"N", (std::int64_t{1} << 32) + 7}});
  session.set("n", std::vector<std::int32_t>{7});
  session.run();
  CHECK(session.get<std::byte>("N_holds") == std::vector<std::byte>{std::byte{0}});
  for (const ir::Node& node : ir_of(g).nodes)
    if (node.op == ir::Op::convert) CHECK(ir_of(g).location(node).file.ends_with("shape_values_test.cpp"));
}

TEST_CASE("kernels compare an extent that is data", "[versions][shape_values][emulated]") {
  for (const DType count : {i32, i64}) {
    const Executable executable = compile(sums_of_rows(count), Device::emulated());
    for (const std::int64_t rows : {0, 3, 8}) {
      Session session(executable, {{"N", rows}});
      session.set("x", std::vector<float>(32, 1.5F));
      for (const int n : {2, 7, -1}) {
        count == i64 ? session.set("n", std::vector<std::int64_t>{n})
                     : session.set("n", std::vector<std::int32_t>{n});
        session.run();
        CHECK(session.get<std::byte>("N_holds") ==
              std::vector<std::byte>{static_cast<std::byte>(n + 1 == rows)});
        CHECK(session.get<float>("y") == std::vector<float>(static_cast<std::size_t>(rows), 6));
      }
    }
  }
}
