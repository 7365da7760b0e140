// compile on the reference and the emulated device: the same results from one source, and explain().
// SPDX-License-Identifier: Apache-2.0
#include "base/access.hpp"
#include "runtime/runtime_support.hpp"

namespace fuse::test {
namespace {

Graph attention_like() {
  Graph g("mix");
  const Dim B = g.dim("B", {.min = 1, .max = 64, .hint = 4});
  const Tensor x = g.input("x", f32, {B, 8});
  const Tensor w = g.parameter("w", f32, {8, 16});
  const Tensor h = matmul(x, w);
  const auto scope = g.scope("norm");
  const Tensor e = exp(h - max(h, {1}, {.keep_dims = true}));
  g.output("p", e / sum(e, {1}, {.keep_dims = true}));
  g.output("h", h);
  return g;
}

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i % 13) * 0.125f - 0.75f);
  return values;
}

std::vector<std::vector<float>> results(const Device& device) {
  Session session(compile(attention_like(), device), {{"B", 5}});
  session.set("x", bytes_of(ramp(40)));
  session.set("w", bytes_of(ramp(128)));
  session.run();
  return {values_of<float>(session.get("p")), values_of<float>(session.get("h"))};
}

TEST_CASE("compile: one source on every device", "[runtime][device]") {
  const auto exact = results(Device::reference());
  for (const Device& device : test_devices()) {
    INFO(device.name());
    const auto got = results(device);
    for (std::size_t output = 0; output < exact.size(); ++output) {
      REQUIRE(got[output].size() == exact[output].size());
      for (std::size_t i = 0; i < exact[output].size(); ++i) {
        REQUIRE(got[output][i] == Approx(exact[output][i]).epsilon(1e-5).margin(1e-6));
      }
    }
  }
}

TEST_CASE("compile: the reference device rounds each output once", "[runtime]") {
  Graph g("round");
  const Tensor x = g.input("x", f32, {1});
  g.output("y", (x + 1e8f) - 1e8f);  // in f32 the 3 would be lost
  Session session(compile(g, Device::reference()));
  session.set("x", bytes_of(std::vector<float>{3}));
  session.run();
  REQUIRE(values_of<float>(session.get("y")) == std::vector<float>{3});
  REQUIRE(session.prepared().workspace_bytes() == 0);
}

TEST_CASE("compile: explain on the reference device", "[runtime]") {
  const Executable executable = compile(by_hand_graph(), Device::reference());
  REQUIRE(executable.source().empty());
  REQUIRE(executable.device().kind() == DeviceKind::reference);
  REQUIRE(stages_of(executable).graph.nodes.size() == ir_of(by_hand_graph()).nodes.size());
  REQUIRE(executable.explain() ==
          "graph byhand on reference\n"
          "  slot 0 input x f32[B, 4]\n"
          "  slot 1 parameter w f32[4]\n"
          "  slot 2 output y f32[B, 4]\n"
          "  slot 3 output z f32[B, 4]\n"
          "evaluates 7 ops one by one in double precision; each output is rounded once\n");
}

TEST_CASE("compile: explain names steps, launches, ops and bytes", "[runtime][emulated]") {
  const Executable executable = runtime::make_executable(by_hand(), Device::emulated());
  REQUIRE(executable.source() == by_hand().source.text());
  const std::string text = executable.explain();
  INFO(text);
  REQUIRE(
      text.ends_with("steps: 3 (2 kernels, 0 gemms, 1 other)\n"
                     "  0 kernel scale grid (B + 7) / 8 x 32 threads\n"
                     "    mul in affine; reads x (16 * B bytes) writes t0 (16 * B bytes)\n"
                     "  1 kernel shift grid (B + 7) / 8 x 32 threads\n"
                     "    add in affine; reads t0 (16 * B bytes), w (16 bytes) writes y (16 * B bytes)\n"
                     "  2 copy copy.z\n"
                     "    reads y (16 * B bytes) writes z (16 * B bytes)\n"));
}

TEST_CASE("compile: explain of a whole pipeline", "[runtime][device]") {
  const std::string text = compile(attention_like(), test_device()).explain();
  INFO(text);
  REQUIRE(text.find(" gemm ") != std::string::npos);
  REQUIRE(text.find("reduce_max, ") != std::string::npos);
  REQUIRE(text.find("ends at ") != std::string::npos);
}

}  // namespace
}  // namespace fuse::test
