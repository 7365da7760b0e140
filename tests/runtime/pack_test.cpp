// Prepared::pack: what parameters alone determine is made once, and every bad argument is named.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "base/access.hpp"
#include "compile/pipeline/experiments.hpp"
#include "runtime/runtime_support.hpp"

namespace fuse::test {
namespace {

/// y = -x u, z = -x v, and s = x + b: one GEMM, whose weights are packed.
Graph shared_graph() {
  Graph g("shared");
  const Dim B = g.dim("B", {.min = 1, .max = 1000, .hint = 8});
  const Tensor x = g.input("x", f32, {B, 3});
  g.output("y", -matmul(x, g.parameter("u", f32, {3, 2})));
  g.output("z", -matmul(x, g.parameter("v", f32, {3, 4})));
  g.output("s", x + g.parameter("b", f32, {3}));
  return g;
}

std::vector<float> counted(std::size_t count, float first) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
  return values;
}

/// -x w; small integers, so that any order of the sums is exact.
std::vector<float> product_of(const std::vector<float>& x, const std::vector<float>& w) {
  const std::size_t k = 3, rows = x.size() / k, columns = w.size() / k;
  std::vector<float> y(rows * columns);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      for (std::size_t l = 0; l < k; ++l) y[i * columns + j] -= x[i * k + l] * w[l * columns + j];
    }
  }
  return y;
}

/// The graph with buffers of its own; slots: x u v b y z s.
struct PackingRig {
  explicit PackingRig(const Device& on)
      : device(on),
        executable(compile(shared_graph(), device)),
        prepared(executable.prepare({{"B", 2}})),
        stream(device.stream()),
        workspace(prepared.workspace()),
        packed(device.allocate(prepared.packed_bytes())) {
    for (std::size_t i = 0; i < executable.slots().size(); ++i) {
      buffers.push_back(device.allocate(prepared.bytes(i)));
      views.push_back(buffers.back().view());
    }
    for (std::size_t i = 0; i < 4; ++i) set(i, static_cast<float>(i));
  }
  void set(std::size_t slot, float first) {
    data[slot] = counted(static_cast<std::size_t>(prepared.bytes(slot)) / sizeof(float), first);
    buffers[slot].upload(bytes_of(data[slot]));
  }
  std::string pack() { return text_of(prepared.pack(stream, views, packed.view())); }
  std::string run() { return text_of(prepared.run(stream, views, workspace, packed.view())); }
  std::vector<float> output(std::size_t slot) {
    stream.synchronize().throw_if_failed();
    std::vector<std::byte> bytes(static_cast<std::size_t>(buffers[slot].size()));
    buffers[slot].download(bytes);
    return values_of<float>(bytes);
  }

  Device device;
  Executable executable;
  Prepared prepared;
  Stream stream;
  Workspace workspace;
  Buffer packed;
  std::vector<Buffer> buffers;
  std::vector<BufferView> views;
  std::vector<float> data[4];
};

TEST_CASE("pack: the plan makes it in the setup", "[runtime]") {
  const Compiled compiled = run_pipeline(ir_of(shared_graph()), target_profile("h200"));
  REQUIRE(compiled.plan.setup.size() == 1);
  const std::string text = schedule::print(compiled.plan);
  INFO(text);
  CHECK(text.find("\n  v7 packed p7: f32[3, 6]\n") != std::string::npos);
  CHECK(text.find("\n  setup step 0 ") != std::string::npos);
  CHECK(text.find(" reads [v1, v2] writes [v7] ") != std::string::npos);
  CHECK(text.find(" v0 * v7 batch 1 m B n 6 k 3 ") != std::string::npos);
}

