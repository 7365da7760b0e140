// Tables of versions: a function of the dims, without holes. SPDX-License-Identifier: Apache-2.0
#include "plan/versions/version_table.hpp"

#include <fuse/error.hpp>
#include <map>

#include "plan/plan.hpp"
#include "support/catch.hpp"

using namespace fuse;            // NOLINT
using namespace fuse::schedule;  // NOLINT

namespace {

const Dim M = Dim::symbol("M", {.min = 0, .max = 1 << 20}), N = Dim::symbol("N", {.min = 0, .max = 1 << 20});

/// Version 0 for short rows, 1 for few long rows, 2 for many.
VersionTable softmax_table() {
  return {.tests = {{at_most(N, 1024), {true, 0}, {false, 1}}, {at_most(M, 64), {true, 1}, {true, 2}}},
          .versions = 3};
}

std::uint32_t taken(const VersionTable& table, std::int64_t m, std::int64_t n) {
  return version_for(table, [&](const Dim& dim) {
    return dim.evaluate([&](std::string_view name) { return name == "M" ? m : n; });
  });
}

std::string defect(const VersionTable& table) {
  try {
    verify(table);
  } catch (const Error& error) {
    return error.info().message;
  }
  return "";
}

}  // namespace

TEST_CASE("versions: a table takes one by the dims", "[versions]") {
  const VersionTable table = softmax_table();
  verify(table);
  CHECK(taken(table, 1, 1024) == 0);
  CHECK(taken(table, 1 << 20, 0) == 0);
  CHECK(taken(table, 64, 1025) == 1);
  CHECK(taken(table, 65, 1025) == 2);
  CHECK(taken(VersionTable(), 3, 3) == 0);
  CHECK(to_string(table, "  ") ==
        "  test 0: N <= 1024  yes: version 0  no: test 1\n"
        "  test 1: M <= 64  yes: version 1  no: version 2\n");
}

TEST_CASE("versions: what holds where a version is taken", "[versions]") {
  const auto conditions = conditions_of(softmax_table());
  REQUIRE(conditions.size() == 3);
  CHECK(conditions[0] == std::vector{at_most(N, 1024)});
  CHECK(conditions[1] == std::vector{at_least(N, 1025), at_most(M, 64)});
  CHECK(conditions[2] == std::vector{at_least(N, 1025), at_least(M, 65)});
  // Two walks lead to version 0: what they have in common holds.
  const VersionTable shared{.tests = {{at_most(N, 1024), {false, 1}, {true, 1}},
                                      {at_most(M, 64), {true, 0}, {false, 2}},
                                      {divisible(N, 8), {true, 0}, {true, 2}}},
                            .versions = 3};
  verify(shared);
  CHECK(conditions_of(shared)[0] == std::vector{at_most(N, 1024)});
  // That 8 does not divide N is nothing that a relation says.
  CHECK(conditions_of(shared)[2] == std::vector{at_most(N, 1024), at_least(M, 65)});
}

TEST_CASE("versions: a table with a hole is refused", "[versions]") {
  VersionTable hole = softmax_table();
  hole.tests[1].no.to = 3;
  CHECK(defect(hole) == "a table of versions: test 1 leads to version 3, which does not exist");
  VersionTable idle = softmax_table();
  idle.tests[1].no.to = 1;
  CHECK(defect(idle) == "a table of versions: no branch leads to version 2");
  VersionTable loop = softmax_table();
  loop.tests[1].no = {false, 0};
  CHECK(defect(loop) == "a table of versions: test 1 leads back to test 0");
  VersionTable twice = softmax_table();
  twice.tests[0].yes = {false, 1};
  CHECK(defect(twice) == "a table of versions: 2 branches lead to test 1");
  CHECK(defect({.versions = 0}) == "a table of versions: it has no version");
  CHECK(defect({.versions = 2}) == "a table of versions: no branch leads to version 1");
}

namespace {

/// y = f(x) by two versions; the second takes two launches, and scratch.
Plan plan_of_two() {
  Plan plan;
  plan.tables = {{.tests = {{at_most(N, 1024), {true, 0}, {true, 1}}}, .versions = 2}};
  plan.values = {{.kind = PlanValue::Kind::input, .name = "x", .dims = {N}},
                 {.kind = PlanValue::Kind::output, .name = "y", .dims = {N}},
                 {.kind = PlanValue::Kind::temporary, .name = "t2", .dims = {64}}};
  plan.steps = {{.work = KernelStep{.kernel = 0, .buffers = {0, 1}, .grid = N},
                 .reads = {0},
                 .writes = {1},
                 .name = "whole",
                 .version = StepVersion{0, 0}},
                {.work = KernelStep{.kernel = 1, .buffers = {0, 2}, .grid = 64},
                 .reads = {0},
                 .writes = {2},
                 .name = "partial",
                 .version = StepVersion{0, 1}},
                {.work = KernelStep{.kernel = 2, .buffers = {2, 1}, .grid = N},
                 .reads = {2},
                 .writes = {1},
                 .name = "combine",
                 .version = StepVersion{0, 1}}};
  return plan;
}

std::string defect(const Plan& plan) {
  try {
    verify(plan);
  } catch (const Error& error) {
    return error.info().message;
  }
  return "";
}

}  // namespace

