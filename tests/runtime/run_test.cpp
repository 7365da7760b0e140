// Prepared::run: right results, and every bad argument named.
// SPDX-License-Identifier: Apache-2.0
#include "base/access.hpp"
#include "runtime/runtime_support.hpp"
#include "support/branches.hpp"

namespace fuse::test {
namespace {

/// by_hand with B rows and its buffers on a device.
struct Rig {
  explicit Rig(const Device& on, std::int64_t rows = 9)
      : device(on),
        prepared(runtime::make_executable(by_hand(), device).prepare({{"B", rows}})),
        stream(device.stream()),
        workspace(prepared.workspace()) {
    for (std::size_t i = 0; i < 4; ++i) buffers.push_back(device.allocate(prepared.bytes(i)));
    for (std::int64_t i = 0; i < rows * 4; ++i) x.push_back(static_cast<float>(i) * 0.5f - 3);
    w = {1, 2, 3, 4};
    buffers[0].upload(bytes_of(x));
    buffers[1].upload(bytes_of(w));
    for (const Buffer& buffer : buffers) views.push_back(buffer.view());
  }
  Status run() { return prepared.run(stream, views, workspace); }
  std::string failure() { return text_of(run()); }
  std::vector<float> output(std::size_t slot) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(buffers[slot].size()));
    buffers[slot].download(bytes);
    return values_of<float>(bytes);
  }

  Device device;
  Prepared prepared;
  Stream stream;
  Workspace workspace;
  std::vector<Buffer> buffers;
  std::vector<BufferView> views;
  std::vector<float> x, w;
};

TEST_CASE("run: results on every device", "[runtime][device][cuda-text]") {
  for (const Device& device : every_device()) {
    for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{9}, std::int64_t{1000}}) {
      INFO(device.name() << " rows " << rows);
      Rig rig(device, rows);
      for (int again = 0; again < 2; ++again) {
        REQUIRE(rig.failure() == "ok: ");
        REQUIRE(text_of(rig.stream.synchronize()) == "ok: ");
        REQUIRE(rig.output(2) == by_hand_result(rig.x, rig.w));
        REQUIRE(rig.output(3) == by_hand_result(rig.x, rig.w));
      }
    }
  }
}

TEST_CASE("run: nothing to do for zero rows, and null buffers are allowed there",
          "[runtime][device][cuda-text]") {
  for (const Device& device : every_device()) {
    Rig rig(device, 0);
    rig.views[0] = rig.views[2] = rig.views[3] = {};
    REQUIRE(text_of(rig.prepared.run(rig.stream, rig.views, rig.workspace)) == "ok: ");
  }
}

TEST_CASE("run: buffers may be longer than needed and inputs may share one", "[runtime]") {
  Graph g("sum");
  g.output("c", g.input("a", f32, {8}) + g.input("b", f32, {8}));
  const Device device = Device::reference();
  const Prepared p = compile(g, device).prepare();
  Stream stream = device.stream();
  Buffer in = device.allocate(1000), out = device.allocate(64);
  std::vector<float> data(250, 1.5f);
  in.upload(bytes_of(data));
  // Both inputs in one buffer; the output right behind what b needs, though b's view is longer.
  const std::vector<BufferView> views = {in.view(), in.view(), out.view()};
  Workspace workspace = p.workspace();
  REQUIRE(text_of(p.run(stream, views, workspace)) == "ok: ");
  auto* base = static_cast<std::byte*>(in.address());
  const std::vector<BufferView> tight = {{base, 1000}, {base, 1000}, {base + 32, 32}};
  REQUIRE(text_of(p.run(stream, tight, workspace)) == "ok: ");
}

TEST_CASE("run: a buffer at its old address and too short is refused, after a run that was given all of it",
          "[runtime][device][cuda-text]") {
  for (const Device& device : {Device::reference(), test_device()}) {
    INFO(device.name());
    Rig rig(device, 4);
    REQUIRE(rig.failure() == "ok: ");
    rig.views[2].bytes = 16;
    CHECK(rig.failure() == "invalid-argument: buffer of output 'y' has 16 bytes, needs 64 (f32[4, 4])");
    rig.views[2].bytes = 64;
    CHECK(rig.failure() == "ok: ");
  }
}

