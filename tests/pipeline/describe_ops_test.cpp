// SPDX-License-Identifier: Apache-2.0
#include <fuse/fuse.hpp>
#include <numeric>

#include "base/access.hpp"
#include "compile/program_of.hpp"
#include "ir/graph/ir_graph.hpp"
#include "support/catch.hpp"

namespace fuse::test {

TEST_CASE("ops are described scope by scope, and those that are too many counted", "[pipeline]") {
  Graph g("scopes");
  const Tensor x = g.input("x", f32, {4, 8});
  Tensor y = exp(x);
  {
    const auto outer = g.scope("norm");
    y = tanh(sqrt(y));
    const auto inner = g.scope("mean");
    y = sum(y, {1});
  }
  g.output("y", -y);
  const ir::Graph& graph = ir_of(g);
  std::vector<ir::NodeId> nodes(graph.nodes.size());
  std::iota(nodes.begin(), nodes.end(), ir::NodeId{0});
  CHECK(runtime::describe_ops(graph, nodes, 9) ==
        "input, exp; sqrt, tanh in norm; reduce_sum in norm.mean; neg");
  CHECK(runtime::describe_ops(graph, nodes, 6) ==
        "input, exp; sqrt, tanh in norm; reduce_sum in norm.mean; neg");
  CHECK(runtime::describe_ops(graph, nodes, 3) == "input, exp; sqrt in norm; and 3 more");
  CHECK(runtime::describe_ops(graph, {}, 3).empty());
}

}  // namespace fuse::test
