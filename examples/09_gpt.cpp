// 9. GPT: text from a language model, with a cache of keys and values.
//
// The model has read the Apache License (2 layers, 4 heads, 114,432 weights; tests/oracle/gpt.py trained it
// in PyTorch). One executable serves a prompt of any length and the single tokens that follow it. Two
// sessions share the weights and the caches: one for the prompt, one for each token after it.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdio>
#include <fuse/fuse.hpp>
#include <string>
#include <vector>

#include "models/gpt.hpp"
#include "support/options.hpp"
#include "support/run.hpp"

#ifndef FUSE_EXAMPLE_GPT  // the build says where the file is; without it, run this from the top of the
                          // checkout
#define FUSE_EXAMPLE_GPT "examples/data/gpt.safetensors"
#endif

namespace {

std::int64_t token_of(char c) {
  if (c == '\n') return 95;
  return c < ' ' || c > '~' ? 0 : c - ' ';
}
char char_of(std::int64_t token) { return token == 95 ? '\n' : static_cast<char>(' ' + token); }

int generate(const example::Options& options) {
  const example::GptOptions sizes;
  const std::string prompt = options.text("--prompt");
  const auto length = static_cast<std::int64_t>(prompt.size());
  if (length < 1 || length > sizes.context) options.fail("--prompt: 1 to 128 characters are needed");

  const std::string name = options.text("--device");
  const fuse::Device device = name == "auto"       ? fuse::Device::auto_select()
                              : name == "cpu"      ? fuse::Device::cpu()
                              : name == "emulated" ? fuse::Device::emulated()
                                                   : fuse::Device::cuda();
  const example::Gpt gpt(sizes);
  const fuse::Weights weights = fuse::Weights::from_safetensors(options.text("--weights"));

  // The weights are uploaded once, and both sessions read them there.
  const fuse::Bound model = fuse::compile(gpt.graph, device).bind(weights);
  fuse::Session prefill = model.session({{"T", length}});
  fuse::Session step = model.session({{"T", 1}});
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    for (const char* kind : {"keys.", "values."}) {
      const std::string cache = kind + std::to_string(i);
      const std::vector<float> zeros(static_cast<std::size_t>(sizes.context * sizes.width));
      prefill.set(cache, zeros);
      step.use(cache, prefill.buffer(cache));
    }
  }

  std::vector<std::int64_t> tokens;
  for (const char c : prompt) tokens.push_back(token_of(c));
  prefill.set("tokens", tokens);
  prefill.set("position", {std::int64_t{0}});
  prefill.run();
  std::int64_t next = prefill.get<std::int64_t>("next")[0];

  std::printf("%s", prompt.c_str());
  const std::int64_t asked = options.integer("--tokens", 1, sizes.context);
  for (std::int64_t made = 0; made < asked && length + made < sizes.context; ++made) {
    std::putchar(char_of(next));
    std::fflush(stdout);
    step.set("tokens", {next});
    step.set("position", {length + made});
    step.run();
    next = step.get<std::int64_t>("next")[0];
  }
  std::printf("\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return example::run([&] {
    return generate(
        example::Options(argc, argv, "gpt: text after a prompt, from a small language model",
                         {{"--prompt", "TEXT", "The Licensor", "what the text begins with"},
                          {"--tokens", "N", "100", "characters to add, while the context of 128 has room"},
                          {"--weights", "FILE", FUSE_EXAMPLE_GPT, "the weights, a .safetensors file"},
                          {"--device", "NAME", "auto", "auto, cpu, cuda or emulated"}}));
  });
}