TEST_CASE("run: bad buffers are named", "[runtime][device][cuda-text]") {
  for (const Device& device : {Device::reference(), test_device()}) {
    INFO(device.name());
    Rig rig(device, 4);
    SECTION("too few " + device.name()) {
      rig.views.pop_back();
      REQUIRE(rig.failure() == "invalid-argument: 3 buffers given for 4 slots");
    }
    SECTION("too many " + device.name()) {
      rig.views.push_back({});
      REQUIRE(rig.failure() == "invalid-argument: 5 buffers given for 4 slots");
    }
    SECTION("null " + device.name()) {
      rig.views[1].address = nullptr;
      REQUIRE(rig.failure() == "invalid-argument: buffer of parameter 'w' is null, needs 16 bytes (f32[4])");
    }
    SECTION("too small " + device.name()) {
      rig.views[2].bytes = 16;
      REQUIRE(rig.failure() == "invalid-argument: buffer of output 'y' has 16 bytes, needs 64 (f32[4, 4])");
    }
    SECTION("negative size " + device.name()) {
      rig.views[0].bytes = -1;
      REQUIRE(rig.failure() == "invalid-argument: buffer of input 'x' has -1 bytes, needs 64 (f32[4, 4])");
    }
    SECTION("misaligned " + device.name()) {
      Buffer longer = rig.device.allocate(128);
      rig.views[0] = {static_cast<std::byte*>(longer.address()) + 4, 124};
      const std::string text = rig.failure();
      REQUIRE(text.starts_with("invalid-argument: buffer of input 'x' is at 0x"));
      REQUIRE(text.ends_with(", which is not 16-byte aligned"));
    }
    SECTION("an output on an input " + device.name()) {
      rig.views[2].address = rig.views[0].address;
      REQUIRE(rig.failure() == "invalid-argument: buffer of output 'y' overlaps the buffer of input 'x'");
    }
    SECTION("an output in part on an output " + device.name()) {
      Buffer both = rig.device.allocate(128);
      rig.views[2] = {both.address(), 64};
      rig.views[3] = {static_cast<std::byte*>(both.address()) + 48, 64};
      REQUIRE(rig.failure() == "invalid-argument: buffer of output 'z' overlaps the buffer of output 'y'");
      rig.views[3] = {static_cast<std::byte*>(both.address()) + 64, 64};
      REQUIRE(rig.failure() == "ok: ");
    }
    SECTION("addresses at the end of memory " + device.name()) {
      rig.views[2].address = reinterpret_cast<void*>(~std::uintptr_t{15});
      const std::string text = rig.failure();
      REQUIRE(text.starts_with("invalid-argument: buffer of output 'y' is at 0x"));
      REQUIRE(text.ends_with(": its 64 bytes pass the end of memory"));
    }
  }
}

TEST_CASE("run: a bad workspace is named", "[runtime][device][cuda-text]") {
  Rig rig(test_device(), 4);
  const auto made = [&](BufferView memory) {
    return error_of([&] { (void)rig.prepared.workspace(memory); });
  };
  REQUIRE(rig.prepared.workspace_bytes() == 256);
  REQUIRE(made({}) == "invalid-argument: workspace has 0 bytes, needs 256");
  REQUIRE(made({nullptr, 512}) == "invalid-argument: workspace has 0 bytes, needs 256");
  Buffer longer = rig.device.allocate(1024);
  REQUIRE(made({longer.address(), 255}) == "invalid-argument: workspace has 255 bytes, needs 256");
  const std::string text = made({static_cast<std::byte*>(longer.address()) + 16, 1000});
  REQUIRE(text.starts_with("invalid-argument: workspace is at 0x"));
  REQUIRE(text.ends_with(", which is not 256-byte aligned"));
  rig.views[0] = {static_cast<std::byte*>(longer.address()) + 128, 64};
  Workspace over = rig.prepared.workspace(longer.view());
  REQUIRE(text_of(rig.prepared.run(rig.stream, rig.views, over)) ==
          "invalid-argument: workspace overlaps the buffer of input 'x'");
  Workspace none;
  REQUIRE(text_of(rig.prepared.run(rig.stream, rig.views, none)) ==
          "invalid-argument: the workspace is empty: make one by Prepared::workspace");
  Rig other(test_device(), 4);
  REQUIRE(text_of(rig.prepared.run(rig.stream, rig.views, other.workspace)) ==
          "invalid-argument: the workspace is of another Prepared: make one by Prepared::workspace");
}

TEST_CASE("run: a stream of another device", "[runtime][emulated]") {
  Rig rig(Device::emulated(), 4);
  Stream other = Device::reference().stream();
  REQUIRE(text_of(rig.prepared.run(other, rig.views, rig.workspace)) ==
          "invalid-argument: the stream is of another device than the executable's, emulated h200");
}

TEST_CASE("run: a failing step is named with its ops, and the rest does not run", "[runtime][emulated]") {
  Compiled c = by_hand();
  // The second kernel reads one row too far.
  c.source.body.replace(c.source.body.find("load(w, i % 4)"), 14, "load(w, i)    ");
  const Device device = checked_device();
  Session session(runtime::make_executable(c, device), {{"B", 3}});
  session.set("x", bytes_of(std::vector<float>(12, 1.0f)));
  session.set("w", bytes_of(std::vector<float>(4, 1.0f)));
  const std::string text = error_of([&] { session.run(); });
  INFO(text);
  REQUIRE(text.starts_with("kernel-fault: step 1, kernel 'shift' (add in affine) of runtime_support.cpp:"));
  REQUIRE(error_of([&] { session.get("z"); }) ==
          "unbound: output 'z' of type f32[3, 4] has no value before a successful run\n"
          "  hint: call Session::run first");
}

