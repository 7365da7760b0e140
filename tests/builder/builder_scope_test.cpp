// SPDX-License-Identifier: Apache-2.0
#include <fuse/functions.hpp>
#include <set>

#include "base/access.hpp"
#include "builder_support.hpp"

using namespace fuse;
using namespace fuse::test;

namespace {
std::string path_of_last(const Graph& g) { return ir_of(g).scope_path(last_node(g).scope); }
}  // namespace

TEST_CASE("scopes nest and end in reverse order", "[builder][scope]") {
  Graph g;
  Tensor x = g.input("x", f32, {4});
  REQUIRE(path_of_last(g).empty());
  {
    const auto block = g.scope("block");
    const std::uint32_t line = __LINE__ - 1;
    x = x + 1;
    REQUIRE(path_of_last(g) == "block");
    {
      const auto inner = g.scope("inner");
      x = x + 1;
      REQUIRE(path_of_last(g) == "block.inner");
    }
    x = x + 1;
    REQUIRE(path_of_last(g) == "block");
    const ir::Scope& scope = ir_of(g).scopes[last_node(g).scope];
    REQUIRE(ir_of(g).locations[scope.location] == SourceLocation("builder_scope_test.cpp", line));
  }
  x = x + 1;
  REQUIRE(path_of_last(g).empty());
}

TEST_CASE("a moved guard closes its scope once", "[builder][scope]") {
  Graph g;
  const Tensor x = g.input("x", f32, {4});
  const auto outer = g.scope("outer");
  {
    auto first = g.scope("inner");
    const ScopeGuard second = std::move(first);
    exp(x);
    REQUIRE(path_of_last(g) == "outer.inner");
  }
  exp(x);
  REQUIRE(path_of_last(g) == "outer");
}

TEST_CASE("an exception closes scopes", "[builder][scope]") {
  Graph g;
  const Tensor x = g.input("x", f32, {4});
  REQUIRE_THROWS_AS(
      [&] {
        const auto scope = g.scope("s");
        transpose(x, {3});
      }(),
      Error);
  exp(x);
  REQUIRE(path_of_last(g).empty());
}

TEST_CASE("a scope outlives its graph", "[builder][scope]") {
  std::optional<Graph> g(std::in_place);
  const auto scope = g->scope("s");
  g.reset();
  SUCCEED();  // closing touches only what the guard holds
}

TEST_CASE("a scope has a name", "[builder][scope]") {
  Graph g;
  REQUIRE(error_of([&](auto& at) { at = here(), (void)g.scope(""); }) ==
          "HERE: scope(): a scope's name is empty\n  hint: give it a name");
}

TEST_CASE("compound functions open scopes in the user's", "[builder][scope]") {
  Graph g;
  const Tensor x = g.input("x", f32, {4, 8}), w = g.input("w", f32, {8});
  const auto block = g.scope("block");
  const std::size_t first = ir_of(g).nodes.size();
  layer_norm(x, w, w);
  std::set<std::string> paths;
  for (std::size_t id = first; id < ir_of(g).nodes.size(); ++id) {
    paths.insert(ir_of(g).scope_path(ir_of(g).nodes[id].scope));
  }
  REQUIRE(paths ==
          std::set<std::string>{"block.layer_norm", "block.layer_norm.mean", "block.layer_norm.var"});
  for (const ir::Scope& scope : ir_of(g).scopes) {
    if (scope.name == "var") REQUIRE(ir_of(g).locations[scope.location] == ir_of(g).location(last_node(g)));
  }
}