TEST_CASE("versions: plans with steps of versions", "[versions]") {
  const Plan plan = plan_of_two();
  CHECK(defect(plan) == "");
  const Plan second = with_versions(plan, std::vector<std::uint32_t>{1});
  REQUIRE(second.steps.size() == 2);
  CHECK(second.steps[0].name == "partial");
  CHECK(second.tables.empty());
  CHECK(defect(second) == "");
  CHECK(print(plan).find(
            "step 1 partial: kernel #1 grid 64 buffers [v0, v2] extents [] version 1 of table 0") !=
        std::string::npos);
}

TEST_CASE("version table: conditions keep the closest bound of an extent", "[versions]") {
  const VersionTable table{.tests = {{at_most(N, 1024), {false, 1}, {false, 2}},
                                     {at_most(N, 64), {true, 0}, {true, 1}},
                                     {at_most(N, 65536), {true, 2}, {true, 3}}},
                           .versions = 4};
  const auto conditions = conditions_of(table);
  CHECK(conditions[0] == std::vector<DimRelation>{at_most(N, 64)});
  CHECK(conditions[1] == std::vector<DimRelation>{at_most(N, 1024), at_least(N, 65)});
  CHECK(conditions[2] == std::vector<DimRelation>{at_least(N, 1025), at_most(N, 65536)});
  CHECK(conditions[3] == std::vector<DimRelation>{at_least(N, 65537)});
  // A bound that comes later may be the farther one.
  const VersionTable farther{
      .tests = {{at_most(N, 64), {false, 1}, {true, 2}}, {at_most(N, 1024), {true, 0}, {true, 1}}},
      .versions = 3};
  CHECK(conditions_of(farther)[0] == std::vector<DimRelation>{at_most(N, 64)});
}

TEST_CASE("version table: names in place of versions, without tests that decide nothing", "[versions]") {
  const Dim n = Dim::symbol("N", {.min = 1, .max = 1 << 20});
  const auto below = [&](std::int64_t most) { return at_most(n, most); };
  const schedule::VersionTable table{.tests = {{below(64), {false, 1}, {false, 2}},
                                               {below(8), {true, 0}, {true, 1}},
                                               {below(1024), {true, 2}, {true, 3}}},
                                     .versions = 4};
  const auto version = [](const schedule::VersionTable& of, std::int64_t value) {
    return schedule::version_for(of,
                                 [&](const Dim& dim) { return dim.evaluate([&](auto) { return value; }); });
  };
  const std::vector<std::vector<std::uint32_t>> names = {{0, 1, 2, 3}, {0, 0, 1, 2}, {1, 0, 0, 0},
                                                         {0, 1, 1, 0}, {0, 0, 0, 0}, {1, 1, 0, 0}};
  const std::size_t tests[] = {3, 2, 2, 3, 0, 1};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const schedule::VersionTable made = schedule::renamed(table, names[i]);
    CAPTURE(i, schedule::to_string(made));
    CHECK_NOTHROW(schedule::verify(made));
    CHECK(made.tests.size() == tests[i]);
    for (const std::int64_t value : {1, 8, 9, 64, 65, 1024, 1025})
      CHECK(version(made, value) == names[i][version(table, value)]);
  }
}

TEST_CASE("versions: plans whose versions do not fit each other are refused", "[versions]") {
  Plan other = plan_of_two();
  other.values.push_back({.kind = PlanValue::Kind::output, .name = "z", .dims = {N}});
  std::swap(other.values[2], other.values[3]);
  std::get<KernelStep>(other.steps[1].work).buffers = {0, 3};
  other.steps[1].writes = {3};
  std::get<KernelStep>(other.steps[2].work).buffers = {3, 2};
  other.steps[2].reads = {3};
  other.steps[2].writes = {2};
  CHECK(defect(other) == "plan: versions 0 and 1 of table 0 write different values");
  Plan unknown = plan_of_two();
  unknown.steps[2].version = StepVersion{0, 2};
  CHECK(defect(unknown) == "plan: step 'combine' belongs to a version that does not exist");
  unknown.steps[2].version = StepVersion{1, 0};
  CHECK(defect(unknown) == "plan: step 'combine' belongs to a version that does not exist");
  Plan apart = plan_of_two();
  apart.steps.insert(apart.steps.begin() + 2, Step{.work = MemsetStep{2, 0}, .writes = {2}, .name = "zero"});
  CHECK(defect(apart) == "plan: step 'combine' stands apart from those of its versions");
  Plan broken = plan_of_two();
  broken.steps.erase(broken.steps.begin() + 1);  // nothing writes the scratch
  CHECK(defect(broken).find("before it is written") != std::string::npos);
}
