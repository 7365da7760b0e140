// The model of 03_transformer_block: a small pre-norm transformer over bytes, as fuse builds it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <fuse/fuse.hpp>
#include <numbers>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace example {

struct Model {
  std::int64_t blocks = 4, hidden = 256, heads = 4, window = 256, batch = 4;
  fuse::DType dtype = fuse::f32;
  static constexpr std::int64_t vocabulary = 256;  // bytes
};

/// Embedding, blocks, final norm, logits, and the mean cross-entropy of the next byte.
class ModelGraph {
 public:
  explicit ModelGraph(const Model& model) : model_(model), graph_("transformer_block") {}

  fuse::Graph build() {
    const fuse::Dim B = graph_.dim("B", {.min = 1, .max = 4096, .hint = model_.batch});
    const fuse::Tensor tokens = graph_.input("tokens", fuse::i32, {B, model_.window});
    const fuse::Tensor labels = graph_.input("labels", fuse::i32, {B, model_.window});
    fuse::Tensor x = fuse::embedding(weight("token_embedding", {Model::vocabulary, model_.hidden}), tokens) +
                     weight("position_embedding", {model_.window, model_.hidden});
    for (std::int64_t i = 0; i < model_.blocks; ++i) x = block(x, B, "block." + std::to_string(i));
    const fuse::Tensor logits =
        fuse::linear(norm(x, "norm"), weight("logits", {model_.hidden, Model::vocabulary}));
    graph_.output("logits", logits);
    graph_.output("loss", fuse::mean(fuse::cross_entropy(logits, labels)));
    return std::move(graph_);
  }

 private:
  fuse::Tensor weight(const std::string& name, std::vector<fuse::Dim> dims) {
    return graph_.parameter(name, model_.dtype, std::move(dims));
  }

  /// The scale and shift of a norm stay in f32 whatever the model's type.
  fuse::Tensor norm(const fuse::Tensor& x, const std::string& name) {
    return fuse::layer_norm(x, graph_.parameter(name + ".gamma", fuse::f32, {model_.hidden}),
                            graph_.parameter(name + ".beta", fuse::f32, {model_.hidden}));
  }

  fuse::Tensor dense(const fuse::Tensor& x, const std::string& name, std::int64_t in, std::int64_t out) {
    return fuse::linear(x, weight(name + ".weight", {in, out}), weight(name + ".bias", {out}));
  }

  /// x + attention(norm(x)), then x + mlp(norm(x)). A scope names the ops in kernels and in error messages.
  fuse::Tensor block(const fuse::Tensor& input, const fuse::Dim& B, const std::string& name) {
    const auto scope = graph_.scope(name);
    const std::int64_t hidden = model_.hidden;
    const fuse::Tensor x = input + attention(norm(input, name + ".norm1"), B, name + ".attention");
    const auto mlp = graph_.scope("mlp");
    const fuse::Tensor wide =
        fuse::gelu(dense(norm(x, name + ".norm2"), name + ".mlp.up", hidden, 4 * hidden));
    return x + dense(wide, name + ".mlp.down", 4 * hidden, hidden);
  }

  fuse::Tensor attention(const fuse::Tensor& x, const fuse::Dim& B, const std::string& name) {
    const auto scope = graph_.scope("attention");
    const std::int64_t hidden = model_.hidden, heads = model_.heads, window = model_.window;
    // One GEMM makes queries, keys and values; each is a slice of it, heads before rows.
    const fuse::Tensor qkv =
        fuse::reshape(dense(x, name + ".qkv", hidden, 3 * hidden), {B, window, 3, heads, hidden / heads});
    std::vector<fuse::Tensor> parts;
    for (std::int64_t i = 0; i < 3; ++i) {
      const fuse::Tensor part =
          fuse::reshape(fuse::slice(qkv, 2, i, i + 1), {B, window, heads, hidden / heads});
      parts.push_back(fuse::transpose(part, {0, 2, 1, 3}));
    }
    const fuse::Tensor mixed = fuse::attention(parts[0], parts[1], parts[2], {.causal = true});
    const fuse::Tensor rows = fuse::reshape(fuse::transpose(mixed, {0, 2, 1, 3}), {B, window, hidden});
    return dense(rows, name + ".out", hidden, hidden);
  }

  const Model model_;
  fuse::Graph graph_;
};

/// Normal with deviation 0.02; norms scale by 1, and norms and linear layers shift by 0. std::mt19937_64 and
/// the formula below are the same on every machine; std::normal_distribution is not.
inline fuse::Weights random_weights(const fuse::Executable& executable, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  const auto uniform = [&] { return static_cast<double>((generator() >> 11) + 1) * 0x1p-53; };
  const auto draw = [&](const std::string& name) {
    if (name.ends_with(".gamma")) return 1.0;
    if (name.ends_with(".beta") || name.ends_with(".bias")) return 0.0;
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return 0.02 * radius * std::cos(2 * std::numbers::pi * uniform());
  };
  fuse::WeightsBuilder weights;
  for (const fuse::Slot& slot : executable.slots()) {
    if (slot.kind != fuse::Slot::Kind::parameter) continue;
    std::vector<std::int64_t> shape;
    for (const fuse::Dim& dim : slot.dims) shape.push_back(dim.constant());
    const auto count = static_cast<std::size_t>(fuse::product(slot.dims).constant());
    std::vector<std::byte> bytes(count * fuse::size_of(slot.dtype));
    const auto fill = [&]<class T>(T) {
      for (std::size_t i = 0; i < count; ++i) {
        const T value(static_cast<T>(draw(slot.name)));
        std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
      }
    };
    if (slot.dtype == fuse::f16) {
      fill(fuse::half());
    } else if (slot.dtype == fuse::bf16) {
      fill(fuse::bfloat16());
    } else {
      fill(float());
    }
    weights.add(slot.name, slot.dtype, shape, bytes);
  }
  return weights.build();
}

}  // namespace example
