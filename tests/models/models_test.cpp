// The models of examples/models: right results at small sizes, and the launches that are promised.
// SPDX-License-Identifier: Apache-2.0
#include "../../examples/models/asr.hpp"
#include "../../examples/models/bert.hpp"
#include "../../examples/models/crnn.hpp"
#include "../../examples/models/dien.hpp"
#include "../../examples/models/encoder_decoder.hpp"
#include "models/model_runs.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// Launches of kernels, GEMMs, and the launches that the GEMMs force.
void check_plan(const Graph& graph, std::int64_t kernels, std::int64_t gemms, std::int64_t bound) {
  const PlannedModel planned = plan_model(graph);
  INFO(graph.name());
  CHECK(planned.steps.kernels == kernels);
  CHECK(planned.steps.gemms == gemms);
  CHECK(planned.bound == bound);
}

/// At the papers' sizes.
void check_goal(const Graph& graph) {
  const PlannedModel planned = plan_model(graph);
  INFO(graph.name() << ": " << planned.steps.kernels << " launches, " << planned.bound << " are forced");
  CHECK(static_cast<double>(planned.steps.kernels) <= 1.1 * static_cast<double>(planned.bound));
}

}  // namespace

TEST_CASE("models: a small CRNN", "[models][device]") {
  const Graph graph = example::build_crnn(example::Crnn::small());
  check_model(graph);
  check_plan(graph, 21, 28, 19);
}

TEST_CASE("models: a small speech recogniser", "[models][device]") {
  const Graph graph = example::build_asr(example::Asr::small());
  check_model(graph);
  check_plan(graph, 25, 39, 22);
}

TEST_CASE("models: a small BERT", "[models][device]") {
  const Graph graph = example::build_bert(example::Bert::small());
  check_model(graph);
  check_plan(graph, 14, 13, 14);
}

TEST_CASE("models: a small Transformer", "[models][device]") {
  const Graph graph = example::build_transformer(example::Transformer::small());
  check_model(graph);
  check_plan(graph, 54, 76, 54);
}

TEST_CASE("models: a small DIEN", "[models][device]") {
  const Graph graph = example::build_dien(example::Dien::small());
  check_model(graph);
  check_plan(graph, 16, 16, 15);
}

TEST_CASE("models: at the papers' sizes there are at most 1.1 times the launches that GEMMs force",
          "[not-sanitized][models]") {
  check_goal(example::build_crnn(example::Crnn::paper()));
  check_goal(example::build_asr(example::Asr::paper()));
  check_goal(example::build_bert(example::Bert::paper()));
  check_goal(example::build_bert(example::Bert::large()));
  check_goal(example::build_transformer(example::Transformer::paper()));
  check_goal(example::build_dien(example::Dien::paper()));
}
