// What launches pass on to each other: the sections of a phase. SPDX-License-Identifier: Apache-2.0
#include "schedule/mapping/section.hpp"

#include <string>
#include <vector>

#include "schedule/nest/usual_nests.hpp"
#include "schedule/schedule_support.hpp"
#include "schedule/segments/staged.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::Choices;
using schedule::Phase;
using schedule::Section;
using schedule::Stage;

namespace {

std::string text_of(const ir::Graph& graph, const char* what, const std::vector<ir::NodeId>& ids) {
  std::string text;
  for (const ir::NodeId id : ids)
    text += (text.empty() ? std::string(what) + ' ' : " ") + std::string(to_string(graph[id].op));
  return text.empty() ? "" : text + "; ";
}

std::string text_of(const ir::Graph& graph, const char* what, const std::vector<Stage>& stages) {
  std::vector<ir::NodeId> roots;
  for (const Stage& stage : stages) roots.push_back(stage.root);
  return text_of(graph, what, roots);
}

/// "combines reduce_max; walks div; ..", one for each section of the graph's only kernel.
std::vector<std::string> sections(const Graph& g, const Choices& choices) {
  const ir::Graph graph = prepared(g);
  const schedule::Partition partition = schedule::partition(graph);
  REQUIRE(partition.segments.size() == 1);
  const Phase phase = staged(graph, partition.segments[0].phases.at(0), choices);
  std::vector<std::string> result;
  for (const Section& section : sections_of(graph, phase, choices)) {
    result.push_back(text_of(graph, "combines", section.combines) + text_of(graph, "walks", section.walks) +
                     text_of(graph, "leaves", section.leaves) + text_of(graph, "stores", section.stores) +
                     text_of(graph, "reads", section.inputs));
  }
  CHECK(result.size() == section_count(phase, choices));
  return result;
}

Graph softmax_of_rows() {
  Graph g;
  g.output("y", softmax(g.input("x", f32, {4, 4096}), 1));
  return g;
}

}  // namespace

TEST_CASE("sections: rows that no blocks share are one", "[schedule]") {
  for (const std::vector<schedule::Split>& splits :
       {schedule::nest_of_lanes(256), schedule::nest_of_blocks(256)}) {
    CHECK(sections(softmax_of_rows(), {.splits = splits}) ==
          std::vector<std::string>{"walks reduce_max reduce_sum div; stores div; reads input; "});
  }
  // A cluster passes parts on inside of its launch.
  CHECK(sections(softmax_of_rows(),
                 {.splits = schedule::nest_of_shared_rows(256, 4, 1, schedule::Level::cluster)})
            .size() == 1);
}

TEST_CASE("sections: a pass over split rows takes what the ones before left and it needs", "[schedule]") {
  CHECK(sections(softmax_of_rows(), {.splits = schedule::nest_of_shared_rows(256, 4)}) ==
        std::vector<std::string>{
            "walks reduce_max; leaves reduce_max; reads input; ",
            "combines reduce_max; walks reduce_sum; leaves reduce_sum; reads input; ",
            "combines reduce_max reduce_sum; walks div; stores div; reads input; ",
        });
  Graph total;
  total.output("y", sum(total.input("x", f32, {4, 4096}), {1}));
  CHECK(sections(total, {.splits = schedule::nest_of_shared_rows(256, 4)}) ==
        std::vector<std::string>{"walks reduce_sum; leaves reduce_sum; reads input; ",
                                 "combines reduce_sum; stores reduce_sum; "});
}

TEST_CASE("sections: a total that is a result is stored by the section behind its parts", "[schedule]") {
  Graph g;
  const Tensor x = g.input("x", f32, {4, 4096});
  const Tensor most = max(x, {1}, {.keep_dims = true});
  g.output("most", most);
  g.output("y", sum(exp(x - most), {1}) * 2.0F);
  // The maximum is stored once, though the last section may need it again.
  const std::vector<std::string> found = sections(g, {.splits = schedule::nest_of_shared_rows(256, 4)});
  REQUIRE(found.size() == 3);
  CHECK(found[0].find("stores") == std::string::npos);
  CHECK(found[1].find("stores reduce_max; ") != std::string::npos);
  CHECK(found[2].find("reduce_max") == std::string::npos);
  CHECK(found[2].find("combines reduce_sum; ") != std::string::npos);
}

TEST_CASE("sections: what is made of columns comes behind all rows", "[schedule]") {
  Graph g;
  const Tensor x = g.input("x", f32, {4096, 512}), d = g.input("d", f32, {4096, 512});
  const Tensor normal = x - mean(x, {1}, {.keep_dims = true});
  g.output("y", normal * d);
  g.output("columns", sum(normal * d, {0}) * 0.5F);
  const std::vector<std::string> found = sections(g, {.splits = in_turns(schedule::nest_of_blocks(512), 66)});
  REQUIRE(found.size() == 2);
  CHECK(found[0].find("reads input input; ") != std::string::npos);
  CHECK(found[0].find("leaves reduce_sum; ") != std::string::npos);
  CHECK(found[1] == "combines reduce_sum; walks mul; stores mul; ");
}

TEST_CASE("sections: what combines the parts of an online sum needs its maximum", "[schedule]") {
  Stage online{.root = 7, .form = Stage::Form::inner_reduce, .pass = 2};
  online.maximum = 3;
  const std::vector<Stage> stages = schedule::stages_over_partials(
      {.combines = {online}, .walks = {{.root = 9, .form = Stage::Form::element}}});
  REQUIRE(stages.size() == 2);
  CHECK(stages[0].maximum == online.maximum);
  CHECK(stages[0].pass == 0);
  CHECK(stages[1].form == Stage::Form::row);
}
