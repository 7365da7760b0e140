// A small GPT: characters in, the likeliest next character out, with a cache of keys and values.
//
// One graph serves the prompt and what follows it: T tokens stand at `position` and after it. The first run
// takes the whole prompt, each further run one token; the caches keep what earlier runs have computed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/fuse.hpp>
#include <string>
#include <vector>

namespace example {

struct GptOptions {
  std::int64_t symbols = 96;   ///< the characters from space to ~, and the end of a line
  std::int64_t context = 128;  ///< the most tokens that the model sees
  std::int64_t width = 64, heads = 4, layers = 2, hidden = 256;
};

/// Inputs: `tokens` i64[1, T]; `position` i64[], where the first of them stands; `keys.0`, `values.0` and so
/// on, f32[1, heads, context, width / heads], the caches. Outputs: `next` i64[1, 1]; `keys.0.now` and so on,
/// in the memory of the caches. Parameters have the names of GPT-2 and PyTorch's layout; they are stored in
/// f16, and all is computed in f32.
class Gpt {
 public:
  explicit Gpt(const GptOptions& options) : o_(options) {
    const fuse::Dim T = graph.dim("T", {.min = 1, .max = o_.context, .hint = 1});
    const fuse::Tensor tokens = graph.input("tokens", fuse::i64, {1, T});
    position_ = graph.input("position", fuse::i64, {});
    const fuse::Tensor positions = position_ + graph.iota(fuse::i64, {T}, 0);

    fuse::Tensor x = fuse::embedding(weight("wte.weight", {o_.symbols, o_.width}), tokens);
    x += fuse::embedding(weight("wpe.weight", {o_.context, o_.width}), positions);
    for (std::int64_t i = 0; i < o_.layers; ++i) x = layer(x, "h." + std::to_string(i), std::to_string(i));

    // Only the last token's prediction is asked for.
    const fuse::Tensor last = norm(fuse::slice(x, 1, T - 1, T), "ln_f");
    const fuse::Tensor logits = fuse::linear(last, wte_, {.layout = fuse::WeightLayout::out_in});
    graph.output("next", fuse::argmax(logits, -1));
  }

  fuse::Graph graph{"gpt"};

 private:
  /// A parameter that is stored in f16, as f32.
  fuse::Tensor weight(const std::string& name, std::vector<fuse::Dim> dims) {
    const fuse::Tensor wide = fuse::convert(graph.parameter(name, fuse::f16, std::move(dims)), fuse::f32);
    if (name == "wte.weight") wte_ = wide;
    return wide;
  }

  fuse::Tensor norm(const fuse::Tensor& x, const std::string& name) {
    const fuse::Tensor gamma = weight(name + ".weight", {o_.width});
    const fuse::Tensor beta = weight(name + ".bias", {o_.width});
    return fuse::layer_norm(x, gamma, beta);
  }

  fuse::Tensor dense(const fuse::Tensor& x, const std::string& name, std::int64_t out) {
    const fuse::Tensor w = weight(name + ".weight", {out, x.dim(-1)});
    const fuse::Tensor b = weight(name + ".bias", {out});
    return fuse::linear(x, w, b, {.layout = fuse::WeightLayout::out_in});
  }

  fuse::Tensor layer(fuse::Tensor x, const std::string& name, const std::string& number) {
    const auto scope = graph.scope(name);
    x += attend(norm(x, name + ".ln_1"), name + ".attn", number);
    const fuse::Tensor hidden =
        fuse::gelu_tanh(dense(norm(x, name + ".ln_2"), name + ".mlp.c_fc", o_.hidden));
    x += dense(hidden, name + ".mlp.c_proj", o_.width);
    return x;
  }

  fuse::Tensor attend(const fuse::Tensor& x, const std::string& name, const std::string& number) {
    const std::int64_t head = o_.width / o_.heads;
    const fuse::Dim T = x.dim(1);
    const auto by_head = [&](const fuse::Tensor& part) {
      return fuse::transpose(fuse::reshape(part, {1, T, o_.heads, head}), {0, 2, 1, 3});
    };
    const std::vector<fuse::Tensor> qkv = fuse::split(dense(x, name + ".c_attn", 3 * o_.width), 3, -1);
    const fuse::Tensor q = by_head(qkv[0]);
    const fuse::Tensor keys = cached("keys." + number, by_head(qkv[1]));
    const fuse::Tensor values = cached("values." + number, by_head(qkv[2]));
    // A token attends what stands up to its own position; the rest of the cache is not filled yet.
    const fuse::Tensor mixed = fuse::attention(q, keys, values, {.causal = true, .offset = position_});
    const fuse::Tensor rows = fuse::reshape(fuse::transpose(mixed, {0, 2, 1, 3}), {1, T, o_.width});
    return dense(rows, name + ".c_proj", o_.width);
  }

  /// The cache with the new part in its place. As an output whose donor is the cache, it stays in its memory:
  /// only the new part is written.
  fuse::Tensor cached(const std::string& name, const fuse::Tensor& fresh) {
    const fuse::Tensor cache = graph.input(name, fuse::f32, {1, o_.heads, o_.context, o_.width / o_.heads});
    const fuse::Tensor now = fuse::cache_append(cache, fresh, position_);
    graph.output(name + ".now", now, cache);
    return now;
  }

  const GptOptions o_;
  fuse::Tensor position_, wte_;
};

}  // namespace example
