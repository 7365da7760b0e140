// A language model of layers of LSTMs (Zaremba et al. 2014, "Recurrent neural network regularization",
// section 3, without dropout). A layer reads x, the state h of the layer below:
//
//   i, f, o = sigmoid(W x + R h + b),   z = tanh(W x + R h + b),   c' = f * c + i * z,   h' = o * tanh(c')
//
// with weights of each gate's own; y = softmax(V h' + b) of the top layer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "language_model.hpp"

namespace example {

struct StackedLstm {
  std::int64_t batch = 16, steps = 35, layers = 2;
  std::int64_t input = 1500, hidden = 1500, vocabulary = 10000;
  fuse::DType dtype = fuse::f32;

  /// "Large" of Zaremba et al. for the Penn Treebank: 2 layers of 1500 units, 35 steps, 10,000 words. Of
  /// these Astra prints the input, 1500. Of its batches, 8 to 256, 16 is chosen here; Zaremba et al. have 20.
  static StackedLstm paper() { return {}; }
  static StackedLstm small() {
    return {.batch = 2, .steps = 3, .layers = 2, .input = 3, .hidden = 4, .vocabulary = 9};
  }
};

struct CellState {
  Var h, c;
};

/// W x + R h + b of one gate, with weights of its own. A state that is not there is 0, and has no GEMM.
class Gate {
 public:
  Gate(LanguageModel& language, const std::string& name, std::int64_t input, std::int64_t hidden)
      : W_(language.weight("W." + name, {input, hidden})),
        R_(language.weight("R." + name, {hidden, hidden})),
        b_(language.weight("b." + name, {hidden})) {}

  Var operator()(const Var& x, const std::optional<CellState>& before) const {
    // Named one by one: the order in which an operator evaluates its operands is the compiler's.
    const Var Wx = matmul(x, W_);
    if (!before) return Wx + b_;
    const Var Rh = matmul(before->h, R_);
    return Wx + Rh + b_;
  }

 private:
  Var W_, R_, b_;
};

/// One layer, whose weights are W.i.NAME and so on.
class LstmLayer {
 public:
  LstmLayer(LanguageModel& language, const std::string& name, std::int64_t input, std::int64_t hidden)
      : i_(language, "i." + name, input, hidden),
        f_(language, "f." + name, input, hidden),
        o_(language, "o." + name, input, hidden),
        z_(language, "z." + name, input, hidden) {}

  /// Eight GEMMs; without a state three, as the forget gate then has nothing to keep.
  CellState step(const Var& x, const std::optional<CellState>& before) const {
    const Var i = sigmoid(i_(x, before)), o = sigmoid(o_(x, before)), z = tanh(z_(x, before));
    Var c = i * z;
    if (before) {
      const Var kept = sigmoid(f_(x, before)) * before->c;
      c = kept + c;
    }
    return {.h = o * tanh(c), .c = c};
  }

 private:
  Gate i_, f_, o_, z_;
};

/// A stack of layers, of LSTMs or others, with its states.
template <class Layer>
inline fuse::Graph build_stack(const std::string& name, const StackedLstm& model, const Purpose& purpose) {
  LanguageModel language(name, model.batch, model.steps, model.dtype, purpose);
  const std::vector<Var> words = language.words(model.vocabulary, model.input);
  std::vector<Layer> layers;
  std::vector<CellState> states;
  for (std::int64_t l = 0; l < model.layers; ++l) {
    layers.emplace_back(language, std::to_string(l), l == 0 ? model.input : model.hidden, model.hidden);
    const Var h = language.state(numbered("h", l), model.hidden);
    states.push_back({.h = h, .c = language.state(numbered("c", l), model.hidden)});
  }
  const Var V = language.weight("V", {model.hidden, model.vocabulary});
  const Var b = language.weight("b", {model.vocabulary});
  std::vector<Var> logits;
  for (Var x : words) {
    const auto scope = language.step(logits.size());
    for (std::size_t l = 0; l < layers.size(); ++l) {
      states[l] = layers[l].step(x, states[l]);
      x = states[l].h;
    }
    logits.push_back(matmul(x, V) + b);
  }
  for (std::int64_t l = 0; l < model.layers; ++l) {
    language.next_state(numbered("h", l), states[static_cast<std::size_t>(l)].h);
    language.next_state(numbered("c", l), states[static_cast<std::size_t>(l)].c);
  }
  return language.finish(logits);
}

/// 8 layers + 1 GEMMs a step.
inline fuse::Graph build_stacked_lstm(const StackedLstm& model, const Purpose& purpose = {}) {
  return build_stack<LstmLayer>("stacked_lstm", model, purpose);
}

inline fuse::Graph build_stacked_lstm_training(const StackedLstm& model, double rate = 0) {
  return build_stacked_lstm(model, {.training = true, .rate = rate});
}

}  // namespace example
