// A barrier left out is a fault that the checker names: for every barrier of a graph of block reductions.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "base/access.hpp"
#include "compile/pipeline/experiments.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "support/catch.hpp"
#include "support/op_sweep.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// A row a block, a tile of columns, and parts of a long row, of sums and of pairs.
Graph block_reductions() {
  Graph g("reductions");
  const Tensor rows = g.input("rows", f32, {3, 2000}), columns = g.input("columns", f32, {40, 64});
  const Tensor line = g.input("line", f32, {40000});
  {
    const auto scope = g.scope("rows");
    g.output("row sums", sum(rows, {1}));
    g.output("row positions", argmax(rows, 1));
  }
  {
    const auto scope = g.scope("columns");
    g.output("column sums", sum(columns, {0}));
    g.output("column positions", argmin(columns, 0));
  }
  const auto scope = g.scope("line");
  g.output("total", sum(line));
  g.output("largest", max(line));
  return g;
}

const PipelineOptions apart{.partition = {.stitch = false}};  // a kernel for each reduction

struct PlantedBarrier {
  std::string kernel, op, scope;
  int line = 0;
};

std::vector<PlantedBarrier> barriers_of(const codegen::Source& source) {
  std::vector<PlantedBarrier> barriers;
  for (const codegen::KernelInfo& kernel : source.kernels) {
    for (const codegen::OpLine& line : kernel.lines) {
      if (line.barrier) barriers.push_back({kernel.name, line.op, line.scope, line.line});
    }
  }
  return barriers;
}

/// Runs the graph on the device; the text of what it throws, or nothing.
ErrorInfo outcome(const Graph& g, const Device& device, const std::string& fault,
                  Stitch stitch = Stitch::mapping) {
  try {
    Session session(compile(g, device, {.experiments = experiments({.stitch = stitch, .fault = fault})}));
    for (const auto& [name, shape] : std::vector<std::pair<std::string, Shape>>{
             {"rows", {3, 2000}}, {"columns", {40, 64}}, {"line", {40000}}}) {
      HostTensor tensor = HostTensor::make(f32, shape);
      runtime::random_fill(tensor, 3, name, -4, 4);
      session.set(name, tensor.data);
    }
    session.run();
    for (const ir::Output& output : ir_of(g).outputs) static_cast<void>(session.get(output.name));
  } catch (const Error& error) {
    return error.info();
  }
  return {.code = ErrorCode::ok, .message = ""};
}

}  // namespace

TEST_CASE("without any one of its barriers a kernel faults, by name", "[pipeline][emulated]") {
  const Graph g = block_reductions();
  for (const char* profile : {"tiny3", "h200"}) {
    const Device device = Device::emulated({.profile = profile, .checked = true});
    const codegen::Source whole = run_pipeline(ir_of(g), target_profile(profile), apart).source;
    const std::vector<PlantedBarrier> barriers = barriers_of(whole);
    REQUIRE(barriers.size() >= 6);
    const ErrorInfo right = outcome(g, device, "");
    INFO(profile << ": " << right.message);
    REQUIRE(right.code == ErrorCode::ok);
    for (std::size_t k = 0; k < barriers.size(); ++k) {
      const ErrorInfo fault = outcome(g, device, "barrier." + std::to_string(k));
      INFO(profile << " barrier " << k << " of " << barriers[k].kernel << ": " << fault.message);
      CHECK(fault.code == ErrorCode::kernel_fault);
      const auto names = [&](const std::string& text) {
        return fault.message.find(text) != std::string::npos;
      };
      CHECK(names(barriers[k].kernel + ": race on shared "));
      CHECK(names("(" + barriers[k].op + ", " + barriers[k].scope + ")"));
      CHECK(names(" at line "));
    }
  }
}

TEST_CASE("without any one of its barriers a stitched kernel faults", "[pipeline][stitch][emulated]") {
  Graph g("stitched");
  const Tensor rows = g.input("rows", f32, {3, 2000}), columns = g.input("columns", f32, {40, 64});
  g.output("by row", softmax(rows, 1));
  g.output("by column", softmax(columns, 0));
  g.output("line", g.input("line", f32, {40000}) + 1);
  const Device device = Device::emulated({.profile = "tiny3", .checked = true});
  const std::vector<PlantedBarrier> barriers =
      barriers_of(run_pipeline(ir_of(g), target_profile("tiny3")).source);
  REQUIRE(barriers.size() == 4);  // two kernels, a maximum and a sum each
  REQUIRE(outcome(g, device, "", Stitch::full).code == ErrorCode::ok);
  for (std::size_t k = 0; k < barriers.size(); ++k) {
    const ErrorInfo fault = outcome(g, device, "barrier." + std::to_string(k), Stitch::full);
    INFO("barrier " << k << " of " << barriers[k].kernel << ": " << fault.message);
    CHECK(fault.code == ErrorCode::kernel_fault);
    CHECK(fault.message.find(barriers[k].kernel + ": race on shared ") != std::string::npos);
  }
}

TEST_CASE("the dropped barrier is the only difference of the text", "[pipeline]") {
  const Graph g = block_reductions();
  const Target target = target_profile("tiny3");
  const codegen::Source whole = run_pipeline(ir_of(g), target, apart).source;
  const std::size_t count = barriers_of(whole).size();
  const auto lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
  for (std::size_t k = 0; k < count; ++k) {
    const codegen::Source without =
        run_pipeline(ir_of(g), target,
                     {.fault = parse_fault("barrier." + std::to_string(k)), .partition = {.stitch = false}})
            .source;
    CHECK(barriers_of(without).size() == count - 1);
    CHECK(lines(without.body) == lines(whole.body) - 1);
  }
  const PipelineOptions past{.fault = parse_fault("barrier." + std::to_string(count)),
                             .partition = {.stitch = false}};
  CHECK_THROWS_WITH(run_pipeline(ir_of(g), target, past),
                    Catch::Contains("have no site for the fault barrier."));
}

TEST_CASE("the loops with a barrier are those of the test", "[pipeline]") {
  for (const char* profile : {"tiny3", "h200"}) {
    bool blocks = false, columns = false, parts = false;
    for (const schedule::Schedule& s :
         run_pipeline(ir_of(block_reductions()), target_profile(profile), apart).schedules) {
      const schedule::Choices& choices = s.phases[0].choices;
      parts = parts || splits_rows(choices);
      if (splits_rows(choices) || units_of(choices.splits, 'c', schedule::Level::warp) == 1) continue;
      (rows_at_once(choices) > 1 ? columns : blocks) = true;
    }
    INFO(profile);
    CHECK(blocks);
    CHECK(columns);
    CHECK(parts);
  }
}
