// custom_call: a user's kernel runs like ours, checked like ours, beside the same function on the host.
// SPDX-License-Identifier: Apache-2.0
#include "base/access.hpp"
#include "support/op_sweep.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

CustomKernel scaled_sum(const Dim& n, const std::string& index = "i") {
  CustomKernel kernel{
      .name = "scaled_sum",
      .source =
          R"(FUSE_KERNEL(128) scaled_sum(global<const float> a, global<const float> b, global<float> y, long long n) {
  const long long i = (long long)blockIdx.x * 128 + threadIdx.x;
  const auto twice = [](float v) { return v + v; };
  if (i < n) store(y, INDEX, twice(load(a, i)) + load(b, i));
}
)",
      .threads = 128,
      .grid = ceil_div(n, 128),
      .extents = {n}};
  kernel.source.replace(kernel.source.find("INDEX"), 5, index);
  kernel.reference = [](std::span<const HostView> operands, HostView result) {
    const auto* a = static_cast<const float*>(operands[0].data);
    const auto* b = static_cast<const float*>(operands[1].data);
    for (std::int64_t i = 0; i < result.dims[0]; ++i)
      static_cast<float*>(result.data)[i] = a[i] + a[i] + b[i];
  };
  return kernel;
}

/// A row's sum by a warp: the text may exchange and synchronise.
CustomKernel row_sum() {
  CustomKernel kernel{.name = "row_sum",
                      .source = R"(FUSE_KERNEL(64) row_sum(global<const int> x, global<int> y) {
  FUSE_SHARED(int, 2, part);
  const int v = load(x, blockIdx.x * 64 + threadIdx.x);
  const int s = warp_sum(v);
  if (threadIdx.x % 32 == 0) store(part, threadIdx.x / 32, s);
  block_barrier();
  if (threadIdx.x == 0) store(y, blockIdx.x, load(part, 0) + load(part, 1));
}
)",
                      .threads = 64,
                      .shared_bytes = 16,
                      .grid = 5};
  kernel.reference = [](std::span<const HostView> operands, HostView result) {
    const auto* x = static_cast<const std::int32_t*>(operands[0].data);
    for (std::int64_t i = 0; i < 5; ++i) {
      std::int32_t sum = 0;
      for (std::int64_t j = 0; j < 64; ++j) sum += x[i * 64 + j];
      static_cast<std::int32_t*>(result.data)[i] = sum;
    }
  };
  return kernel;
}

}  // namespace

TEST_CASE("custom_call: between our own ops, called twice, with a symbolic extent",
          "[ops][device][cuda-text]") {
  for (const std::int64_t n : {0, 1, 1000}) {
    OpSweep sweep("custom");
    const Dim N = sweep.graph().dim("N", {.min = 0, .max = 100000, .hint = 500});
    const Tensor x = sweep.input(f32, {n}, {N});
    const Tensor first = custom_call(scaled_sum(N), {x * 2 + 1, x}, f32, {N});
    const Tensor second = custom_call(scaled_sum(N), {first, reverse(x, {0})}, f32, {N});
    sweep.expect("both", second * 0.5,
                 [](std::size_t, double exact) { return 8e-6 * (std::fabs(exact) + 1); });
    sweep.run_on_test_devices({{"N", n}});
  }
}

TEST_CASE("custom_call: exchanges and barriers", "[ops][device][cuda-text]") {
  OpSweep sweep("custom_rows");
  sweep.expect_exact("sums", custom_call(row_sum(), {sweep.input(i32, {5, 64})}, i32, {5}));
  sweep.run_on_test_devices();
}

TEST_CASE("custom_call: checked mode names the call", "[ops][emulated]") {
  Graph g("out_of_bounds");
  const Tensor x = g.input("x", f32, {100});
  g.output("y", custom_call(scaled_sum(100, "i + 1"), {x, x}, f32, {100}));
  Session session(compile(g, Device::emulated({.checked = true})));
  session.set("x", HostTensor::make(f32, {100}).data);
  CHECK_THROWS_WITH(session.run(), Catch::Contains("custom_call") && Catch::Contains("scaled_sum"));
}

TEST_CASE("custom_call: the text survives printing; the host function does not", "[ops][device][cuda-text]") {
  Graph g("printed");
  const Tensor x = g.input("x", f32, {100});
  g.output("y", custom_call(scaled_sum(100), {x, x}, f32, {100}));
  const Graph again = Graph::parse(g.to_string());
  CHECK(again.to_string() == g.to_string());
  HostTensor ones = HostTensor::make(f32, {100});
  for (std::int64_t i = 0; i < 100; ++i) ones.set(i, 1);
  Session session(compile(again, test_device()));
  session.set("x", ones.data);
  session.run();
  HostTensor got = HostTensor::make(f32, {100});
  session.get("y", got.data);
  CHECK(got.get(99) == 3);
  CHECK_THROWS_WITH(runtime::evaluate(ir_of(again), {{"x", ones}}, {}, runtime::Precision::exact),
                    Catch::Contains("has no host function"));
}

