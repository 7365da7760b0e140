// Guards: what prepare checks, on every device, and what needs no guard.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <map>

#include "analysis/facts_support.hpp"
#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "support/devices.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

std::string prepare_error(const Executable& executable, const DimValues& dims) {
  return facts_error_of([&] { executable.prepare(dims); });
}

std::vector<float> run(const Executable& executable, const DimValues& dims,
                       const std::map<std::string, std::vector<float>>& inputs) {
  Session session(executable, dims);
  for (const auto& [name, values] : inputs) session.set(name, std::as_bytes(std::span(values)));
  session.run();
  const std::vector<std::byte> bytes = session.get("y");
  std::vector<float> result(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

std::vector<std::string> texts(const Graph& g) {
  std::vector<std::string> result;
  for (const ir::Guard& guard : analysis::guards_of(ir_of(g))) {
    result.push_back(guard.relation.to_string() + (guard.needed_by.empty() ? "" : " for " + guard.needed_by));
  }
  return result;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("an assumption that dims break is named with values and line, on every device",
          "[facts][guards][device]") {
  const Graph g = Graph::parse(R"(graph @g(%x: f32[S0, 4]) -> (y: f32[S2, S3, 4])
      where S0 in [0, 1000], S2 in [1, 1000], S3 in [1, 1000]
      assuming S0 = S2 * S3 at m.cpp:7, 2 divides S3 at m.cpp:8, S2 <= 10 at m.cpp:9 {
    %1 = add %x, %x : f32[S0, 4]
    %2 = reshape %1 : f32[S2, S3, 4]
    return y = %2 })");
  for (const Device& device : every_device()) {
    INFO(device.name());
    const Executable executable = compile(g, device);
    CHECK(prepare_error(executable, {{"S0", 12}, {"S2", 3}, {"S3", 4}}) == "no error");
    CHECK(
        prepare_error(executable, {{"S0", 12}, {"S2", 2}, {"S3", 5}}) ==
        "violated-guard: m.cpp:7: the guard S0 = S2 * S3 does not hold: its sides are 12 and 10 at S0 = 12, "
        "S2 = 2, S3 = 5\n  hint: the graph assumes it");
    CHECK(prepare_error(executable, {{"S0", 10}, {"S2", 2}, {"S3", 5}}) ==
          "violated-guard: m.cpp:8: the guard 2 divides S3 does not hold: its sides are 2 and 5 at S3 = 5\n"
          "  hint: the graph assumes it");
    CHECK(prepare_error(executable, {{"S0", 22}, {"S2", 11}, {"S3", 2}}) ==
          "violated-guard: m.cpp:9: the guard S2 <= 10 does not hold: its sides are 11 and 10 at S2 = 11\n"
          "  hint: the graph assumes it");
    CHECK(prepare_error(executable, {{"S0", 1001}, {"S2", 1}, {"S3", 2}}) ==
          "invalid-extent: dim S0 = 1001 is outside of its range [0, 1000]"
          "\n  hint: give a value in the range, or declare a larger one with Graph::dim");
    CHECK(executable.explain().find("guard S0 = S2 * S3 at m.cpp:7\n") != std::string::npos);
    const std::vector<float> y = run(executable, {{"S0", 4}, {"S2", 2}, {"S3", 2}},
                                     {{"x", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}});
    CHECK(y == std::vector<float>{2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32});
  }
}

TEST_CASE("a symbol that only an assumption mentions needs a value", "[facts][guards]") {
  Graph g("g");
  const Dim B = g.dim("B"), K = g.dim("K");
  g.assume(equal(B, 8 * K));
  g.output("y", g.input("x", f32, {B}) * 2);
  const std::string text = prepare_error(compile(g, Device::reference()), {{"B", 16}});
  CHECK(text.find("unbound: guards_test.cpp:") == 0);
  CHECK(text.find("dim K has no value; the guard B = 8 * K needs it") != std::string::npos);
}

TEST_CASE("what only run time can tell is accepted and guarded, on every device", "[facts][guards][device]") {
  Graph g("g");
  const Dim A = g.dim("A", {.min = 0, .max = 1000}), B = g.dim("B", {.min = 0, .max = 1000}),
            C = g.dim("C", {.min = 0, .max = 1000}), D = g.dim("D", {.min = 0, .max = 1000}),
            K = g.dim("K", {.min = 0, .max = 1000}), L = g.dim("L", {.min = 0, .max = 1000});
  const Tensor a = g.input("a", f32, {A, K}), b = g.input("b", f32, {L, B});
  const Tensor product = reshape(matmul(a, b), {C, D});
  const Tensor first = slice(product, 0, 0, 2);
  g.output("y", first + g.input("c", f32, {2, 2}));
  CHECK(texts(g) == Texts{"K = L for matmul %2", "A * B = C * D for reshape %3", "2 <= C for slice %4",
                          "2 = D for broadcast_in_dim %6"});
  for (const Device& device : every_device()) {
    INFO(device.name());
    const Executable executable = compile(g, device);
    if (device.kind() != DeviceKind::reference) CHECK(unproven_needs(stages_of(executable).graph) == 0);
    const DimValues good = {{"A", 3}, {"B", 2}, {"C", 3}, {"D", 2}, {"K", 2}, {"L", 2}};
    CHECK(run(executable, good, {{"a", {1, 2, 3, 4, 5, 6}}, {"b", {1, 2, 3, 4}}, {"c", {0, 10, 20, 30}}}) ==
          std::vector<float>{7, 20, 35, 52});
    const auto broken = [&](const std::string& name, std::int64_t value) {
      DimValues dims = good;
      dims[name] = value;
      return prepare_error(executable, dims);
    };
    CHECK(broken("K", 3).find("the guard K = L does not hold: its sides are 3 and 2 at K = 3, L = 2\n"
                              "  hint: matmul %2 needs it") != std::string::npos);
    CHECK(broken("A", 4).find("the guard A * B = C * D does not hold: its sides are 8 and 6") !=
          std::string::npos);
    CHECK(prepare_error(executable, {{"A", 1}, {"B", 2}, {"C", 1}, {"D", 2}, {"K", 2}, {"L", 2}})
              .find("violated-guard: guards_test.cpp:") == 0);
    CHECK(prepare_error(executable, {{"A", 6}, {"B", 1}, {"C", 2}, {"D", 3}, {"K", 2}, {"L", 2}})
              .find("the guard 2 = D does not hold") != std::string::npos);
  }
}

TEST_CASE("equal dims under two names make one kernel each run", "[facts][guards][device]") {
  Graph g("g");
  const Dim B = g.dim("B"), T = g.dim("T");
  const Tensor x = g.input("x", f32, {B, 2}), z = g.input("z", f32, {T, 2});
  g.output("y", exp(x - x) + z * 3);
  for (const Device& device : every_device()) {
    const Executable executable = compile(g, device);
    CHECK(run(executable, {{"B", 2}, {"T", 2}}, {{"x", {1, 2, 3, 4}}, {"z", {1, 2, 3, 4}}}) ==
          std::vector<float>{4, 7, 10, 13});
    if (device.kind() != DeviceKind::reference)
      CHECK(executable.prepare({{"B", 2}, {"T", 2}}).launches() == 1);
    CHECK(prepare_error(executable, {{"B", 2}, {"T", 3}}).find("the guard ") != std::string::npos);
  }
}

TEST_CASE("what is proven needs no guard", "[facts][guards]") {
  Graph g("g");
  const Dim B = g.dim("B", {.min = 4, .max = 64}), S = g.dim("S"), T = g.dim("T");
  g.assume(at_most(B, 100));
  g.assume(equal(S, 8 * T));
  const Tensor s = g.input("s", f32, {S}), t = g.input("t", f32, {T, 8});
  g.output("b", slice(g.input("x", f32, {B}), 0, 1, 4));
  g.output("y", reshape(s, {T, 8}) + t);
  CHECK(texts(g) == Texts{"S = 8 * T"});
  Graph divided("d");
  const Dim N = divided.dim("N");
  divided.assume(divisible(N, 4));
  divided.output("y", reshape(divided.input("x", f32, {N}), {-1, 4}));
  CHECK(texts(divided) == Texts{"4 divides N"});
  Graph undivided("u");
  const Dim M = undivided.dim("M");
  undivided.output("y", reshape(undivided.input("x", f32, {M}), {-1, 4}));
  CHECK(texts(undivided) == Texts{"M = 4 * (M / 4) for reshape %1"});
}

TEST_CASE("forms of one extent are equal, whatever they are", "[facts][guards][device]") {
  Graph g("windows");
  const Dim t = g.dim("T", {.min = 0, .max = 1000}), f = g.dim("F", {.min = 1, .max = 9});
  const Tensor x = g.input("x", f32, {t});
  const Tensor windows = reshape(slice(x, 0, 0, t - t % 8), {t / 8, 8});
  const Tensor others = slice(x, 0, 0, t - t % f) + slice(x, 0, 0, f * (t / f));
  g.output("y", sum(windows, {1}));
  g.output("z", others);
  g.assume(equal(t - t % 8, t / 8 * 8));
  for (const Device& device : every_device()) {
    INFO(device.name());
    Session session(compile(g, device), {{"T", 19}, {"F", 7}});
    std::vector<float> values(19);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    session.set("x", std::as_bytes(std::span(values)));
    session.run();
    CHECK(session.get<float>("y") == std::vector<float>{28, 92});
    CHECK(session.get<float>("z") == std::vector<float>{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26});
  }
}

TEST_CASE("extents that differ by what may be 0 are guarded, unless that is 0 for empty tensors alone",
          "[facts][guards]") {
  Graph g("more");
  const Dim a = g.dim("A", {.min = 0, .max = 100}), more = g.dim("E", {.min = 0, .max = 1});
  const Tensor x = g.input("x", f32, {a}), longer = g.input("longer", f32, {a + more});
  g.output("y", x + longer);
  CHECK(texts(g) == Texts{"A + E = A for broadcast_in_dim %2"});
  const Tensor six = g.input("six", f32, {6 * a}), five = g.input("five", f32, {5 * a});
  CHECK(facts_error_of([&] { (void)(six + five); }).find("extent 5 * A cannot become") != std::string::npos);
  CHECK(facts_error_of([&] { (void)(five + six); }).find("cannot become") != std::string::npos);
}

TEST_CASE("a guard beyond 63 bits is a named error", "[facts][guards]") {
  Graph g("g");
  const Dim A = g.dim("A", {.min = 0, .max = INT64_MAX}), B = g.dim("B", {.min = 0, .max = INT64_MAX});
  g.assume(at_most(A * B, 1 << 20));
  g.output("y", g.input("x", f32, {4}) * 2);
  const Executable executable = compile(g, Device::reference());
  CHECK(prepare_error(executable, {{"A", 1024}, {"B", 1024}}) == "no error");
  CHECK(
      prepare_error(executable, {{"A", INT64_MAX}, {"B", 4}})
          .find(
              "invalid-extent: A * B: arithmetic on extents overflows 63 bits at A = 9223372036854775807") ==
      0);
}
