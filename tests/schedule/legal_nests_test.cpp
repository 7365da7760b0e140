// Nests that a phase can have: the enumeration has all that the rules take, and all that choosers make.
// SPDX-License-Identifier: Apache-2.0
#include "schedule/mapping/legal_nests.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "fuzz/grow/random_choices.hpp"
#include "fuzz/nest_campaign.hpp"
#include "schedule/choosers/astitch_choices.hpp"
#include "schedule/mapping/nest_rules.hpp"
#include "schedule/segments/staged.hpp"
#include "schedule_support.hpp"
#include "support/nest_segments.hpp"
#include "support/sanitized.hpp"

using namespace fuse;            // NOLINT
using namespace fuse::test;      // NOLINT
using namespace fuse::schedule;  // NOLINT

namespace {

struct OnePhase {
  ir::Graph graph;
  Segment segment;
  const Phase& phase() const { return segment.phases.at(0); }
};

OnePhase one_phase(const Graph& g, const char* profile = "h200") {
  const Compiled made = run_pipeline(ir_of(g), target_profile(profile), {});
  REQUIRE(made.partition.segments.size() == 1);
  REQUIRE(made.partition.segments[0].phases.size() == 1);
  return {made.graph, made.partition.segments[0]};
}

std::set<std::string> structures(const OnePhase& cut, const Target& target, const NestNumbers& numbers) {
  std::set<std::string> found;
  each_legal_nest(cut.graph, cut.phase(), target, numbers,
                  [&](const Choices& choices) { found.insert(structure_of(choices)); });
  return found;
}

std::string defect(const OnePhase& cut, std::string_view splits, const char* profile = "h200") {
  return misfit(cut.graph, cut.segment, {{{.splits = parse_splits(splits).value()}}},
                target_profile(profile));
}

/// Without caches for values that nothing needs again in the launch: these change nothing.
Choices without_idle_caches(const OnePhase& cut, Choices choices) {
  const bool from_launch_to_launch = splits_rows(choices) && choices.cluster() == 1 && choices.blocks == 0;
  if (!from_launch_to_launch && !cached_values(cut.graph, staged(cut.graph, cut.phase(), choices)).empty())
    return choices;
  choices.register_cache = choices.shared_cache = 0;
  choices.packed = false;
  return choices;
}

const NestPhase& phase_named(const std::vector<NestPhase>& phases, std::string_view name) {
  return *std::find_if(phases.begin(), phases.end(),
                       [&](const NestPhase& phase) { return phase.name == name; });
}

}  // namespace

TEST_CASE("legal nests: a row or column reduction has 150 structures or more", "[schedule][not-sanitized]") {
  std::string text;
  for (const NestPhase& phase : nest_segments()) {
    const std::size_t count =
        structures(one_phase(phase.graph), target_profile("h200"), fuzz::odd_numbers()).size();
    text += phase.name + ": " + std::to_string(count) + '\n';
    if (phase.reduces) CHECK(count >= 150);
  }
  check_golden("schedule/legal_nests.txt", text);
}

TEST_CASE("legal nests: what choosers make is among them", "[schedule][not-sanitized]") {
  for (const char* profile : {"h200", "tiny3", "tiny2"}) {
    const Target target = target_profile(profile);
    for (const auto& [rows, columns] : {std::pair{37, 72}, {4096, 1024}, {3, 30000}, {6, 16384}}) {
      for (const NestPhase& phase : nest_segments(rows, columns)) {
        if (columns >= 16384 && phase.name == "layer_norm_backward") continue;  // rows and columns apart
        const OnePhase cut = one_phase(phase.graph, profile);
        const std::set<std::string> known = structures(cut, target, fuzz::odd_numbers());
        std::vector<Choices> made = {model_choices(cut.graph, cut.phase(), target)};
        if (const auto printed = astitch_choices(cut.graph, cut.segment, target))
          made.push_back(printed->phases[0]);
        for (const Choices& choices : made) {
          const Choices nest = without_idle_caches(cut, choices);
          INFO(phase.name << " " << rows << " x " << columns << " on " << profile << ": "
                          << choices.to_string());
          CHECK(misfit(cut.graph, cut.segment, {{nest}}, target) == "");
          CHECK(known.contains(structure_of(nest)));
        }
      }
    }
  }
}