TEST_CASE("custom_call: what it refuses", "[ops][device][cuda-text]") {
  Graph g("refused");
  const Tensor x = g.input("x", f32, {100});
  const auto with = [&](auto change) {
    CustomKernel kernel = scaled_sum(100);
    change(kernel);
    return custom_call(kernel, {x, x}, f32, {100});
  };
  CHECK_THROWS_WITH(with([](CustomKernel& k) { k.name = "other"; }),
                    Catch::Contains("is not one kernel 'other'"));
  CHECK_THROWS_WITH(with([](CustomKernel& k) { k.threads = 100; }),
                    Catch::Contains("a block has 100 threads"));
  CHECK_THROWS_WITH(with([](CustomKernel& k) { k.source = "// nothing\n" + k.source; }),
                    Catch::Contains("begins with"));
  CHECK_THROWS_WITH(custom_call(scaled_sum(100), {}, f32, {100}), Catch::Contains("has no operands"));

  // Two texts of one name, and a text that does not compile.
  g.output("a", with([](CustomKernel&) {}));
  g.output("b", with([](CustomKernel& k) { k.source.replace(k.source.find("v + v"), 5, "v - v"); }));
  CHECK_THROWS_WITH(compile(g, test_device()), Catch::Contains("two kernels are called 'scaled_sum'"));
  Graph broken("broken");
  const Tensor y = broken.input("x", f32, {100});
  broken.output("y", custom_call(scaled_sum(100, "nonsense"), {y, y}, f32, {100}));
  CHECK_THROWS_WITH(compile(broken, test_device()), Catch::Contains("nonsense"));
}

TEST_CASE("custom_call: two calls of one name are of one text, block and list of parameters",
          "[ops][device][cuda-text]") {
  const auto compiled = [](auto change) {
    Graph g("twice");
    CustomKernel kernel = scaled_sum(100), other = kernel;
    std::vector<Tensor> operands = {g.input("x", i64, {100}), g.input("y", i64, {100})}, others = operands;
    DType result = i64;
    change(g, other, others, result);
    g.output("a", custom_call(kernel, operands, i64, {100}));
    g.output("b", custom_call(other, others, result, {100}));
    compile(g, test_device());
  };
  using Operands = std::vector<Tensor>;
  const auto refused = Catch::Contains("two kernels are called 'scaled_sum'");
  CHECK_THROWS_WITH(compiled([](Graph&, CustomKernel& k, Operands&, DType&) { k.source += "// more\n"; }),
                    refused);
  CHECK_THROWS_WITH(compiled([](Graph&, CustomKernel& k, Operands&, DType&) { k.threads = 64; }), refused);
  CHECK_THROWS_WITH(compiled([](Graph&, CustomKernel& k, Operands&, DType&) { k.shared_bytes = 64; }),
                    refused);
  CHECK_THROWS_WITH(compiled([](Graph&, CustomKernel&, Operands&, DType& dtype) { dtype = f32; }), refused);
  CHECK_THROWS_WITH(
      compiled([](Graph& g, CustomKernel&, Operands& of, DType&) { of[1] = g.input("z", u8, {100}); }),
      refused);
  CHECK_THROWS_WITH(compiled([](Graph&, CustomKernel&, Operands& of, DType&) { of.push_back(of[0]); }),
                    refused);
  // As many parameters of the same types, of which one is an extent instead of memory.
  CHECK_THROWS_WITH(compiled([](Graph&, CustomKernel& k, Operands& of, DType&) {
                      of.pop_back();
                      k.extents.push_back(100);
                    }),
                    refused);
}

TEST_CASE("custom_call: a text that does not compile is its writer's mistake", "[ops][device][cuda-text]") {
  Graph g("mistaken");
  const Tensor x = g.input("x", f32, {100});
  CustomKernel sound = scaled_sum(100);
  sound.name = "sound";
  sound.source.replace(sound.source.find("scaled_sum"), 10, "sound");
  const Tensor a = custom_call(sound, {x, exp(x)}, f32, {100});
  SourceLocation at = std::source_location::current();
  g.output("y", custom_call(scaled_sum(100, "i + nonsense"), {a, x}, f32, {100}));
  at.line += 1;
  try {
    compile(g, test_device());
    FAIL("it compiled");
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(error.kind() == ErrorKind::user);
    CHECK(error.code() == ErrorCode::invalid_argument);
    CHECK(error.info().op == "custom_call");
    CHECK(error.info().shapes == std::vector<std::string>{"f32[100]", "f32[100]"});
    CHECK(error.info().location == at);
    CHECK(error.info().message.starts_with("the kernel 'scaled_sum' does not compile: "));
    CHECK(error.info().message.find("nonsense") != std::string::npos);
    // The compiler counts lines as the hint says: the mistake is in the text's fourth.
    const std::string hint = error.info().hint, begins = "begins at line ";
    REQUIRE(hint.find(begins) != std::string::npos);
    const int first = std::stoi(hint.substr(hint.find(begins) + begins.size()));
    const std::string line = std::to_string(first + 3);
    CHECK((error.info().message.find("scaled_sum.cu:" + line) != std::string::npos ||
           error.info().message.find("scaled_sum.cu(" + line + ")") != std::string::npos));
  }
}
