// The GEMMs of Astra's models before any are merged: how many, and the patterns that Astra looks for in them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "../../examples/models/gnmt.hpp"
#include "../../examples/models/mi_lstm.hpp"
#include "../../examples/models/scrn.hpp"
#include "../../examples/models/sub_lstm.hpp"
#include "base/access.hpp"
#include "models/reference_runs.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

bool is_product(const ir::Graph& graph, ir::NodeId id) { return graph[id].op == ir::Op::matmul; }

}  // namespace

TEST_CASE("astra gemms: GEMMs are those of the equations", "[models]") {
  const example::Scrn scrn = example::Scrn::small();
  const example::MiLstm mi = example::MiLstm::small();
  const example::StackedLstm lstm = example::StackedLstm::small();
  const example::SubLstm sub = example::SubLstm::small();
  const example::Gnmt gnmt = example::Gnmt::small();
  const std::int64_t T = 3, L = 2;

  // Forward, a step: A, B, P, R, U, V; W and U of four gates, and V; W and R of four gates a layer, and V.
  CHECK(matmuls_of(build_scrn(scrn)) == 6 * T);
  CHECK(matmuls_of(build_mi_lstm(mi)) == 9 * T);
  CHECK(matmuls_of(build_stacked_lstm(lstm)) == (8 * L + 1) * T);
  CHECK(matmuls_of(build_sub_lstm(sub)) == (8 * L + 1) * T);

  // Backward, each gives two: one for the weight, one for what it is multiplied with. Inputs, and the states
  // of the first step, which are multiplied with R or U, need none.
  CHECK(matmuls_of(build_scrn_training(scrn)) == 6 * T + (2 * 6 * T - 2 * T - 1));
  CHECK(matmuls_of(build_mi_lstm_training(mi)) == 9 * T + (2 * 9 * T - 4 * T - 4));
  const std::int64_t stack = (8 * L + 1) * T;
  CHECK(matmuls_of(build_stacked_lstm_training(lstm)) == stack + (2 * stack - 4 * T - 4 * L));
  CHECK(matmuls_of(build_sub_lstm_training(sub)) == stack + (2 * stack - 4 * T - 4 * L));

  // A layer of GNMT begins without a state, so with three gates and no product of it. Its words need no
  // gradient where they are all that a layer reads, which is in the encoder's bottom layer.
  const std::int64_t layer = 8 * T - 5, layers = 3;
  const std::int64_t forward = (2 * layers + 1) * layer + 1 + (T - 1) + T;
  CHECK(matmuls_of(build_gnmt(gnmt)) == forward);
  CHECK(matmuls_of(build_gnmt_training(gnmt)) == forward + (2 * forward - 2 * (4 * T - 1)));

  // At the papers' sizes, all of which can be built.
  CHECK(matmuls_of(build_scrn(example::Scrn::paper())) == 6 * 30);
  CHECK(matmuls_of(build_mi_lstm(example::MiLstm::paper())) == 9 * 50);
  CHECK(matmuls_of(build_stacked_lstm(example::StackedLstm::paper())) == 17 * 35);
  CHECK(matmuls_of(build_sub_lstm(example::SubLstm::paper())) == 17 * 35);
  CHECK(matmuls_of(build_gnmt(example::Gnmt::paper())) == 17 * (8 * 13 - 5) + 2 * 13);
}

TEST_CASE("astra gemms: a weight's gradient is a ladder of a product a step", "[models]") {
  const Graph built = build_scrn_training(example::Scrn::small());
  const ir::Graph& graph = ir_of(built);
  int gradients = 0;
  for (const ir::Output& output : graph.outputs) {
    if (!output.name.starts_with("d.")) continue;
    INFO(output.name);
    ++gradients;
    ir::NodeId at = output.node;
    int products = 1;
    for (; graph[at].op == ir::Op::add; at = graph[at].operands[0], ++products)
      CHECK(is_product(graph, graph[at].operands[1]));
    CHECK(is_product(graph, at));
    CHECK(products == 3);
  }
  CHECK(gradients == 6);
}

// As in Astra's Figure 1. Where a^T g and a^T k share a, one GEMM makes both if g and k lie side by side. The
// gradient g of P s + A x + R h is wanted beside that of s for x, beside that of y for s, and beside that of
// the y before for the h before: it can lie beside one of them. That of y is wanted beside two g's.
TEST_CASE("astra gemms: the backward of an SCRN wants values in two places at once", "[models]") {
  const Graph built = build_scrn_training(example::Scrn::small());
  const ir::Graph& graph = ir_of(built);
  std::map<ir::NodeId, std::set<ir::NodeId>> side_by_side;  // by what they are multiplied with
  for (const ir::Node& node : graph.nodes) {
    if (node.op == ir::Op::matmul && std::get<ir::MatmulAttr>(node.attr).transpose_a)
      side_by_side[node.operands[0]].insert(node.operands[1]);
  }
  std::map<ir::NodeId, int> wanted;
  for (const auto& [common, gradients] : side_by_side) {
    if (gradients.size() < 2) continue;
    for (const ir::NodeId gradient : gradients) ++wanted[gradient];
  }
  const auto torn = std::count_if(wanted.begin(), wanted.end(), [](const auto& at) { return at.second > 1; });
  CHECK(torn == 3 + 2);  // of 3 steps; the last one's y has no h after it
}

TEST_CASE("astra gemms: what the gradients of a step need is in a scope of its name", "[models]") {
  const Graph built = build_stacked_lstm_training(example::StackedLstm::small());
  const ir::Graph& graph = ir_of(built);
  std::map<std::string, int> products;
  for (const ir::Node& node : graph.nodes) {
    if (node.op == ir::Op::matmul) ++products[graph.scope_path(node.scope)];
  }
  const int forward = 8 * 2 + 1, backward = 2 * forward - 4;  // words need no gradient, nor do first states
  CHECK(products == std::map<std::string, int>{{"step.0", forward},
                                               {"step.1", forward},
                                               {"step.2", forward},
                                               {"backward.step.0", backward - 4 * 2},
                                               {"backward.step.1", backward},
                                               {"backward.step.2", backward}});
}
