// Where a GEMM puts its matrices in place of a step that transposes, and where a step stays, with the reason.
// SPDX-License-Identifier: Apache-2.0
#include "schedule/views/gemm_strides.hpp"

#include <functional>

#include "compile/pipeline/pipeline.hpp"
#include "schedule/schedule_support.hpp"

namespace fuse::test {
namespace {

/// [batch..., m, 8] times [batch..., 8, n], transposed by `order`.
Graph transposed(
    const std::vector<Dim>& batch, const Dim& m, const Dim& n, const std::vector<std::int64_t>& order,
    const std::function<Tensor(const Tensor&)>& between = [](const Tensor& t) { return t; }) {
  Graph g("heads");
  std::vector<Dim> a = batch, b = batch;
  a.insert(a.end(), {m, 8});
  b.insert(b.end(), {8, n});
  const Tensor y = transpose(between(matmul(g.input("a", f32, a), g.input("b", f32, b))), order);
  g.output("y", y);
  return g;
}

/// What became of the transpose: a line of the partition's choices.
std::string choice_of(const Graph& g) {
  const ir::Graph graph = prepared(g);
  const schedule::Partition partition = schedule::partition(graph);
  verify(graph, partition);
  std::string text = print(graph, partition.views);
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

TEST_CASE("heads of one sequence stand side by side", "[schedule][heads]") {
  CHECK(choice_of(transposed({1, 12}, 128, 64, {0, 2, 1, 3})) ==
        "assembled %3 transpose by gemm %2: rows 768 apart, 12 matrices 64 apart");
  CHECK(choice_of(transposed({12}, 128, 64, {1, 0, 2})) ==
        "assembled %3 transpose by gemm %2: rows 768 apart, 12 matrices 64 apart");
  // One query: its row length is what a library wants between rows, whatever there is.
  CHECK(choice_of(transposed({1, 12}, 1, 64, {0, 2, 1, 3})).find(" by gemm ") != std::string::npos);
}

TEST_CASE("a batch of two strides is several calls where they cost less than a step", "[schedule][heads]") {
  CHECK(choice_of(transposed({2, 12}, 128, 64, {0, 2, 1, 3})) ==
        "assembled %3 transpose by gemm %2: rows 768 apart, 12 matrices 64 apart, 2 calls 98304 apart");
  const std::string step = choice_of(transposed({8, 12}, 128, 64, {0, 2, 1, 3}));
  INFO(step);
  CHECK(step ==
        "copy %3 transpose because its batch has two strides: 8 calls would be 7 launches more, the step is "
        "one "
        "and 6291456 bytes");
  // Of long sequences the step is slow, and eight calls are not.
  CHECK(choice_of(transposed({8, 12}, 4096, 64, {0, 2, 1, 3})).find(", 8 calls ") != std::string::npos);
}

TEST_CASE("matrices that follow each other need one call", "[schedule][heads]") {
  // Batches 3 and 4 go on behind each other: one of 12.
  CHECK(choice_of(transposed({3, 4}, 5, 8, {2, 0, 1, 3})) ==
        "assembled %3 transpose by gemm %2: rows 96 apart, 12 matrices 8 apart");
}

TEST_CASE("of a matrix of one column no elements of a row stand apart", "[schedule][heads]") {
  CHECK(choice_of(transposed({12}, 16, 1, {1, 2, 0})) ==
        "assembled %3 transpose by gemm %2: rows 12 apart, 12 matrices 1 apart");
}

TEST_CASE("what a call cannot place is a step's", "[schedule][heads]") {
  CHECK(choice_of(transposed({2}, 16, 32, {0, 2, 1})) ==
        "copy %3 transpose because the elements of a row would stand 16 apart");
  CHECK(choice_of(transposed({2, 3, 5}, 16, 32, {2, 3, 1, 0, 4})).find("its batch has 3 strides") !=
        std::string::npos);
  Graph twice("twice");
  const Tensor p = matmul(twice.input("a", f32, {12, 128, 8}), twice.input("b", f32, {12, 8, 64}));
  twice.output("p", p);
  twice.output("y", transpose(p, {1, 0, 2}));
  CHECK(choice_of(twice) == "copy %3 transpose because %2 is read elsewhere, too");
  // Of something computed behind the GEMM nothing is said: the kernel that computes it writes where it is
  // wanted.
  CHECK(
      choice_of(transposed({1, 12}, 128, 64, {0, 2, 1, 3}, [](const Tensor& t) { return tanh(t); })).empty());
}

TEST_CASE("what a GEMM cannot write transposed, another may read so", "[schedule][heads]") {
  Graph g("read");
  const Tensor p = matmul(g.input("a", f32, {12, 128, 8}), g.input("b", f32, {12, 8, 64}));
  g.output("p", p);
  g.output("y", matmul(transpose(p, {1, 0, 2}), g.input("c", f32, {128, 64, 16})));
  CHECK(choice_of(g) == "view %4 transpose in %3 at element 0, strides 64, 8192, 1");
}

TEST_CASE("symbolic batches are decided by their hints", "[schedule][heads]") {
  const auto with_hint = [](std::int64_t hint) {
    Graph g("symbolic");
    const Dim B = g.dim("B", {.min = 0, .max = 1000, .hint = hint});
    const Dim S = g.dim("S", {.min = 1, .max = 4096, .hint = 128});
    const Tensor p = matmul(g.input("a", f32, {B, 12, S, 8}), g.input("b", f32, {B, 12, 8, 64}));
    g.output("y",
             matmul(reshape(transpose(p, {0, 2, 1, 3}), {B * S, 768}), g.parameter("w", f32, {768, 16})));
    return choice_of(g);
  };
  CHECK(with_hint(1) ==
        "assembled %4 transpose by gemm %3: rows 768 apart, 12 matrices 64 apart, B calls 768 * S apart");
  CHECK(with_hint(8).starts_with("copy %4 transpose because its batch has two strides: 8 calls "));
}

TEST_CASE("the plan says where the matrices go", "[schedule][heads][plan]") {
  const ir::Graph graph = prepared(transposed({2, 12}, 128, 64, {0, 2, 1, 3}));
  const std::string text = print(run_pipeline(graph, target_profile("h200")).plan);
  INFO(text);
  CHECK(text.find(": rows 768 apart, 12 matrices 64 apart, 2 calls 98304 apart") != std::string::npos);
  CHECK(text.find("kernel") == std::string::npos);
}

}  // namespace
}  // namespace fuse::test