TEST_CASE("legal nests: what generated programs draw is among them", "[schedule][not-sanitized]") {
  for (const char* profile : {"h200", "tiny3", "tiny2"}) {
    const Target target = target_profile(profile);
    for (const NestPhase& phase : nest_segments()) {
      const OnePhase cut = one_phase(phase.graph, profile);
      const std::set<std::string> known = structures(cut, target, fuzz::odd_numbers());
      for (std::uint64_t seed = 0; seed < 400; ++seed) {
        fuzz::Random random(seed);
        std::vector<KernelChoices> drawn = {fuzz::random_choices(cut.graph, cut.segment, target, random)};
        if (auto loops = fuzz::random_nest(cut.graph, cut.segment, target, random)) drawn.push_back(*loops);
        for (const KernelChoices& choices : drawn) {
          INFO(phase.name << " on " << profile << ", seed " << seed << ": " << choices.to_string());
          CHECK(misfit(cut.graph, cut.segment, choices, target) == "");
          CHECK(known.contains(structure_of(without_idle_caches(cut, choices.phases.at(0)))));
        }
      }
    }
  }
}

TEST_CASE("legal nests: no short list of splits that the rules take is missing", "[schedule]") {
  const std::vector<NestPhase> phases = nest_segments();
  const Target target = target_profile("h200");
  const std::size_t longest = sanitized() ? 4 : 7;
  std::vector<Split> alphabet;
  for (const char dim : {'r', 'c'}) {
    for (const auto& [level, extents] :
         std::vector<std::pair<Level, std::vector<std::int64_t>>>{{Level::grid, {0, 5}},
                                                                  {Level::cluster, {3}},
                                                                  {Level::warp, {2}},
                                                                  {Level::lane, {4, 8, 32}},
                                                                  {Level::serial, {0}},
                                                                  {Level::vector, {2}}}) {
      for (const std::int64_t extent : extents) alphabet.push_back({dim, level, extent});
    }
  }
  for (const char* name : {"row_sum", "column_sum", "layer_norm_backward", "cumsum", "elements"}) {
    const OnePhase cut = one_phase(phase_named(phases, name).graph);
    const std::set<std::string> known = structures(cut, target, fuzz::odd_numbers());
    std::size_t legal = 0;
    std::vector<Split> list;
    const std::function<void()> extend = [&] {
      Choices choices{.splits = list};
      for (const bool across : {false, true}) {
        choices.across = across;
        const std::string defect = misfit(cut.graph, cut.segment, {{choices}}, target);
        // What is wrong with the order of a list is wrong with all longer ones.
        for (const char* reason :
             {"has to stand before", "one of them", "two splits", "loops are of", "no such dim"}) {
          if (!list.empty() && defect.find(reason) != std::string::npos) return;
        }
        if (list.empty() || !defect.empty()) continue;
        ++legal;
        INFO(name << ": " << choices.to_string());
        CHECK(known.contains(structure_of(choices)));
      }
      if (list.size() == longest) return;
      for (const Split& next : alphabet) {
        list.push_back(next);
        extend();
        list.pop_back();
      }
    };
    extend();
    INFO(name);
    CHECK(legal > 3);
  }
}

