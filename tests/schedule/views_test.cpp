// Which slices and concats cost nothing, and why the others do.
// SPDX-License-Identifier: Apache-2.0
#include "schedule/views/views.hpp"

#include <algorithm>
#include <array>

#include "base/access.hpp"
#include "ir/builder/builder.hpp"
#include "schedule/schedule_support.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// What became of the slices and concats, and the number of segments.
struct ChosenViews {
  std::string text;
  std::size_t segments = 0;

  explicit ChosenViews(const Graph& from, const schedule::PartitionOptions& options = {}) {
    const ir::Graph graph = prepared(from);
    const schedule::Partition partition =
        schedule::partition(graph, options, target_profile("h200"), analysis::facts_of(graph));
    verify(graph, partition);
    INFO(print(graph, partition));
    text = print(graph, partition.views);
    segments = partition.segments.size();
  }
};

/// A GEMM of x, which has 8 columns.
Tensor gemm(Graph& g, const Tensor& x, const std::string& weight) {
  return matmul(x, g.parameter(weight, x.dtype(), {8, 8}));
}

/// A slice of an input as the operand of a GEMM.
template <class F>
ChosenViews sliced(const std::vector<Dim>& dims, F&& slice_of, Graph g = Graph("sliced"), DType dtype = f32) {
  const Tensor part = slice_of(g.input("x", dtype, dims));
  g.output("y", gemm(g, part.rank() == 2 ? part : reshape(part, {part.dim(-2), 8}), "w"));
  return ChosenViews(g);
}

}  // namespace

TEST_CASE("views: a slice that is one block of its operand", "[views]") {
  const auto rows = sliced({16, 8}, [](const Tensor& x) { return slice(x, 0, 4, 9); });
  CHECK(rows.text == "view %2 slice in %x at element 32\n");
  CHECK(rows.segments == 1);

  // Single elements of outer axes, a part of one, all of the inner ones.
  const auto inner = sliced({3, 16, 8}, [](const Tensor& x) { return slice(slice(x, 0, 2, 3), 1, 3, 7); });
  CHECK(inner.text == "view %3 slice in %x at element 280, strides 128, 8, 1\n");
  Graph both("both");
  const Tensor outer = slice(both.input("x", f32, {3, 16, 8}), 0, 2, 3);
  both.output("y", gemm(both, reshape(outer, {16, 8}), "w"));
  both.output("z", gemm(both, reshape(slice(outer, 1, 3, 7), {4, 8}), "v"));
  CHECK(ChosenViews(both).text == "view %3 slice in %x at element 256\nview %6 slice in %3 at element 24\n");

  const auto single = sliced({3, 16, 8}, [](const Tensor& x) { return slice(x, 0, 1, 3, 2); });
  CHECK(single.text == "view %2 slice in %x at element 128\n");
}

TEST_CASE("views: a slice that is not one block, or not where it may begin", "[views]") {
  const auto columns = sliced({16, 16}, [](const Tensor& x) { return slice(x, 1, 8, 16); });
  CHECK(columns.text == "view %2 slice in %x at element 8, strides 16, 1\n");
  CHECK(columns.segments == 1);
  const auto strided = sliced({16, 8}, [](const Tensor& x) { return slice(x, 0, 0, 16, 2); });
  CHECK(strided.text == "view %2 slice in %x at element 0, strides 16, 1\n");
  const auto apart = sliced({16, 16}, [](const Tensor& x) { return slice(x, 1, 0, 16, 2); });
  CHECK(apart.text ==
        "copy %2 slice because %3: neither the rows nor the columns of its matrices lie side by side\n");
  const auto half = sliced(
      {16, 8}, [](const Tensor& x) { return slice(x, 0, 1, 9); }, Graph("f16"), f16);
  CHECK(half.text == "view %2 slice in %x at element 8\n");
  // A row of 6 floats has 24 bytes.
  Graph odd("odd");
  odd.output("y", matmul(slice(odd.input("x", f32, {5, 6}), 0, 1, 3), odd.parameter("w", f32, {6, 4})));
  CHECK(ChosenViews(odd).text ==
        "copy %2 slice because %2 begins at byte 24, which is not proven to be a multiple of 16\n");
  // No step needs the operand in memory.
  const auto computed = sliced({16, 8}, [](const Tensor& x) { return slice(exp(x), 0, 4, 8); });
  CHECK(computed.text == "copy %3 slice because %2 is computed where it is read\n");
  CHECK(computed.segments == 2);
}

