// Kernels of the cpu device against the error analysis of the reference, with the same bits for any number of
// threads. SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <cstdint>
#include <fuse/fuse.hpp>
#include <limits>

#include "fuzz/judge/execute.hpp"
#include "runtime/cpu/cores/machine.hpp"
#include "stitch/stitch_support.hpp"
#include "support/catch.hpp"
#include "support/stitch_cases.hpp"
#include "target/target.hpp"
#include "tensors/host_tensor.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// What the graph's outputs are on so many threads; each run is judged.
std::vector<std::vector<std::byte>> results_on(int threads, const Graph& graph,
                                               const std::vector<DimValues>& dims,
                                               const std::string& device = "cpu") {
  fuzz::RunOptions options;
  options.profile = device;
  options.threads = threads;
  fuzz::Case judged = case_of(graph, options);
  judged.program.bindings = dims;
  fuzz::Batch batch({std::move(judged)});
  std::vector<std::vector<std::byte>> results;
  const fuzz::Outcome outcome = batch.run(0, [&](const fuzz::Observed& observed) {
    for (const auto& [name, value] : observed.results) results.push_back(value.data);
  });
  INFO(outcome.text);
  CHECK(outcome.verdict == fuzz::Verdict::ok);
  return results;
}

void check_on_cpu(const Graph& graph, const std::vector<DimValues>& dims = {{}}) {
  const auto alone = results_on(1, graph, dims);
  REQUIRE(!alone.empty());
  for (const int threads : {2, 8}) CHECK(results_on(threads, graph, dims) == alone);
}

}  // namespace

TEST_CASE("cpu: rows of all lengths, reduced, scanned and normalised", "[cpu][emulated]") {
  for (const std::int64_t length : {1, 2, 3, 7, 31, 32, 33, 64, 100, 1000, 4099}) {
    INFO("length " << length);
    Graph g("rows");
    const Tensor x = g.input("x", f32, {37, length});
    g.output("softmax", softmax(x));
    g.output("scan", cumulative_sum(x, 1));
    g.output("at", argmax(x, 1));
    g.output("half", convert(x, bf16) * 2.0F);
    check_on_cpu(g);
  }
}

TEST_CASE("cpu: divisions by what a row shares have the bits of IEEE division", "[cpu][emulated]") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN(),
              least = std::numeric_limits<float>::denorm_min(), most = std::numeric_limits<float>::max();
  const std::vector<float> divisors = {
      1.0F,  3.0F, 0x1.fffffep0F, 0x1.fffffep10F, 0x1p-24F, 0x1p24F, 0x1.000002p24F, 0x1p-25F, 1e-30F,
      1e30F, 0.0F, -0.0F,         -3.0F,          inf,      nan,     least,          most,     7.0F};
  const std::vector<float> special = {
      0.0F,      -0.0F, least, -least, 0x1p-126F, 0x1p-101F, -0x1p-101F, 0x1.fffffep-102F,
      0x1p-102F, most,  -most, inf,    -inf,      nan,       1.0F,       0x1.fffffep0F};
  constexpr std::size_t columns = 512;
  const std::size_t rows = divisors.size();
  std::vector<float> x(rows * columns);
  // Rows that have nothing special divide in few steps throughout; every other row has one of these in it.
  unsigned state = 20261129;
  for (std::size_t i = 0; i < x.size(); ++i) {
    state = state * 1664525U + 1013904223U;
    const float tame = 1.0F + static_cast<float>(state >> 9) * 0x1p-23F;
    const bool any = i / columns % 2 == 1;
    x[i] = any && i % 13 == 0 ? special[i / 13 % special.size()]
                              : std::ldexp(state >> 31 ? -tame : tame, static_cast<int>(state % 180) - 90);
  }
  Graph g("quotients");
  const std::int64_t B = static_cast<std::int64_t>(rows), C = columns;
  const Tensor in = g.input("x", f32, {B, C}), by = g.input("by", f32, {B});
  // Two results of a row: the division stands in a loop, which does not change the divisor.
  const Tensor quotient = in / broadcast_in_dim(by, {B, C}, {0});
  g.output("y", quotient);
  g.output("most", max(quotient, {1}));
  for (const char* level : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "armv8-a"}) {
    if (!runs_on(runtime::cpu::this_machine().level, level)) continue;
    INFO(level);
    Session session(compile(g, Device::cpu({.machine = level})));
    session.set("x", x);
    session.set("by", divisors);
    session.run();
    const auto y = session.get<float>("y");
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float wanted = x[i] / divisors[i / columns];
      INFO(x[i] << " / " << divisors[i / columns]);
      if (std::isnan(wanted))
        CHECK(std::isnan(y[i]));
      else
        CHECK(std::bit_cast<std::uint32_t>(y[i]) == std::bit_cast<std::uint32_t>(wanted));
    }
  }
}

