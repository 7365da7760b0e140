// Outputs in the memory of an input: updates in place where they can be, right results always.
// SPDX-License-Identifier: Apache-2.0
#include <fuse/fuse.hpp>
#include <map>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "target/target.hpp"
#include "tensors/host_tensor.hpp"

using namespace fuse;  // NOLINT
using runtime::HostTensor;

namespace {

HostTensor counted(std::vector<std::int64_t> shape, double first) {
  HostTensor tensor = HostTensor::make(f32, std::move(shape));
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, first + static_cast<double>(i));
  return tensor;
}

HostTensor number(std::int64_t value) {
  HostTensor tensor = HostTensor::make(i64, {});
  tensor.set_int(0, value);
  return tensor;
}

/// The steps of a graph's plan, as "kernel", "copy", ...
std::string steps(const Graph& g) {
  std::string text;
  for (const schedule::Step& step : run_pipeline(ir_of(g), target_profile("h200")).plan.steps) {
    text += std::holds_alternative<schedule::CopyStep>(step.work) ? "copy " : "kernel ";
  }
  return text;
}

/// A cache of 6 rows of 4 into which one row is written.
struct Cache {
  Graph g{"cache"};
  Tensor old = g.input("old", f32, {6, 4}), row = g.input("row", f32, {1, 4}), at = g.input("at", i64, {});
  Tensor updated = dynamic_update_slice(old, row * 2, {at, 0});
};

}  // namespace

TEST_CASE("donation: an update of the donor is written in place", "[runtime][device]") {
  Cache c;
  c.g.output("new", c.updated, c.old);
  CHECK(steps(c.g) == "kernel ");
  const Compiled compiled = run_pipeline(ir_of(c.g), target_profile("h200"));
  CHECK(compiled.schedules[0].kernels[0].results == Dim(4));  // not the 24 of the cache
  for (const Device& device : test::every_device()) {
    Session session(compile(c.g, device));
    session.set("old", counted({6, 4}, 0).data);
    HostTensor expected = counted({6, 4}, 0);
    for (const std::int64_t at : {2, 5, 9, -1}) {  // the buffer goes on from run to run; a start is clamped
      session.set("row", counted({1, 4}, 100 + static_cast<double>(at)).data);
      session.set("at", number(at).data);
      session.run();
      for (std::int64_t j = 0; j < 4; ++j) {
        expected.set(std::clamp<std::int64_t>(at, 0, 5) * 4 + j, 2 * (100 + static_cast<double>(at + j)));
      }
      HostTensor got = HostTensor::make(f32, {6, 4});
      session.get("new", got.data);
      CHECK(got.data == expected.data);
    }
  }
}

TEST_CASE("donation: readers of the old contents come first, or the result is made aside",
          "[runtime][device]") {
  struct Case {
    const char* name;
    std::string steps;
    void (*build)(Cache&);
  };
  const std::vector<Case> cases = {
      {"another kernel reads it", "kernel kernel ",
       [](Cache& c) {
         c.g.output("new", c.updated, c.old);
         c.g.output("sum", sum(c.old, {0}));
       }},
      {"the old contents are an output", "kernel copy copy ",
       [](Cache& c) {
         c.g.output("new", c.updated, c.old);
         c.g.output("before", c.old);
       }},
      {"the update is computed from it", "kernel kernel ",
       [](Cache& c) {
         c.g.output("new", dynamic_update_slice(c.old, slice(c.old, 0, 0, 3) + 1, {c.at, 0}), c.old);
         c.g.output("unused", c.row + 0);
       }},
      {"the result is read", "kernel kernel ",
       [](Cache& c) {
         c.g.output("new", c.updated, c.old);
         c.g.output("sum", sum(c.updated, {1}));
       }},
      {"element by element", "kernel ", [](Cache& c) { c.g.output("new", c.old * 3, c.old); }},
  };
  for (const Case& item : cases) {
    Cache c;
    item.build(c);
    INFO(item.name);
    CHECK(steps(c.g) == item.steps);
    std::map<std::string, std::vector<std::byte>> exact;
    for (const Device& device : test::every_device()) {
      Session session(compile(c.g, device));
      session.set("old", counted({6, 4}, 0).data);
      session.set("row", counted({1, 4}, 50).data);
      session.set("at", number(1).data);  // overlaps what the update is computed from
      session.run();
      for (const ir::Output& output : ir_of(c.g).outputs) {
        const auto [first, fresh] = exact.emplace(output.name, session.get(output.name));
        if (!fresh) CHECK(session.get(output.name) == first->second);
      }
    }
  }
}

TEST_CASE("donation: two inputs give their memory to each other's values", "[runtime][device]") {
  Graph g("swap");
  const Tensor a = g.input("a", f32, {8}), b = g.input("b", f32, {8});
  g.output("x", b, a);
  g.output("y", a, b);
  for (const Device& device : test::every_device()) {
    Session session(compile(g, device));
    session.set("a", counted({8}, 0).data);
    session.set("b", counted({8}, 100).data);
    session.run();
    CHECK(session.get("x") == counted({8}, 100).data);
    CHECK(session.get("y") == counted({8}, 0).data);
  }
}

