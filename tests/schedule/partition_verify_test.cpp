// The partition's spec: broken by hand, each break has its text.
// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule_support.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

struct CutGraph {
  ir::Graph graph;
  schedule::Partition partition;

  /// softmax: %1 max, %5 sum, %7 div end segments
  CutGraph() {
    Graph g("softmax");
    g.output("y", softmax(g.input("x", f32, {8, 16})));
    graph = prepared(g);
    partition = schedule::partition(graph, {.stitch = false});
    REQUIRE(partition.segments.size() == 3);
  }
  std::string text() const {
    return thrown_by([&] { verify(graph, partition); });
  }
};

}  // namespace

TEST_CASE("a right partition verifies", "[partition]") { CHECK(CutGraph().text() == "no error"); }

TEST_CASE("a segment ends at its root", "[partition]") {
  CutGraph empty;
  empty.partition.segments[1].nodes.clear();
  CHECK(empty.text() == "internal error: partition: a segment does not end at its root");
  CutGraph other;
  other.partition.segments[2].nodes.pop_back();
  CHECK(other.text() == "internal error: partition: a segment does not end at its root");
}

TEST_CASE("segments read only what is made before", "[partition]") {
  CutGraph c;
  std::swap(c.partition.segments[0], c.partition.segments[1]);
  CHECK(c.text() == "internal error: partition: %1 is read before a segment makes it");
  CutGraph missing;
  missing.partition.segments.erase(missing.partition.segments.begin() + 1);
  CHECK(missing.text() == "internal error: partition: %5 is read before a segment makes it");
}

TEST_CASE("a reduction stands at the end of a segment only", "[partition]") {
  CutGraph c;
  for (std::vector<ir::NodeId>* nodes :
       {&c.partition.segments[2].nodes, &c.partition.segments[2].phases[0].nodes})
    nodes->insert(nodes->begin(), c.partition.segments[1].root);
  CHECK(c.text() == "internal error: partition: %5 must end a segment");
}

TEST_CASE("a value is made once", "[partition]") {
  CutGraph c;
  c.partition.segments.push_back(c.partition.segments[2]);
  CHECK(c.text() == "internal error: partition: %7 is made twice");
  CutGraph given;
  schedule::Segment& segment = given.partition.segments[0];
  segment.root = segment.phases[0].root = 0;
  segment.nodes = segment.phases[0].nodes = {0};
  segment.results = segment.phases[0].results = {0};
  segment.phases[0].stages[0].root = 0;
  CHECK(given.text() == "internal error: partition: %x is made twice");
}

TEST_CASE("every output has a buffer", "[partition]") {
  CutGraph c;
  c.partition.segments.pop_back();
  CHECK(c.text() == "internal error: partition: output y has no buffer");
  CutGraph elsewhere;
  elsewhere.partition.storage[elsewhere.graph.outputs[0].node] = 3;
  CHECK(elsewhere.text() == "internal error: partition: output y has no buffer");
}
