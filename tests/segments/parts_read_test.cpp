// How much of a value a kernel reads that reads slices of it, and what the cost of its step is then.
// SPDX-License-Identifier: Apache-2.0
#include "schedule/segments/parts_read.hpp"

#include <fuse/fuse.hpp>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "support/catch.hpp"
#include "target/target.hpp"

using namespace fuse;  // NOLINT

namespace {

/// The elements that all ops of the graph read of its first input.
Dim read_of_first(const Graph& graph) {
  const ir::Graph& ir = ir_of(graph);
  std::vector<ir::NodeId> nodes;
  for (ir::NodeId id = 0; id < ir.nodes.size(); ++id) {
    if (!ir::info(ir[id].op).has(ir::Trait::source)) nodes.push_back(id);
  }
  const std::vector<Dim> read = schedule::elements_read(ir, nodes, {0});
  // With the hints the bytes are the same.
  CHECK(schedule::bytes_read(ir, nodes, {0}) == 4.0 * static_cast<double>(read.at(0).hint()));
  return read.at(0);
}

}  // namespace

TEST_CASE("slices read what they have, and any other op reads all", "[schedule]") {
  Graph one("one");
  const Tensor x = one.input("x", f32, {480, 64});
  one.output("y", slice(x, 0, 16, 32) + 1);
  CHECK(read_of_first(one) == Dim(16 * 64));

  Graph two("two");
  const Tensor a = two.input("x", f32, {480, 64});
  two.output("y", slice(a, 0, 0, 16) + slice(a, 0, 16, 32));
  CHECK(read_of_first(two) == Dim(2 * 16 * 64));

  Graph whole("whole");
  const Tensor b = whole.input("x", f32, {480, 64});
  whole.output("y", slice(b, 1, 0, 32) * slice(b, 1, 32, 64) + sum(b, {1}, {.keep_dims = true}));
  CHECK(read_of_first(whole) == Dim(480 * 64));
}

TEST_CASE("slices that have more than all read all", "[schedule]") {
  Graph g("much");
  const Tensor x = g.input("x", f32, {8, 4});
  g.output("y", slice(x, 0, 0, 7) + slice(x, 0, 1, 8));
  CHECK(read_of_first(g) == Dim(32));
}

TEST_CASE("a reshape reads what is read of it, and all where it is a result", "[schedule]") {
  Graph g("flat");
  const Tensor x = g.input("x", f32, {10, 6, 4});
  g.output("y", exp(slice(reshape(x, {60, 4}), 0, 6, 12)));
  CHECK(read_of_first(g) == Dim(24));

  Graph stored("stored");
  const Tensor z = stored.input("x", f32, {10, 6});
  stored.output("y", reshape(z, {60}));
  CHECK(read_of_first(stored) == Dim(60));
}

TEST_CASE("a gather reads at most as many elements as it makes", "[schedule]") {
  Graph g("embedding");
  const Tensor table = g.input("x", f32, {10000, 8}), ids = g.input("ids", i32, {5});
  g.output("y", exp(embedding(table, ids)));
  CHECK(read_of_first(g) == Dim(40));
}

TEST_CASE("symbolic slices count as expressions", "[schedule]") {
  Graph g("symbols");
  const Dim B = g.dim("B", {.min = 1, .max = 64, .hint = 8});
  const Tensor x = g.input("x", f32, {4 * B, 16});
  g.output("y", exp(slice(x, 0, 0, B)));
  CHECK(read_of_first(g) == 16 * B);
}

TEST_CASE("a step that reads a slice costs what the slice takes", "[schedule][emulated][device]") {
  Graph g("step");
  const Tensor x = g.input("x", f32, {1 << 16, 256});
  g.output("y", exp(slice(x, 0, 0, 16)));
  const Device device = Device::emulated({.optimization = 0});
  const Executable executable = compile(g, device);
  const auto& work = std::get<schedule::KernelStep>(stages_of(executable).plan.steps.at(0).work);
  CHECK(work.touched == std::vector<Dim>{16 * 256 * 4, 16 * 256 * 4});
  // All of it would take 14 us on an H200, in 64 MB at 4.8 TB/s.
  CHECK(executable.prepare().predicted().seconds < 4e-6);
}
