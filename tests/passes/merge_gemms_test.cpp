// GEMMs that share an operand or a shape become one: where that pays, where no path forbids it, and exactly.
// SPDX-License-Identifier: Apache-2.0
#include "passes/merge_gemms.hpp"

#include <algorithm>

#include "base/access.hpp"
#include "passes/dead_code.hpp"
#include "passes/pass_support.hpp"
#include "support/sanitized.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

std::size_t gemms_of(const ir::Graph& graph) {
  return static_cast<std::size_t>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(),
                    [](const ir::Node& node) { return std::holds_alternative<ir::MatmulAttr>(node.attr); }));
}

/// GEMMs after the pass, which must give a valid graph of the same signature.
std::size_t merged(const Graph& g) {
  const ir::Graph after = ir::merge_gemms(ir_of(g));
  ir::verify(after);
  CHECK(signature_of(after) == signature_of(ir_of(g)));
  return gemms_of(after);
}

/// y = f(x) is an output that is no GEMM's result.
void output(Graph& g, const Tensor& x) {
  static const std::string names = "abcdefghijklmnopqrstuvwxyz";
  g.output("out_" + std::string(1, names.at(ir_of(g).outputs.size())), -x);
}

}  // namespace

TEST_CASE("merge_gemms does what its header shows", "[passes]") {
  const ir::Graph before = ir::parse(header_snippet("merge_gemms", "Before"), "snippet");
  const ir::Graph after = ir::parse(header_snippet("merge_gemms", "After"), "snippet");
  CHECK(print(ir::merge_gemms(before)) == print(after));
}

TEST_CASE("merge_gemms: by a shared operand, with any flags, and the same bits", "[passes]") {
  for (int flags = 0; flags < 4; ++flags) {
    for (const bool left : {true, false}) {
      for (const bool batched : {false, true}) {
        INFO("flags " << flags << " left " << left << " batched " << batched);
        const bool ta = flags & 1, tb = flags & 2;
        Graph g("shared");
        const auto shape = [&](bool transposed, std::int64_t rows, std::int64_t columns) {
          std::vector<Dim> dims = {rows, columns};
          if (transposed) std::swap(dims[0], dims[1]);
          if (batched) dims.insert(dims.begin(), 2);
          return dims;
        };
        const Tensor x = g.input("x", f32, left ? shape(ta, 5, 7) : shape(tb, 7, 5));
        for (const std::int64_t extent : {3, 1, 4}) {
          const std::string name = "w" + std::to_string(extent);
          const Tensor w = g.parameter(name, f32, left ? shape(tb, 7, extent) : shape(ta, extent, 7));
          output(g, left ? matmul(x, w, {.transpose_a = ta, .transpose_b = tb})
                         : matmul(w, x, {.transpose_a = ta, .transpose_b = tb}));
        }
        CHECK(merged(g) == 1);
        const bool same = outputs_of(ir::merge_gemms(ir_of(g)), 3) == outputs_of(ir_of(g), 3);
        CHECK(same);
      }
    }
  }
}

TEST_CASE("merge_gemms: the gates of each step, then the steps, if decisions take both", "[passes]") {
  Graph g("steps");
  const Tensor gate = g.parameter("gate", f32, {7, 3}), state = g.parameter("state", f32, {7, 5});
  for (int i = 0; i < 4; ++i) {
    const Tensor x = g.input("x" + std::to_string(i), f32, {2, 7});
    output(g, matmul(x, gate));
    output(g, matmul(x, state));
  }
  CHECK(merged(g) == 1);
  const bool same = outputs_of(ir::merge_gemms(ir_of(g)), 3) == outputs_of(ir_of(g), 3);
  CHECK(same);

  std::vector<std::size_t> asked;
  const auto gates_alone = [&](const ir::Asked& question) {
    asked.push_back(question.nodes.size());
    return !question.graph[question.about].type.dims[1].is(3 + 5);
  };
  CHECK(gemms_of(ir::merge_gemms(ir_of(g), gates_alone)) == 4);
  // The gates of each step; then all steps and their chunks, by rows and by shape.
  CHECK(asked == std::vector<std::size_t>{2, 2, 2, 2, 4, 2, 2, 4, 2, 2});
}