TEST_CASE("pack: reshapes of weights, of more than a kernel may read, are no values of their own",
          "[runtime]") {
  Graph g("one_shape");
  std::vector<Tensor> products;
  for (int i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i);
    const Tensor x = g.input("x" + number, f32, {4, 2, 8});
    products.push_back(matmul(x, g.parameter("w" + number, f32, {4, 8, 8})));
  }
  g.output("y", concat(products, 1));
  PipelineOptions options;
  options.partition.groups.max_inputs = 3;
  options.answer = [](const ir::Asked& asked) {
    return asked.question == ir::Question::merge || asked.by_cost;
  };
  const Compiled compiled = run_pipeline(ir_of(g), target_profile("h200"), options);
  const std::string text = schedule::print(compiled.plan);
  INFO(text);
  REQUIRE(compiled.plan.setup.size() == 1);
  CHECK(text.find("reads [v1, v3, v5, v7]") != std::string::npos);
}

TEST_CASE("pack: once for any number of runs, and again for new parameters", "[runtime][device]") {
  for (const Device& device : every_device()) {
    INFO(device.name());
    PackingRig rig(device);
    REQUIRE(rig.executable.slots().size() == 7);
    REQUIRE((rig.prepared.packed_bytes() > 0) == (device.kind() != DeviceKind::reference));
    REQUIRE(rig.pack() == "ok: ");
    for (const float first : {0.0f, 5.0f}) {
      rig.set(0, first);
      REQUIRE(rig.run() == "ok: ");
      CHECK(rig.output(4) == product_of(rig.data[0], rig.data[1]));
      CHECK(rig.output(5) == product_of(rig.data[0], rig.data[2]));
    }
    rig.set(2, -7);
    REQUIRE(rig.pack() == "ok: ");
    REQUIRE(rig.run() == "ok: ");
    CHECK(rig.output(5) == product_of(rig.data[0], rig.data[2]));
  }
}

TEST_CASE("pack: a run does not need the parameters that pack alone reads", "[runtime][device]") {
  for (const Device& device : every_device()) {
    INFO(device.name());
    PackingRig rig(device);
    const bool needed = device.kind() == DeviceKind::reference;
    CHECK(rig.prepared.reads_in_run(0));
    CHECK(rig.prepared.reads_in_run(1) == needed);
    CHECK(rig.prepared.reads_in_run(2) == needed);
    CHECK(rig.prepared.reads_in_run(3));
    CHECK(rig.prepared.reads_in_run(4));
    REQUIRE(rig.pack() == "ok: ");
    rig.views[1] = rig.views[2] = {};
    if (needed) {
      CHECK(rig.run() == "invalid-argument: buffer of parameter 'u' is null, needs 24 bytes (f32[3, 2])");
      continue;
    }
    REQUIRE(rig.run() == "ok: ");
    CHECK(rig.output(4) == product_of(rig.data[0], rig.data[1]));
    CHECK(rig.pack() == "invalid-argument: buffer of parameter 'u' is null, needs 24 bytes (f32[3, 2])");
    // Nor does pack need what runs alone read.
    rig.views[1] = rig.buffers[1].view();
    rig.views[2] = rig.buffers[2].view();
    rig.views[0] = rig.views[3] = rig.views[4] = {};
    CHECK(rig.pack() == "ok: ");
  }
}

TEST_CASE("pack: other dims read the same memory", "[runtime][device]") {
  PackingRig rig(test_device());
  REQUIRE(rig.pack() == "ok: ");
  const Prepared other = rig.executable.prepare({{"B", 1}});
  REQUIRE(other.packed_bytes() == rig.prepared.packed_bytes());
  Workspace workspace = other.workspace();
  REQUIRE(text_of(other.run(rig.stream, rig.views, workspace, rig.packed.view())) == "ok: ");
  std::vector<float> row = rig.output(4);
  row.resize(2);
  CHECK(row == product_of({0, 1, 2}, rig.data[1]));
}

