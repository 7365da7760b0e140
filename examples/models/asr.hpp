// Speech recognition as in ESPnet (Watanabe et al. 2018): convolutions and bidirectional LSTMs over the
// frames; a CTC head; and a decoder, an LSTM that asks the frames by a location-aware attention (Chorowski et
// al. 2015). The decoder is greedy and unrolled: its likeliest token is the next step's input.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "convolution.hpp"
#include "recurrent.hpp"

namespace example {

struct Asr {
  std::int64_t batch = 1, frames = 128, bands = 80;
  std::vector<std::int64_t> channels = {64, 128};  ///< of two convolutions each, with a pool behind them
  std::int64_t layers = 4, units = 320;         ///< of the encoder; units of a direction and of projections
  std::int64_t decoder = 300, attention = 320;  ///< units
  std::int64_t filters = 10, reach = 100;       ///< of the attention's convolution: frames to each side
  std::int64_t tokens = 52, steps = 10;         ///< that there are, and that are made
  fuse::DType dtype = fuse::f32;

  /// Usual sizes of ESPnet's recipes, with AStitch's batch. AStitch prints neither these nor lengths: here
  /// 1.28 s of speech become 32 frames behind the pools, and ten characters.
  static Asr paper() { return {}; }
  static Asr small() {
    return {.frames = 16,
            .bands = 8,
            .channels = {2, 4},
            .layers = 2,
            .units = 8,
            .decoder = 8,
            .attention = 8,
            .filters = 2,
            .reach = 2,
            .tokens = 11,
            .steps = 3};
  }
};

class AsrGraph {
 public:
  explicit AsrGraph(const Asr& model) : model_(model), graph_("asr"), layers_(graph_, model.dtype) {}

  /// speech [B, frames, bands] and start [B] to ctc [T, B, tokens], log-probabilities, and tokens [steps, B].
  fuse::Graph build() {
    const fuse::Tensor speech =
        graph_.input("speech", model_.dtype, {model_.batch, model_.frames, model_.bands});
    fuse::Tensor token = graph_.input("start", fuse::i32, {model_.batch});
    const fuse::Tensor encoded = encode(speech);
    graph_.output("ctc", fuse::log_softmax(layers_.dense(encoded, "ctc", model_.tokens)));

    const fuse::Tensor frames = fuse::transpose(encoded, {1, 0, 2});  // [B, T, units]
    const fuse::Tensor keys = layers_.dense(frames, "attention.frame", model_.attention);
    const double even = 1 / static_cast<double>(frames.dim(1).constant());
    fuse::Tensor weights = layers_.filled(even, {model_.batch, frames.dim(1)});
    std::optional<LstmState> state;
    std::vector<fuse::Tensor> tokens;
    fuse::Tensor scores;
    for (std::int64_t t = 0; t < model_.steps; ++t) {
      const auto scope = graph_.scope("step." + std::to_string(t));
      weights = attend(keys, weights, state);
      const fuse::Tensor row = fuse::reshape(weights, {model_.batch, 1, frames.dim(1)});
      const fuse::Tensor context = fuse::reshape(fuse::matmul(row, frames), {model_.batch, model_.units});
      state = decode(token, context, state);
      scores = layers_.dense(state->hidden, "decoder.output", model_.tokens);
      token = fuse::argmax(scores, 1);
      tokens.push_back(token);
    }
    graph_.output("tokens", fuse::stack(tokens));
    graph_.output("scores", scores);
    return std::move(graph_);
  }

 private:
  /// [B, frames, bands] to [T, B, units]: a quarter of the frames.
  fuse::Tensor encode(const fuse::Tensor& speech) {
    const auto scope = graph_.scope("encoder");
    fuse::Tensor x = fuse::reshape(speech, {model_.batch, model_.frames, model_.bands, 1});
    for (std::size_t i = 0; i < model_.channels.size(); ++i) {
      const std::string name = "conv" + std::to_string(i);
      x = relu(convolution(layers_, x, name + ".0", 3, 1, model_.channels[i]));
      x = relu(convolution(layers_, x, name + ".1", 3, 1, model_.channels[i]));
      x = max_pool(x, 2, 2);
    }
    x = fuse::reshape(fuse::transpose(x, {1, 0, 2, 3}), {x.dim(1), model_.batch, x.dim(2) * x.dim(3)});
    for (std::int64_t i = 0; i < model_.layers; ++i) {
      const std::string name = "blstm" + std::to_string(i);
      const std::vector<fuse::Tensor> states = bidirectional_lstm(layers_, {x}, name, model_.units);
      x = layers_.dense(states, name + ".projection", model_.units);
      if (i + 1 < model_.layers) x = fuse::tanh(x);
    }
    return x;
  }

  /// The weights [B, T] of this step, by the frames, where the last step looked, and the decoder's state.
  fuse::Tensor attend(const fuse::Tensor& keys, const fuse::Tensor& before,
                      const std::optional<LstmState>& state) {
    const auto scope = graph_.scope("attention");
    const std::int64_t B = model_.batch, T = keys.dim(1).constant();
    const fuse::Tensor taps =
        layers_.weight("attention.location.weight", {2 * model_.reach + 1, model_.filters});
    const fuse::Tensor near = fuse::matmul(before, band_matrix(layers_, taps, T));
    const fuse::Tensor features = fuse::reshape(near, {B, T, model_.filters});
    fuse::Tensor sum = keys + layers_.dense_without_bias(features, "attention.feature", model_.attention);
    if (state) {
      const fuse::Tensor asked =
          layers_.dense_without_bias(state->hidden, "attention.state", model_.attention);
      sum = sum + fuse::reshape(asked, {B, 1, model_.attention});
    }
    const fuse::Tensor last = layers_.weight("attention.score.weight", {model_.attention});
    const fuse::Tensor scores =
        fuse::sum(fuse::tanh(sum) * last, {2}) + layers_.weight("attention.score.bias", {1});
    return fuse::softmax(2 * fuse::reshape(scores, {B, T}), 1);  // ESPnet sharpens by 2
  }

  LstmState decode(const fuse::Tensor& token, const fuse::Tensor& context,
                   const std::optional<LstmState>& state) {
    const auto scope = graph_.scope("decoder");
    const fuse::Tensor words = layers_.weight("decoder.words", {model_.tokens, model_.decoder});
    const fuse::Tensor input = fuse::concat({fuse::embedding(words, token), context}, 1);
    GateInputs gates{.input = layers_.dense_without_bias(input, "decoder.input", 4 * model_.decoder),
                     .state = {},
                     .bias = layers_.weight("decoder.bias", {4 * model_.decoder})};
    const fuse::Tensor weight = layers_.weight("decoder.hidden.weight", {model_.decoder, 4 * model_.decoder});
    if (state) gates.state = fuse::matmul(state->hidden, weight);
    return lstm_cell(gates, state, model_.decoder);
  }

  const Asr model_;
  fuse::Graph graph_;
  Layers layers_;
};

inline fuse::Graph build_asr(const Asr& model) { return AsrGraph(model).build(); }

}  // namespace example