TEST_CASE("merge_gemms: a group in chunks, whatever is asked", "[passes]") {
  const auto at_most = [](std::size_t most) {
    return [most](const ir::Asked& asked) { return asked.nodes.size() <= most; };
  };
  for (const bool left : {true, false}) {
    Graph g("twelve");
    const Tensor shared = left ? g.input("x", f32, {3, 7}) : g.parameter("w", f32, {7, 5});
    for (int i = 0; i < 12; ++i) {
      const std::string name = "m" + std::to_string(i);
      output(g, left ? matmul(shared, g.parameter(name, f32, {7, i % 3 + 1}))
                     : matmul(g.input(name, f32, {i % 3 + 1, 7}), shared));
    }
    for (const auto& [most, expected] : std::vector<std::pair<std::size_t, std::size_t>>{
             {1, 12}, {2, 6}, {3, 6}, {4, 3}, {8, 2}, {11, 2}, {12, 1}}) {
      INFO("left " << left << " at most " << most);
      const ir::Graph chunks = ir::merge_gemms(ir_of(g), at_most(most));
      ir::verify(chunks);
      CHECK(gemms_of(chunks) == expected);
      const bool same = outputs_of(chunks, 3) == outputs_of(ir_of(g), 3);
      CHECK(same);
    }
    CHECK(merged(g) == 1);
  }
}

TEST_CASE("merge_gemms: a chunk is not merged with what was left beside it", "[passes]") {
  for (const int count : {3, 5, 9, 17}) {
    INFO(count << " GEMMs");
    Graph g("odd");
    const Tensor x = g.input("x", f32, {3, 7});
    for (int i = 0; i < count; ++i) output(g, matmul(x, g.parameter("w" + std::to_string(i), f32, {7, 2})));
    const auto most = static_cast<std::size_t>(count) - 1;
    const ir::Graph chunks =
        ir::merge_gemms(ir_of(g), [&](const ir::Asked& asked) { return asked.nodes.size() <= most; });
    CHECK(gemms_of(chunks) == 2);
    const bool same = outputs_of(chunks, 3) == outputs_of(ir_of(g), 3);
    CHECK(same);
  }
}

TEST_CASE("merge_gemms: chunks stay apart where they were merged with those of other groups", "[passes]") {
  Graph g("steps");
  std::vector<Tensor> gates;
  for (int i = 0; i < 4; ++i) gates.push_back(g.parameter("gate" + std::to_string(i), f32, {7, 3}));
  for (int step = 0; step < 4; ++step) {
    const Tensor x = g.input("x" + std::to_string(step), f32, {2, 7});
    for (const Tensor& gate : gates) output(g, matmul(x, gate));
  }
  // Not the four gates of a step; two of them, and all steps of these.
  const auto decide = [](const ir::Asked& asked) {
    const bool of_one_step =
        asked.graph[asked.about].operands[0] == asked.graph[asked.nodes.back()].operands[0];
    return !of_one_step || asked.nodes.size() == 2;
  };
  const ir::Graph chunks = ir::merge_gemms(ir_of(g), decide);
  CHECK(gemms_of(chunks) == 2);
  const bool same = outputs_of(chunks, 3) == outputs_of(ir_of(g), 3);
  CHECK(same);
  CHECK(merged(g) == 1);
}

