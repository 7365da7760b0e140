// A language model of an LSTM with multiplicative integration (Wu et al. 2016, "On multiplicative integration
// with recurrent neural networks", sections 2 and appendix A): what the input and the state give to a gate is
// multiplied as well as added. Each of the gates i, f, o and z is
//
//   al * W x * U h + b1 * U h + b2 * W x + b,
//
// with vectors al, b1, b2 and b and `*` element by element, behind a sigmoid, and behind tanh for z. Then
//
//   c' = f * c + i * z,   h' = o * tanh(c'),   y = softmax(V h' + b)
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "language_model.hpp"

namespace example {

struct MiLstm {
  std::int64_t batch = 16, steps = 50;
  std::int64_t input = 1024, hidden = 1024, vocabulary = 205;
  fuse::DType dtype = fuse::f32;

  /// The Hutter challenge, text of 205 different bytes. Astra prints no sizes but batches of 8 to 256, of
  /// which 16 is chosen here. 1024 units are those of the LSTM whose GEMMs are in Astra's Table 1
  /// (64x1024x4096, for all four gates); embeddings as wide and 50 steps are chosen.
  static MiLstm paper() { return {}; }
  static MiLstm small() { return {.batch = 2, .steps = 3, .input = 3, .hidden = 4, .vocabulary = 9}; }
};

/// A gate before its function.
class MiGate {
 public:
  MiGate(LanguageModel& language, const std::string& name, std::int64_t input, std::int64_t hidden)
      : W_(language.weight("W." + name, {input, hidden})),
        U_(language.weight("U." + name, {hidden, hidden})),
        al_(language.weight("al." + name, {hidden})),
        b1_(language.weight("b1." + name, {hidden})),
        b2_(language.weight("b2." + name, {hidden})),
        b_(language.weight("b." + name, {hidden})) {}

  Var operator()(const Var& x, const Var& h) const {
    const Var Wx = matmul(x, W_), Uh = matmul(h, U_);
    // Named one by one: the order in which an operator evaluates its operands is the compiler's.
    const Var both = al_ * Wx * Uh, by_state = b1_ * Uh, by_input = b2_ * Wx;
    return both + by_state + by_input + b_;
  }

 private:
  Var W_, U_, al_, b1_, b2_, b_;
};

/// Nine GEMMs a step.
inline fuse::Graph build_mi_lstm(const MiLstm& model, const Purpose& purpose = {}) {
  LanguageModel language("mi_lstm", model.batch, model.steps, model.dtype, purpose);
  const std::vector<Var> words = language.words(model.vocabulary, model.input);
  const MiGate i(language, "i", model.input, model.hidden), f(language, "f", model.input, model.hidden);
  const MiGate o(language, "o", model.input, model.hidden), z(language, "z", model.input, model.hidden);
  const Var V = language.weight("V", {model.hidden, model.vocabulary});
  const Var b = language.weight("b", {model.vocabulary});
  Var h = language.state("h", model.hidden), c = language.state("c", model.hidden);
  std::vector<Var> logits;
  for (const Var& x : words) {
    const auto scope = language.step(logits.size());
    const Var in = sigmoid(i(x, h)), forget = sigmoid(f(x, h)), out = sigmoid(o(x, h)), block = tanh(z(x, h));
    const Var kept = forget * c, taken = in * block;
    c = kept + taken;
    h = out * tanh(c);
    logits.push_back(matmul(h, V) + b);
  }
  language.next_state("h", h);
  language.next_state("c", c);
  return language.finish(logits);
}

inline fuse::Graph build_mi_lstm_training(const MiLstm& model, double rate = 0) {
  return build_mi_lstm(model, {.training = true, .rate = rate});
}

}  // namespace example
