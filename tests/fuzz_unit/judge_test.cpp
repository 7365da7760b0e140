// A slice of the campaign that judges the judgement of `fusec run --check` and `fusec bisect`.
// SPDX-License-Identifier: Apache-2.0
#include "fuzz/judge/judge.hpp"

#include "support/catch.hpp"
#include "support/sanitized.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::fuzz;  // NOLINT

TEST_CASE("generated f64 programs are not accused, and wrong ops planted in them are named",
          "[fuzz][fusec][emulated]") {
  const JudgeSettings settings{
      .seed = 7, .right = test::fewer(40), .searched = test::fewer(10), .named = test::fewer(15)};
  const JudgeTotals totals = judge(settings, [](const JudgeTotals&) {});
  INFO("seed " << settings.seed);
  for (const std::string& failure : totals.failures) UNSCOPED_INFO(failure);
  CHECK(totals.failures.empty());
  CHECK(totals.right == settings.right);
  CHECK(totals.searched == settings.searched);
  CHECK(totals.named == settings.named);
}