TEST_CASE("views: where a slice begins is proven for every extent", "[views]") {
  const auto at = [](std::int64_t width, std::int64_t of_bytes, std::int64_t of_rows = 1) {
    Graph g("symbolic");
    const Dim B = g.dim("B", {.min = 1, .max = 1000, .hint = 8});
    g.assume(divisible(12 * B, of_bytes));
    g.assume(divisible(B, of_rows));
    const Tensor x = g.input("x", f32, {B + 3, width});
    g.output("y", matmul(slice(x, 0, B, B + 3), g.parameter("w", f32, {width, 4})));
    return ChosenViews(g).text;
  };
  CHECK(at(8, 1) == "view %2 slice in %x at element 8 * B\n");
  CHECK(at(3, 1) ==
        "copy %2 slice because %2 begins at byte 12 * B, which is not proven to be a multiple of 16; it is "
        "with "
        "g.assume(divisible(12 * B, 16));\n");
  CHECK(at(3, 16) == "view %2 slice in %x at element 3 * B\n");
  CHECK(at(3, 1, 4) == "view %2 slice in %x at element 3 * B\n");
}

TEST_CASE("views: kernels read the whole of a slice that a GEMM reads too", "[views]") {
  Graph g("shared");
  const Tensor part = slice(g.input("x", f32, {16, 8}), 0, 8, 16);
  g.output("y", gemm(g, part, "w"));
  g.output("z", exp(part));
  CHECK(ChosenViews(g).text == "view %2 slice in %x at element 64\n");
  Graph returned("returned");  // the output has memory of its own, which the GEMM can read
  const Tensor out = slice(returned.input("x", f32, {16, 8}), 0, 8, 16);
  returned.output("y", gemm(returned, out, "w"));
  returned.output("z", out);
  CHECK(ChosenViews(returned).text.empty());
}

TEST_CASE("views: a concat of slices that stand one behind the other is a block", "[views]") {
  const auto text = [](std::vector<int> starts, bool returned = false) {
    Graph g("steps");
    const Tensor x = g.input("x", f32, {5, 3, 2});  // 24 bytes a step
    std::vector<Tensor> parts;
    for (const int t : starts) parts.push_back(reshape(slice(x, 0, t, t + 1), {3, 2}));
    const Tensor all = concat(parts, 0);
    g.output("y", matmul(all, g.parameter("w", f32, {2, 4})));
    if (returned) g.output("z", all);
    return ChosenViews(g).text;
  };
  CHECK(text({2, 3, 4}) == "view %8 concat in %x at element 12\n");
  CHECK(text({0, 1}) == "view %6 concat in %x at element 0\n");
  const std::string off = " begins at byte 24, which is not proven to be a multiple of 16\n";
  CHECK(text({0, 2}) == "copy %6 concat because %4" + off);
  CHECK(text({1, 0}) == "copy %6 concat because %4" + off);
  CHECK(text({1, 2}) == "copy %6 concat because %6" + off);
  CHECK(text({2, 3}, true) == "copy %6 concat because %4" + off);
}

TEST_CASE("views: a concat is assembled where steps of their own make its operands", "[views]") {
  Graph g("pair");
  const Dim B = g.dim("B", {.min = 1, .max = 1000, .hint = 8});
  const Tensor x = g.input("x", f32, {B, 8});
  g.output("y", concat({gemm(g, x, "u"), reshape(gemm(g, exp(x), "v"), {B, 8})}, 0));
  const ChosenViews pair(g);
  CHECK(pair.text == "assembled %6 concat of %3 at element 0, %5 at element 8 * B\n");
  CHECK(pair.segments == 3);

  Graph one("one");  // the kernel of the concat becomes that of the sum
  const Tensor a = one.input("x", f32, {4, 8});
  one.output("y", concat({gemm(one, a, "u"), a + 1}, 0));
  const ChosenViews kernel(one);
  CHECK(kernel.text == "assembled %6 concat of %2 at element 0, %5 at element 32\n");
  CHECK(kernel.segments == 2);
}