TEST_CASE("merge_gemms: of more members than a concat takes, chunks stay apart, too", "[passes]") {
  Graph g("forty");
  const Tensor x = g.input("x", f32, {3, 7});
  Tensor sum = tanh(matmul(x, g.parameter("first", f32, {7, 2})));
  for (int i = 1; i < 40; ++i) sum = sum + tanh(matmul(x, g.parameter("w" + std::to_string(i), f32, {7, 2})));
  g.output("y", sum);
  const ir::Graph chunks =
      ir::merge_gemms(ir_of(g), [](const ir::Asked& asked) { return asked.nodes.size() <= 4; });
  CHECK(gemms_of(chunks) == 10);
  CHECK(merged(g) == 1);
}

TEST_CASE("merge_gemms: what was refused is not asked about again", "[passes]") {
  Graph g("refused");
  const Tensor x = g.input("x", f32, {2, 7}), y = g.input("y", f32, {2, 5});
  output(g, matmul(x, g.parameter("a", f32, {7, 3})));
  output(g, matmul(x, g.parameter("b", f32, {7, 4})));
  output(g, matmul(y, g.parameter("c", f32, {5, 6})));
  output(g, matmul(y, g.parameter("d", f32, {5, 8})));
  int asked = 0;
  const auto of_x = [&](const ir::Asked& question) {
    ++asked;
    return question.graph[question.graph[question.about].operands[0]].type.dims[1].is(7);
  };
  CHECK(gemms_of(ir::merge_gemms(ir_of(g), of_x)) == 3);
  CHECK(asked == 2);
}

TEST_CASE("merge_gemms: by a proven equal shape", "[passes]") {
  for (const std::int64_t other : {6, 5}) {  // the last has another k, of the same number of elements or not
    Graph g("shape");
    const Dim B = g.dim("B", {.min = 1, .max = 100, .hint = 8}),
              T = g.dim("T", {.min = 1, .max = 100, .hint = 8});
    for (int i = 0; i < 4; ++i) {
      const std::string n = std::to_string(i);
      const Tensor x = g.input("x" + n, f32, {i % 2 ? B * T : T * B, 6});  // equal as expressions
      output(g, matmul(x, g.parameter("w" + n, f32, {6, 3})));
    }
    const Tensor y = g.input("y", f32, {B * T, other});
    output(g, matmul(y, g.parameter("v", f32, {other, 3})));
    const Tensor z = g.input("z", f32, {B + T, 6});  // may be B * T, and is not proven to be
    output(g, matmul(z, g.parameter("u", f32, {6, 3})));
    CHECK(merged(g) == (other == 6 ? 2 : 3));
  }
}

TEST_CASE("merge_gemms: stacked matrices give the same bits", "[passes]") {
  Graph g("stacked");
  for (int i = 0; i < 40; ++i) {  // more than one concat holds
    const std::string n = std::to_string(i);
    const Tensor x = tanh(g.input("x" + n, f32, {3, 6}));
    g.output("y" + n, -matmul(x, g.parameter("w" + n, f32, {5, 6}), {.transpose_b = true}));
  }
  CHECK(merged(g) == 2);  // 32 and 8, whose shapes differ
  const bool same = outputs_of(ir::merge_gemms(ir_of(g)), 5) == outputs_of(ir_of(g), 5);
  CHECK(same);
}

TEST_CASE("merge_gemms: types and flags that differ stay apart", "[passes]") {
  Graph g("apart");
  const Tensor x = g.input("x", f16, {4, 4});
  const Tensor w = g.parameter("w", f16, {4, 4}), v = g.parameter("v", f16, {4, 4});
  output(g, convert(matmul(x, w), f32));
  output(g, matmul(x, v, {.result = f32}));
  output(g, convert(matmul(x, v, {.transpose_a = true}), f32));
  output(g, convert(matmul(x, v, {.transpose_b = true}), f32));
  CHECK(merged(g) == 4);
}

