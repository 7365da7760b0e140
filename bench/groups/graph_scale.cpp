// How building, printing, parsing, cutting and compiling a graph scale with its ops. The graph is a chain of
// identical blocks (norm, GEMM, gelu, residual), as models are.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <fuse/fuse.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "groups/groups.hpp"
#include "ir/graph/ir_graph.hpp"
#include "measure.hpp"
#include "schedule/fusion/partition.hpp"

namespace fuse::bench {
namespace {

constexpr int graph_scale_samples = 5;

Graph chain(std::size_t ops) {
  Graph graph("chain");
  const Dim B = graph.dim("B", {.min = 1, .max = 1 << 20});
  Tensor x = graph.input("x", f32, {B, 64});
  const Tensor gamma = graph.parameter("gamma", f32, {64}), beta = graph.parameter("beta", f32, {64});
  const Tensor weight = graph.parameter("weight", f32, {64, 64});
  for (int block = 0; ir_of(graph).nodes.size() < ops; ++block) {
    const auto scope = graph.scope("block." + std::to_string(block));
    x = x + gelu(matmul(layer_norm(x, gamma, beta), weight));
  }
  graph.output("y", x);
  return graph;
}

struct Stage {
  const char* name;
  Samples small{}, large{};
};

void check_ops(std::size_t want, std::size_t got) {
  if (want != got) throw std::runtime_error(fmt::format("parsing gave {} ops of {}", got, want));
}

void add_rows(Report& report, const Stage& stage, double small_ops, double large_ops) {
  const auto add = [&](const Samples& times, double ops) -> Row& {
    Row& row = report.add(times.seconds(fmt::format("{}.{:.0f}_ops", stage.name, ops), "s"));
    row.how = fmt::format("{:.2f} us an op", median(times.wall) / ops * 1e6);
    return row;
  };
  add(stage.small, small_ops);
  add(stage.large, large_ops);
  const double scale = small_ops / large_ops;
  const auto least = [](const std::vector<double>& times) {
    return *std::min_element(times.begin(), times.end());
  };
  const auto most = [](const std::vector<double>& times) {
    return *std::max_element(times.begin(), times.end());
  };
  Row& ratio = report.add({.name = fmt::format("{}.growth", stage.name), .unit = "x the time an op"});
  // Of the quickest runs: other work on the machine only ever adds.
  ratio.figure = least(stage.large.wall) / least(stage.small.wall) * scale;
  ratio.min = least(stage.large.wall) / most(stage.small.wall) * scale;
  ratio.max = most(stage.large.wall) / least(stage.small.wall) * scale;
  ratio.cpu = least(stage.large.cpu) / least(stage.small.cpu) * scale;
  ratio.n = static_cast<int>(stage.large.wall.size());
  ratio.goal = {Goal::Kind::below, 2};
  ratio.how = fmt::format("quickest run of {:.0f} ops against that of {:.0f}", large_ops, small_ops);
}

}  // namespace

void bench_graph(Report& report, const Settings&) {
  constexpr std::size_t sizes[] = {10'000, 100'000};
  Stage build{"build"}, print{"print"}, parse{"parse"}, partition{"partition"}, pipeline{"pipeline"};
  Samples build_and_print;
  for (const std::size_t ops : sizes) {
    const bool large = ops == sizes[1];
    for (int i = 0; i < graph_scale_samples * (large ? 1 : 3); ++i) {
      const auto time = [&](Stage& stage, auto&& work) {
        const Times times = time_once(work);
        (large ? stage.large : stage.small).add(times);
        return times;
      };
      Graph graph("none");
      std::string text;
      const Times built = time(build, [&] { graph = chain(ops); });
      const Times printed = time(print, [&] { text = graph.to_string(); });
      if (large) build_and_print.add({built.wall + printed.wall, built.cpu + printed.cpu});
      time(parse, [&] { check_ops(ir_of(graph).nodes.size(), ir_of(Graph::parse(text)).nodes.size()); });
      time(partition, [&] { schedule::verify(ir_of(graph), schedule::partition(ir_of(graph))); });
      if (i < 3) time(pipeline, [&] { run_pipeline(ir_of(graph), target_profile("h200")); });
    }
  }
  for (const Stage* stage : {&build, &print, &parse, &partition, &pipeline}) {
    add_rows(report, *stage, static_cast<double>(sizes[0]), static_cast<double>(sizes[1]));
  }
  Row& both = report.add(build_and_print.seconds("build_and_print.100000_ops", "s"));
  both.goal = {Goal::Kind::below, 1};
  both.how = "building and printing, added";
}

}  // namespace fuse::bench
