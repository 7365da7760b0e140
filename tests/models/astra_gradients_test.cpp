// The gradients that the models of Astra's paper emit, against central differences of their losses.
//
// A difference with step h is wrong by h^2 / 6 of the third derivative, which is about 1 here, and by the
// rounding of two losses of about 2, divided by 2 h. At h = 1e-5 in f64 both are about 2e-11: 6e-11 is the
// most that was seen of the models. The bound is 1e-9, and as much of the gradient. A wrong sign is twice the
// gradient, which is above 1e-6 in an element of each weight.
// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "../../examples/models/gnmt.hpp"
#include "../../examples/models/mi_lstm.hpp"
#include "../../examples/models/scrn.hpp"
#include "../../examples/models/sub_lstm.hpp"
#include "models/reference_runs.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

void check_gradients(const Graph& graph) {
  ReferenceRun run(graph);
  run.run();
  std::map<std::string, Row> gradients;
  for (const Slot& slot : run.slots()) {
    if (slot.kind == Slot::Kind::output && slot.name.starts_with("d."))
      gradients[slot.name.substr(2)] = run.output(slot.name);
  }
  REQUIRE(!gradients.empty());
  for (const auto& [name, gradient] : gradients) {
    double most = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const double step = 1e-5, value = run.values.at(name).get(at);
      const auto loss_at = [&](double moved) {
        run.set(name, at, moved);
        run.run();
        return run.output("loss").front();
      };
      const double above = loss_at(value + step), difference = (above - loss_at(value - step)) / (2 * step);
      run.set(name, at, value);
      INFO(graph.name() << ", " << name << "[" << i << "]: " << gradient[i] << ", not " << difference);
      CHECK(std::abs(gradient[i] - difference) <= 1e-9 * (1 + std::abs(difference)));
      most = std::max(most, std::abs(gradient[i]));
    }
    INFO(graph.name() << ", " << name);
    CHECK(most > 1e-6);
  }
}

template <class Model>
Model exact(Model model) {
  model.dtype = f64;
  return model;
}

}  // namespace

TEST_CASE("astra gradients: each op of a tape passes its gradient", "[models]") {
  Graph g("tape");
  example::Tape tape(g);
  const auto weight = [&](const char* name, std::vector<Dim> dims) {
    return tape.wanted(g.parameter(name, f64, std::move(dims)));
  };
  const example::Var a = weight("a", {3, 4}), b = weight("b", {4, 5}), c = weight("c", {5, 3});
  const example::Var row = weight("row", {5}), one = weight("one", {1, 5});
  const example::Var x = tape.given(g.input("x", f64, {3, 4}));
  const example::Var ab = matmul(a, b) + row, tab = matmul(b, a, true, true);  // [3, 5], [5, 3]
  const example::Var left = 0.2 * (tanh(ab) * one - (2 - matmul(x, b)));
  const example::Var square = matmul(left, left, true);  // [5, 5], of one value twice
  const example::Var right = sigmoid(reshape(tab, {3, 5}) - row) * matmul(c, square, true);
  const example::Var shares =
      softmax(matmul(left, c), 0) - sum(right, 1) + matmul(left, right, false, true);  // [3, 3]
  const example::Var wide =
      example::concat({slice(shares, 1, 1, 3), 0.5 * left, slice(left, 1, 0, 2)}, 1);  // [3, 9]
  const Tensor targets = g.input("targets", i32, {2, 3});
  const example::Var loss = example::mean_cross_entropy({matmul(shares, wide), wide}, targets);
  g.output("loss", loss.value);
  tape.run_back(loss);
  for (const auto& [name, var] :
       std::map<std::string, example::Var>{{"a", a}, {"b", b}, {"c", c}, {"row", row}, {"one", one}})
    g.output("d." + name, tape.gradient(var));
  CHECK(!tape.gradient(x).valid());
  check_gradients(g);
}

TEST_CASE("astra gradients: those of an SCRN are central differences of its loss", "[models]") {
  check_gradients(build_scrn_training(exact(example::Scrn::small())));
}

TEST_CASE("astra gradients: those of an LSTM with multiplicative integration are, too", "[models]") {
  check_gradients(build_mi_lstm_training(exact(example::MiLstm::small())));
}

TEST_CASE("astra gradients: those of stacks are, too", "[models]") {
  check_gradients(build_stacked_lstm_training(exact(example::StackedLstm::small())));
  check_gradients(build_sub_lstm_training(exact(example::SubLstm::small())));
}

TEST_CASE("astra gradients: those of GNMT are, too", "[models][not-sanitized]") {
  check_gradients(build_gnmt_training(exact(example::Gnmt::small())));
}

TEST_CASE("astra gradients: a weight that no step reads has the gradient 0", "[models]") {
  example::Gnmt model = exact(example::Gnmt::small());
  model.target = 1;  // then nothing was said that attention could be asked by, and no cell to forget
  ReferenceRun run(build_gnmt_training(model));
  run.run();
  CHECK(run.output("d.Q") == Row(9));
  CHECK(run.output("d.W.f.decoder.1") == Row(18));
  CHECK(run.output("d.K") != Row(9));
}

TEST_CASE("astra gradients: a run with a rate moves each weight in its own memory", "[models]") {
  const example::Scrn model = exact(example::Scrn::small());
  ReferenceRun gradients(build_scrn_training(model)), moving(build_scrn_training(model, 0.5));
  for (const auto& [name, tensor] : gradients.values) {
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) moving.set(name, i, tensor.get(i));
  }
  gradients.run();
  moving.run();
  for (const std::string name : {"A", "B", "P", "R", "U", "V"}) {
    const Row moved = moving.output("new." + name), gradient = gradients.output("d." + name);
    for (std::size_t i = 0; i < moved.size(); ++i) {
      const double before = gradients.values.at(name).get(static_cast<std::int64_t>(i));
      CHECK(std::abs(moved[i] - (before - 0.5 * gradient[i])) <= 1e-15);
    }
  }
  double loss = gradients.output("loss").front();
  for (int run = 0; run < 5; ++run) {  // each run begins with the weights that the last one left
    moving.run();
    CHECK(moving.output("loss").front() < loss);
    loss = moving.output("loss").front();
  }
}

TEST_CASE("astra gradients: what is compiled is right", "[models][device]") {
  example::Scrn scrn = example::Scrn::small();
  example::MiLstm mi = example::MiLstm::small();
  example::SubLstm sub = example::SubLstm::small();
  example::StackedLstm lstm = example::StackedLstm::small();
  scrn.steps = mi.steps = sub.steps = lstm.steps = 2;  // few kernels, which take a compiler minutes
  sub.layers = lstm.layers = 1;
  check_model(build_scrn_training(scrn));
  check_model(build_mi_lstm_training(mi));
  check_model(build_sub_lstm_training(sub));
  check_model(build_stacked_lstm_training(lstm));
}