TEST_CASE("merge_gemms: a path between two keeps them apart, and so does one through other groups",
          "[passes]") {
  Graph chain("chain");
  Tensor x = chain.input("x", f32, {4, 4});
  const Tensor w = chain.parameter("w", f32, {4, 4});
  for (int i = 0; i < 4; ++i) x = matmul(x, w);  // all share w
  output(chain, x);
  CHECK(merged(chain) == 4);

  // x v feeds q u, and p u feeds x w: merging by x and by u would each be right, both a cycle.
  Graph g("crossed");
  const Tensor shared = g.input("x", f32, {4, 4}), u = g.parameter("u", f32, {4, 4});
  const Tensor first = matmul(shared, g.parameter("v", f32, {4, 4}));
  const Tensor second = matmul(g.input("p", f32, {4, 4}), u);
  const Tensor third = matmul(first + 1, u);
  const Tensor fourth = matmul(shared, second + 1);
  output(g, third);
  output(g, fourth);
  merged(g);  // verify finds a cycle, if there is one
  const bool same = outputs_of(ir::merge_gemms(ir_of(g)), 7) == outputs_of(ir_of(g), 7);
  CHECK(same);
}

TEST_CASE("merge_gemms: random nets of GEMMs keep their meaning", "[passes]") {
  std::size_t before = 0, after = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    Graph g("net");
    std::vector<Tensor> values = {g.input("a", f32, {4, 4}), g.input("b", f32, {4, 4})};
    for (int i = 0; i < 6; ++i) values.push_back(g.parameter("p" + std::to_string(i), f32, {4, 4}));
    const auto any = [&] { return values[pick(values.size())]; };
    for (int i = 0; i < 30; ++i) {
      const auto scope = g.scope("s" + std::to_string(pick(3)));
      if (pick(3) == 0) {
        values.push_back(tanh(any() + any()));
      } else {
        values.push_back(matmul(any(), any(), {.transpose_a = pick(2) == 0, .transpose_b = pick(2) == 0}));
      }
    }
    Tensor all = values[0];
    for (std::size_t i = 8; i < values.size(); ++i) all = maximum(all, values[i]);
    g.output("y", all);
    g.output("z", values.back());
    before += gemms_of(ir_of(g));
    after += merged(g);
    const bool same = outputs_of(ir::merge_gemms(ir_of(g)), seed) == outputs_of(ir_of(g), seed);
    CHECK(same);
  }
  CHECK(after < before);
}

TEST_CASE("merge_gemms: not where it copies more than it saves", "[passes]") {
  const auto count = [](std::int64_t rows, bool activations) {
    Graph g("worth");
    const Dim B = g.dim("B", {.min = 1, .max = 1 << 20, .hint = rows});
    const Tensor w = g.parameter("w", f32, {64, 64});
    if (activations) {  // share the weights: the activations would be copied
      for (const char* name : {"x", "y", "z"}) output(g, matmul(g.input(name, f32, {B, 64}), w));
    } else {
      const Tensor x = g.input("x", f32, {B, 64});
      for (const char* name : {"t", "u", "v"}) output(g, matmul(x, g.parameter(name, f32, {64, 64})));
    }
    return merged(g);
  };
  CHECK(count(100, false) == 1);
  CHECK(count(1 << 20, false) == 1);
  CHECK(count(100, true) == 1);
  CHECK(count(1 << 20, true) == 3);

  // An output has to be copied out of the merged result.
  for (const std::int64_t rows : {64, 1 << 18}) {
    Graph g("outputs");
    const Tensor x = g.input("x", f32, {rows, 8});
    for (const char* name : {"t", "u", "v"})
      g.output(name, matmul(x, g.parameter(std::string("p") + name, f32, {8, 64})));
    CHECK(merged(g) == 3);
  }
}

