// Recurrent layers, unrolled: LSTM, GRU, and the GRU with an attentional update gate of DIEN.
//
// What the inputs give to the gates is one GEMM for all time steps. A step is then one GEMM, of the state,
// and what follows it element by element; the first step has no state and no GEMM.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model_layers.hpp"

namespace example {

struct LstmState {
  fuse::Tensor hidden, cell;
};

/// What goes into the gates of a step, which lie side by side in the last dim: [B, gates width] from the
/// input and, but for the first step, from the state; and [gates width], the bias.
struct GateInputs {
  fuse::Tensor input, state, bias;

  fuse::Tensor part(const fuse::Tensor& of, std::int64_t gate, std::int64_t width) const {
    return fuse::slice(of, of.rank() - 1, gate * width, (gate + 1) * width);
  }
  fuse::Tensor sum(std::int64_t gate, std::int64_t width) const {
    fuse::Tensor total = part(input, gate, width);
    if (state.valid()) total = total + part(state, gate, width);
    return total + part(bias, gate, width);
  }
};

/// The gates are the input gate, the forget gate, the candidate and the output gate.
inline LstmState lstm_cell(const GateInputs& gates, const std::optional<LstmState>& before,
                           std::int64_t width) {
  fuse::Tensor cell = sigmoid(gates.sum(0, width)) * fuse::tanh(gates.sum(2, width));
  if (before) cell = sigmoid(gates.sum(1, width)) * before->cell + cell;
  return {.hidden = sigmoid(gates.sum(3, width)) * fuse::tanh(cell), .cell = cell};
}

/// x [T, B, in], in parts of `in`, to the hidden state [B, width] of each step; `backward` begins with the
/// last step.
inline std::vector<fuse::Tensor> lstm(Layers& layers, const std::vector<fuse::Tensor>& x,
                                      const std::string& name, std::int64_t width, bool backward = false) {
  const auto scope = layers.graph().scope(name);
  const fuse::Tensor inputs = layers.dense_without_bias(x, name + ".input", 4 * width);
  const fuse::Tensor weight = layers.weight(name + ".hidden.weight", {width, 4 * width});
  const fuse::Tensor bias = layers.weight(name + ".bias", {4 * width});
  const std::int64_t steps = inputs.dim(0).constant();
  std::vector<fuse::Tensor> states(static_cast<std::size_t>(steps));
  std::optional<LstmState> state;
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t t = backward ? steps - 1 - i : i;
    GateInputs gates{.input = at(inputs, 0, t), .state = {}, .bias = bias};
    if (state) gates.state = fuse::matmul(state->hidden, weight);
    state = lstm_cell(gates, state, width);
    states[static_cast<std::size_t>(t)] = state->hidden;
  }
  return states;
}

/// The hidden states of both directions, [T, B, width] each. They stay two tensors: each step writes its row
/// of one of them, and nothing has to be copied until the next layer's GEMMs read them.
inline std::vector<fuse::Tensor> bidirectional_lstm(Layers& layers, const std::vector<fuse::Tensor>& x,
                                                    const std::string& name, std::int64_t width) {
  const fuse::Tensor forward = fuse::stack(lstm(layers, x, name + ".forward", width));
  return {forward, fuse::stack(lstm(layers, x, name + ".backward", width, true))};
}

/// What may be different at one step of a GRU.
struct GruStep {
  fuse::Tensor attention{};  ///< [B, 1], a factor of the update gate: then it is an AUGRU
  fuse::Tensor present{};    ///< bool [B, 1]; where false, the state stays: what is behind a sequence's end
};

/// x [T, B, in] to the hidden state [B, width] of each step, by the equations of DIEN: the reset gate scales
/// what the state gives to the candidate, so a step has one GEMM. `steps` has one for each t.
inline std::vector<fuse::Tensor> gru(Layers& layers, const fuse::Tensor& x, const std::string& name,
                                     std::int64_t width, const std::vector<GruStep>& steps) {
  const auto scope = layers.graph().scope(name);
  const fuse::Tensor inputs = layers.dense_without_bias(x, name + ".input", 3 * width);
  const fuse::Tensor weight = layers.weight(name + ".hidden.weight", {width, 3 * width});
  const fuse::Tensor bias = layers.weight(name + ".bias", {3 * width});
  fuse::Tensor hidden;
  std::vector<fuse::Tensor> states;
  for (std::int64_t t = 0; t < x.dim(0).constant(); ++t) {
    GateInputs gates{.input = at(inputs, 0, t), .state = {}, .bias = bias};
    if (hidden.valid()) gates.state = fuse::matmul(hidden, weight);
    const GruStep& step = steps[static_cast<std::size_t>(t)];
    fuse::Tensor update = sigmoid(gates.sum(0, width));
    fuse::Tensor candidate = gates.part(gates.input, 2, width) + gates.part(bias, 2, width);
    if (hidden.valid()) {
      candidate = candidate + sigmoid(gates.sum(1, width)) * gates.part(gates.state, 2, width);
    }
    candidate = fuse::tanh(candidate);
    if (step.attention.valid()) update = step.attention * update;
    fuse::Tensor next = update * candidate;
    if (hidden.valid()) next = (1 - update) * hidden + next;
    if (step.present.valid()) {
      const fuse::Tensor present = fuse::broadcast_to(step.present, next.dims());
      next = fuse::select(present, next, hidden.valid() ? fuse::Arg(hidden) : fuse::Arg(0));
    }
    hidden = next;
    states.push_back(hidden);
  }
  return states;
}

}  // namespace example
