// BERT's encoder and one layer of it, batch and sequence symbolic or not. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <fuse/fuse.hpp>
#include <string>
#include <vector>

namespace example {

/// BERT-large by default (Devlin et al. 2019, section 3): eight GEMMs a layer and one of the pooler.
struct Bert {
  std::int64_t layers = 24, hidden = 1024, heads = 16, intermediate = 4096;
  std::int64_t vocabulary = 30522, positions = 512, token_types = 2;
  fuse::DType dtype = fuse::bf16;        ///< of weights and activations; norms and softmax compute in f32
  std::int64_t batch = 0, sequence = 0;  ///< static extents; 0: the symbols B and S
  static Bert paper(), large(), small();
};

class BertGraph {
 public:
  BertGraph(const Bert& model, const std::string& name) : model_(model), graph_(name) {
    B_ = model.batch > 0 ? fuse::Dim(model.batch) : graph_.dim("B", {.min = 1, .max = 256, .hint = 8});
    S_ = model.sequence > 0 ? fuse::Dim(model.sequence)
                            : graph_.dim("S", {.min = 1, .max = model.positions, .hint = 128});
  }

  /// Embeddings, layers, and the pooler over the first token of each sequence.
  fuse::Graph build() {
    const fuse::Tensor tokens = graph_.input("tokens", fuse::i32, {B_, S_});
    const fuse::Tensor types = graph_.input("token_types", fuse::i32, {B_, S_});
    const fuse::Tensor mask = graph_.input("mask", fuse::boolean, {B_, S_});
    fuse::Tensor x = embeddings(tokens, types);
    for (std::int64_t i = 0; i < model_.layers; ++i) x = layer(x, mask, "layer." + std::to_string(i));
    graph_.output("hidden", x);
    const auto scope = graph_.scope("pooler");
    const fuse::Tensor first = fuse::reshape(fuse::slice(x, 1, 0, 1), {B_, model_.hidden});
    graph_.output("pooled", fuse::tanh(dense(first, "pooler", model_.hidden, model_.hidden)));
    return std::move(graph_);
  }

  /// One layer on its own.
  fuse::Graph build_layer() {
    const fuse::Tensor x = graph_.input("x", model_.dtype, {B_, S_, model_.hidden});
    const fuse::Tensor mask = graph_.input("mask", fuse::boolean, {B_, S_});
    graph_.output("y", layer(x, mask, "layer"));
    return std::move(graph_);
  }

 private:
  fuse::Tensor weight(const std::string& name, std::vector<fuse::Dim> dims) {
    return graph_.parameter(name, model_.dtype, std::move(dims));
  }

  fuse::Tensor norm(const fuse::Tensor& x, const std::string& name) {
    // Named one by one: the order in which a call evaluates its arguments is the compiler's.
    const fuse::Tensor gamma = graph_.parameter(name + ".gamma", fuse::f32, {model_.hidden});
    const fuse::Tensor beta = graph_.parameter(name + ".beta", fuse::f32, {model_.hidden});
    return fuse::layer_norm(x, gamma, beta, 1e-12);
  }

  fuse::Tensor dense(const fuse::Tensor& x, const std::string& name, std::int64_t in, std::int64_t out) {
    const fuse::Tensor weights = weight(name + ".weight", {in, out}), bias = weight(name + ".bias", {out});
    return fuse::linear(x, weights, bias);
  }

  fuse::Tensor embeddings(const fuse::Tensor& tokens, const fuse::Tensor& types) {
    const auto scope = graph_.scope("embeddings");
    const std::int64_t hidden = model_.hidden;
    const fuse::Tensor words =
        fuse::embedding(weight("embeddings.word", {model_.vocabulary, hidden}), tokens);
    const fuse::Tensor kinds =
        fuse::embedding(weight("embeddings.type", {model_.token_types, hidden}), types);
    const fuse::Tensor positions =
        fuse::slice(weight("embeddings.position", {model_.positions, hidden}), 0, 0, S_);
    return norm(words + positions + kinds, "embeddings.norm");
  }

  /// norm(x + attention(x)), then norm(x + mlp(x)): BERT normalises after the residual.
  fuse::Tensor layer(const fuse::Tensor& input, const fuse::Tensor& mask, const std::string& name) {
    const auto scope = graph_.scope(name);
    const std::int64_t hidden = model_.hidden, wide = model_.intermediate;
    const fuse::Tensor x =
        norm(input + attention(input, mask, name + ".attention"), name + ".attention.norm");
    const auto mlp = graph_.scope("mlp");
    const fuse::Tensor up = fuse::gelu(dense(x, name + ".mlp.up", hidden, wide));
    return norm(x + dense(up, name + ".mlp.down", wide, hidden), name + ".mlp.norm");
  }

  /// x [B, S, hidden] as [B, heads, S, width].
  fuse::Tensor heads_of(const fuse::Tensor& x) {
    const std::int64_t width = model_.hidden / model_.heads;
    return fuse::transpose(fuse::reshape(x, {B_, S_, model_.heads, width}), {0, 2, 1, 3});
  }

  /// Queries, keys and values are GEMMs of their own, as the published weights are.
  fuse::Tensor attention(const fuse::Tensor& x, const fuse::Tensor& mask, const std::string& name) {
    const auto scope = graph_.scope("attention");
    const std::int64_t hidden = model_.hidden, width = hidden / model_.heads;
    const fuse::Tensor q = heads_of(dense(x, name + ".query", hidden, hidden));
    const fuse::Tensor k = heads_of(dense(x, name + ".key", hidden, hidden));
    const fuse::Tensor v = heads_of(dense(x, name + ".value", hidden, hidden));
    const fuse::MatmulOptions wide{.transpose_b = true, .result = fuse::f32};
    const fuse::Tensor scores = fuse::matmul(q, k, wide) * (1 / std::sqrt(static_cast<double>(width)));
    // A large negative number and not -infinity: a row without a key to look at is no NaN.
    const fuse::Tensor kept = fuse::broadcast_in_dim(mask, {B_, model_.heads, S_, S_}, {0, 3});
    const fuse::Tensor weights = fuse::softmax(fuse::select(kept, scores, -1e9));
    const fuse::Tensor mixed = fuse::matmul(fuse::convert(weights, model_.dtype), v);
    const fuse::Tensor rows = fuse::reshape(fuse::transpose(mixed, {0, 2, 1, 3}), {B_, S_, hidden});
    return dense(rows, name + ".out", hidden, hidden);
  }

  const Bert model_;
  fuse::Graph graph_;
  fuse::Dim B_, S_;
};

/// BERT-large in f32 with AStitch's batch, and 128 tokens, which AStitch does not print.
inline Bert Bert::large() { return {.dtype = fuse::f32, .batch = 200, .sequence = 128}; }

/// BERT-base, the same.
inline Bert Bert::paper() {
  Bert base = large();
  base.layers = 12, base.hidden = 768, base.heads = 12, base.intermediate = 3072;
  return base;
}

inline Bert Bert::small() {
  Bert few = large();
  few.layers = 2, few.hidden = 16, few.heads = 2, few.intermediate = 32, few.vocabulary = 20;
  few.positions = 8, few.batch = 3, few.sequence = 5;
  return few;
}

inline fuse::Graph build_bert(const Bert& model) { return BertGraph(model, "bert").build(); }

}  // namespace example
