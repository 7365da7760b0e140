// Softmax on the emulated device: through the whole pipeline, and as one kernel written by hand in the device
// dialect, which is what better fusion would emit.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "graph_run.hpp"
#include "groups/groups.hpp"
#include "groups/handwritten.hpp"
#include "measure.hpp"

namespace fuse::bench {
namespace {

constexpr int softmax_samples = 7;
constexpr double softmax_seconds = 0.3;
constexpr double plain_goal = 15, checked_goal = 8;  // M elements/s on 2 cores

struct SoftmaxCase {
  const char* name;
  std::int64_t rows, columns;
};

Graph softmax_graph(std::int64_t columns) {
  Graph graph("softmax");
  const Dim B = graph.dim("B", {.min = 0, .max = 1 << 20});
  graph.output("y", softmax(graph.input("x", f32, {B, columns})));
  return graph;
}

void check(const std::vector<float>& y, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; row += 37) {
    double sum = 0;
    for (std::int64_t i = 0; i < columns; ++i)
      sum += static_cast<double>(y[static_cast<std::size_t>(row * columns + i)]);
    if (!(std::fabs(sum - 1) < 1e-4)) throw std::runtime_error(fmt::format("row {} adds up to {}", row, sum));
  }
}

template <class F>
void measure(Report& report, const std::string& name, const SoftmaxCase& shape, bool checked, std::string how,
             F&& run) {
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int repeats = repeats_for(softmax_seconds, run);
  Samples times;
  for (int i = 0; i < softmax_samples; ++i) {
    times.add(time_once([&] {
                for (int k = 0; k < repeats; ++k) run();
              }),
              repeats);
  }
  const double millions = static_cast<double>(shape.rows * shape.columns) * 1e-6;
  Row& row = report.add(times.rate(name, "M elements/s", threads, millions));
  row.goal = {Goal::Kind::at_least, checked ? checked_goal : plain_goal};
  row.how = fmt::format("{} rows of {}, {} threads, {}", shape.rows, shape.columns, threads, how);
}

void through_pipeline(Report& report, const SoftmaxCase& shape, bool checked) {
  GraphRun softmax(softmax_graph(shape.columns), Device::emulated({.checked = checked}), {{"B", shape.rows}});
  softmax.set("x", test_numbers(static_cast<std::size_t>(shape.rows * shape.columns)));
  measure(report, fmt::format("{}.{}", shape.name, checked ? "checked" : "plain"), shape, checked,
          fmt::format("{} launches", softmax.prepared().launches()), [&] { softmax.run(); });
  check(softmax.get("y"), shape.rows, shape.columns);
}

void by_hand(Report& report, const SoftmaxCase& shape, bool checked) {
  HandwrittenSoftmax softmax(shape.rows, shape.columns, checked);
  measure(report, fmt::format("{}_by_hand.{}", shape.name, checked ? "checked" : "plain"), shape, checked,
          softmax.about(), [&] { softmax.run(); });
  check(softmax.result(), shape.rows, shape.columns);
}

}  // namespace

void bench_softmax(Report& report, const Settings&) {
  for (const SoftmaxCase& shape :
       {SoftmaxCase{"rows_1024", 4096, 1024}, SoftmaxCase{"rows_4096", 1024, 4096}}) {
    for (const bool checked : {false, true}) {
      through_pipeline(report, shape, checked);
      by_hand(report, shape, checked);
    }
  }
}

}  // namespace fuse::bench
