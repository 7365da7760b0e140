// CRNN (Shi, Bai and Yao 2015): text in an image, by convolutions, two bidirectional LSTMs, and a class for
// each column of what is left of the image.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convolution.hpp"
#include "recurrent.hpp"

namespace example {

struct Crnn {
  std::int64_t batch = 1, height = 32, width = 100;
  std::vector<std::int64_t> channels = {64, 128, 256, 256, 512, 512, 512};  ///< of the seven convolutions
  std::int64_t lstm = 256;                                                  ///< units of a direction
  std::int64_t classes = 37;  ///< 26 letters, 10 digits and the blank
  fuse::DType dtype = fuse::f32;

  /// Table 1 of CRNN, with the 100 columns of its section 3.2, and the batch of AStitch's Table 2.
  static Crnn paper() { return {}; }
  /// Height 32 is what the pools and the last convolution make one row of.
  static Crnn small() { return {.width = 24, .channels = {4, 4, 8, 8, 8, 8, 8}, .lstm = 8, .classes = 11}; }
};

/// image [B, height, width] to log_probabilities [T, B, classes], with T = width / 4 - 1.
inline fuse::Graph build_crnn(const Crnn& model) {
  fuse::Graph graph("crnn");
  Layers layers(graph, model.dtype);
  const fuse::Tensor image = graph.input("image", model.dtype, {model.batch, model.height, model.width});
  fuse::Tensor x = fuse::reshape(image, {model.batch, model.height, model.width, 1});
  const auto convolve = [&](std::int64_t i, std::int64_t size, bool norm) {
    const std::string name = "conv" + std::to_string(i);
    x = convolution(layers, x, name, size, size == 3 ? 1 : 0, model.channels.at(static_cast<std::size_t>(i)));
    if (norm) x = layers.batch_norm(x, name + ".norm");
    x = relu(x);
  };
  convolve(0, 3, false);
  x = max_pool(x, 2, 2);
  convolve(1, 3, false);
  x = max_pool(x, 2, 2);
  convolve(2, 3, false);
  convolve(3, 3, false);
  x = max_pool(x, 2, 1);  // the paper's window is two rows high and one column wide
  convolve(4, 3, true);
  convolve(5, 3, true);
  x = max_pool(x, 2, 1);
  convolve(6, 2, false);

  // From a map to a sequence: columns are time steps.
  const fuse::Dim columns = x.dim(2);
  const fuse::Tensor map = fuse::transpose(x, {2, 0, 1, 3});
  x = fuse::reshape(map, {columns, model.batch, x.dim(1) * x.dim(3)});
  std::vector<fuse::Tensor> states = bidirectional_lstm(layers, {x}, "lstm0", model.lstm);
  states = bidirectional_lstm(layers, states, "lstm1", model.lstm);
  graph.output("log_probabilities", fuse::log_softmax(layers.dense(states, "classes", model.classes)));
  return graph;
}

}  // namespace example
