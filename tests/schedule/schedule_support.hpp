// What the tests of partitions and schedules share: graphs as the scheduler gets them, without the lines of
// the test that built them, and the text of an error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/fuse.hpp>
#include <string>

#include "base/access.hpp"
#include "ir/text/print.hpp"
#include "passes/common_subexpressions.hpp"
#include "passes/dead_code.hpp"
#include "schedule/choosers/model_choices.hpp"
#include "schedule/fusion/partition.hpp"
#include "schedule/mapping/schedule.hpp"
#include "support/golden.hpp"

namespace fuse::test {

/// The graph after the passes; its text names no line, so that goldens do not change with the tests.
inline ir::Graph prepared(const Graph& graph) {
  ir::Graph result = ir::dead_code(ir::common_subexpressions(ir::dead_code(ir_of(graph))));
  for (ir::Node& node : result.nodes) node.location = 0;
  for (ir::Scope& scope : result.scopes) scope.location = 0;
  return result;
}

/// The graph, then how it is cut.
inline std::string partition_text(const ir::Graph& graph) {
  const schedule::Partition partition = schedule::partition(graph);
  verify(graph, partition);
  return print(graph) + "\n" + print(graph, partition);
}

template <class F>
std::string thrown_by(F action) {
  try {
    action();
  } catch (const Error& error) {
    return std::string(to_string(error.kind())) + ": " + error.info().message;
  }
  return "no error";
}

/// A graph of one output and its last kernel segment, of a single value.
struct OneSegment {
  ir::Graph graph;
  schedule::Segment segment;

  explicit OneSegment(const Graph& from) : graph(prepared(from)) {
    for (const schedule::Segment& segment : schedule::partition(graph, {.stitch = false}).segments) {
      if (segment.kind == schedule::Segment::Kind::kernel) this->segment = segment;
    }
  }
  const schedule::Phase& phase() const { return segment.phases.at(0); }
  schedule::Schedule make(const schedule::Choices& choices,
                          const Target& target = target_profile("h200")) const {
    const schedule::Schedule schedule = schedule::make_schedule(graph, segment, {{choices}}, target);
    verify(graph, schedule, target);
    return schedule;
  }
  schedule::Choices defaults(std::string_view profile) const {
    return schedule::model_choices(graph, phase(), target_profile(profile));
  }
};

/// sum of an f32 input over `axes`
inline Graph sum_graph(const std::vector<Dim>& dims, std::vector<std::int64_t> axes, Graph g = Graph("sum")) {
  g.output("y", sum(g.input("x", f32, dims), std::move(axes)));
  return g;
}

inline Graph exp_graph(const std::vector<Dim>& dims, Graph g = Graph("exp")) {
  g.output("y", exp(g.input("x", f32, dims)));
  return g;
}

}  // namespace fuse::test
