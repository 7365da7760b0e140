// Which segments become stages of one kernel, in which passes, and what those hold.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>

#include "schedule/fusion/fusion_report.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "schedule/schedule_support.hpp"
#include "support/catch.hpp"
#include "support/paths.hpp"
#include "support/sanitized.hpp"
#include "support/stitch_graphs.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::CachedValue;
using schedule::Phase;
using schedule::Stage;

namespace {

struct CutGraph {
  ir::Graph graph;
  schedule::Partition partition;

  explicit CutGraph(const Graph& from,
                    const schedule::PartitionOptions& options = {.regional = false, .horizontal = false})
      : graph(prepared(from)), partition(schedule::partition(graph, options)) {
    verify(graph, partition);
  }
  std::size_t segments() const { return partition.segments.size(); }
  const Phase& last() const { return partition.segments.back().phases.at(0); }
  std::string stages() const { return stages_text(graph, last().stages); }
  schedule::PhaseSchedule schedule(schedule::Choices choices) const {
    const Target target = target_profile("h200");
    schedule::Schedule result =
        schedule::make_schedule(graph, partition.segments.back(), {{choices}}, target);
    verify(graph, result, target);
    return result.phases[0];
  }
  /// "%x 0-1, %3 1-2"
  std::string text_of(const std::vector<CachedValue>& cached) const {
    std::string text;
    for (const CachedValue& each : cached) {
      text += (text.empty() ? "" : ", ") + graph.value_name(each.node) + ' ' + std::to_string(each.first) +
              '-' + std::to_string(each.last);
    }
    return text;
  }
};

Graph of_square(const std::function<void(Graph&, const Tensor&)>& build) {
  Graph g("square");
  build(g, g.input("x", f32, {64, 64}));
  return g;
}

}  // namespace

TEST_CASE("a stage reads other stages at its own element or row alone", "[stitch][schedule]") {
  struct Case {
    const char* what;
    std::size_t segments;
    std::function<void(Graph&, const Tensor&)> build;
  };
  const Case cases[] = {
      {"the row's own sum", 1,
       [](Graph& g, const Tensor& x) {
         g.output("y", x / broadcast_in_dim(sum(x, {1}), {64, 64}, {0}));
       }},
      {"another row's sum", 2,
       [](Graph& g, const Tensor& x) {
         g.output("y", x / broadcast_in_dim(sum(x, {1}), {64, 64}, {1}));
       }},
      {"the sum in a shape with ones", 1,
       [](Graph& g, const Tensor& x) {
         g.output("y", x - sqrt(reshape(sum(x, {1}), {64, 1}) + 1));
       }},
      {"reductions of rows, then of columns", 1,
       [](Graph& g, const Tensor& x) { g.output("y", sum(x / sum(x, {1}, {.keep_dims = true}), {0})); }},
      {"reductions of columns, then of rows", 2,
       [](Graph& g, const Tensor& x) { g.output("y", sum(x / sum(x, {0}, {.keep_dims = true}), {1})); }},
      {"reductions of columns and of rows, neither of the other", 1,
       [](Graph& g, const Tensor& x) {
         g.output("columns", sqrt(sum(x, {0})));
         g.output("rows", sqrt(sum(x, {1})));
       }},
      {"a column's sum, for each of its elements", 2,
       [](Graph& g, const Tensor& x) {
         const Tensor e = exp(x - max(x, {1}, {.keep_dims = true}));
         g.output("y", e / sum(e, {0}, {.keep_dims = true}));
       }},
      {"rows and columns as rows of another reduction", 2,
       [](Graph& g, const Tensor& x) {
         g.output("y", broadcast_in_dim(sum(x, {0}), {64, 64}, {0}) - sum(x, {1}, {.keep_dims = true}));
       }},
      {"columns of rows of any length", 2,
       [](Graph& g, const Tensor&) {
         const Tensor x = g.input("any", f32, {64, g.dim("n")});
         g.output("rows", sum(x, {1}));
         g.output("columns", sum(x, {0}));
       }},
      {"columns of which one reduces a dim of extent 1 as well", 1,
       [](Graph& g, const Tensor&) {
         const Tensor x = g.input("few", f32, {2, 1, 2}),
                      y = broadcast_to(sum(x, {2}, {.keep_dims = true}), {2, 1, 2});
         g.output("sums", sum(y, {0, 1}));
         g.output("products", prod(y, {0}));
       }},
      {"a value of the row, stored", 1,
       [](Graph& g, const Tensor& x) {
         const Tensor m = sqrt(sum(x * x, {1}, {.keep_dims = true}));
         g.output("y", x / m);
         g.output("m", m);
       }},
      {"another element of a stored value", 2,
       [](Graph& g, const Tensor& x) {
         const Tensor e = exp(x / sum(x, {1}, {.keep_dims = true}));
         g.output("e", e);
         g.output("y", reverse(e, {1}));
       }},
      {"one row of what the rows make, for all rows", 2,
       [](Graph& g, const Tensor& x) {
         const Tensor e = x / sum(x, {1}, {.keep_dims = true});
         g.output("y", x - broadcast_to(slice(e, 0, 1, 2), {64, 64}));
       }},
      {"halves of each row that the row makes, exchanged", 1,
       [](Graph& g, const Tensor& x) {
         const Tensor e = x / sum(x, {1}, {.keep_dims = true});
         g.output("y", x - concat({slice(e, 1, 32, 64), slice(e, 1, 0, 32)}, 1));
       }},
      {"rows that the rows make, exchanged", 2,
       [](Graph& g, const Tensor& x) {
         const Tensor e = x / sum(x, {1}, {.keep_dims = true});
         g.output("y", x - concat({slice(e, 0, 32, 64), slice(e, 0, 0, 32)}, 0));
       }},
      {"a scan of what is reduced", 2,
       [](Graph& g, const Tensor& x) {
         g.output("y", cumulative_sum(x / sum(x, {1}, {.keep_dims = true}), 1));
       }},
      {"results of one shape", 1,
       [](Graph& g, const Tensor& x) {
         const Tensor e = exp(x) * g.input("z", f32, {64, 64});
         g.output("a", e);
         g.output("b", e + 1);
       }},
  };
  for (const Case& each : cases) {
    INFO(each.what);
    CHECK(CutGraph(of_square(each.build)).segments() == each.segments);
  }
}