TEST_CASE("merge_gemms: symbolic extents side by side, and huge ones apart", "[passes]") {
  Graph g("extents");
  const Tensor x = g.input("x", f32, {4, 4});
  const Dim N = g.dim("N", {.min = 2, .max = 9, .hint = 8}), M = g.dim("M", {.min = 0, .max = 9, .hint = 8});
  output(g, matmul(x, g.input("u", f32, {4, N - 2})));
  output(g, matmul(x, g.input("v", f32, {4, M * N})));
  output(g, matmul(x, g.input("w", f32, {4, (M + 3) / 4})));
  CHECK(merged(g) == 1);
  Graph huge("huge");
  const Tensor y = huge.input("x", f32, {1, 1});
  for (const char* name : {"v", "w"}) {
    output(huge, matmul(y, huge.parameter(name, f32, {1, std::int64_t{1} << 60})));
  }
  CHECK(merged(huge) == 2);
}

TEST_CASE("merge_gemms: scopes and lines stay", "[passes]") {
  Graph g("provenance");
  const Tensor x = g.input("x", f32, {4, 4}), v = g.parameter("v", f32, {4, 4}),
               w = g.parameter("w", f32, {4, 4});
  const auto outer = g.scope("attention");
  Tensor q, k;
  {
    const auto inner = g.scope("query");
    q = matmul(x, v);
  }
  {
    const auto inner = g.scope("key");
    k = matmul(x, w);
  }
  output(g, q + k);
  const ir::Graph before = ir_of(g), after = ir::merge_gemms(before);
  std::vector<std::string> scopes;
  for (const ir::Node& node : after.nodes) {
    if (std::holds_alternative<ir::NameAttr>(node.attr)) continue;
    CHECK(node.location != 0);
    scopes.push_back(std::string(to_string(node.op)) + " " + after.scope_path(node.scope));
  }
  CHECK(scopes == std::vector<std::string>{"concat attention", "matmul attention", "slice attention.query",
                                           "slice attention.key", "add attention", "neg attention"});
}

TEST_CASE("merge_gemms: depth of 100,000 and 10,000 sharing one operand", "[passes]") {
  const std::size_t count = fewer<std::size_t>(50'000);
  ir::Graph deep;
  deep.nodes.push_back({ir::Op::input, ir::NameAttr{"x"}, {}, {f32, {2, 2}}});
  deep.nodes.push_back({ir::Op::parameter, ir::NameAttr{"w"}, {}, {f32, {2, 2}}});
  for (ir::NodeId i = 0; i < static_cast<ir::NodeId>(count); ++i) {
    deep.nodes.push_back({ir::Op::matmul, ir::MatmulAttr{}, {i == 0 ? 0 : 2 * i + 1, 1}, {f32, {2, 2}}});
    deep.nodes.push_back({ir::Op::neg, ir::NoAttr{}, {2 * i + 2}, {f32, {2, 2}}});
  }
  deep.outputs = {{"y", static_cast<ir::NodeId>(deep.nodes.size() - 1)}};
  ir::verify(deep);
  CHECK(gemms_of(ir::merge_gemms(deep)) == count);

  ir::Graph wide;
  wide.nodes.push_back({ir::Op::input, ir::NameAttr{"x"}, {}, {f32, {2, 2}}});
  for (int i = 0; i < 10000; ++i) {
    wide.nodes.push_back({ir::Op::parameter, ir::NameAttr{"w" + std::to_string(i)}, {}, {f32, {2, 2}}});
  }
  for (ir::NodeId i = 1; i <= 10000; ++i) {
    wide.nodes.push_back({ir::Op::matmul, ir::MatmulAttr{}, {0, i}, {f32, {2, 2}}});
    wide.nodes.push_back(
        {ir::Op::neg, ir::NoAttr{}, {static_cast<ir::NodeId>(wide.nodes.size() - 1)}, {f32, {2, 2}}});
    wide.outputs.push_back({"y" + std::to_string(i), static_cast<ir::NodeId>(wide.nodes.size() - 1)});
  }
  ir::verify(wide);
  const ir::Graph after = ir::merge_gemms(wide);
  ir::verify(after);
  CHECK(gemms_of(after) == 1);  // 313 of 32 each, 10 of these, one
}
