// 2. Layer norm: half precision, parameters, and looking at what was compiled.
//
// x is bf16, gamma and beta are f32. Arithmetic on bf16 is f32 arithmetic: layer_norm converts once at its
// start and rounds once at its end, and no fusion changes that. SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <fuse/fuse.hpp>
#include <span>
#include <vector>

#include "support/options.hpp"
#include "support/run.hpp"

namespace {

constexpr std::size_t width = 1024;

fuse::Graph layernorm_graph() {
  fuse::Graph graph("layernorm");
  // min and max are a promise: prepare() refuses other values, and the compiler may rely on them. The hint is
  // a likely value and only guides choices.
  const fuse::Dim B = graph.dim("B", {.min = 1, .max = 1 << 20, .hint = 37});
  const fuse::Tensor x = graph.input("x", fuse::bf16, {B, width});
  // A parameter is data that stays: its values are bound once, and never become part of a kernel.
  const fuse::Tensor gamma = graph.parameter("gamma", fuse::f32, {width});
  const fuse::Tensor beta = graph.parameter("beta", fuse::f32, {width});
  graph.output("y", fuse::layer_norm(x, gamma, beta));
  return graph;
}

fuse::Weights layernorm_weights() {
  std::vector<float> gamma(width), beta(width);
  for (std::size_t i = 0; i < width; ++i) {
    gamma[i] = 1 + static_cast<float>(i) / width;
    beta[i] = 0.25F;
  }
  fuse::WeightsBuilder weights;
  weights.add("gamma", fuse::f32, {width}, std::as_bytes(std::span(gamma)));
  weights.add("beta", fuse::f32, {width}, std::as_bytes(std::span(beta)));
  return weights.build();
}

/// The same lines run on every device.
std::vector<fuse::bfloat16> run(const fuse::Executable& executable, std::span<const fuse::bfloat16> x) {
  fuse::Session session(executable, {{"B", static_cast<std::int64_t>(x.size() / width)}});
  session.set(layernorm_weights());
  session.set("x", std::as_bytes(x));
  session.run();
  std::vector<fuse::bfloat16> y(x.size());
  session.get("y", std::as_writable_bytes(std::span(y)));
  return y;
}

int layernorm(bool show_source) {
  const fuse::Device device = fuse::Device::auto_select();
  const fuse::Executable executable = fuse::compile(layernorm_graph(), device);
  if (show_source) {
    std::printf("%s", executable.source().c_str());
    return 0;
  }
  std::printf("%s\n", executable.explain().c_str());

  // One executable, any number of rows: nothing is compiled again for 64 of them.
  const fuse::Executable oracle = fuse::compile(layernorm_graph(), fuse::Device::reference());
  bool ok = true;
  for (const std::size_t rows : {1, 37, 64}) {
    std::vector<fuse::bfloat16> x(rows * width);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = fuse::bfloat16(std::sin(static_cast<double>(i)) * 3 + 0.5);
    }
    // The reference device computes in double precision and rounds its result once. A device that computes in
    // f32 may round the other way where a value lies between two bf16 neighbours: 1 part in 128 at most.
    const std::vector<fuse::bfloat16> got = run(executable, x), exact = run(oracle, x);
    double worst = 0;
    std::size_t equal = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double wanted = static_cast<double>(exact[i]);
      worst = std::fmax(worst, std::fabs(static_cast<double>(got[i]) - wanted) / (std::fabs(wanted) + 1e-3));
      equal += got[i].bits == exact[i].bits;
    }
    std::printf("%2zu rows: %zu of %zu elements equal the reference, largest relative difference %.2g\n",
                rows, equal, got.size(), worst);
    ok &= worst <= 1.0 / 128;
  }
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return example::run([&] {
    const example::Options options(argc, argv, "layernorm: bf16 rows of 1024, explained and checked",
                                   {{"--source", "", "", "print the text of the kernels and end"},
                                    {"--print-graph", "", "", "print the graph's .fuse text and end"}});
    if (!options.flag("--print-graph")) return layernorm(options.flag("--source"));
    std::printf("%s", layernorm_graph().to_string().c_str());
    return 0;
  });
}
