// What the tests of graph passes share: the snippets of a pass's header, random graphs, and running them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <fuse/fuse.hpp>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/access.hpp"
#include "eval/evaluate.hpp"
#include "ir/graph/verify.hpp"
#include "ir/text/print.hpp"
#include "support/golden.hpp"
#include "tensors/random_fill.hpp"

namespace fuse::test {

/// The header of a pass over the graph.
inline std::filesystem::path pass_header(const std::string& pass) {
  const std::filesystem::path passes = source_directory() / "src/passes", file = pass + ".hpp";
  return std::filesystem::exists(passes / file) ? passes / file : passes / "rewrite" / file;
}

/// The text after "// Before:" (or "// After:") in the header of a pass, with the indented lines below.
inline std::string header_snippet(const std::string& pass, const std::string& label) {
  const auto path = pass_header(pass);
  std::ifstream in(path);
  INFO("header " << path);
  REQUIRE(in.is_open());
  const std::string start = "// " + label + ":";
  std::string line, text;
  while (std::getline(in, line) && !line.starts_with(start)) {}
  if (!in) FAIL("no line " << start);
  for (text = line.substr(start.size()); std::getline(in, line) && line.starts_with("//  ");) {
    text += '\n' + line.substr(2);
  }
  return text;
}

/// Bit for bit; a NaN is as good as another.
inline bool same_bits(const runtime::ReferenceTensor& a, const runtime::ReferenceTensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (!a.is_real()) return std::ranges::equal(a.integer(), b.integer());
  return std::ranges::equal(a.real(), b.real(), [](double x, double y) {
    return (std::isnan(x) && std::isnan(y)) ||
           std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  });
}

/// A snippet as a graph; statements alone stand in a graph of %x whose last value is the output.
inline ir::Graph parse_snippet(std::string text) {
  if (text.find("graph @") == std::string::npos) {
    const std::size_t equals = text.rfind(" = "), percent = text.rfind('%', equals);
    text = "graph @g(%x: f32[4]) -> (y: f32[4]) {" + text +
           " return y = " + text.substr(percent, equals - percent) + " }";
  }
  return ir::parse(text, "snippet");
}

/// A graph of `count` ops over few shapes with much repetition, of which about half is dead.
inline ir::Graph random_graph(std::uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  Graph g("random");
  std::vector<Tensor> rows = {g.input("a", f32, {3, 5}), g.input("b", f32, {3, 5}),
                              g.parameter("p", f32, {3, 5}), g.input("unused", f32, {3, 5})};
  std::vector<Tensor> narrow = {g.input("c", f32, {3})};
  std::vector<Tensor> integers = {g.input("i", i64, {3, 5})};
  const auto row = [&] { return rows[pick(rows.size())]; };
  for (int n = 0; n < count; ++n) {
    const auto scope = g.scope("s" + std::to_string(pick(3)));
    switch (pick(14)) {
      case 0:
        rows.push_back(row() + row());
        break;
      case 1:
        rows.push_back(row() * 0.5);
        break;
      case 2:
        rows.push_back(maximum(row(), row()));
        break;
      case 3:
        rows.push_back(tanh(row()));
        break;
      case 4:
        narrow.push_back(sum(row(), {1}));
        break;
      case 5:
        narrow.push_back(max(row(), {1}));
        break;
      case 6:
        rows.push_back(broadcast_in_dim(narrow[pick(narrow.size())], {3, 5}, {0}));
        break;
      case 7:
        rows.push_back(transpose(reshape(row(), {5, 3}), {1, 0}));
        break;
      case 8:
        rows.push_back(concat({slice(row(), 1, 2, 5), slice(row(), 1, 0, 2)}, 1));
        break;
      case 9:
        rows.push_back(select(row() < row(), row(), row()));
        break;
      case 10:
        rows.push_back(convert(convert(row(), bf16), f32));
        break;
      case 11:
        integers.push_back(integers[pick(integers.size())] * 3 + g.iota(i64, {3, 5}, 1));
        break;
      case 12:
        rows.push_back(convert(integers[pick(integers.size())], f32));
        break;
      case 13:
        rows.push_back(row() + g.constant(f32, pick(2) ? 0.0 : -0.0, {3, 5}));
        break;
    }
  }
  g.output("row", rows.back());
  g.output("other", rows[pick(rows.size())]);
  g.output("narrow", narrow.back());
  g.output("integer", integers.back());
  return ir_of(g);
}

/// Each output's bytes in the graph's own types.
inline std::map<std::string, std::vector<std::byte>> outputs_of(const ir::Graph& graph, std::uint64_t seed) {
  runtime::Values values;
  for (const ir::Node& node : graph.nodes) {
    const auto* named = std::get_if<ir::NameAttr>(&node.attr);
    if (!named) continue;
    std::vector<std::int64_t> shape;
    for (const Dim& dim : node.type.dims) shape.push_back(dim.constant());
    auto tensor = runtime::HostTensor::make(node.type.dtype, shape);
    runtime::random_fill(tensor, seed, named->name, -4, 4);
    values.emplace(named->name, std::move(tensor));
  }
  const auto no_dims = [](std::string_view) -> std::int64_t { return 0; };
  std::map<std::string, std::vector<std::byte>> bytes;
  for (const auto& [name, tensor] : evaluate(graph, values, no_dims, runtime::Precision::same_type).outputs) {
    bytes[name] = tensor.to_host().data;
  }
  return bytes;
}

/// The names of inputs and parameters, in graph order.
inline std::vector<std::string> signature_of(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::Node& node : graph.nodes) {
    if (const auto* named = std::get_if<ir::NameAttr>(&node.attr)) names.push_back(named->name);
  }
  return names;
}

/// A pass keeps what a graph means: verified, the same signature and outputs, and idempotent.
inline void check_pass_on_random_graphs(ir::Graph (*pass)(const ir::Graph&)) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    const ir::Graph before = random_graph(seed, 20 + static_cast<int>(seed) * 3);
    const ir::Graph after = pass(before);
    ir::verify(after);
    CHECK(signature_of(after) == signature_of(before));
    CHECK(print(pass(after)) == print(after));
    const bool same = outputs_of(after, seed) == outputs_of(before, seed);
    CHECK(same);
  }
}

}  // namespace fuse::test
