// A GEMM's epilogue has the bits of the step that it replaces, on the host and in a plan.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>

#include "base/access.hpp"
#include "runtime/device/host_gemm.hpp"
#include "runtime/runtime_support.hpp"
#include "tensors/random_fill.hpp"

namespace fuse::test {
namespace {

using runtime::GemmDesc;
using schedule::EpilogueKind;

TEST_CASE("gemm epilogue: the bits of two steps", "[gemm]") {
  for (const bool plain : {true, false}) {
    for (const std::int64_t batch : {1, 3}) {
      GemmDesc d{.batch = batch, .m = 5, .n = 9, .k = 33, .stride_a = 165, .stride_b = 297, .stride_c = 45};
      const auto random = [](const char* name, std::int64_t count) {
        runtime::HostTensor tensor = runtime::HostTensor::make(f32, {count});
        runtime::random_fill(tensor, 3, name, -2, 2);
        return values_of<float>(tensor.data);
      };
      std::vector<float> a = random("a", 165 * batch), b = random("b", 297 * batch);
      std::vector<float> extra = random("extra", 45 * batch), sums(static_cast<std::size_t>(45 * batch));
      a[0] = std::numeric_limits<float>::infinity();
      b[1] = 0;  // infinity * 0 makes NaNs
      extra[3] = -0.0f;
      const auto made = [&](const GemmDesc& desc) {
        return plain ? runtime::make_plain_gemm(desc) : runtime::make_host_gemm(desc);
      };
      made(d)->run(a.data(), b.data(), sums.data());
      for (const EpilogueKind kind : {EpilogueKind::bias, EpilogueKind::add, EpilogueKind::scale}) {
        INFO("plain " << plain << " batch " << batch << " " << to_string(kind));
        d.epilogue = kind;
        d.scale = 0.3;
        std::vector<float> got(sums.size());
        made(d)->run(a.data(), b.data(), got.data(), extra.data());
        std::size_t wrong = 0, nans = 0;
        for (std::size_t i = 0; i < sums.size(); ++i) {
          const float expected = kind == EpilogueKind::bias  ? sums[i] + extra[i % 9]
                                 : kind == EpilogueKind::add ? sums[i] + extra[i]
                                                             : sums[i] * 0.3f;
          nans += std::isnan(expected);
          wrong += std::isnan(expected) ? !std::isnan(got[i]) : std::memcmp(&expected, &got[i], 4) != 0;
        }
        CHECK(wrong == 0);
        CHECK(nans > 0);
        CHECK(nans < sums.size());
      }
    }
  }
}

TEST_CASE("gemm epilogue: not where a rounding would come first, nor of no products", "[gemm]") {
  const auto error = [](const GemmDesc& d) { return error_of([&] { runtime::make_host_gemm(d); }); };
  CHECK(error({.m = 2, .n = 2, .k = 2, .operand = f16, .result = f16, .epilogue = EpilogueKind::bias})
            .find("an epilogue that the rounding of the result would come before") != std::string::npos);
  CHECK(error({.m = 2, .n = 2, .k = 2, .operand = f16, .result = f32, .epilogue = EpilogueKind::bias}) ==
        "no error");
  CHECK(error({.m = 2, .n = 2, .k = 2, .operand = i32, .result = i32, .epilogue = EpilogueKind::add})
            .find("an epilogue that") != std::string::npos);
  CHECK(error({.m = 2, .n = 2, .k = 0, .epilogue = EpilogueKind::scale}).find("of no products") !=
        std::string::npos);
}

/// 7 products of numbers below 2, and what is added: rounded 9 times, in any order.
bool near(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  const std::vector<float> x = values_of<float>(a), y = values_of<float>(b);
  constexpr float bound = 2 * 9 * 0x1p-24f * (7 * 4 + 2);
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [](float left, float right) { return std::abs(left - right) <= bound; });
}

TEST_CASE("gemm epilogue: a plan with it gives the bits of one without, where our own library multiplies",
          "[gemm][device][cuda-text]") {
  for (const EpilogueKind kind : {EpilogueKind::bias, EpilogueKind::add, EpilogueKind::scale}) {
    Graph g("epilogue");
    const Dim B = g.dim("B", {.min = 1, .max = 99, .hint = 8});
    const Tensor ab = matmul(g.input("x", f32, {B, 7}), g.parameter("w", f32, {7, 5}));
    g.output("y", kind == EpilogueKind::bias  ? ab + g.parameter("e", f32, {5})
                  : kind == EpilogueKind::add ? ab + g.input("e", f32, {B, 5})
                                              : ab * 0.7f);
    for (const Device& device : test_devices()) {
      INFO(to_string(kind) << " on " << device.name());
      std::vector<std::byte> results[2];
      for (const bool one : {false, true}) {
        PipelineOptions options;
        if (!one) options.partition.baseline = schedule::Baseline::xla;  // its rules have no epilogue
        Compiled compiled = run_pipeline(ir_of(g), target_profile("tiny3"), options);
        const Executable executable = runtime::make_executable(std::move(compiled), device);
        Session session(executable, {{"B", 3}});
        for (std::size_t i = 0; i < executable.slots().size(); ++i) {
          const Slot& slot = executable.slots()[i];
          if (slot.kind == Slot::Kind::output) continue;
          runtime::HostTensor tensor = runtime::HostTensor::make(f32, session.prepared().shape(i));
          runtime::random_fill(tensor, 5, slot.name, -2, 2);
          session.set(slot.name, tensor.data);
        }
        session.run();
        CHECK(session.prepared().launches() == (one ? 0 : 1));
        results[one] = session.get("y");
      }
      // cuBLASLt may take another algorithm where a product is scaled.
      CHECK((device.kind() == DeviceKind::cuda ? near(results[0], results[1]) : results[0] == results[1]));
    }
  }
}

TEST_CASE("gemm epilogue: no bias of f64, which cuBLASLt may not have", "[gemm]") {
  for (const DType type : {f32, f64}) {
    for (const EpilogueKind kind : {EpilogueKind::bias, EpilogueKind::add, EpilogueKind::scale}) {
      INFO(to_string(type) << " " << to_string(kind));
      Graph g("wide");
      const Tensor ab = matmul(g.input("x", type, {3, 7}), g.parameter("w", type, {7, 5}));
      g.output("y", kind == EpilogueKind::bias  ? ab + g.parameter("e", type, {5})
                    : kind == EpilogueKind::add ? ab + g.input("e", type, {3, 5})
                                                : ab * 0.7);
      const bool taken = type == f32 || kind != EpilogueKind::bias;
      CHECK(run_pipeline(ir_of(g), target_profile("tiny3")).plan.steps.size() == (taken ? 1 : 2));
    }
  }
}

}  // namespace
}  // namespace fuse::test
