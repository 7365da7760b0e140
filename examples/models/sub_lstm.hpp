// A language model of layers of subLSTMs (Costa et al. 2017, "Cortical microcircuits as gated-recurrent
// neural networks", section 2), whose gates subtract:
//
//   i, f, o, z = sigmoid(W x + R h + b),   c' = f * c + z - i,   h' = sigmoid(c') - o
//
// y = softmax(V h' + b) of the top layer. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "stacked_lstm.hpp"

namespace example {

/// As StackedLstm.
struct SubLstm {
  std::int64_t batch = 16, steps = 35, layers = 2;
  std::int64_t input = 650, hidden = 650, vocabulary = 10000;
  fuse::DType dtype = fuse::f32;

  /// The Penn Treebank (10,000 words). Astra prints no sizes but batches of 8 to 256, of which 16 is chosen
  /// here. 2 layers of 650 units and 35 steps are "medium" of Zaremba et al. 2014, chosen here too.
  static SubLstm paper() { return {}; }
  static SubLstm small() {
    return {.batch = 2, .steps = 3, .layers = 2, .input = 3, .hidden = 4, .vocabulary = 9};
  }
};

class SubLstmLayer {
 public:
  SubLstmLayer(LanguageModel& language, const std::string& name, std::int64_t input, std::int64_t hidden)
      : i_(language, "i." + name, input, hidden),
        f_(language, "f." + name, input, hidden),
        o_(language, "o." + name, input, hidden),
        z_(language, "z." + name, input, hidden) {}

  /// Eight GEMMs.
  CellState step(const Var& x, const CellState& before) const {
    const Var i = sigmoid(i_(x, before)), f = sigmoid(f_(x, before));
    const Var o = sigmoid(o_(x, before)), z = sigmoid(z_(x, before));
    const Var c = f * before.c + z - i;
    return {.h = sigmoid(c) - o, .c = c};
  }

 private:
  Gate i_, f_, o_, z_;
};

/// 8 layers + 1 GEMMs a step.
inline fuse::Graph build_sub_lstm(const SubLstm& model, const Purpose& purpose = {}) {
  const StackedLstm stack = {.batch = model.batch,
                             .steps = model.steps,
                             .layers = model.layers,
                             .input = model.input,
                             .hidden = model.hidden,
                             .vocabulary = model.vocabulary,
                             .dtype = model.dtype};
  return build_stack<SubLstmLayer>("sub_lstm", stack, purpose);
}

inline fuse::Graph build_sub_lstm_training(const SubLstm& model, double rate = 0) {
  return build_sub_lstm(model, {.training = true, .rate = rate});
}

}  // namespace example
