// DIEN, the Deep Interest Evolution Network (Zhou et al. 2019): whether a user clicks an item, by what the
// user looked at before. A GRU extracts interests, and an AUGRU follows those that the item asks for.
//
// Names and sizes are those of the authors' program where the paper prints none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "recurrent.hpp"

namespace example {

struct Dien {
  std::int64_t batch = 256, history = 100;
  std::int64_t users = 543060, items = 367983, categories = 1601;
  std::int64_t embedding = 18;                       ///< of a user, an item, a category
  std::vector<std::int64_t> attention = {80, 40};    ///< widths of the attention's hidden layers
  std::vector<std::int64_t> prediction = {200, 80};  ///< widths of the last hidden layers
  fuse::DType dtype = fuse::f32;

  /// The paper's dataset of books, its history of 100 and its embeddings of 18; AStitch's batch.
  static Dien paper() { return {}; }
  static Dien small() {
    return {.batch = 3,
            .history = 5,
            .users = 7,
            .items = 13,
            .categories = 5,
            .embedding = 4,
            .attention = {8, 4},
            .prediction = {12, 8}};
  }

  std::int64_t width() const { return 2 * embedding; }  ///< of an item with its category, and of states
};

/// The attention of each step for the target: [T, B, width] and [B, width] to [T, B, 1]. Steps behind the end
/// of a history get next to nothing.
inline fuse::Tensor target_attention(Layers& layers, const Dien& model, const fuse::Tensor& interests,
                                     const fuse::Tensor& target, const fuse::Tensor& present) {
  const auto scope = layers.graph().scope("attention");
  const fuse::Tensor asked = layers.dense(target, "attention.query", model.width());
  const fuse::Tensor slope = layers.weight("attention.query.slope", {model.width()});
  const fuse::Tensor query =
      fuse::broadcast_to(fuse::maximum(asked, 0) + slope * fuse::minimum(asked, 0), interests.dims());
  fuse::Tensor x = fuse::concat({query, interests, query - interests, query * interests}, 2);
  for (std::size_t i = 0; i < model.attention.size(); ++i) {
    x = sigmoid(layers.dense(x, "attention." + std::to_string(i), model.attention[i]));
  }
  // One column is no GEMM: a sum over each row is part of the kernel that has the row.
  const fuse::Tensor last = layers.weight("attention.score.weight", {model.attention.back()});
  const fuse::Tensor scores =
      fuse::sum(x * last, {2}, {.keep_dims = true}) + layers.weight("attention.score.bias", {1});
  return fuse::softmax(fuse::select(present, scores, -4294967295.0), 0);
}

/// A dense layer and a dice (Zhou et al. 2018): between x and alpha x, by a batch norm's sigmoid.
inline fuse::Tensor dense_dice(Layers& layers, const fuse::Tensor& input, const std::string& name,
                               std::int64_t out) {
  const fuse::Tensor x = layers.dense(input, name, out);
  const fuse::Tensor share = sigmoid(layers.batch_norm(x, name + ".dice"));
  return share * x + (1 - share) * (layers.weight(name + ".dice.alpha", {out}) * x);
}

/// Users, target items and histories to probabilities [B, 2] of no click and a click.
inline fuse::Graph build_dien(const Dien& model) {
  fuse::Graph graph("dien");
  Layers layers(graph, model.dtype);
  const std::int64_t B = model.batch, T = model.history;
  const fuse::Tensor user = graph.input("user", fuse::i32, {B});
  const fuse::Tensor item = graph.input("item", fuse::i32, {B});
  const fuse::Tensor category = graph.input("category", fuse::i32, {B});
  const fuse::Tensor item_history = graph.input("item_history", fuse::i32, {T, B});
  const fuse::Tensor category_history = graph.input("category_history", fuse::i32, {T, B});
  const fuse::Tensor length = graph.input("length", fuse::i32, {B});

  const fuse::Tensor items = layers.weight("items", {model.items, model.embedding});
  const fuse::Tensor categories = layers.weight("categories", {model.categories, model.embedding});
  const fuse::Tensor users = layers.weight("users", {model.users, model.embedding});
  const fuse::Tensor target =
      fuse::concat({fuse::embedding(items, item), fuse::embedding(categories, category)}, 1);
  const fuse::Tensor history =
      fuse::concat({fuse::embedding(items, item_history), fuse::embedding(categories, category_history)}, 2);
  const fuse::Tensor present = fuse::reshape(graph.iota(fuse::i32, {T, B}, 0) < length, {T, B, 1});

  std::vector<GruStep> extract, evolve;
  for (std::int64_t t = 0; t < T; ++t) extract.push_back({.present = at(present, 0, t)});
  const fuse::Tensor interests = fuse::stack(gru(layers, history, "interest", model.width(), extract));
  const fuse::Tensor attention = target_attention(layers, model, interests, target, present);
  for (std::int64_t t = 0; t < T; ++t) {
    evolve.push_back({.attention = at(attention, 0, t), .present = at(present, 0, t)});
  }
  const fuse::Tensor evolved = gru(layers, interests, "evolution", model.width(), evolve).back();

  const fuse::Tensor seen =
      fuse::sum(fuse::select(fuse::broadcast_to(present, history.dims()), history, 0), {0});
  fuse::Tensor x = fuse::concat({fuse::embedding(users, user), target, seen, target * seen, evolved}, 1);
  x = layers.batch_norm(x, "prediction.norm");
  for (std::size_t i = 0; i < model.prediction.size(); ++i) {
    x = dense_dice(layers, x, "prediction." + std::to_string(i), model.prediction[i]);
  }
  graph.output("probabilities", fuse::softmax(layers.dense(x, "prediction.click", 2)));
  return graph;
}

}  // namespace example