namespace {

/// The outputs of a graph whose inputs f32[64] count from 0, 100, ...; of integers, the start 3.
std::map<std::string, std::vector<std::byte>> outputs_on(const Graph& g, const Device& device) {
  const Executable executable = compile(g, device);
  Session session(executable);
  double first = 0;
  for (const Slot& slot : executable.slots()) {
    if (slot.kind == Slot::Kind::output) continue;
    const bool start = slot.dtype == i64;
    std::vector<std::int64_t> shape;
    for (const Dim& dim : slot.dims) shape.push_back(dim.constant());
    session.set(slot.name, start ? number(3).data : counted(shape, first).data);
    first += 100;
  }
  session.run();
  std::map<std::string, std::vector<std::byte>> outputs;
  for (const ir::Output& output : ir_of(g).outputs) outputs[output.name] = session.get(output.name);
  return outputs;
}

}  // namespace

TEST_CASE("donation: an update reads what another one overwrites", "[runtime][device]") {
  // Of each pair one alone can be in place, in either order; a third reads both.
  for (const bool swapped : {false, true}) {
    for (const bool third : {false, true}) {
      Graph g("crossed");
      const Tensor x = g.input("x", f32, {64}), y = g.input("y", f32, {64}), z = g.input("z", f32, {64});
      const Tensor u = g.input("u", f32, {8}), at = g.input("at", i64, {});
      const Tensor a = dynamic_update_slice(x, slice(y, 0, 0, 8) + u, {at});
      const Tensor b = dynamic_update_slice(y, slice(x, 0, 0, 8) * u, {at});
      const Tensor c = dynamic_update_slice(z, slice(x, 0, 2, 10) + slice(y, 0, 2, 10), {at});
      if (third) g.output("c", c, z);
      g.output("a", swapped ? b : a, swapped ? y : x);
      g.output("b", swapped ? a : b, swapped ? x : y);
      if (!third) g.output("c", c, z);
      const auto exact = outputs_on(g, Device::reference());
      for (const Device& device : test::test_devices()) {
        INFO(device.name() << ": " << swapped << third);
        CHECK(outputs_on(g, device) == exact);
      }
    }
  }
  // The first update reads nothing of the other; the second reads the first one's donor.
  const Graph one =
      Graph::parse(R"(graph @g(%x: f32[64], %y: f32[64], %u: f32[8], %i: i64[]) -> (a: f32[64], b: f32[64]) {
  %4 = dynamic_update_slice %x, %u, %i : f32[64]
  %5 = slice %x {starts = [0], limits = [8], strides = [1]} : f32[8]
  %6 = add %5, %u : f32[8]
  %7 = dynamic_update_slice %y, %6, %i : f32[64]
  return a = %4 into %x, b = %7 into %y
})");
  const auto exact = outputs_on(one, Device::reference());
  for (const Device& device : test::test_devices()) CHECK(outputs_on(one, device) == exact);
}

TEST_CASE("donation: a donated result is a part of another output too", "[runtime][device]") {
  Graph g("part");
  const Tensor x = g.input("x", f32, {64}), y = g.input("y", f32, {64}), z = g.input("z", f32, {64});
  const Tensor total = x + y;
  g.output("a", total, x);
  g.output("c", concat({total, cumulative_sum(z, 0)}, 0));
  const auto exact = outputs_on(g, Device::reference());
  for (const Device& device : test::test_devices()) CHECK(outputs_on(g, device) == exact);
}

TEST_CASE("donation: run wants one buffer for both names", "[runtime][emulated]") {
  Cache c;
  c.g.output("new", c.updated, c.old);
  const Device device = Device::emulated();
  const Executable exe = compile(c.g, device);
  const Prepared prepared = exe.prepare({});
  Stream stream = device.stream();
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < 4; ++i) {
    buffers.push_back(device.allocate(prepared.bytes(i)));
    if (i < 3) buffers.back().upload(std::vector<std::byte>(static_cast<std::size_t>(prepared.bytes(i))));
  }
  CHECK(exe.slots()[3].donor == 0);
  Workspace workspace = prepared.workspace();
  const auto run = [&](std::size_t output) {
    return prepared.run(stream,
                        std::vector<BufferView>{buffers[0].view(), buffers[1].view(), buffers[2].view(),
                                                buffers[output].view()},
                        workspace);
  };
  CHECK(std::string(run(3).message()) ==
        "buffer of output 'new' is not that of input 'old', whose memory it takes");
  CHECK(static_cast<bool>(run(0)));
  CHECK(static_cast<bool>(stream.synchronize()));
}

TEST_CASE("donation: text, and what is refused", "[ir]") {
  Cache c;
  c.g.output("new", c.updated, c.old);
  CHECK(c.g.to_string().find("return new = ") != std::string::npos);
  CHECK(c.g.to_string().find(" into %old") != std::string::npos);
  CHECK(Graph::parse(c.g.to_string()).to_string() == c.g.to_string());
  CHECK_THROWS_WITH(c.g.output("again", c.updated, c.old),
                    Catch::Contains("is that of output 'new' already"));
  CHECK_THROWS_WITH(c.g.output("other", c.row, c.at), Catch::Contains("another type than its donor"));
  CHECK_THROWS_WITH(c.g.output("value", c.updated, c.updated), Catch::Contains("is no input"));
}
