// The Transformer (Vaswani et al. 2017): an encoder of the source, and a greedy decoder, unrolled. Each step
// adds a row to the keys and values of each layer, and its likeliest token is the next step's input.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "multi_head_attention.hpp"

namespace example {

struct Transformer {
  std::int64_t batch = 1, source = 32;  ///< tokens of a source sentence
  std::int64_t steps = 32;              ///< tokens that are made
  std::int64_t layers = 6;              ///< of the encoder, and of the decoder
  std::int64_t width = 512, heads = 8, inner = 2048;
  std::int64_t vocabulary = 37000;
  fuse::DType dtype = fuse::f32;

  /// The base model of the paper's Table 3, and its shared vocabulary; AStitch's batch. Neither paper prints
  /// the lengths of an inference.
  static Transformer paper() { return {}; }
  static Transformer small() {
    return {.source = 5, .steps = 3, .layers = 2, .width = 16, .heads = 2, .inner = 32, .vocabulary = 24};
  }
};

class TransformerGraph {
 public:
  explicit TransformerGraph(const Transformer& model)
      : model_(model), graph_("transformer"), layers_(graph_, model.dtype) {}

  /// source [B, source] and start [B] to tokens [steps, B], and the logits [B, vocabulary] of the last one.
  fuse::Graph build() {
    const fuse::Tensor source = graph_.input("source", fuse::i32, {model_.batch, model_.source});
    fuse::Tensor token = graph_.input("start", fuse::i32, {model_.batch});
    words_ = layers_.weight("words", {model_.vocabulary, model_.width});
    positions_ = layers_.weight("positions", {std::max(model_.source, model_.steps), model_.width});
    const fuse::Tensor memory = encode(source);
    for (std::int64_t i = 0; i < model_.layers; ++i) {
      const std::string name = "." + std::to_string(i);
      seen_.push_back({.keys = cache("keys" + name), .values = cache("values" + name)});
      memories_.push_back(keys_and_values(layers_, memory, "decoder." + std::to_string(i) + ".memory"));
    }
    std::vector<fuse::Tensor> tokens;
    fuse::Tensor logits;
    for (std::int64_t t = 0; t < model_.steps; ++t) {
      logits = decode(token, t);
      token = fuse::argmax(logits, 1);
      tokens.push_back(token);
    }
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      const std::string name = "." + std::to_string(i);
      graph_.output("new_keys" + name, seen_[i].keys, caches_[2 * i]);
      graph_.output("new_values" + name, seen_[i].values, caches_[2 * i + 1]);
    }
    graph_.output("tokens", fuse::stack(tokens));
    graph_.output("logits", logits);
    return std::move(graph_);
  }

 private:
  /// Word and position of [B, n] tokens, the first of which is at `position`.
  fuse::Tensor embed(const fuse::Tensor& tokens, std::int64_t position) {
    const fuse::Tensor rows = fuse::slice(positions_, 0, position, position + tokens.dim(1).constant());
    return fuse::embedding(words_, tokens) * std::sqrt(static_cast<double>(model_.width)) + rows;
  }

  fuse::Tensor feed_forward(const fuse::Tensor& x, const std::string& name) {
    const fuse::Tensor inner = relu(layers_.dense(x, name + ".up", model_.inner));
    return layers_.norm(x + layers_.dense(inner, name + ".down", model_.width), name + ".norm");
  }

  fuse::Tensor encode(const fuse::Tensor& source) {
    const auto scope = graph_.scope("encoder");
    fuse::Tensor x = embed(source, 0);
    for (std::int64_t i = 0; i < model_.layers; ++i) {
      const std::string name = "encoder." + std::to_string(i);
      const KeysAndValues self = keys_and_values(layers_, x, name + ".self");
      x = layers_.norm(x + attend(layers_, x, self, name + ".self", model_.heads), name + ".self.norm");
      x = feed_forward(x, name + ".mlp");
    }
    return x;
  }

  /// The logits of step t.
  fuse::Tensor decode(const fuse::Tensor& token, std::int64_t t) {
    const auto scope = graph_.scope("step." + std::to_string(t));
    fuse::Tensor x = embed(fuse::reshape(token, {model_.batch, 1}), t);
    for (std::int64_t i = 0; i < model_.layers; ++i) {
      const auto layer = static_cast<std::size_t>(i);
      x = decoder_layer(x, t, seen_[layer], memories_[layer], "decoder." + std::to_string(i));
    }
    const fuse::Tensor rows = fuse::reshape(x, {model_.batch, model_.width});
    return fuse::matmul(rows, words_,
                        {.transpose_b = true});  // the words' embeddings are the last layer's weights
  }

  /// Memory for the rows of all steps, which the caller keeps.
  fuse::Tensor cache(const std::string& name) {
    caches_.push_back(graph_.input(name, model_.dtype, {model_.batch, model_.steps, model_.width}));
    return caches_.back();
  }

  /// `seen`: the rows of earlier steps, to which this one adds its own.
  fuse::Tensor decoder_layer(const fuse::Tensor& input, std::int64_t t, KeysAndValues& seen,
                             const KeysAndValues& memory, const std::string& name) {
    const KeysAndValues row = keys_and_values(layers_, input, name + ".self");
    seen.keys = fuse::dynamic_update_slice(seen.keys, row.keys, {0, t, 0});
    seen.values = fuse::dynamic_update_slice(seen.values, row.values, {0, t, 0});
    const KeysAndValues rows = {.keys = fuse::slice(seen.keys, 1, 0, t + 1),
                                .values = fuse::slice(seen.values, 1, 0, t + 1)};
    fuse::Tensor x = input + attend(layers_, input, rows, name + ".self", model_.heads);
    x = layers_.norm(x, name + ".self.norm");
    x = x + attend(layers_, x, memory, name + ".memory", model_.heads);
    x = layers_.norm(x, name + ".memory.norm");
    return feed_forward(x, name + ".mlp");
  }

  const Transformer model_;
  fuse::Graph graph_;
  Layers layers_;
  fuse::Tensor words_, positions_;
  std::vector<KeysAndValues> seen_, memories_;  ///< of each layer of the decoder
  std::vector<fuse::Tensor> caches_;
};

inline fuse::Graph build_transformer(const Transformer& model) { return TransformerGraph(model).build(); }

}  // namespace example