TEST_CASE("reductions that wait for none of each other share a pass", "[stitch][schedule]") {
  const CutGraph both(of_square([](Graph& g, const Tensor& x) {
    g.output("y", (x - max(x, {1}, {.keep_dims = true})) / sum(x, {1}, {.keep_dims = true}));
  }));
  REQUIRE(both.segments() == 1);
  std::vector<int> passes;
  for (const Stage& stage : both.last().stages) passes.push_back(stage.pass);
  CHECK(passes == std::vector<int>{0, 0, 1});
  CHECK(CutGraph(stitch::layer_norm(f32, 8, 64)).last().stages.back().pass == 2);
  CHECK(CutGraph(stitch::adam(f32, 8, 64)).last().stages.back().pass == 0);
}

TEST_CASE("what passes cache", "[stitch][schedule]") {
  const auto cached = [](const Graph& graph) {
    const CutGraph cut(graph);
    return cut.text_of(schedule::cached_values(cut.graph, cut.last()));
  };
  CHECK(cached(stitch::softmax(f32, 8, 64)) == "%x 0-1, %4 1-2");  // exp(x - max)
  CHECK(cached(stitch::softmax_backward(f32, 8, 64)) == "%y 0-1, %dy 0-1");
  CHECK(cached(stitch::adam(f32, 8, 64)).empty());
  // A column's factor is loaded again: it is small, and the same for all rows.
  CHECK(cached(of_square([](Graph& g, const Tensor& x) {
          const Tensor scale = g.parameter("scale", f32, {64});
          g.output("y", x * scale / sum(x * scale, {1}, {.keep_dims = true}));
        })).find("%scale") == std::string::npos);
}

TEST_CASE("no more is cached than the choices say", "[stitch][schedule]") {
  const CutGraph cut(stitch::softmax_backward(f32, 8, 1000));
  schedule::Choices choices{.splits = schedule::nest_of_blocks(128), .register_cache = 16};
  CHECK(cut.text_of(cut.schedule(choices).cached) == "%y 0-1, %dy 0-1");
  CHECK(cut.schedule(choices).elements_per_thread == 8);
  choices.register_cache = 15;
  CHECK(cut.text_of(cut.schedule(choices).cached) == "%y 0-1");
  choices.register_cache = 7;
  CHECK(cut.schedule(choices).cached.empty());
  CHECK(cut.schedule(choices).elements_per_thread == 0);
}

