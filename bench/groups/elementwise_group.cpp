// Element-wise kernels on the emulated device against the same loop, built by the same compiler with the same
// options. Such kernels have no barrier, so the device runs them as a plain loop too: the ratio is what the
// emulation costs.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/access.hpp"
#include "compile/toolchains/host_compiler.hpp"
#include "graph_run.hpp"
#include "groups/groups.hpp"
#include "measure.hpp"
#include "runtime/device/built_library.hpp"

namespace fuse::bench {
namespace {

constexpr std::int64_t count = 1 << 20;  // 12 MB in three arrays: they stay in the last-level cache
constexpr int elementwise_samples = 9;
constexpr double elementwise_seconds = 0.03;

// The arithmetic is the graphs', element for element: results have to be equal to the bit.
constexpr const char* loops_text = R"(
extern "C" float expf(float) noexcept;
static inline float maximum(float a, float b) { return b > a || b != b ? b : a; }
extern "C" __attribute__((visibility("default")))
void affine(const float* __restrict__ x, const float* __restrict__ b, float* __restrict__ y, long n) {
  for (long i = 0; i < n; ++i) y[i] = maximum(x[i] * 0.7978f + b[i], 0.0f) * 0.5f + x[i];
}
extern "C" __attribute__((visibility("default")))
void expo(const float* __restrict__ x, const float* __restrict__ b, float* __restrict__ y, long n) {
  for (long i = 0; i < n; ++i) y[i] = expf(x[i] * 0.7978f + b[i]) + x[i];
}
)";

using Loop = void (*)(const float*, const float*, float*, long);

class Loops {
 public:
  Loops()
      : library_(runtime::open_built_library(runtime::emulated::HostCompiler().build({loops_text}).at(0),
                                             "the compiler")) {}
  Loop find(const char* name) const {
    void* symbol = dlsym(library_.get(), name);
    if (!symbol) throw std::runtime_error(fmt::format("the compiled loops have no '{}'", name));
    return reinterpret_cast<Loop>(symbol);
  }

 private:
  const std::shared_ptr<void> library_;
};

Graph graph_of(const std::string& name) {
  Graph graph(name);
  const Tensor x = graph.input("x", f32, {count}), b = graph.input("b", f32, {count});
  const Tensor affine = x * 0.7978f + b;
  graph.output("y", name == "affine" ? maximum(affine, 0.0f) * 0.5f + x : exp(affine) + x);
  return graph;
}

/// Each thread runs its part `repeats` times; what starting threads costs is not the loop's.
void run_plain(Loop loop, const float* x, const float* b, float* y, int threads, int repeats) {
  const auto part = [&](int index) {
    const std::int64_t from = count * index / threads, to = count * (index + 1) / threads;
    for (int i = 0; i < repeats; ++i) loop(x + from, b + from, y + from, to - from);
  };
  std::vector<std::jthread> helpers;
  for (int i = 1; i < threads; ++i) helpers.emplace_back(part, i);
  part(0);
}

void compare(Report& report, const std::string& name, Loop loop, int threads) {
  const std::vector<float> x = test_numbers(count, 1), b = test_numbers(count, 7);
  std::vector<float> y(static_cast<std::size_t>(count));
  GraphRun emulated(graph_of(name), Device::emulated({.threads = threads}));
  emulated.set("x", x);
  emulated.set("b", b);

  const int repeats = repeats_for(elementwise_seconds, [&] { emulated.run(); });
  Samples ours, plain;
  std::vector<double> ratios, cpu_ratios;
  run_plain(loop, x.data(), b.data(), y.data(), threads, 1);
  for (int i = 0; i < elementwise_samples; ++i) {  // in turns, so that both meet the same neighbours
    ours.add(time_once([&] {
               for (int k = 0; k < repeats; ++k) emulated.run();
             }),
             repeats);
    plain.add(time_once([&] { run_plain(loop, x.data(), b.data(), y.data(), threads, repeats); }), repeats);
    ratios.push_back(plain.wall.back() / ours.wall.back());
    cpu_ratios.push_back(plain.cpu.back() / ours.cpu.back());
  }
  if (emulated.get("y") != y) throw std::runtime_error(name + ": the two results differ");

  const std::string suffix = fmt::format(".{}_thread{}", threads, threads == 1 ? "" : "s");
  const double giga = static_cast<double>(count) * 1e-9;
  const std::string how = fmt::format("{} elements, {} launches a sample", count, repeats);
  report.add(ours.rate(name + suffix, "G elements/s", threads, giga)).how = how + ", emulated";
  report.add(plain.rate(name + "_loop" + suffix, "G elements/s", threads, giga)).how = how + ", plain loop";
  Row& ratio =
      report.add({.name = name + "_ratio" + suffix, .unit = "of the loop's rate", .figure = median(ratios)});
  ratio.min = *std::min_element(ratios.begin(), ratios.end());
  ratio.max = *std::max_element(ratios.begin(), ratios.end());
  ratio.cpu = median(cpu_ratios);
  ratio.n = elementwise_samples;
  ratio.goal = {Goal::Kind::at_least, 0.5};
  ratio.how = "the two above, sample by sample";
}

}  // namespace

void bench_elementwise(Report& report, const Settings&) {
  const Loops loops;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  for (const char* name : {"affine", "expo"}) {
    compare(report, name, loops.find(name), 1);
    if (cores > 1) compare(report, name, loops.find(name), cores);
  }
}

}  // namespace fuse::bench
