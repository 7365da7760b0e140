// The most inputs of a kernel as a variable of the search. SPDX-License-Identifier: Apache-2.0
#include "schedule/search/max_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <fuse/fuse.hpp>
#include <string>
#include <vector>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "support/catch.hpp"
#include "target/target.hpp"

namespace fuse::test {

using schedule::best_max_inputs;
using schedule::BestMaxInputs;

TEST_CASE("most inputs: the number with the least prediction, and the default where several are",
          "[search]") {
  std::vector<int> asked;
  const BestMaxInputs six = best_max_inputs(48, [&](int max_inputs) {
    asked.push_back(max_inputs);
    return std::abs(max_inputs - 6.0);
  });
  CHECK(six.max_inputs == 6);
  CHECK(six.seconds == 0);
  CHECK(six.tried == 5);
  std::sort(asked.begin(), asked.end());
  CHECK(asked == std::vector<int>{3, 6, 12, 24, 48});
  CHECK(best_max_inputs(48, [](int) { return 1.0; }).max_inputs == 48);
  CHECK(best_max_inputs(10, [](int) { return 1.0; }).tried == 3);  // 10, 6 and 3
  CHECK(best_max_inputs(48, [](int max_inputs) { return max_inputs > 12 ? 2.0 : 1.0; }).max_inputs == 12);
}

TEST_CASE("with a search no other number of inputs is better by the cost model", "[search]") {
  Graph graph("inputs");
  Tensor sum = graph.input("x", f32, {64, 512});
  for (int i = 0; i < 30; ++i) sum = sum + tanh(graph.input("x" + std::to_string(i), f32, {64, 512}));
  graph.output("y", sum);
  const auto compiled = [&](int max_inputs, bool search) {
    PipelineOptions options;
    options.partition.search = search;
    options.partition.groups.max_inputs = max_inputs;
    return run_pipeline(ir_of(graph), target_profile("h200"), options);
  };
  const auto seconds = [](const Compiled& stages) {
    double all = 0;
    for (const schedule::Segment& segment : stages.partition.segments) all += segment.chosen.value().seconds;
    return all;
  };
  const Compiled searched = compiled(48, true);
  for (const int number : {3, 6, 12, 24, 48}) {
    INFO(number);
    CHECK(seconds(searched) <= seconds(compiled(number, false)));
  }
  CHECK(searched.partition.segments.size() == 1);
  CHECK(compiled(12, true).partition.segments.size() > 1);  // never more than what is asked for
}

}  // namespace fuse::test