TEST_CASE("pack: bad memory is named", "[runtime][device]") {
  PackingRig rig(test_device());
  const std::string needs = std::to_string(rig.prepared.packed_bytes());
  const auto run = [&](BufferView packed) {
    return text_of(rig.prepared.run(rig.stream, rig.views, rig.workspace, packed));
  };
  CHECK(text_of(rig.prepared.run(rig.stream, rig.views, rig.workspace)) ==
        "invalid-argument: packed memory has 0 bytes, needs " + needs + ": fill it by Prepared::pack");
  CHECK(run({rig.packed.address(), 8}) == "invalid-argument: packed memory has 8 bytes, needs " + needs);
  const Buffer large = rig.device.allocate(4096);
  auto* const bytes = static_cast<std::byte*>(large.address());
  CHECK(run({bytes + 16, 4000}).find("which is not 256-byte aligned") != std::string::npos);
  rig.views[0] = {bytes, 1024};
  CHECK(run({bytes, 4096}) == "invalid-argument: packed memory overlaps the buffer of input 'x'");
  rig.views[0] = rig.buffers[0].view();
  Workspace same = rig.prepared.workspace({bytes, 4096});
  CHECK(text_of(rig.prepared.run(rig.stream, rig.views, same, {bytes, 4096})) ==
        "invalid-argument: workspace overlaps the packed memory");
  Stream other = Device::reference().stream();
  CHECK(text_of(rig.prepared.pack(other, rig.views, rig.packed.view())).find("of another device") !=
        std::string::npos);
  CHECK(rig.pack() == "ok: ");
}

TEST_CASE("pack: checked mode sees memory that was never packed", "[runtime][emulated]") {
  PackingRig rig(checked_device());
  const std::string fault = rig.run();
  INFO(fault);
  CHECK(fault.find("kernel-fault: step 0, gemm ") == 0);
  CHECK(fault.find("reads b[0], which nobody wrote") != std::string::npos);
  REQUIRE(rig.pack() == "ok: ");
  CHECK(rig.run() == "ok: ");
}

TEST_CASE("pack: a session does it by itself, and again when a parameter changes", "[runtime][device]") {
  for (const Device& device : every_device()) {
    INFO(device.name());
    Session session(compile(shared_graph(), device), {{"B", 2}});
    const std::vector<float> x = counted(6, 1), u = counted(6, 2), v = counted(12, 3), b = counted(3, 4);
    session.set("u", bytes_of(u));
    session.set("v", bytes_of(v));
    if (session.prepared().packed_bytes() > 0) {
      CHECK(error_of([&] { session.pack(); }).find("parameter 'b' of type f32[3] was never set") !=
            std::string::npos);
    }
    session.set("b", bytes_of(b));
    session.pack();
    CHECK(error_of([&] { session.run(); }).find("input 'x' of type f32[2, 3] was never set") !=
          std::string::npos);
    session.set("x", bytes_of(x));
    session.run();
    CHECK(values_of<float>(session.get("z")) == product_of(x, v));
    const std::vector<float> w = counted(12, -9);
    session.set("v", bytes_of(w));
    session.run();
    CHECK(values_of<float>(session.get("y")) == product_of(x, u));
    CHECK(values_of<float>(session.get("z")) == product_of(x, w));
  }
}

TEST_CASE("pack: what a GEMM reads of parameters alone, and what that is made of", "[runtime][device]") {
  Graph g("made");
  const Tensor x = g.input("x", f32, {2, 3});
  const Tensor a = g.parameter("a", f32, {4, 3}), b = g.parameter("b", f32, {4, 3});
  const Tensor largest = max(a, {0}, {.keep_dims = true});  // a kernel of its own, whose result is packed too
  g.output("y", -matmul(x, transpose(a / largest + b, {1, 0})));
  g.output("n", a * 2);  // an output is no packed value
  const Compiled compiled = run_pipeline(ir_of(g), target_profile("h200"));
  INFO(schedule::print(compiled.plan));
  CHECK(compiled.plan.setup.size() == 2);
  const std::vector<float> xs = counted(6, 1), as = {1, 2, 4, 1, 2, 4, 1, 2, 4, 1, 2, 4}, bs = counted(12, 0);
  for (const Device& device : every_device()) {
    Session session(compile(g, device));
    session.set("x", bytes_of(xs));
    session.set("a", bytes_of(as));
    session.set("b", bytes_of(bs));
    session.run();
    std::vector<float> w(12);  // every quotient is 1
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 3; ++j) w[j * 4 + i] = 1 + bs[i * 3 + j];
    }
    CHECK(values_of<float>(session.get("y")) == product_of(xs, w));
  }
}

