// prepare: dims checked, sizes bound, every bad value named.
// SPDX-License-Identifier: Apache-2.0
#include "base/access.hpp"
#include "compile/signature_of.hpp"
#include "runtime/runtime_support.hpp"

namespace fuse::test {
namespace {

std::string prepared(const Executable& executable, const DimValues& dims) {
  return error_of([&] { executable.prepare(dims); });
}

TEST_CASE("prepare: sizes, shapes and counts", "[runtime][device][cuda-text]") {
  const Executable executable = runtime::make_executable(by_hand(), test_device());
  REQUIRE(executable.slots().size() == 4);
  REQUIRE(executable.slot("x") == 0);
  REQUIRE(executable.slot("w") == 1);
  REQUIRE(executable.output_slot("y") == 2);
  REQUIRE(executable.output_slot("z") == 3);
  const Prepared p = executable.prepare({{"B", 100}});
  REQUIRE(p.shape(0) == std::vector<std::int64_t>{100, 4});
  REQUIRE(p.shape(1) == std::vector<std::int64_t>{4});
  REQUIRE(p.bytes(2) == 1600);
  REQUIRE(p.workspace_bytes() == 1792);
  REQUIRE(p.launches() == 2);
  REQUIRE(p.gemms() == 0);
  const Prepared none = executable.prepare({{"B", 0}});
  REQUIRE(none.bytes(2) == 0);
  REQUIRE(none.workspace_bytes() == 0);
  REQUIRE(none.launches() == 0);
  REQUIRE(error_of([&] { p.shape(4); }) == "invalid-argument: there is no slot 4: there are 4");
  REQUIRE(error_of([&] { p.bytes(99); }) == "invalid-argument: there is no slot 99: there are 4");
}

TEST_CASE("prepare: slots by unknown names", "[runtime]") {
  const Executable executable = compile(by_hand_graph(), Device::reference());
  REQUIRE(error_of([&] { executable.slot("q"); }) ==
          "unknown-name: no input or parameter is named 'q'\n  hint: there are 'x', 'w'");
  REQUIRE(error_of([&] { executable.slot("y"); }) ==
          "unknown-name: no input or parameter is named 'y'\n  hint: 'y' is an output");
  REQUIRE(error_of([&] { executable.output_slot("w"); }) ==
          "unknown-name: no output is named 'w'\n  hint: 'w' is an input or parameter");
}

TEST_CASE("prepare: dims are checked on every device", "[runtime][device][cuda-text]") {
  for (const Device& device : {Device::reference(), test_device()}) {
    INFO(device.name());
    const Executable executable = runtime::make_executable(by_hand(), device);
    REQUIRE(prepared(executable, {}) ==
            "unbound: dim B has no value; %x of type f32[B, 4] needs it\n  hint: prepare({{\"B\", ...}})");
    REQUIRE(prepared(executable, {{"B", 1001}}) ==
            "invalid-extent: dim B = 1001 is outside of its range [0, 1000]"
            "\n  hint: give a value in the range, or declare a larger one with Graph::dim");
    REQUIRE(prepared(executable, {{"B", -1}}) ==
            "invalid-extent: dim B = -1 is outside of its range [0, 1000]"
            "\n  hint: give a value in the range, or declare a larger one with Graph::dim");
    REQUIRE(prepared(executable, {{"B", 1}, {"T", 1}}) ==
            "unknown-name: graph 'byhand' has no dim 'T'\n  hint: there are 'B'");
    REQUIRE(prepared(executable, {{"B", 1}}) == "no error");
  }
}

TEST_CASE("prepare: a graph without dims takes no values", "[runtime]") {
  Graph g("fixed");
  g.output("y", g.input("x", f32, {4}) + 1);
  const Executable executable = compile(g, Device::reference());
  REQUIRE(prepared(executable, {{"B", 1}}) ==
          "unknown-name: graph 'fixed' has no dim 'B'\n  hint: it has no dims: prepare() takes no values");
  REQUIRE(prepared(executable, {}) == "no error");
}

TEST_CASE("prepare: a misspelled dim is guessed", "[runtime]") {
  Graph g("names");
  const Dim batch = g.dim("batch", {.min = 1, .max = 8}), time = g.dim("time", {.min = 1, .max = 8});
  g.output("y", g.input("x", f32, {batch, time}) + 1);
  const Executable executable = compile(g, Device::reference());
  REQUIRE(prepared(executable, {{"bacth", 1}}) ==
          "unknown-name: graph 'names' has no dim 'bacth'\n  hint: did you mean 'batch'?");
}

TEST_CASE("prepare: a declared dim that nothing uses needs no value", "[runtime]") {
  Graph g("unused");
  g.dim("U", {.min = 3, .max = 8});
  g.output("y", g.input("x", f32, {4}) + 1);
  const Executable executable = compile(g, Device::reference());
  REQUIRE(prepared(executable, {}) == "no error");
  REQUIRE(prepared(executable, {{"U", 4}}) == "no error");
  REQUIRE(prepared(executable, {{"U", 9}}) ==
          "invalid-extent: dim U = 9 is outside of its range [3, 8]"
          "\n  hint: give a value in the range, or declare a larger one with Graph::dim");
  Session session(executable);
  session.set("x", bytes_of(std::vector<float>{1, 2, 3, 4}));
  session.run();
  REQUIRE(values_of<float>(session.get("y")) == std::vector<float>{2, 3, 4, 5});
}

TEST_CASE("prepare: sizes that overflow name the op and the values", "[runtime][device]") {
  Graph g("big");
  const std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const Dim A = g.dim("A"), B = g.dim("B"), C = g.dim("C");
  g.output("y", g.input("x", f32, {A, B, C}) + 1);
  for (const Device& device : {Device::reference(), test_device()}) {
    const Executable executable = compile(g, device);
    const std::string text = prepared(executable, {{"A", most}, {"B", most}, {"C", most}});
    INFO(text);
    REQUIRE(text.starts_with("invalid-extent: prepare_test.cpp:"));
    REQUIRE(text.find("input('x'): the bytes of a result of type f32[A, B, C] overflow 63 bits at A = "
                      "2147483647, B = 2147483647, C = 2147483647") != std::string::npos);
  }
}

TEST_CASE("prepare: an extent that overflows names the expression", "[runtime]") {
  Graph g("expression");
  const std::int64_t most = std::int64_t{1} << 40;
  const Dim A = g.dim("A", {.min = 1, .max = most});
  g.output("y", g.dim_size(A * A * A));
  const Executable executable = compile(g, Device::reference());
  REQUIRE(prepared(executable, {{"A", 2}}) == "no error");
  const runtime::ValueLocation unused;
  REQUIRE(unused.slot == -1);
  Session session(executable, {{"A", 3}});
  session.run();
  REQUIRE(values_of<std::int64_t>(session.get("y")) == std::vector<std::int64_t>{27});
  const std::string text = prepared(executable, {{"A", most}});
  INFO(text);
  REQUIRE(text.find("dim_size(): A * A * A: arithmetic on extents overflows 63 bits at A = 1099511627776") !=
          std::string::npos);
}

TEST_CASE("prepare: what two ops need of their dims is asked once only where all of it is the same",
          "[runtime]") {
  const auto asked = [](auto fill) {
    Graph g("asked");
    fill(g, g.dim("A", {.min = 1, .max = 100}), g.dim("B", {.min = 1, .max = 100}));
    return runtime::signature_of(ir_of(g), {}).ops.size();
  };
  const auto given = [&](DType first, std::vector<Dim> dims, DType second, std::vector<Dim> others) {
    Graph g("given");
    g.dim("A", {.min = 1, .max = 100}), g.dim("B", {.min = 1, .max = 100});
    g.input("x", first, std::move(dims)), g.input("y", second, std::move(others));
    return runtime::signature_of(ir_of(g), {}).ops.size();
  };
  const Dim A = Dim::symbol("A", {1, 100}), B = Dim::symbol("B", {1, 100});
  CHECK(given(f32, {A, B}, f32, {A, B}) == 1);
  CHECK(given(f32, {A, B}, i32, {A, B}) == 2);
  CHECK(given(f32, {A, B}, f32, {B, A}) == 2);
  CHECK(given(f32, {A, B}, f32, {A}) == 2);
  // The same dims in the same order, of the result, of an attribute, or of what is reduced.
  CHECK(asked([](Graph& g, const Dim& a, const Dim&) {
          g.input("x", i64, {a});
          g.output("y", g.dim_size(a));
        }) == 2);
  CHECK(asked([](Graph& g, const Dim& a, const Dim&) {
          g.output("y", g.dim_size(a));
          g.output("x", g.iota(i64, {a}, 0));
        }) == 2);
  CHECK(asked([](Graph& g, const Dim& a, const Dim& b) {
          g.input("z", i64, {a, b});
          g.output("y", argmax(g.input("x", f32, {a, b}), 1));
        }) == 3);
}

TEST_CASE("prepare: nothing can be gathered from an empty axis", "[runtime][device]") {
  Graph g("lookup");
  const Dim V = g.dim("V", {.min = 0, .max = 10}), N = g.dim("N", {.min = 0, .max = 10});
  g.output("y", gather(g.input("table", f32, {V, 3}), g.input("ids", i32, {N}), 0));
  for (const Device& device : {Device::reference(), test_device()}) {
    INFO(device.name());
    const Executable executable = compile(g, device);
    const std::string text = prepared(executable, {{"V", 0}, {"N", 2}});
    INFO(text);
    REQUIRE(text.starts_with("invalid-extent: prepare_test.cpp:"));
    REQUIRE(text.find(": gather(f32[V, 3], i32[N]): axis 0 is empty and the result has 6 elements: there is "
                      "nothing to gather at V = 0\n  hint: give V a minimum of 1") != std::string::npos);
    REQUIRE(prepared(executable, {{"V", 0}, {"N", 0}}) == "no error");
    REQUIRE(prepared(executable, {{"V", 1}, {"N", 2}}) == "no error");
  }
}

TEST_CASE("prepare: an empty dim has no largest element", "[runtime][device]") {
  Graph g("positions");
  const Dim B = g.dim("B", {.min = 0, .max = 10}), N = g.dim("N", {.min = 0, .max = 10});
  g.output("y", argmax(g.input("x", f32, {B, N}), 0));
  for (const Device& device : {Device::reference(), test_device()}) {
    INFO(device.name());
    const Executable executable = compile(g, device);
    const std::string text = prepared(executable, {{"B", 0}, {"N", 2}});
    INFO(text);
    REQUIRE(
        text.find(": argmax(f32[B, N]): the reduced dim 0 is empty and the result has 2 elements at B = 0\n"
                  "  hint: give B a minimum of 1") != std::string::npos);
    REQUIRE(prepared(executable, {{"B", 0}, {"N", 0}}) == "no error");
    REQUIRE(prepared(executable, {{"B", 1}, {"N", 2}}) == "no error");
  }
}

TEST_CASE("compile: a graph without outputs", "[runtime]") {
  Graph g("empty");
  g.input("x", f32, {4});
  REQUIRE(error_of([&] { compile(g, Device::reference()); }) ==
          "invalid-argument: graph 'empty' has no outputs: there is nothing to compute\n"
          "  hint: name a result with Graph::output");
}

TEST_CASE("make_executable: stages that do not fit each other", "[runtime]") {
  const auto made = [](Compiled compiled) {
    return error_of([&] { runtime::make_executable(std::move(compiled), Device::emulated()); });
  };
  Compiled c = by_hand();
  const std::string start = "internal: internal error: ";
  SECTION("another type of slot") {
    c.plan.values[0].dtype = f64;
    REQUIRE(made(c) == start + "value 0 of the plan is not the graph's input 'x'");
  }
  SECTION("a missing kernel") {
    c.source.kernels.pop_back();
    REQUIRE(made(c) == start + "step 'shift': there is no kernel 1");
  }
  SECTION("another number of parameters") {
    c.source.kernels[0].params.pop_back();
    REQUIRE(made(c) ==
            start + "step 'scale': kernel 'scale' has 2 parameters, the step 2 buffers and 1 extents");
  }
  SECTION("another order of parameters") {
    std::swap(c.source.kernels[0].params[1], c.source.kernels[0].params[2]);
    REQUIRE(made(c) == start + "step 'scale': parameter 'B' of kernel 'scale' is of another kind");
  }
  SECTION("another element type") {
    c.source.kernels[0].params[0].dtype = f16;
    REQUIRE(made(c) == start + "step 'scale': parameter 'x' is f16, its value f32");
  }
  SECTION("a hidden write") {
    c.source.kernels[0].params[0].written = true;
    REQUIRE(made(c) == start + "step 'scale': kernel 'scale' writes 'x' without stating it");
  }
  SECTION("a broken plan") {
    c.plan.steps.pop_back();
    REQUIRE(made(c) == start + "plan: output 'z' (v3) is written 0 times, not once");
  }
}

TEST_CASE("prepare: launches that cannot be made", "[runtime][emulated]") {
  Compiled c = by_hand();
  auto& scale = std::get<schedule::KernelStep>(c.plan.steps[0].work);
  const auto text = [&] { return prepared(runtime::make_executable(c, Device::emulated()), {{"B", 8}}); };
  SECTION("too many parameters") {
    for (int i = 0; i < 510; ++i) {
      scale.extents.push_back(scale.extents[0]);
      c.source.kernels[0].params.push_back(extent_param("e" + std::to_string(i)));
    }
    // The text of the kernel must have them too, for the emulated device loads it.
    std::string extra;
    for (int i = 0; i < 510; ++i) extra += ", long long e" + std::to_string(i);
    c.source.body.insert(c.source.body.find(") {"), extra);
    REQUIRE(text() == "internal: internal error: step 'scale': 513 kernel parameters, at most 512");
  }
  SECTION("too many blocks") {
    scale.grid = Dim(std::int64_t{1} << 31);
    REQUIRE(text() ==
            "invalid-extent: kernel 'scale' needs 2147483648 blocks, a launch has at most 2147483647");
  }
  SECTION("a negative grid") {
    scale.grid = scale.grid - 100;
    REQUIRE(text() == "internal: internal error: step 'scale': a grid of -99 at B = 8");
  }
  SECTION("an extent beyond its 32 bits") {
    scale.extents[0] = Dim(std::int64_t{1} << 32);
    c.source.kernels[0].params[2].dtype = i32;
    c.source.body.replace(c.source.body.find("long long B"), 9, "int");
    REQUIRE(text() ==
            "internal: internal error: step 'scale': extent 'B' = 4294967296 does not fit its 32 bits");
  }
  SECTION("a copy between sizes") {
    c.plan.steps.back() = {.work = schedule::CopyStep{1, 3}, .reads = {1}, .writes = {3}, .name = "copy.z"};
    REQUIRE(text() == "internal: internal error: step 'copy.z': copies 16 bytes to 128");
  }
}

}  // namespace
}  // namespace fuse::test