TEST_CASE("views: concats of concats are assembled whole", "[views]") {
  Graph g("wide");
  std::vector<Tensor> parts;
  Tensor x = g.input("x", f32, {4, 8});
  for (int i = 0; i < 40; ++i) parts.push_back(x = gemm(g, x, "w" + std::to_string(i)));
  const std::vector<Tensor> first(parts.begin(), parts.begin() + 20), second(parts.begin() + 20, parts.end());
  g.output("y", concat({concat(first, 0), concat(second, 0)}, 0));
  const ChosenViews wide(g);
  CHECK(wide.segments == 40);
  CHECK(std::count(wide.text.begin(), wide.text.end(), '\n') == 1);

  Graph nested("nested");  // the inner one is in memory for a GEMM
  const Tensor a = nested.input("x", f32, {4, 8});
  const Tensor inner = concat({gemm(nested, a, "u"), gemm(nested, a, "v")}, 0);
  nested.output("y", concat({gemm(nested, inner, "s"), inner}, 0));
  const ChosenViews both(nested);
  CHECK(both.text ==
        "assembled %6 concat of %4 at element 0, %5 at element 32\n"
        "assembled %8 concat of %7 at element 0, %6 at element 64\n");
  CHECK(both.segments == 3);
}

TEST_CASE("views: a concat that stays a kernel says why", "[views]") {
  const auto text = [](auto&& parts, std::int64_t axis) {
    Graph g("kept");
    const Tensor x = g.input("x", f32, {4, 8});
    g.output("y", concat(parts(g, x), axis));
    return ChosenViews(g).text;
  };
  using Parts = std::vector<Tensor>;
  CHECK(text(
            [](Graph& g, const Tensor& x) {
              return Parts{gemm(g, x, "u"), gemm(g, x, "v")};
            },
            1) == "copy %5 concat because axis 1 lies inside axis 0\n");
  CHECK(text(
            [](Graph& g, const Tensor& x) {
              return Parts{gemm(g, x, "u"), x};
            },
            0) == "copy %3 concat because %x is the caller's memory\n");
  CHECK(text(
            [](Graph&, const Tensor& x) {
              return Parts{exp(x), tanh(x)};
            },
            0) == "copy %3 concat because %1 and %2 would each need a step\n");
  CHECK(text(
            [](Graph& g, const Tensor& x) {
              const Tensor y = gemm(g, x, "u");
              return Parts{y, y};
            },
            0) == "copy %3 concat because %2 stands in it twice\n");
  CHECK(text(
            [](Graph& g, const Tensor& x) {
              return Parts{gemm(g, x, "u"), g.parameter("p", f32, {4, 8}) + 1};
            },
            0) == "copy %7 concat because %6 follows from parameters alone\n");
  CHECK(text(
            [](Graph& g, const Tensor& x) {
              return Parts{matmul(x, g.parameter("u", f32, {8, 3})),
                           matmul(exp(x), g.parameter("v", f32, {8, 3}))};
            },
            0)
            .find("assembled") == 0);
  CHECK(text(
            [](Graph& g, const Tensor& x) {
              return Parts{matmul(slice(x, 0, 0, 1), g.parameter("u", f32, {8, 3})),
                           matmul(exp(x), g.parameter("v", f32, {8, 3}))};
            },
            0)
            .find("is not proven to be a multiple of 16") != std::string::npos);
}

TEST_CASE("views: concats that stand in each other many times are looked at once", "[views]") {
  Graph g("doubled");
  const Tensor x = g.input("x", f32, {1, 8});
  Tensor y = concat({gemm(g, x, "u"), gemm(g, x, "v")}, 0);
  for (int i = 0; i < 29; ++i) y = concat({y, y}, 0);  // 2^30 parts
  g.output("y", y);
  CHECK(ChosenViews(g).text.starts_with("copy "));
}

TEST_CASE("views: a part of two concats lies in the first", "[views]") {
  Graph g("two");
  const Tensor x = g.input("x", f32, {4, 8});
  const Tensor a = gemm(g, x, "a"), b = gemm(g, x, "b"), c = gemm(g, x, "c");
  g.output("y", concat({a, b}, 0));
  g.output("z", concat({b, c}, 0));
  CHECK(ChosenViews(g).text ==
        "assembled %7 concat of %4 at element 0, %5 at element 32\n"
        "copy %8 concat because %5 lies in %7\n");
}

TEST_CASE("views: a part that is an output is copied to it, where that is one step for one", "[views]") {
  Graph last("last");
  Tensor h = last.input("x", f32, {4, 8});
  std::vector<Tensor> all;
  for (const char* name : {"u", "v", "w"}) all.push_back(h = gemm(last, h, name));
  last.output("all", concat(all, 0));
  last.output("last", h);
  CHECK(ChosenViews(last).text ==
        "assembled %7 concat of %4 at element 0, %5 at element 32, %6 at element 64\n");
  last.output("first", all[0]);
  CHECK(ChosenViews(last).text == "copy %7 concat because %4 and %6 would each need a step\n");
}