TEST_CASE("cpu: lengths that are known at run time", "[cpu][emulated]") {
  Graph g("dynamic");
  const Dim B = g.dim("B", {.min = 1, .max = 300, .hint = 19}),
            T = g.dim("T", {.min = 1, .max = 5000, .hint = 45});
  const Tensor x = g.input("x", f16, {B, T}), bias = g.input("bias", f16, {T});
  const Tensor y = softmax(x + broadcast_to(bias, {B, T}));
  g.output("y", y);
  g.output("columns", sum(y, {0}));
  g.output("turned", transpose(y, {1, 0}));
  check_on_cpu(
      g, {{{"B", 1}, {"T", 1}}, {{"B", 19}, {"T", 45}}, {{"B", 3}, {"T", 4097}}, {{"B", 300}, {"T", 32}}});
}

TEST_CASE("cpu: reductions across memory keep a partial result for each chunk of rows",
          "[cpu][emulated][not-sanitized]") {
  for (const std::int64_t columns : {5, 40, 1000, 9000}) {
    INFO(columns << " columns");
    Graph g("columns");
    const Tensor x = g.input("x", f32, {1030, columns});
    g.output("sum", sum(x, {0}));
    g.output("largest", max(x, {0}));
    g.output("rows", sum(x * x, {1}));
    check_on_cpu(g);
  }
}

TEST_CASE("cpu: bytes that are reduced across memory", "[cpu][emulated]") {
  for (const DType dtype : {u8, i8}) {
    INFO(to_string(dtype));
    Graph g("bytes");
    const Tensor x = g.input("x", dtype, {9, 33});
    g.output("sum", sum(x, {0}));
    g.output("largest", max(x, {0}));
    g.output("least", min(x, {0}));
    check_on_cpu(g);
  }
}

TEST_CASE("cpu: a few long rows are shared by blocks", "[cpu][emulated]") {
  Graph g("long");
  const Tensor x = g.input("x", f32, {3, 200000});
  g.output("sum", sum(x, {1}));
  g.output("product", prod(1.0F + x * 1e-6F, {1}));
  check_on_cpu(g);
  // What blocks leave of a row is combined by a second launch.
  fuzz::RunOptions options;
  options.profile = "cpu";
  CHECK(fuzz::compiled(case_of(g, options), "long").each.front().plan.steps.size() >= 2);
}

TEST_CASE("cpu: elements that lie apart", "[cpu][emulated]") {
  Graph g("apart");
  const Tensor x = g.input("x", f32, {21, 34, 5}), index = g.input("index", i32, {13});
  g.output("turned", exp(transpose(x, {2, 0, 1})));
  g.output("reversed", reverse(x, {0, 2}) + 1.0F);
  g.output("every_second", slice(x, 1, 1, 33, 2) * 2.0F);
  g.output("padded", pad(x, 7.0F, {1, 0, 2}, {0, 3, 1}));
  g.output("joined", concat({x, slice(x, 1, 3, 9)}, 1));
  g.output("picked", gather(x, index, 0) * 3.0F);
  check_on_cpu(g);
}

TEST_CASE("cpu: every type, and numbers that are none", "[cpu][emulated]") {
  for (const DType dtype : {f64, f32, f16, bf16, i64, i32}) {
    INFO(to_string(dtype));
    Graph g("types");
    const Tensor x = g.input("x", dtype, {9, 77}), y = g.input("y", dtype, {9, 77});
    g.output("max", maximum(x, y));
    g.output("quotient", x / y);
    g.output("rest", x % y);
    g.output("select", select(x < y, x, y));
    g.output("bytes", convert(x, i8));
    g.output("bool", x == y);
    g.output("real", convert(x, f32));
    check_on_cpu(g);
  }
}

TEST_CASE("cpu: rows of a broadcast end anywhere in a block of lanes", "[cpu][emulated]") {
  Graph g("ends");
  for (const std::int64_t length : {31, 32, 33, 63, 64, 95, 100, 127}) {
    const std::string name = std::to_string(length);
    const std::vector<Dim> dims = {9, length};
    const Tensor x = g.input("x" + name, f32, dims), scale = g.input("scale" + name, f32, {9}),
                 bias = g.input("bias" + name, f32, {length});
    g.output("y" + name, x * broadcast_in_dim(scale, dims, {0}) + broadcast_to(bias, dims));
  }
  check_on_cpu(g);
}

