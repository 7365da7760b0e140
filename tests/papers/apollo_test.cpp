// APOLLO's cases: which ops its rules put together, layer by layer (docs/partition.md).
// SPDX-License-Identifier: Apache-2.0
#include "papers/papers_support.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::Reason;
using schedule::RuleSet;

TEST_CASE("APOLLO Fig. 3: log-softmax behind element-wise ops", "[papers][partition]") {
  CHECK(groups_of("apollo_fig3", layer_1) == Groups{{"a", "b", "e", "r"}, {"l"}, {"lb", "y"}});
  CHECK(groups_of("apollo_fig3", layers_1_2) == Groups{{"a", "b", "e", "r", "l", "lb", "y"}});
  CHECK(groups_of("apollo_fig3", apollo) == Groups{{"a", "b", "e", "r", "l", "lb", "y"}});
  // Why layer I ends where it does: Table 1 has no row for what follows a reduction, nor for element-wise
  // into broadcast. Rows of ours and of Table 2 come with layer II.
  CHECK(verdict_of("apollo_fig3", layer_1_apollo, "l", "lb").reason == Reason::no_rule);
  CHECK(verdict_of("apollo_fig3", layer_1_apollo, "r", "l").reason == Reason::layer_off);
  CHECK(verdict_of("apollo_fig3", layer_1, "l", "lb").reason == Reason::layer_off);
}

TEST_CASE("APOLLO Fig. 4: a reshape between different loops", "[papers][partition]") {
  CHECK(groups_of("apollo_fig4", apollo) == Groups{{"e"}, {"r"}, {"m"}});
  CHECK(kernels_of("apollo_fig4", apollo) == 2);  // r is a view of e
  CHECK(groups_of("apollo_fig4", {}) == Groups{{"e", "r", "m"}});
  CHECK(kernels_of("apollo_fig4", {}) == 1);
}

TEST_CASE("APOLLO Fig. 5: rules 7 and 8, and the canonical forms", "[papers][partition]") {
  CHECK(groups_of("apollo_fig5_softmax", layer_1_apollo) ==
        Groups{{"m"}, {"mb", "s", "e", "t"}, {"tb", "y"}});
  CHECK(groups_of("apollo_fig5_softmax", apollo).size() == 1);
  CHECK(groups_of("apollo_fig5_variance", apollo) == Groups{{"s", "mean", "mb", "d", "q", "v"}});
  CHECK(groups_of("apollo_fig5_forms", apollo) == Groups{{"s"}, {"sb", "d", "y"}});
  const schedule::Verdict verdict = verdict_of("apollo_fig5_forms", apollo, "s", "sb");
  CHECK(verdict.reason == Reason::canonical_form);
  CHECK(verdict.numbers == Numbers{{"producer", "y"}, {"consumer", "x"}});
  CHECK(groups_of("apollo_fig5_forms", {}).size() == 1);  // here it selects a scheme
}

TEST_CASE("APOLLO Listings 3 to 5: a reduction of the second and fourth loop is a y-reduction",
          "[papers][partition]") {
  const PaperGraph paper("apollo_listing3");
  const schedule::Grouping grouping = paper.grouping(apollo);
  REQUIRE(grouping.groups.size() == 1);
  const schedule::Loops& loops = grouping.groups[0].loops;
  CHECK(loops.form == schedule::Loops::Form::y);
  CHECK(loops.kept.to_string() == "M * P");
  CHECK(loops.reduced.to_string() == "N * Q");
}

TEST_CASE("Dali: the cap on inputs cuts a left-associated sum", "[papers][partition]") {
  schedule::GroupOptions options;
  options.max_inputs = 3;
  CHECK(groups_of("dali_fmax", options) == Groups{{"ab", "abc"}, {"abcd", "abcde"}, {"y"}});
  CHECK(kernels_of("dali_fmax", options) == 3);
  const schedule::Verdict verdict = verdict_of("dali_fmax", options, "abc", "abcd");
  CHECK(verdict.reason == Reason::input_cap);
  CHECK(verdict.numbers == Numbers{{"inputs", "5"}, {"max_inputs", "3"}});
  options.max_inputs = 6;
  CHECK(groups_of("dali_fmax", options).size() == 1);
  CHECK(kernels_of("dali_fmax", options) == 1);
}

TEST_CASE("AStitch Fig. 7(a): one group; other compilers cut it in four and three", "[papers][partition]") {
  CHECK(groups_of("astitch_fig7", {}).size() == 1);
  CHECK(roots_of("astitch_fig7", schedule::Baseline::xla) ==
        std::vector<std::string>{"reduce_1", "power_1", "reduce_2", "multiply_1"});
  CHECK(roots_of("astitch_fig7", schedule::Baseline::tvm) ==
        std::vector<std::string>{"reduce_1", "reduce_2", "multiply_1"});
  CHECK(roots_of("astitch_fig7", schedule::Baseline::one_op).size() == 10);
}

TEST_CASE("BladeDISC Fig. 5: a view is stitched where the product of dims is proven", "[papers][partition]") {
  CHECK(groups_of("bladedisc_fig5", {}).size() == 1);
  // The reshape stands with the division, whose row statistics come from the other side.
  const Groups split = groups_of("bladedisc_fig5_unproven", {});
  REQUIRE(split.size() == 2);
  CHECK(split[1].back() == "8");
  const schedule::Verdict verdict = verdict_of("bladedisc_fig5_unproven", {}, "2", "8");
  CHECK(verdict.reason == Reason::loop_dims);
  CHECK(verdict.numbers == Numbers{{"producer", "<S0, S1>"}, {"consumer", "<S2, S3, S4>"}});
}

TEST_CASE("BladeDISC Table 2: layer norm and softmax are one group", "[papers][partition]") {
  CHECK(groups_of("bladedisc_layernorm", {}).size() == 1);
  CHECK(kernels_of("bladedisc_layernorm", {}) == 1);
  CHECK(PaperGraph("bladedisc_layernorm").partition({.stitch = false}).segments.size() == 3);
  CHECK(groups_of("apollo_fig5_softmax", {}).size() == 1);
  CHECK(kernels_of("apollo_fig5_softmax", {}) == 1);
  CHECK(PaperGraph("apollo_fig5_softmax").partition({.stitch = false}).segments.size() == 3);
}
