// Divisions used more than once get a name; what a predicate guards stays behind it.
// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/name_divisions.hpp"

#include "kernel/kernel_support.hpp"
#include "schedule/nest/usual_nests.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

kernel::Kernel named(const Graph& graph, const schedule::Choices& choices) {
  kernel::Kernel kernel = kernel::name_divisions(lowered(graph, choices));
  kernel::verify(kernel, target_profile("h200").shared_per_block);
  return kernel;
}

}  // namespace

TEST_CASE("name_divisions binds what is used twice", "[kernel]") {
  Graph g("norm");
  const Dim B = g.dim("B", {.min = 1, .max = 1 << 16, .hint = 64});
  const Tensor x = g.input("x", f32, {B, 100}), mean = g.input("mean", f32, {B, 1});
  const Tensor scale = g.input("scale", f32, {B, 1}), gamma = g.parameter("gamma", f32, {100});
  g.output("y", (x - mean) * scale * gamma);  // i / 100 twice, i % 100 once
  const schedule::Choices choices{.splits = schedule::nest_of_elements(256)};
  check_golden("kernel/name_divisions.txt", print(lowered(g, choices)) + print(named(g, choices)));
}

TEST_CASE("name_divisions leaves kernels without divisions alone, and its own result", "[kernel]") {
  const auto rows = lowered(sum_graph({37, 100}, {1}), {.splits = schedule::nest_of_lanes(128)});
  CHECK(print(kernel::name_divisions(rows)) == print(rows));
  Graph g("turn");
  g.output("y", reshape(transpose(g.input("x", f32, {7, 5, 3}), {2, 0, 1}), {21, 5}) + 1);
  const auto once = named(g, {.splits = schedule::nest_of_elements(256)});
  CHECK(print(kernel::name_divisions(once)) == print(once));
}

TEST_CASE("name_divisions keeps a division by an extent that may be 0 behind its predicate", "[kernel]") {
  Graph g("empty");
  const Dim T = g.dim("T", {.min = 0, .max = 100, .hint = 5});
  const Tensor a = g.input("a", f32, {T, 4}), b = g.input("b", f32, {T, 4}), rest = g.input("rest", f32, {8});
  const auto turned = [&](const Tensor& x) {
    return concat({reshape(transpose(x, {1, 0}), {4 * T}), rest}, 0);
  };
  g.output("y", turned(a) + turned(b));  // i / T, where i < 4 T
  const std::string text = print(named(g, {.splits = schedule::nest_of_elements(256)}));
  INFO(text);
  CHECK(text.find("= i / T\n") == std::string::npos);
  CHECK(text.find("= i % T\n") == std::string::npos);
}