TEST_CASE("views: other compilers' cuts have none", "[views]") {
  Graph g("other");
  g.output("y", gemm(g, slice(g.input("x", f32, {16, 8}), 0, 8, 16), "w"));
  const ChosenViews xla(g, {.baseline = schedule::Baseline::xla});
  CHECK(xla.text.empty());
  CHECK(xla.segments == 2);
}

TEST_CASE("views: GEMMs read a value that has memory of its own after all as it is, through reshapes too",
          "[views]") {
  Graph g("dropped");
  const Tensor x = g.input("x", f32, {16, 8}), w = g.parameter("w", f32, {8, 8});
  const Tensor part = slice(x, 0, 4, 12), other = slice(x, 0, 0, 8);
  const Tensor reshaped = reshape(reshape(part, {4, 16}), {8, 8});
  const std::vector<std::array<Tensor, 2>> operands = {
      {reshaped, w}, {w, reshaped}, {part, part}, {other, w}, {w, other}, {exp(part), w}, {w, exp(part)}};
  schedule::Views views;
  std::vector<ir::NodeId> gemms;
  for (const auto& [a, b] : operands) {
    gemms.push_back(detail::Builder::node(matmul(a, b)));
    views.gemms[gemms.back()] = {.a = schedule::OperandLayout{}, .b = schedule::OperandLayout{}};
  }
  for (const Tensor& each : {part, other}) views.of[detail::Builder::node(each)];
  views.drop(ir_of(g), detail::Builder::node(part));
  CHECK(views.of.size() == 1);
  CHECK(views.of.contains(detail::Builder::node(other)));
  std::string kept;
  for (const ir::NodeId gemm : gemms)
    kept += std::string(views.gemms[gemm].a ? "a" : "-") + (views.gemms[gemm].b ? "b " : "- ");
  CHECK(kept == "-b a- -- ab ab ab ab ");
}

TEST_CASE("views: verify names what is wrong", "[views]") {
  Graph g("broken");
  const Tensor x = g.input("x", f32, {16, 8});
  const Tensor part = slice(x, 0, 8, 16);
  g.output("y", concat({gemm(g, part, "u"), gemm(g, part, "v")}, 0));
  const ir::Graph graph = prepared(g);
  const schedule::Partition good = schedule::partition(graph);
  REQUIRE(good.views.of.size() == 3);
  const auto broken = [&](auto&& change) {
    schedule::Partition partition = good;
    change(partition);
    return thrown_by([&] { verify(graph, partition); });
  };
  const std::string start = "internal error: partition: ";
  const ir::NodeId slice = good.views.choices[0].value, concat = good.views.choices[1].value;
  const ir::NodeId first = good.views.assembled.at(concat)[0];
  CHECK(broken([](auto&) {}) == "no error");
  CHECK(broken([&](auto& p) { p.stored[slice] = true; }) == start + "%3 in %x: a step writes it");
  CHECK(broken([&](auto& p) { p.stored[first] = false; }) == start + "%4 in %6: no step writes it");
  CHECK(broken([&](auto& p) { p.views.of.at(slice).whole = concat; }) ==
        start + "%3 in %6: a slice follows its whole, a part precedes it");
  CHECK(broken([&](auto& p) { p.views.of.at(first).offset = 4; }) ==
        start + "%4 does not stand at its location in %6");
  CHECK(broken([&](auto& p) { p.views.assembled.at(concat).push_back(first); }) ==
        start + "%4 does not stand at its location in %6");
  CHECK(broken([&](auto& p) { p.segments.pop_back(); }) == start + "output y has no buffer");
  CHECK(broken([&](auto& p) { p.views.of.erase(slice); }) == start + "%3 is read before a segment makes it");
}

TEST_CASE("views: verify knows in which of two concats a part stands", "[views]") {
  Graph g("two");
  const Tensor x = g.input("x", f32, {4, 8});
  g.output("y", concat({gemm(g, x, "a"), gemm(g, x, "b")}, 0));
  g.output("z", concat({gemm(g, x, "c"), gemm(g, x, "d")}, 0));
  const ir::Graph graph = prepared(g);
  schedule::Partition partition = schedule::partition(graph);
  REQUIRE(partition.views.assembled.size() == 2);
  const auto [concat, parts] = *partition.views.assembled.begin();
  partition.views.of.at(parts[0]).whole = std::next(partition.views.assembled.begin())->first;
  CHECK(thrown_by([&] { verify(graph, partition); }) ==
        "internal error: partition: %5 does not stand at its location in %7");
}
