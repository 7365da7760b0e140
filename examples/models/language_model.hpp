// What language models that are unrolled over their words share: inputs, states, weights, and the ends of the
// graph, which are probabilities, or a loss and the gradients of all weights.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backward.hpp"

namespace example {

/// What a graph is for.
struct Purpose {
  bool training = false;
  double rate = 0;  ///< of a step of SGD; 0: the gradients are outputs, and the caller steps
};

/// Forward: tokens i32 [T, B] and a table of embeddings to the probabilities y [T, B, vocabulary].
///
/// Training: x [T, B, input], the words' embeddings, and targets i32 [T, B] to the mean negative
/// log-likelihood `loss` and to d.NAME, its gradient, for each weight NAME. With a rate, weights are inputs
/// whose memory new.NAME = NAME - rate d.NAME takes.
///
/// A state NAME of the first step is an input, and the last step's is the output next.NAME: text goes on
/// from one run to the next. No gradient leaves the graph by them.
class LanguageModel {
 public:
  LanguageModel(const std::string& name, std::int64_t batch, std::int64_t steps, fuse::DType dtype,
                const Purpose& purpose)
      : batch_(batch), steps_(steps), dtype_(dtype), purpose_(purpose), graph_(name), tape_(graph_) {}

  fuse::Graph& graph() { return graph_; }
  Tape& tape() { return tape_; }
  /// Names what step t builds, forward and backward.
  fuse::ScopeGuard step(std::size_t t, const std::string& of = {}) {
    return tape_.scope(of + "step." + std::to_string(t));
  }

  Var weight(const std::string& name, std::vector<fuse::Dim> dims) {
    const fuse::Tensor value = purpose_.training && purpose_.rate != 0
                                   ? graph_.input(name, dtype_, std::move(dims))
                                   : graph_.parameter(name, dtype_, std::move(dims));
    weights_.emplace_back(name, tape_.wanted(value));
    return weights_.back().second;
  }

  Var state(const std::string& name, std::int64_t width) {
    return tape_.given(graph_.input(name, dtype_, {batch_, width}));
  }
  void next_state(const std::string& name, const Var& last) { graph_.output("next." + name, last.value); }

  /// The words of each step as vectors [B, width].
  std::vector<Var> words(const std::string& name, const std::string& table, std::int64_t steps,
                         std::int64_t vocabulary, std::int64_t width) {
    fuse::Tensor all;
    if (purpose_.training) {
      all = graph_.input(name, dtype_, {steps, batch_, width});
    } else {
      const fuse::Tensor rows = graph_.parameter(table, dtype_, {vocabulary, width});
      all = fuse::embedding(rows, graph_.input(name, fuse::i32, {steps, batch_}));
    }
    std::vector<Var> each;
    for (std::int64_t t = 0; t < steps; ++t) each.push_back(tape_.given(at(all, 0, t)));
    return each;
  }
  std::vector<Var> words(std::int64_t vocabulary, std::int64_t width) {
    return words(purpose_.training ? "x" : "tokens", "words", steps_, vocabulary, width);
  }

  /// Ends the graph with the logits [B, vocabulary] of each step.
  fuse::Graph finish(const std::vector<Var>& logits) {
    if (!purpose_.training) {
      std::vector<fuse::Tensor> likely;
      for (const Var& step : logits) likely.push_back(fuse::softmax(step.value));
      graph_.output("y", fuse::stack(likely));
      return std::move(graph_);
    }
    const Var loss = mean_cross_entropy(logits, graph_.input("targets", fuse::i32, {steps_, batch_}));
    graph_.output("loss", loss.value);
    tape_.run_back(loss);
    for (const auto& [name, weight] : weights_) {
      fuse::Tensor gradient = tape_.gradient(weight);
      if (!gradient.valid()) gradient = graph_.constant(dtype_, 0, weight.value.dims());
      if (purpose_.rate == 0) {
        graph_.output("d." + name, gradient);
      } else {
        graph_.output("new." + name, weight.value - purpose_.rate * gradient, weight.value);
      }
    }
    return std::move(graph_);
  }

 private:
  const std::int64_t batch_, steps_;
  const fuse::DType dtype_;
  const Purpose purpose_;
  fuse::Graph graph_;
  Tape tape_;
  std::vector<std::pair<std::string, Var>> weights_;
};

/// "h" and 1 are "h.1".
inline std::string numbered(const std::string& name, std::int64_t number) {
  return name + "." + std::to_string(number);
}

}  // namespace example