TEST_CASE("legal nests: what is refused, with the reason", "[schedule]") {
  const std::vector<NestPhase> phases = nest_segments();
  const OnePhase rows = one_phase(phase_named(phases, "softmax").graph);
  CHECK(defect(rows, "r:grid r:warp2 c:serial c:warp4 c:lane32 c:vector4") == "");
  CHECK(defect(rows, "r:grid c:serial c:warp2 r:warp4 c:lane32") == "r:warp4 has to stand before c:warp2");
  CHECK(defect(rows, "r:grid c:serial") == "the lanes of all splits are 1, and have to be 32");
  CHECK(defect(rows, "r:grid r:warp2 c:lane32") == "there is no loop c:serial");
  CHECK(defect(rows, "r:warp2 c:serial c:lane32") ==
        "r:grid without a number has to be there, or r:serial, for blocks that take turns");
  CHECK(defect(rows, "r:serial r:grid c:serial c:lane32") ==
        "r:serial and r:grid are both without a number: after r:serial, r:grid says how many blocks take "
        "turns");
  CHECK(defect(rows, "r:grid r:warp1 c:serial c:lane32") == "r:warp1: a split of one unit");
  CHECK(defect(rows, "r:grid r:serial4 c:serial c:lane32") == "r:serial4 has to stand before r:grid");
  CHECK(defect(rows, "r:grid c:serial4 c:lane32") ==
        "c:serial4: a serial loop has no number, and as many trips as are left");
  CHECK(defect(rows, "k:grid c:serial c:lane32") ==
        "k:grid: loops are of rows 'r' and elements 'c', or of tiles 't', 'y' and 'x'");
  CHECK(defect(rows, "r:grid c:serial c:lane32 c:vector8") ==
        "c:vector8: an access of this kernel has at most 4 elements");
  CHECK(defect(rows, "r:grid c:serial c:lane32 c:vector3") == "c:vector3 is no power of two");
  CHECK(defect(rows, "r:grid c:serial c:cluster32 c:lane32") ==
        "a cluster of 32 blocks; h200 has clusters of up to 16");
  CHECK(defect(rows, "r:grid c:serial c:warp64 c:lane32") ==
        "a block of 2048 threads; h200 has blocks of 32 to 1024, in steps of 32");
  CHECK(defect(rows, "r:grid c:serial c:grid2 c:cluster2 c:lane32") ==
        "c:cluster2 beside c:grid2: one of them");
  CHECK(defect(rows, "r:grid c:serial c:grid65537 c:lane32") == "c:grid65537: at most 65536 units");
  CHECK(defect(rows, "r:serial r:grid9223372036854775807 c:serial c:lane32") ==
        "r:grid9223372036854775807: at most 1048576 units");
  CHECK(defect(rows, "r:grid c:serial c:warp9223372036854775807 c:lane32") ==
        "c:warp9223372036854775807: at most 1024 units");
  const OnePhase sums = one_phase(phase_named(phases, "row_sum").graph);
  CHECK(defect(sums, "r:serial r:grid1048576 c:serial c:grid2047 c:lane32") == "");
  CHECK(defect(sums, "r:serial r:grid1048576 c:serial c:grid2048 c:lane32") ==
        "splits over 2147483648 blocks: a launch has at most 2147483647");
  CHECK(defect(rows, "r:grid c:serial c:lane16 r:lane4") ==
        "the lanes of all splits are 64, and have to be 32");
  CHECK(defect(rows, "r:grid c:serial r:lane4 c:lane4 r:lane2") == "two splits of r at the level lane");
  CHECK(defect(one_phase(phase_named(phases, "cumsum").graph), "r:grid c:serial c:warp4 c:lane32") ==
        "c:warp4: a scan meets elements in order");
  CHECK(defect(one_phase(phase_named(phases, "elements").graph), "r:grid c:serial c:lane32") ==
        "c:serial: the kernel has no such dim");
  CHECK(defect(one_phase(phase_named(phases, "layer_norm_backward").graph), "r:grid c:serial c:lane32") ==
        "columns are kept by blocks that take rows in turns: r:serial");
  CHECK(defect(one_phase(phase_named(phases, "row_sum").graph), "t:grid y:serial x:lane32") ==
        "splits of t, y and x are for transposes, and this kernel reduces or scans");
}

TEST_CASE("splits are read as they are printed", "[schedule]") {
  for (const char* text : {"r:grid r:warp8 c:serial c:lane32 c:vector4", "t:grid y:serial y:warp8 x:lane32"})
    CHECK(to_string(parse_splits(text).value()) == text);
  CHECK(to_string(parse_splits(" r:grid  c:serial ").value()) == "r:grid c:serial");
  CHECK(to_string(parse_splits("r:grid\tc:serial").value()) == "r:grid c:serial");
  for (const char* text :
       {"r", "r:", "r:girth", "r:grid0", "r:grid-1", "r:grid8x", "rgrid", "r:grid99999999999999999999"}) {
    INFO(text);
    CHECK_FALSE(parse_splits(text));
  }
}