TEST_CASE("pack: verify names what is wrong with a setup", "[runtime]") {
  using schedule::PlanValue;
  schedule::Plan plan;
  plan.values = {{PlanValue::Kind::input, "x", f32, {4}},
                 {PlanValue::Kind::parameter, "w", f32, {4}},
                 {PlanValue::Kind::output, "y", f32, {4}},
                 {PlanValue::Kind::packed, "p3", f32, {4}},
                 {PlanValue::Kind::temporary, "t4", f32, {4}}};
  const auto copy = [](schedule::ValueId from, schedule::ValueId to) {
    return schedule::Step{.work = schedule::CopyStep{from, to}, .reads = {from}, .writes = {to}, .name = "c"};
  };
  plan.setup = {copy(1, 3)};
  plan.steps = {copy(3, 4), copy(4, 2)};
  const auto verified = [&] { return error_of([&] { schedule::verify(plan); }); };
  const std::string start = "internal: internal error: plan: ";
  REQUIRE(verified() == "no error");
  SECTION("an input is of a run") {
    plan.setup[0] = copy(0, 3);
    CHECK(verified() == start + "setup step 0 'c' reads input 'x' (v0), which only a run has");
  }
  SECTION("so are temporaries") {
    plan.setup.push_back(copy(1, 4));
    CHECK(verified() == start + "setup step 1 'c' writes temporary 't4' (v4), which only a run may");
  }
  SECTION("a run writes none") {
    plan.steps.push_back(copy(1, 3));
    CHECK(verified() == start + "step 2 'c' writes packed 'p3' (v3) outside the setup");
  }
  SECTION("never made") {
    plan.setup.clear();
    CHECK(verified() == start + "step 0 'c' reads packed 'p3' (v3) before it is written");
  }
  SECTION("made twice") {
    plan.setup.push_back(copy(1, 3));
    CHECK(verified() == start + "packed 'p3' (v3) is written 2 times, not once");
  }
  SECTION("of no constant extent") {
    plan.values[3].dims = {Dim::symbol("B", {.min = 0, .max = 4})};
    CHECK(verified() == start + "packed 'p3' (v3) has extents that depend on the run");
  }
}

/// x exp(w) and x + sums of exp(w): what parameters alone determine is read by a GEMM and by a kernel.
Graph exponentials() {
  Graph g("exponentials");
  const Tensor x = g.input("x", f32, {64, 64}), w = g.parameter("w", f32, {64, 64});
  const Tensor e = exp(w);
  g.output("z", matmul(x, e));
  g.output("y", x * sum(e, {0}));
  return g;
}

TEST_CASE("pack: what is made once is made by no step of a run", "[runtime][emulated]") {
  for (const Schemes schemes : {Schemes::fuse, Schemes::astitch}) {
    const Graph g = exponentials();
    const Compiled compiled =
        run_pipeline(ir_of(g), target_profile("h200"),
                     pipeline_options({.experiments = experiments({.schemes = schemes})}));
    INFO(schedule::print(compiled.plan));
    const auto computes_exp = [&](const schedule::Step& step) {
      return std::any_of(step.nodes.begin(), step.nodes.end(),
                         [&](ir::NodeId id) { return compiled.graph[id].op == ir::Op::exp; });
    };
    CHECK(std::any_of(compiled.plan.setup.begin(), compiled.plan.setup.end(), computes_exp));
    CHECK(std::none_of(compiled.plan.steps.begin(), compiled.plan.steps.end(), computes_exp));
    std::map<std::string, std::vector<float>> exact;
    for (const Device& device : {Device::reference(), test_device()}) {
      Session session(compile(g, device, {.experiments = experiments({.schemes = schemes})}));
      session.set("x", bytes_of(counted(4096, -2000)));
      session.set("w", bytes_of(std::vector<float>(4096, 0)));
      session.run();
      for (const char* name : {"z", "y"}) {
        const std::vector<float> got = values_of<float>(session.get(name));
        CHECK(exact.emplace(name, got).first->second == got);
      }
    }
  }
}

}  // namespace
}  // namespace fuse::test
