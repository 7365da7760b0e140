// Google's neural machine translation (Wu et al. 2016, "Google's neural machine translation system", section
// 3): an encoder and a decoder of LSTMs, and attention between them.
//
// - The bottom layer of the encoder reads in both directions; what they give stands side by side.
// - From the third layer on, a layer's input is added to its output, in encoder and decoder.
// - Attention is a network with one hidden layer: score_j = v tanh(Q q + K m_j) of the encoder's outputs m_j.
//   It is asked by q, the output of the decoder's bottom layer at the step before, and its context, the sum
//   of softmax(score)_j m_j, stands beside the input of every layer of the decoder.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stacked_lstm.hpp"

namespace example {

struct Gnmt {
  std::int64_t batch = 16, source = 13, target = 13;
  std::int64_t layers = 8;  ///< of the encoder, the bottom one in two directions, and of the decoder; above 1
  std::int64_t input = 1024, hidden = 1024, vocabulary = 32000;
  fuse::DType dtype = fuse::f32;

  /// 8 + 8 layers of 1024 and 32,000 word pieces are those of Wu et al. Astra prints of GNMT only batches of
  /// 8 to 256, of which 16 is chosen here, as are the lengths, 13, which is the least of the buckets that
  /// Astra names for another text. States begin at 0.
  static Gnmt paper() { return {}; }
  static Gnmt small() {
    return {.batch = 2, .source = 3, .target = 3, .layers = 3, .input = 2, .hidden = 3, .vocabulary = 9};
  }
};

class GnmtGraph {
 public:
  GnmtGraph(const Gnmt& model, const Purpose& purpose)
      : model_(model), language_("gnmt", model.batch, model.target, model.dtype, purpose) {}

  /// Forward: source i32 [S, B] and target i32 [T, B], the words before those that are predicted, to y
  /// [T, B, vocabulary]. Training has both as vectors, and targets i32 [T, B].
  fuse::Graph build() {
    const std::vector<Var> memory = encode(words("source", model_.source));
    const std::vector<Var> given = words("target", model_.target);
    return language_.finish(decode(given, memory));
  }

 private:
  std::vector<Var> words(const std::string& name, std::int64_t steps) {
    return language_.words(name, name + ".words", steps, model_.vocabulary, model_.input);
  }

  std::vector<Var> encode(const std::vector<Var>& x) {
    const auto scope = language_.graph().scope("encoder");
    const std::int64_t H = model_.hidden;
    const std::vector<Var> forward = layer("forward", x, model_.input, false);
    const std::vector<Var> backward = layer("backward", x, model_.input, true);
    std::vector<Var> states;
    for (std::size_t t = 0; t < x.size(); ++t) states.push_back(concat({forward[t], backward[t]}, 1));
    for (std::int64_t l = 1; l < model_.layers; ++l) {
      const std::vector<Var> above = layer(numbered("encoder", l), states, l == 1 ? 2 * H : H, false);
      for (std::size_t t = 0; t < x.size(); ++t) states[t] = l < 2 ? above[t] : above[t] + states[t];
    }
    return states;
  }

  std::vector<Var> layer(const std::string& name, const std::vector<Var>& x, std::int64_t width,
                         bool backward) {
    const LstmLayer lstm(language_, name, width, model_.hidden);
    std::optional<CellState> state;
    std::vector<Var> outputs = x;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t t = backward ? x.size() - 1 - i : i;
      const auto step = language_.step(t, name + ".");
      state = lstm.step(x[t], state);
      outputs[t] = state->h;
    }
    return outputs;
  }

  /// The logits of each step.
  std::vector<Var> decode(const std::vector<Var>& words, const std::vector<Var>& memory) {
    const auto scope = language_.graph().scope("decoder");
    const std::int64_t H = model_.hidden;
    const Var Q = language_.weight("Q", {H, H}), K = language_.weight("K", {H, H});
    const Var v = language_.weight("v", {H});
    std::vector<LstmLayer> layers;
    for (std::int64_t l = 0; l < model_.layers; ++l)
      layers.emplace_back(language_, numbered("decoder", l), (l == 0 ? model_.input : H) + H, H);
    const Var V = language_.weight("V", {H, model_.vocabulary});
    const Var b = language_.weight("b", {model_.vocabulary});

    const Var rows = concat(memory, 0);
    const std::vector<fuse::Dim> dims = {model_.source, model_.batch, H};
    const Var keys = reshape(matmul(rows, K), dims), values = reshape(rows, dims);
    std::vector<std::optional<CellState>> states(layers.size());
    std::vector<Var> logits;
    for (Var x : words) {
      const auto step = language_.step(logits.size());
      const Var asked = states[0] ? keys + matmul(states[0]->h, Q) : keys;
      const Var weights = softmax(sum(tanh(asked) * v, 2), 0);  // [S, B, 1]
      const Var context = reshape(sum(weights * values, 0), {model_.batch, H});
      for (std::size_t l = 0; l < layers.size(); ++l) {
        states[l] = layers[l].step(concat({x, context}, 1), states[l]);
        x = l < 2 ? states[l]->h : states[l]->h + x;
      }
      logits.push_back(matmul(x, V) + b);
    }
    return logits;
  }

  const Gnmt model_;
  LanguageModel language_;
};

/// GEMMs: a layer of n steps has 8 n - 5, as its first step has no state; there are layers + 1 of S steps and
/// `layers` of T. The keys are one, the questions T - 1, and the logits T.
inline fuse::Graph build_gnmt(const Gnmt& model, const Purpose& purpose = {}) {
  return GnmtGraph(model, purpose).build();
}

inline fuse::Graph build_gnmt_training(const Gnmt& model, double rate = 0) {
  return build_gnmt(model, {.training = true, .rate = rate});
}

}  // namespace example
