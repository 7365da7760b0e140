// 4. BERT: symbolic batch and sequence, merged GEMMs, packed parameters.
//
// One executable serves every batch and every length. Queries, keys and values are three GEMMs of one
// operand: the compiler makes one of them, whose weights it lays side by side once (see docs/gemm.md). The
// program runs a small encoder with and without that, and compares both with the exact result.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fuse/fuse.hpp>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "models/bert.hpp"
#include "support/options.hpp"
#include "support/run.hpp"
#include "support/transformer.hpp"

namespace {

using example::Bert;
using example::Options;

Bert read_model(const Options& options) {
  Bert model;
  model.layers = options.integer("--layers", 0, 1000);
  model.hidden = options.integer("--hidden", 1, 65536);
  model.heads = options.integer("--heads", 1, 1024);
  model.intermediate = options.integer("--intermediate", 1, 65536);
  model.vocabulary = options.integer("--vocabulary", 1, 1 << 20);
  if (model.hidden % model.heads != 0) Options::fail("--hidden must be a multiple of --heads");
  return model;
}

/// The pooled rows of a batch: random tokens, the second half of the last sequence is padding.
std::vector<fuse::bfloat16> pooled(const fuse::Executable& executable, const fuse::Weights& weights,
                                   const Bert& model, std::int64_t batch, std::int64_t sequence,
                                   std::int64_t* gemms = nullptr) {
  fuse::Session session(executable, {{"B", batch}, {"S", sequence}});
  const auto count = static_cast<std::size_t>(batch * sequence);
  std::mt19937 random(1);
  std::vector<std::int32_t> tokens(count), types(count);
  std::vector<std::uint8_t> mask(count, 1);
  for (std::size_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(model.vocabulary));
    types[i] = static_cast<std::int32_t>(i % 2);
  }
  for (std::size_t i = count - static_cast<std::size_t>(sequence / 2); i < count; ++i) mask[i] = 0;
  session.set(weights);
  session.set("tokens", std::as_bytes(std::span(tokens)));
  session.set("token_types", std::as_bytes(std::span(types)));
  session.set("mask", std::as_bytes(std::span(mask)));
  session.run();
  std::vector<fuse::bfloat16> result(static_cast<std::size_t>(batch * model.hidden));
  session.get("pooled", std::as_writable_bytes(std::span(result)));
  if (gemms) *gemms = session.prepared().gemms();
  return result;
}

double largest_difference(const std::vector<fuse::bfloat16>& a, const std::vector<fuse::bfloat16>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= largest)) largest = difference;  // a NaN is kept
  }
  return largest;
}

int bert(const Options& options) {
  const Bert model = read_model(options);
  if (options.flag("--print-layer")) {
    std::printf("%s", example::BertGraph(model, "bert_layer").build_layer().to_string().c_str());
    return 0;
  }
  const fuse::Graph graph = example::BertGraph(model, options.text("--name")).build();
  if (options.flag("--print-graph")) {
    std::printf("%s", graph.to_string().c_str());
    return 0;
  }
  const fuse::Device device = fuse::Device::auto_select();
  std::printf("device  %s\n", device.name().c_str());
  const fuse::Executable merged = fuse::compile(graph, device);
  const fuse::Executable apart = fuse::compile(graph, device, {.merge_gemms = false});
  const fuse::Executable oracle = fuse::compile(graph, fuse::Device::reference());
  const fuse::Weights weights = example::random_weights(merged, 1);
  bool ok = true;
  for (const auto& [batch, sequence] : {std::pair{1, 7}, {3, 16}}) {
    std::int64_t few = 0, many = 0;
    const auto exact = pooled(oracle, weights, model, batch, sequence);
    const double off = largest_difference(pooled(merged, weights, model, batch, sequence, &few), exact);
    const double off_apart = largest_difference(pooled(apart, weights, model, batch, sequence, &many), exact);
    // Values lie in (-1, 1); a bf16 has 8 bits, and a few roundings lie between a token and the pooler.
    const bool inside = off <= 0x1p-5 && off_apart <= 0x1p-5;
    std::printf("B = %d, S = %2d: %lld GEMMs, off by %.2g; one by one %lld, off by %.2g  %s\n", batch,
                sequence, static_cast<long long>(few), off, static_cast<long long>(many), off_apart,
                inside ? "OK" : "TOO FAR");
    ok &= inside;
  }
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return example::run([&] {
    return bert(Options(argc, argv, "bert: an encoder for every batch and length, its GEMMs merged",
                        {{"--layers", "N", "2", "encoder layers"},
                         {"--hidden", "N", "64", "width"},
                         {"--heads", "N", "2", "attention heads"},
                         {"--intermediate", "N", "128", "width between the two GEMMs of a layer's end"},
                         {"--vocabulary", "N", "1000", "tokens"},
                         {"--name", "NAME", "bert", "of the graph"},
                         {"--print-graph", "", "", "print the graph's .fuse text and end"},
                         {"--print-layer", "", "", "print the text of one layer and end"}}));
  });
}
