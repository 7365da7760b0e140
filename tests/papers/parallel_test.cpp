// APOLLO's Layer III: independent branches side by side in one kernel (Algorithm 3, Fig. 6, Example 7).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/access.hpp"
#include "papers/papers_support.hpp"
#include "schedule/groups/parallel_stitch.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::GroupGraph;

namespace {

using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;

/// Costs 1 each; `k` ops in one kernel take `together(k)`.
schedule::ParallelModel model(double (*together)(std::size_t k)) {
  return {.alone = [](GroupGraph::Id) { return 1.0; },
          .together = [together](std::span<const GroupGraph::Id> ids) { return together(ids.size()); }};
}
const schedule::ParallelModel always = model([](std::size_t) { return 1.0; });

/// Groups of two or more after Layer III alone.
Groups stitched(const std::string& name, const schedule::ParallelModel& model,
                const schedule::GroupOptions& before = {.layers = 0}) {
  const PaperGraph paper(name);
  const Target target = target_profile("h200");
  GroupGraph groups(paper.graph(), paper.grouping(before), before, target);
  schedule::stitch_parallel(groups, model);
  const schedule::Grouping result = groups.result();
  schedule::GroupOptions after = before;
  after.layers |= bit(schedule::Layer::parallel);
  schedule::verify(paper.graph(), result, after, target);
  Groups names;
  for (const schedule::Group& group : result.groups) {
    if (group.nodes.size() < 2) continue;
    names.emplace_back();
    for (const ir::NodeId id : group.nodes) names.back().push_back(paper.name(id));
  }
  return names;
}

}  // namespace

TEST_CASE("APOLLO Fig. 6(a): one group for each level of the branches", "[papers][partition]") {
  CHECK(stitched("apollo_fig6a", always) == Groups{{"a1", "b1", "c1", "d1"}, {"a2", "b2", "c2", "d2"}});
  CHECK(stitched("apollo_fig6a", model([](std::size_t k) { return static_cast<double>(k); })).empty());
}

TEST_CASE("APOLLO Fig. 6(b): the branches of the mul, then the independent ones", "[papers][partition]") {
  CHECK(stitched("apollo_fig6b", always) == Groups{{"a", "b"}, {"c", "d"}});
}

TEST_CASE("APOLLO Fig. 6(c): three groups", "[papers][partition]") {
  const schedule::GroupOptions layers_before{.rules = schedule::RuleSet::apollo, .layers = 3};
  const Groups groups = stitched("apollo_fig6c", always, layers_before);
  REQUIRE(groups.size() == 3);
  const auto has = [&](const std::vector<std::string>& names) {
    return std::find(groups.begin(), groups.end(), names) != groups.end();
  };
  CHECK(has({"clean1", "clean2", "clean3", "clean4", "clean5", "clean6", "clean7"}));
  CHECK(has({"addn", "add"}));
  CHECK(has({"assign1", "sum1", "assign2", "sum2", "assign3", "sum3", "assign4", "sum4", "assign5", "sum5",
             "assign6", "sum6", "assign7", "sum7"}));
  CHECK(PaperGraph("apollo_fig6c").grouping(apollo).groups.size() <= 17);
}

TEST_CASE("APOLLO Example 7: five do not gain, four do not, three do", "[papers][partition]") {
  Ranges asked;
  const auto gains = [&](std::size_t first, std::size_t last) {
    asked.emplace_back(first, last);
    return last - first < 4;
  };
  CHECK(schedule::compose_level(5, gains) == Ranges{{0, 3}, {3, 5}});
  CHECK(asked == Ranges{{0, 5}, {0, 4}, {0, 3}, {3, 5}});
}

TEST_CASE("a leading op that is too heavy for any company is passed over", "[papers][partition]") {
  const auto gains = [](std::size_t first, std::size_t) { return first > 0; };
  CHECK(schedule::compose_level(4, gains) == Ranges{{1, 4}});
  CHECK(schedule::compose_level(1, gains).empty());
  CHECK(schedule::compose_level(0, gains).empty());
}

TEST_CASE("kernels that fill the device gain nothing side by side; small ones save a launch",
          "[papers][partition]") {
  const auto pair_of = [](std::int64_t rows) {
    Graph g("pair");
    for (const char* name : {"a", "b"}) {
      g.output(std::string("y") + name, exp(g.input(name, f32, {rows, 1024})));
    }
    return schedule::group(ir_of(g), {}, target_profile("h200")).groups.size();
  };
  CHECK(pair_of(16) == 1);
  CHECK(pair_of(1 << 20) == 2);
}