TEST_CASE("run: gemm, memset and a gemm over nothing", "[runtime][device]") {
  using schedule::PlanValue;
  Graph g("products");
  const Dim K = g.dim("K", {.min = 0, .max = 64});
  const Tensor a = g.input("a", f32, {2, 3, K}), b = g.input("b", f32, {2, K, 5});
  g.output("c", matmul(a, b));
  Compiled c;
  c.graph = ir_of(g);
  const Dim k = Dim::symbol("K", {.min = 0, .max = 64});
  c.plan.values = {{PlanValue::Kind::input, "a", f32, {2, 3, k}},
                   {PlanValue::Kind::input, "b", f32, {2, k, 5}},
                   {PlanValue::Kind::output, "c", f32, {2, 3, 5}},
                   {PlanValue::Kind::temporary, "t0", f32, {2, 3, 5}}};
  schedule::GemmStep gemm{.a = 0, .b = 1, .c = 3, .batch = 2, .m = 3, .n = 5, .k = k};
  c.plan.steps = {{.work = schedule::MemsetStep{3, 7}, .reads = {}, .writes = {3}, .name = "fill"},
                  {.work = gemm, .reads = {0, 1}, .writes = {3}, .nodes = {2}, .name = "gemm.0"},
                  {.work = gemm, .reads = {0, 1}, .writes = {3}, .nodes = {2}, .name = "gemm.1"},
                  {.work = schedule::CopyStep{3, 2}, .reads = {3}, .writes = {2}, .name = "copy"}};
  for (const std::int64_t inner : {std::int64_t{0}, std::int64_t{4}}) {
    for (const Device& device : test_devices()) {
      INFO(device.name() << " K = " << inner);
      Session session(runtime::make_executable(c, device), {{"K", inner}});
      session.set("a", bytes_of(std::vector<float>(static_cast<std::size_t>(6 * inner), 2.0f)));
      session.set("b", bytes_of(std::vector<float>(static_cast<std::size_t>(10 * inner), 3.0f)));
      session.run();
      REQUIRE(values_of<float>(session.get("c")) == std::vector<float>(30, static_cast<float>(6 * inner)));
      REQUIRE(session.prepared().gemms() == (inner ? 2 : 0));
      REQUIRE(session.prepared().launches() == 0);
    }
  }
  std::get<schedule::GemmStep>(c.plan.steps[1].work).m = 4;
  REQUIRE(error_of([&] {
            runtime::make_executable(c, test_device()).prepare({{"K", 2}});
          }) ==
          "internal: internal error: step 'gemm.0': 'a' is f32 with 12 elements, the gemm needs f32 with 16");
}

TEST_CASE("run: a buffer of no bytes may lie inside another", "[runtime][device]") {
  Graph g("empty");
  const Dim n = g.dim("N", {0, 8});
  const Tensor x = g.input("x", f32, {8}), y = g.input("y", f32, {n});
  g.output("a", x + 1);
  g.output("b", y + 1);
  for (const Device& device : {Device::reference(), test_device()}) {
    INFO(device.name());
    const Executable executable = compile(g, device);
    WholeRun empty(executable, {{"N", 0}}), full(executable, {{"N", 4}});
    for (WholeRun* run : {&empty, &full}) {
      for (const std::size_t slot : {0u, 1u})
        run->buffers[slot].upload(bytes_of(std::vector<float>(slot == 0 ? 8 : run == &full ? 4 : 0)));
      auto* const inside = static_cast<std::byte*>(run->views[0].address) + 16;
      run->views[3] = {inside, run->views[3].bytes};
    }
    CHECK(text_of(empty.run()) == "ok: ");
    CHECK(text_of(full.run()) == "invalid-argument: buffer of output 'b' overlaps the buffer of input 'x'");
    // Nor does it matter where the address is null.
    empty.views[1] = empty.views[3] = {};
    CHECK(text_of(empty.run()) == "ok: ");
  }
}

TEST_CASE("run: memory of the host is the caller's mistake on the emulated device", "[runtime][emulated]") {
  for (const bool checked : {false, true}) {
    for (const bool gemm : {false, true}) {
      Graph g("host");
      const Tensor x = g.input("x", f32, {8, 8});
      g.output("y", gemm ? matmul(x, x) : x + 1);
      const Executable executable = compile(g, Device::emulated({.checked = checked}));
      WholeRun run(executable);
      run.buffers[0].upload(bytes_of(std::vector<float>(64, 1)));
      alignas(16) float host[64] = {};
      for (const std::size_t slot : {0u, 1u}) {
        const BufferView own = std::exchange(run.views[slot], BufferView{host, sizeof host});
        Status status = run.run();
        if (status) status = run.stream.synchronize();
        INFO(status.message());
        CHECK(status.code() == ErrorCode::invalid_argument);
        CHECK(std::string(status.message()).find("is not inside an allocation of this device") !=
              std::string::npos);
        run.views[slot] = own;
      }
      CHECK(text_of(run.run()) == "ok: ");
    }
  }
}

}  // namespace
}  // namespace fuse::test
