// An explorer spreads the kernels of an epoch over streams (Astra, 4.5.3 to 4.5.5), on a virtual clock.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <fuse/explore.hpp>
#include <fuse/fuse.hpp>
#include <string>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "explore/explorer_support.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/emulated/virtual_clock.hpp"
#include "runtime/explore/space.hpp"
#include "runtime/explore/variant.hpp"
#include "support/catch.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using runtime::ClockedWork;

namespace {

/// One product that is planted to be long, and three that take a third of that, which the cost model holds to
/// be about as long.
Graph four_products() {
  Graph g("products");
  const auto product = [&](const std::string& name, std::int64_t k) {
    return matmul(g.input("x" + name, f32, {16, k}), g.input("w" + name, f32, {k, 24}));
  };
  g.output("y", (product("0", 40) + product("1", 32)) * (product("2", 32) - product("3", 32)));
  return g;
}

/// Two streams do no harm to each other, and a third one does.
double planted(const ClockedWork& work) {
  const double alone = !work.gemm ? 5e-6 : work.gemm->k == 40 ? 30e-6 : 10e-6;
  return work.beside < 2 ? alone : 10 * alone;
}

}  // namespace

TEST_CASE("the streams that were planted as the fastest are found for an epoch",
          "[explore][emulated][streams]") {
  const Graph graph = four_products();
  const Device device = clocked_device();
  const CompileOptions usual{.merge_gemms = false, .cache = false};
  runtime::plant_costs(*backend_of(device), planted);
  Explorer explorer(graph, device, {}, {.max_cuts = 1}, usual);
  ExplorerBuffers buffers(explorer);
  run_to_end(explorer, buffers);
  CHECK(explorer.progress().stopped.empty());
  CHECK(explorer.progress().explored == explorer.progress().announced);
  const std::string text = explorer.tuning().text();
  INFO(text);
  // The long one is alone; the step that has no choice is left to the cost model.
  const std::size_t at = text.find("\nrun {streams = ") + 16;
  const std::string streams = text.substr(at, text.find('}', at) - at);
  CHECK(std::ranges::count(streams, '0') + std::ranges::count(streams, '1') == 4);
  CHECK(std::abs(std::ranges::count(streams, '0') - std::ranges::count(streams, '1')) == 2);
  CHECK(streams.ends_with(" -"));
  CompileOptions tuned = usual;
  tuned.decisions = text;
  CHECK(seconds_of(graph, tuned, planted) == Approx(35e-6));
  CHECK(seconds_of(graph, usual, planted) > 40e-6);
  // An explorer of a file that says so does not take it back.
  Explorer again(graph, device, {}, {.max_cuts = 1}, tuned);
  ExplorerBuffers its_buffers(again);
  run_to_end(again, its_buffers);
  CHECK(again.tuning().text().find("run {streams = " + streams + "}") != std::string::npos);
}

TEST_CASE("an epoch is a variable of plans on streams, and has at most so many options", "[explore]") {
  const Graph graph = four_products();
  const Target target = target_profile("h200");
  const auto epochs_of = [&](const ExploreOptions& options, const CompileOptions& how) {
    const runtime::Space space = runtime::space_of(ir_of(graph), target, how, options);
    return space.cuts.front().placing.epochs;
  };
  const CompileOptions apart{.merge_gemms = false};
  const std::vector<runtime::ExploredEpoch> epochs = epochs_of({}, apart);
  REQUIRE(epochs.size() == 1);
  CHECK(epochs[0].options.size() == 8);  // by cost; and 7 ways for one product and three equal ones
  CHECK(epochs[0].members.front().size() == 4);
  CHECK(epochs_of({.max_options = 3}, apart).front().options.size() == 3);
  CHECK(epochs_of({.max_epochs = 0}, apart).empty());
  CHECK(epochs_of({}, {.merge_gemms = false, .streams = 1}).empty());
}