TEST_CASE("rows of unknown length are cached where the longest is not far from the usual",
          "[stitch][schedule]") {
  const auto trips = [](std::int64_t most, std::int64_t hint) {
    Graph g("rows");
    const Dim n = g.dim("n", {.min = 1, .max = most, .hint = hint});
    g.output("y", softmax(g.input("x", f32, {1 << 16, n})));
    return CutGraph(g)
        .schedule({.splits = schedule::nest_of_lanes(128), .register_cache = 32})
        .elements_per_thread;
  };
  CHECK(trips(1024, 1000) == 32);
  CHECK(trips(1024, 128) == 32);
  CHECK(trips(1024, 100) == 0);
  CHECK(trips(1025, 1000) == 0);
}

TEST_CASE("a kernel that would leave the device idle stays apart, with the numbers", "[stitch][partition]") {
  Graph g("few");
  const Tensor x = g.input("x", f32, {2, 1 << 22});
  g.output("y", exp(x - max(x, {1}, {.keep_dims = true})));
  const CutGraph cut(g);
  CHECK(cut.segments() == 2);
  REQUIRE(cut.partition.refusals.size() == 1);
  const schedule::Refusal& refusal = cut.partition.refusals[0];
  CHECK(refusal.reason == schedule::Reason::no_gain);
  REQUIRE(refusal.numbers.size() == 2);
  CHECK(std::stod(refusal.numbers[0].second) > std::stod(refusal.numbers[1].second));
  const auto edges = unfused_edges(cut.graph, cut.partition, {}, target_profile("h200"));
  REQUIRE(edges.size() == 1);
  CHECK(edges[0].reason == schedule::Reason::no_gain);
  CHECK(edges[0].numbers == refusal.numbers);
}

TEST_CASE("kernels that gain less than the counters cost are refused, with what those cost",
          "[stitch][partition]") {
  std::ifstream in(source_directory() / "tests/papers/astitch_fig7.fuse");
  std::ostringstream text;
  text << in.rdbuf();
  const ir::Graph graph = prepared(Graph::parse(text.str()));
  const Target target = target_profile("a100");
  const schedule::Partition partition = schedule::partition(graph, {}, target);
  REQUIRE(partition.refusals.size() == 1);
  const auto& numbers = partition.refusals[0].numbers;
  REQUIRE(numbers.size() == 3);
  const double together = std::stod(numbers[0].second), apart = std::stod(numbers[1].second);
  CHECK(together < apart);
  CHECK(numbers[2].first == "zeroed counters us");
  CHECK(apart - together < std::stod(numbers[2].second));
}

TEST_CASE("the verifier knows stages", "[stitch][partition]") {
  const auto broken = [](const std::function<void(Phase&)>& change) {
    CutGraph cut(stitch::softmax(f32, 8, 64));
    change(cut.partition.segments[0].phases[0]);
    return thrown_by([&] { verify(cut.graph, cut.partition); });
  };
  CHECK(broken([](Phase&) {}) == "no error");
  CHECK(broken([](Phase& phase) { phase.stages.erase(phase.stages.begin()); }).find("must end a segment") !=
        std::string::npos);
  CHECK(broken([](Phase& phase) { phase.stages[1].pass = 0; }).find("comes before what it reads") !=
        std::string::npos);
  CHECK(broken([](Phase& phase) { phase.stages.pop_back(); }).find("is stored by no stage") !=
        std::string::npos);
}

TEST_CASE("kernels of many stages wait for none of each other in a circle", "[stitch][partition]") {
  for (std::uint32_t seed = 1; seed <= fewer(30u); ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    Graph g("skips");
    std::vector<Tensor> values = {g.input("x", f32, {32, 32}), g.input("z", f32, {32, 32})};
    const auto any = [&] {
      return values[values.size() - 1 - random() % std::min<std::size_t>(values.size(), 12)];
    };
    for (int i = 0; i < 120; ++i) {
      const Tensor a = any(), b = any();
      const std::int64_t axis = random() % 4 == 0 ? 0 : 1;
      values.push_back(random() % 3 == 0 ? a / (sum(abs(b), {axis}, {.keep_dims = true}) + 1) : tanh(a) * b);
    }
    g.output("y", values.back());
    const CutGraph cut(g);  // verified: what a segment reads is made before
    CHECK(cut.segments() < CutGraph(g, {.stitch = false}).segments());
  }
}