TEST_CASE("cpu: tiles of every type are transposed", "[cpu][emulated]") {
  for (const std::string machine : {"cpu", "cpu x86-64-v3", "cpu x86-64-v2"}) {
    if (machine.size() > 3 && !runs_on(runtime::cpu::this_machine().level, machine.substr(4))) continue;
    Graph g("tiles");
    for (const DType dtype : {f64, f32, f16, bf16, i64, i32, i8, u8, boolean}) {
      const std::string name(to_string(dtype));
      const Tensor x = g.input("x_" + name, dtype, {70, 45}), y = g.input("y_" + name, dtype, {3, 64, 33});
      g.output(name, transpose(x, {1, 0}));
      g.output(name + "_equal", transpose(y, {0, 2, 1}) == transpose(y, {0, 2, 1}));
    }
    INFO(machine);
    CHECK(results_on(1, g, {{}}, machine) == results_on(2, g, {{}}, machine));
  }
}

TEST_CASE("cpu: indices that are compared with one value for all lanes", "[cpu][emulated]") {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                         most = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t length : {5, 32, 77}) {
    INFO("length " << length);
    Graph g("compared");
    const Tensor column = g.iota(i64, {3, length}, 1), row = g.iota(i64, {3, length}, 0);
    int outputs = 0;
    const auto chosen = [&](const Tensor& test) {
      g.output("y" + std::to_string(outputs++), select(test, g.constant(f32, 1.0F, {3, length}), 2.0F));
    };
    for (const std::int64_t value : {least, std::int64_t{-1}, std::int64_t{0}, std::int64_t{31},
                                     std::int64_t{32}, std::int64_t{70}, most}) {
      const Tensor other = g.constant(i64, value, {3, length});
      for (const Tensor& test :
           {column == other, column != other, column<other, column <= other, column> other, column >= other,
            other < column, other >= column})
        chosen(test);
    }
    chosen(column <= row * 20);
    g.output("last", cross_entropy(g.input("x", f32, {3, length}), g.constant(i64, length - 1, {3})));
    check_on_cpu(g);
  }
}

TEST_CASE("cpu: compared indices of a narrow type wrap inside of a warp", "[cpu][emulated]") {
  Graph g("wraps");
  int outputs = 0;
  const auto add = [&](const Tensor& index, const Tensor& other) {
    for (const Tensor& test :
         {index == other, index != other, index<other, index <= other, index> other, other <= index})
      g.output("y" + std::to_string(outputs++), test);
  };
  for (const DType type : {i8, u8}) {
    add(slice(g.iota(type, {305}, 0), 0, 5, 305), g.constant(type, 100, {300}));
    add(g.iota(type, {2, 300}, 1), g.constant(type, 3, {2, 300}));
  }
  check_on_cpu(g);
}

TEST_CASE("cpu: indices of 64 bits that are divided, below 0 too", "[cpu][emulated]") {
  Graph g("divided");
  const Dim B = g.dim("B", {.min = 0, .max = 2147483647, .hint = 4});
  const Tensor x = g.input("x", i64, {2, B, 9, 9}), y = g.input("y", f32, {B, 8, 5});
  g.output("before", cumulative_sum(reshape(x, {2, B, 81}), 2, {.exclusive = true, .reverse = true}));
  g.output("back", cumulative_sum(reshape(y, {B, 40}), 1, {.reverse = true}));
  g.output("down", cumulative_sum(reshape(x, {2, 9 * B, 9}), 1, {.exclusive = true, .reverse = true}));
  g.output("padded", reverse(pad(reshape(y, {B, 40}), 0.0F, {0, 3}, {0, 2}), {1}));
  check_on_cpu(g, {{{"B", 0}}, {{"B", 1}}, {{"B", 4}}, {{"B", 37}}});
}

TEST_CASE("cpu: a value that is the same in all lanes keeps its sign", "[cpu][emulated]") {
  Graph g("signs");
  const Tensor x = g.input("x", f32, {40});
  g.output("zero", g.constant(f32, -0.0F, {40}));
  g.output("chosen", select(x > 100.0F, x, -0.0F));
  check_on_cpu(g);
}

