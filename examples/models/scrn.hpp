// A language model of a structurally constrained recurrent network (Mikolov et al. 2014, "Learning longer
// memory in recurrent neural networks", section 2): beside the hidden state h a context s that changes
// slowly.
//
//   s' = (1 - a) B x + a s,   h' = sigmoid(P s' + A x + R h),   y = softmax(U h' + V s')
//
// Vectors are rows here, so B x is x B with B [input, context]. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "language_model.hpp"

namespace example {

struct Scrn {
  std::int64_t batch = 16, steps = 30;
  std::int64_t input = 300, hidden = 300, context = 40, vocabulary = 10000;
  double decay = 0.95;  ///< a, fixed as in the paper
  fuse::DType dtype = fuse::f32;

  /// The Penn Treebank (10,000 words) with the largest sizes that Mikolov et al. report there, 300 hidden
  /// units and 40 of context. Astra prints no sizes but batches of 8 to 256, of which 16 is chosen here, as
  /// are 30 steps, one of its buckets of lengths, and 300 for the embeddings. Mikolov et al. feed words as
  /// ones among zeros, which makes A and B the tables; Astra's models have embeddings.
  static Scrn paper() { return {}; }
  static Scrn small() {
    return {.batch = 2, .steps = 3, .input = 3, .hidden = 4, .context = 2, .vocabulary = 9};
  }
};

/// Six GEMMs a step.
inline fuse::Graph build_scrn(const Scrn& model, const Purpose& purpose = {}) {
  LanguageModel language("scrn", model.batch, model.steps, model.dtype, purpose);
  const std::vector<Var> words = language.words(model.vocabulary, model.input);
  const Var A = language.weight("A", {model.input, model.hidden});
  const Var B = language.weight("B", {model.input, model.context});
  const Var P = language.weight("P", {model.context, model.hidden});
  const Var R = language.weight("R", {model.hidden, model.hidden});
  const Var U = language.weight("U", {model.hidden, model.vocabulary});
  const Var V = language.weight("V", {model.context, model.vocabulary});
  Var h = language.state("h", model.hidden), s = language.state("s", model.context);
  std::vector<Var> logits;
  for (const Var& x : words) {
    const auto scope = language.step(logits.size());
    // Named one by one: the order in which an operator evaluates its operands is the compiler's.
    const Var Bx = matmul(x, B), kept = model.decay * s;
    s = (1 - model.decay) * Bx + kept;
    const Var Ps = matmul(s, P), Ax = matmul(x, A), Rh = matmul(h, R);
    h = sigmoid(Ps + Ax + Rh);
    const Var Uh = matmul(h, U), Vs = matmul(s, V);
    logits.push_back(Uh + Vs);
  }
  language.next_state("h", h);
  language.next_state("s", s);
  return language.finish(logits);
}

/// The paper's program does not train B; this does.
inline fuse::Graph build_scrn_training(const Scrn& model, double rate = 0) {
  return build_scrn(model, {.training = true, .rate = rate});
}

}  // namespace example
