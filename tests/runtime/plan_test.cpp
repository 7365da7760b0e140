// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.hpp"

#include "runtime/runtime_support.hpp"

namespace fuse::test {
namespace {

using schedule::Plan;
using schedule::PlanValue;

std::string verified(const Plan& plan) {
  return error_of([&] { schedule::verify(plan); });
}

Plan valid() { return by_hand().plan; }

TEST_CASE("plan: text", "[runtime]") {
  REQUIRE_NOTHROW(schedule::verify(valid()));
  REQUIRE(schedule::print(valid()) ==
          "plan {\n"
          "  v0 input x: f32[B, 4]\n"
          "  v1 parameter w: f32[4]\n"
          "  v2 output y: f32[B, 4]\n"
          "  v3 output z: f32[B, 4]\n"
          "  v4 temporary t0: f32[B, 4]\n"
          "  step 0 scale: kernel #0 grid (B + 7) / 8 buffers [v0, v4] extents [B] reads [v0] writes [v4] "
          "nodes [%4]\n"
          "  step 1 shift: kernel #1 grid (B + 7) / 8 buffers [v4, v1, v2] extents [B] reads [v4, v1] "
          "writes "
          "[v2] "
          "nodes [%6]\n"
          "  step 2 copy.z: copy v3 = v2 reads [v2] writes [v3] nodes []\n"
          "}\n");
}

TEST_CASE("plan: text of a gemm and a memset", "[runtime]") {
  Plan plan;
  plan.values = {{PlanValue::Kind::input, "a", f16, {8, 4}},
                 {PlanValue::Kind::output, "c", f32, {8, 8}},
                 {PlanValue::Kind::temporary, "t0", f32, {4}}};
  plan.steps = {{.work = schedule::MemsetStep{2, 255}, .reads = {}, .writes = {2}, .name = "fill"},
                {.work = schedule::GemmStep{.a = 0,
                                            .b = 0,
                                            .c = 1,
                                            .batch = 1,
                                            .m = 8,
                                            .n = 8,
                                            .k = 4,
                                            .transpose_b = true,
                                            .operand = f16,
                                            .result = f32},
                 .reads = {0},
                 .writes = {1},
                 .cooperative = true,
                 .name = "gemm.1"}};
  REQUIRE_NOTHROW(schedule::verify(plan));
  const std::string text = schedule::print(plan);
  REQUIRE(text.find("step 0 fill: memset v2 = 255 reads [] writes [v2] nodes []\n") != std::string::npos);
  REQUIRE(
      text.find("step 1 gemm.1: gemm v1 = v0 * v0^T batch 1 m 8 n 8 k 4 f16 -> f32 cooperative reads [v0] "
                "writes [v1] nodes []\n") != std::string::npos);
}

TEST_CASE("plan: verify names what is wrong", "[runtime]") {
  Plan plan = valid();
  const std::string start = "internal: internal error: plan: ";
  SECTION("read before written") {
    std::swap(plan.steps[0], plan.steps[1]);
    REQUIRE(verified(plan) == start + "step 0 'shift' reads temporary 't0' (v4) before it is written");
  }
  SECTION("an input is written") {
    plan.steps[2] = {.work = schedule::CopyStep{2, 0}, .reads = {2}, .writes = {0}, .name = "bad"};
    REQUIRE(verified(plan) == start + "step 2 'bad' writes input 'x' (v0)");
  }
  SECTION("an output is never written") {
    plan.steps.pop_back();
    REQUIRE(verified(plan) == start + "output 'z' (v3) is written 0 times, not once");
  }
  SECTION("an output is written twice") {
    plan.steps.push_back(plan.steps.back());
    REQUIRE(verified(plan) == start + "output 'z' (v3) is written 2 times, not once");
  }
  SECTION("a value that does not exist") {
    std::get<schedule::KernelStep>(plan.steps[0].work).buffers[0] = 99;
    REQUIRE(verified(plan) == start + "step 0 'scale' uses v99, which does not exist");
  }
  SECTION("used without stating it") {
    plan.steps[0].reads.clear();
    REQUIRE(verified(plan) == start + "step 0 'scale' uses input 'x' (v0) without stating it");
  }
  SECTION("stated without using it") {
    plan.steps[0].reads.push_back(1);
    REQUIRE(verified(plan) == start + "step 0 'scale' states v1, which it does not use");
  }
  SECTION("stated out of range") {
    plan.steps[0].reads.push_back(77);
    REQUIRE(verified(plan) == start + "step 'scale' uses v77, which does not exist");
  }
  SECTION("a copy that does not state its target") {
    std::swap(plan.steps[2].reads, plan.steps[2].writes);
    REQUIRE(verified(plan) == start + "step 2 'copy.z' does not state what it writes");
  }
  SECTION("a copy onto itself") {
    plan.steps[2] = {.work = schedule::CopyStep{3, 3}, .reads = {3}, .writes = {3}, .name = "self"};
    REQUIRE(verified(plan) == start + "step 2 'self' reads what it writes");
  }
  SECTION("kinds out of order") {
    std::swap(plan.values[3], plan.values[4]);
    REQUIRE(verified(plan) == start + "output 'z' (v4) stands after a later kind of value");
  }
  SECTION("memory of what is no input") {
    plan.values[2].donor = 1;
    REQUIRE(verified(plan) == start + "output 'y' (v2) cannot have the memory of parameter 'w' (v1)");
  }
  SECTION("memory of an input for what is given") {
    plan.values[1].donor = 0;
    REQUIRE(verified(plan) == start + "parameter 'w' (v1) cannot have the memory of input 'x' (v0)");
  }
  SECTION("a fallback launch of a kernel that waits for none") {
    auto& work = std::get<schedule::KernelStep>(plan.steps[0].work);
    work.fallback = {work};
    REQUIRE(verified(plan) == start + "step 0 'scale' has fallback launches and is not cooperative");
    plan.steps[0].cooperative = true;
    REQUIRE(verified(plan) == "no error");
    work.fallback[0].fallback = {work.fallback[0]};
    REQUIRE(verified(plan) == start + "step 0 'scale' has a fallback launch that has fallback launches");
    work.fallback[0].fallback.clear();
    work.fallback[0].buffers.push_back(1);
    REQUIRE(verified(plan) ==
            start + "step 0 'scale' has a fallback launch that uses v1, which the kernel itself does not");
  }
  SECTION("an epilogue without what it adds, or with what it does not") {
    schedule::GemmStep gemm{.a = 0, .b = 0, .c = 4, .m = 1, .n = 1, .k = 1};
    const auto with = [&](schedule::EpilogueKind kind, std::optional<schedule::ValueId> extra) {
      gemm.epilogue = kind;
      gemm.extra = extra;
      plan.steps[0] = {.work = gemm, .reads = {0}, .writes = {4}, .name = "gemm"};
      if (extra) plan.steps[0].reads.push_back(*extra);
      return verified(plan);
    };
    using schedule::EpilogueKind;
    CHECK(with(EpilogueKind::none, {}) == "no error");
    CHECK(with(EpilogueKind::bias, 1) == "no error");
    CHECK(with(EpilogueKind::add, 1) == "no error");
    CHECK(with(EpilogueKind::bias, {}) == start + "step 0 'gemm' has no value for the epilogue bias");
    CHECK(with(EpilogueKind::add, {}) == start + "step 0 'gemm' has no value for the epilogue add");
    CHECK(with(EpilogueKind::none, 1) == start + "step 0 'gemm' has a value for the epilogue none");
    gemm.layout = schedule::GemmLayout{};
    CHECK(with(EpilogueKind::bias, 1) == start + "step 0 'gemm' scatters the result of an epilogue");
  }
  SECTION("one name twice") {
    plan.values[1].name = "x";
    REQUIRE(verified(plan) == start + "parameter 'x' (v1) has the name of another value");
  }
}

}  // namespace
}  // namespace fuse::test