TEST_CASE("cpu: an integer that is 0 becomes +0, whatever it was made of", "[cpu][emulated]") {
  const std::vector<double> values = {-0.5, -0.0, 0.0,   0.75,   -0.9375, -1.0,
                                      1.5,  -1.5, 100.0, -100.0, -0.25,   0.5};
  const auto value_of = [&](std::int64_t i) { return values[static_cast<std::size_t>(i) % values.size()]; };
  for (const std::int64_t columns : {1, 95}) {  // in rows of 95 columns 32 lanes share one value
    Graph g("zeros");
    for (const DType from : {f64, f32}) {
      for (const DType by : {i64, i32, i8}) {
        for (const DType to : {f64, f32, bf16}) {
          const std::string name = std::string(to_string(from)) + "_" + std::string(to_string(by)) + "_" +
                                   std::string(to_string(to));
          // Each of an input of its own: a compiler simplifies what is converted once.
          const Tensor x = g.input("x_" + name, from, {64});
          g.output(name, broadcast_in_dim(convert(convert(x, by), to), {64, columns}, {0}));
        }
      }
    }
    for (const char* level : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "armv8-a"}) {
      if (!runs_on(runtime::cpu::this_machine().level, level)) continue;
      INFO(level << ", " << columns << " columns");
      const Executable executable = compile(g, Device::cpu({.machine = level}));
      Session session(executable);
      for (const Slot& slot : executable.slots()) {
        if (slot.kind == Slot::Kind::output) continue;
        runtime::HostTensor x = runtime::HostTensor::make(slot.dtype, {64});
        for (std::int64_t i = 0; i < 64; ++i) x.set(i, value_of(i));
        session.set(slot.name, x.data);
      }
      session.run();
      for (const Slot& slot : executable.slots()) {
        if (slot.kind != Slot::Kind::output) continue;
        INFO(slot.name);
        runtime::HostTensor y = runtime::HostTensor::make(slot.dtype, {64, columns});
        y.data = session.get(slot.name);
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < 64 * columns; ++i) {
          const double wanted = std::trunc(value_of(i / columns)) + 0.0;
          wrong += std::bit_cast<std::uint64_t>(y.get(i)) != std::bit_cast<std::uint64_t>(wanted);
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("cpu: random numbers are those of the other devices", "[cpu][emulated]") {
  Graph g("random");
  const Tensor seed = g.input("seed", i64, {}), offset = g.input("offset", i64, {});
  g.output("f32", random_uniform(f32, {7, 51}, seed, offset));
  g.output("f64", random_uniform(f64, {7, 51}, seed, offset));
  check_on_cpu(g);
}

TEST_CASE("cpu: a kernel may have the name of an entry", "[cpu][emulated]") {
  Graph g("fuse");
  const Tensor x = g.input("x", f32, {64});
  const auto scope = g.scope("entry");
  g.output("y", exp(x) * 2.0F);
  check_on_cpu(g);
}

TEST_CASE("cpu: a kernel of CUDA text is refused by name", "[cpu]") {
  Graph g("custom");
  const Tensor x = g.input("x", f32, {64});
  const CustomKernel kernel{.name = "twice",
                            .source =
                                "FUSE_KERNEL(64) twice(global<const float> x, global<float> y) {\n"
                                "  y[threadIdx.x] = 2 * x[threadIdx.x];\n}\n"};
  g.output("y", custom_call(kernel, {x}, f32, {64}));
  try {
    static_cast<void>(compile(g, Device::cpu()));
    FAIL("it was compiled");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::unsupported);
    CHECK(error.info().message.find("twice") != std::string::npos);
    CHECK(error.info().op == "custom_call");
  }
}

TEST_CASE("cpu: a machine that this one is not is refused", "[cpu]") {
  for (const char* machine : {"x86-64-v9", "pdp-11"}) {
    try {
      static_cast<void>(Device::cpu({.machine = machine}));
      FAIL("it was opened");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::unsupported);
      CHECK(error.info().message.find(machine) != std::string::npos);
    }
  }
}

TEST_CASE("cpu: every level that this machine has", "[cpu][emulated]") {
  Graph g("levels");
  const Tensor x = g.input("x", f32, {33, 150});
  g.output("softmax", convert(softmax(x), f16));
  g.output("functions",
           tanh(x) + erf(x) + sin(x) * cos(x) + log(abs(x) + 1.0F) + sqrt(abs(x)) + pow(abs(x), x));
  g.output("columns", sum(convert(x, bf16), {0}));
  for (const char* level : {"x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    INFO(level);
    try {
      static_cast<void>(Device::cpu({.machine = level}));
    } catch (const Error&) {
      WARN(std::string("skipped ") + level + ": this machine has it not");
      continue;
    }
    const auto alone = results_on(1, g, {{}}, std::string("cpu ") + level);
    CHECK(results_on(2, g, {{}}, std::string("cpu ") + level) == alone);
  }
}
