// The emitted CUDA text: tests/golden/cuda/*.cu, and the plans that launch it: tests/golden/plan/*.txt.
// SPDX-License-Identifier: Apache-2.0
#include "base/access.hpp"
#include "codegen/codegen_support.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

void check(const std::string& name, const Graph& graph) {
  const std::string text = cuda_body(graph);
  CHECK(text == cuda_body(graph));
  check_golden("cuda/" + name + ".cu", text);
  check_golden("plan/" + name + ".txt", print(run_pipeline(ir_of(graph), target_profile("h200")).plan));
}

}  // namespace

TEST_CASE("cuda text of softmax over 1024 f32 rows", "[codegen]") {
  Graph g("softmax");
  g.output("y", softmax(g.input("x", f32, {1024, 1000})));
  check("softmax", g);
}

TEST_CASE("cuda text of layer norm in bf16", "[codegen]") {
  Graph g("layer_norm");
  const Dim B = g.dim("B", {.min = 1, .max = 1 << 20, .hint = 4096});
  const Tensor x = g.input("x", bf16, {B, 768});
  const Tensor gamma = g.parameter("gamma", f32, {768}), beta = g.parameter("beta", f32, {768});
  g.output("y", layer_norm(x, gamma, beta));
  check("layer_norm", g);
}

TEST_CASE("cuda text of argmax", "[codegen]") {
  Graph g("argmax");
  g.output("y", argmax(g.input("x", f32, {64, 5000}), 1));
  check("argmax", g);
}

TEST_CASE("cuda text of a full reduction: two launches and a scratch", "[codegen]") {
  Graph g("full");
  const Dim N = g.dim("N", {.min = 1, .max = 1 << 24, .hint = 1 << 20});
  g.output("y", sum(g.input("x", f32, {N})));
  check("full_reduction", g);
}

TEST_CASE("cuda text of concat and gather", "[codegen]") {
  Graph g("moves");
  const Dim T = g.dim("T", {.min = 1, .max = 1000, .hint = 16});
  const Tensor table = g.parameter("table", bf16, {50, 8}), tokens = g.input("tokens", i64, {T});
  const Tensor x = g.input("x", bf16, {T, 4}), rows = gather(table, tokens, 0);
  g.output("y", concat({rows, x, rows}, 1));
  check("concat_gather", g);
}

TEST_CASE("cuda text of a column reduction with scopes", "[codegen]") {
  Graph g("columns");
  const auto outer = g.scope("block.0"), inner = g.scope("bias gradient");
  g.output("y", sum(g.input("dy", f32, {4096, 256}), {0}));
  check("columns", g);
}

TEST_CASE("each op line of the text is where the source says it is", "[codegen]") {
  Graph g("lines");
  const auto scope = g.scope("here");
  g.output("y", softmax(g.input("x", f32, {8, 2000})));
  const codegen::Source source = run_pipeline(ir_of(g), target_profile("h200")).source;
  std::vector<std::string> lines = {""};
  for (const char c : source.text()) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  std::size_t checked = 0;
  for (const codegen::KernelInfo& kernel : source.kernels) {
    for (const codegen::OpLine& line : kernel.lines) {
      REQUIRE(static_cast<std::size_t>(line.line) <= lines.size());
      const std::string& text = lines[static_cast<std::size_t>(line.line) - 1];
      INFO(text);
      const std::string note = "// " + line.op + (line.scope.empty() ? "" : "  " + line.scope);
      CHECK(text.ends_with(note));
      CHECK((text.find("block_barrier();") != std::string::npos) == line.barrier);
      CHECK((line.location.empty() || line.location.starts_with("cuda_text_test.cpp:")));
      ++checked;
    }
  }
  CHECK(checked > 20);
}

TEST_CASE("the graph's text and the ops that kernels name agree", "[codegen]") {
  // A parameter made after an op: the text counts inputs and parameters first, and so must every stage.
  Graph g("order");
  const Tensor y = tanh(g.input("x", f32, {4}));
  g.output("y", y + g.parameter("late", f32, {4}));
  const Compiled compiled = run_pipeline(ir_of(g), target_profile("h200"));
  const std::string graph = print(compiled.graph);
  std::size_t named = 0;
  for (ir::NodeId id = 0; id < compiled.graph.nodes.size(); ++id) {
    const ir::Node& node = compiled.graph[id];
    if (std::holds_alternative<ir::NameAttr>(node.attr)) continue;
    INFO(graph);
    CHECK(graph.find(compiled.graph.value_name(id) + " = " + std::string(to_string(node.op)) + " ") !=
          std::string::npos);
    ++named;
  }
  CHECK(named == 2);
}
