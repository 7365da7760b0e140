// host_overhead: what a run costs the host before the device does anything, on the recording fake driver,
// which only counts its calls: those of the driver, making a context current among them, and of cuBLASLt.
// Prints steps, streams, and time, calls and allocations a run, by mode. SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <fuse/fuse.hpp>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/access.hpp"
#include "fake_cublaslt/fake_cublaslt.hpp"
#include "fake_cuda/fake_cuda.hpp"
#include "ir/graph/ir_graph.hpp"

namespace {

std::size_t allocations = 0;  // of this process; one thread makes runs

}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace fuse::bench {
namespace {

constexpr double goal_run = 0.3e-6, goal_step = 0.03e-6;  // seconds, on streams

struct Fake {
  explicit Fake(const std::string& path) {
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(::dlerror());
    only_count = reinterpret_cast<decltype(only_count)>(::dlsym(library, "fake_cuda_only_count"));
    counted = reinterpret_cast<decltype(counted)>(::dlsym(library, "fake_cuda_counted"));
    if (!only_count || !counted) throw std::runtime_error(path + " is not the fake driver");
  }
  decltype(&fake_cuda_only_count) only_count;
  decltype(&fake_cuda_counted) counted;
};

/// As the fake driver: GEMMs are counted, not computed.
struct FakeBlas {
  explicit FakeBlas(const std::string& path) {
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(::dlerror());
    const auto only_count =
        reinterpret_cast<decltype(&fake_cublaslt_only_count)>(::dlsym(library, "fake_cublaslt_only_count"));
    counted = reinterpret_cast<decltype(counted)>(::dlsym(library, "fake_cublaslt_counted"));
    if (!only_count || !counted) throw std::runtime_error(path + " is not the fake cuBLASLt");
    only_count(1);
  }
  decltype(&fake_cublaslt_counted) counted;
};

/// Kernels one behind the other: each needs the whole of what the last one made.
Graph chain(int kernels) {
  Graph g("chain_" + std::to_string(kernels));
  Tensor x = g.input("x", f32, {64, 64});
  for (int i = 0; i < kernels; ++i) x = broadcast_to(sum(exp(x), {i % 2}, {.keep_dims = true}), {64, 64});
  g.output("y", x);
  return g;
}

Graph from_file(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  return Graph::parse(std::string(std::istreambuf_iterator<char>(in), {}), path);
}

DimValues hints(const Graph& graph) {
  DimValues values;
  for (const auto& symbol : ir_of(graph).symbols) {
    values[symbol.name] =
        symbol.range.hint > 0 ? symbol.range.hint : std::max<std::int64_t>(symbol.range.min, 8);
  }
  return values;
}

/// Of a run: the same buffers again, two sets of buffers in turn, and a set's first run.
struct Figures {
  double seconds = 0, changed = 0;
  double calls = 0, changed_calls = 0, new_calls = 0;
  double allocations = 0;
};

/// The median of batches; the fake's calls are a part of it.
template <class F>
double seconds_of(F&& run) {
  constexpr int batches = 31;
  int times = 1;
  std::vector<double> taken;
  const auto batch = [&] {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  while (batch() < 1e-3) times *= 2;
  for (int i = 0; i < batches; ++i) taken.push_back(batch() / times);
  std::nth_element(taken.begin(), taken.begin() + batches / 2, taken.end());
  return taken[batches / 2];
}

Figures measure(const Executable& executable, const Prepared& prepared, ExecutionMode mode, const Fake& fake,
                const FakeBlas& blas) {
  const Device& device = executable.device();
  std::vector<Buffer> buffers;
  std::vector<BufferView> views, others;
  for (std::vector<BufferView>* set : {&views, &others}) {
    for (std::size_t i = 0; i < executable.slots().size(); ++i) {
      buffers.push_back(device.allocate(prepared.bytes(i)));
      set->push_back(buffers.back().view());
    }
  }
  const Buffer packed = device.allocate(prepared.packed_bytes());
  Workspace workspace = prepared.workspace({mode});
  Stream stream = device.stream();
  const auto run = [&](const std::vector<BufferView>& with) {
    prepared.run(stream, with, workspace, packed.view()).throw_if_failed();
  };
  fake.only_count(1);
  const auto calls_of = [&](const std::vector<BufferView>& with) {
    fake.counted("");
    blas.counted();
    run(with);
    return static_cast<double>(fake.counted("") + blas.counted());
  };
  run(views);
  const std::size_t before = allocations;
  Figures figures;
  figures.calls = calls_of(views);
  figures.new_calls = calls_of(others);
  figures.changed_calls = calls_of(views);
  figures.allocations = static_cast<double>(allocations - before) / 3;
  figures.seconds = seconds_of([&] { run(views); });
  bool odd = false;
  figures.changed = seconds_of([&] { run((odd = !odd) ? others : views); });
  fake.only_count(0);
  return figures;
}

/// What prepare takes for dims that it has not seen, or not for a while, and for dims that it keeps.
void prepare_line(const Graph& graph, const Executable& executable, const Fake& fake) {
  const DimValues at_hints = hints(graph);
  if (at_hints.empty()) return;
  std::vector<DimValues> shapes;  // more than are kept
  for (std::int64_t i = 0; i < 64; ++i) {
    DimValues dims = at_hints;
    for (const auto& symbol : ir_of(graph).symbols) {
      const std::int64_t step = std::min<std::int64_t>(i, symbol.range.max - symbol.range.min);
      dims[symbol.name] = std::clamp(dims[symbol.name] + step, symbol.range.min, symbol.range.max);
    }
    if (shapes.empty() || dims != shapes.back()) shapes.push_back(std::move(dims));
  }
  std::size_t next = 0;
  fake.only_count(1);
  const double fresh = seconds_of([&] { executable.prepare(shapes[next++ % shapes.size()]); });
  const double known = seconds_of([&] { executable.prepare(at_hints); });
  fake.only_count(0);
  fmt::print("{:<20} prepare: {:.2f} us for a new shape, {:.2f} us for one that is kept\n", graph.name(),
             fresh * 1e6, known * 1e6);
}

void rows(const Graph& graph, const Fake& fake, const FakeBlas& blas) {
  const Executable executable = compile(graph, Device::cuda());
  const Prepared prepared = executable.prepare(hints(graph));
  const auto steps = static_cast<double>(prepared.launches() + prepared.gemms());
  const double goal = goal_run + goal_step * steps;
  for (const ExecutionMode mode : {ExecutionMode::streams, ExecutionMode::graph}) {
    const Figures f = measure(executable, prepared, mode, fake, blas);
    const std::string target = mode == ExecutionMode::streams ? fmt::format("{:.3f}", goal * 1e6) : "";
    fmt::print("{:<20} {:>6} {:>8} {:<8} {:>9.3f} {:>9.3f} {:>9} {:>10.1f} {:>8} {:>12} {:>10} {:>8}\n",
               graph.name(), steps, prepared.streams(), to_string(mode), f.seconds * 1e6, f.changed * 1e6,
               target, f.seconds / steps * 1e9, f.calls, f.changed_calls, f.new_calls, f.allocations);
    std::fflush(stdout);
  }
  prepare_line(graph, executable, fake);
}

int run(int argc, char** argv) {
  const std::string fakes = FUSE_TEST_FAKE_DIR;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--help") continue;
    std::puts(
        "usage: host_overhead [FILE.fuse ...]\n\nHost time of Prepared::run on the fake driver, whose calls "
        "are in "
        "it.\nWithout files: chains of kernels, and the graphs of the examples.");
    return 0;
  }
  ::setenv("FUSE_LIBCUDA", (fakes + "/libfake_cuda.so").c_str(), 1);
  ::setenv("FUSE_LIBNVRTC", (fakes + "/libfake_nvrtc.so").c_str(), 1);
  ::setenv("FUSE_LIBCUBLASLT", (fakes + "/libfake_cublaslt.so").c_str(), 1);
  ::unsetenv("FUSE_CONTRACT");
  ::setenv("FUSE_CACHE", "0", 1);
  const Fake fake(fakes + "/libfake_cuda.so");
  const FakeBlas blas(fakes + "/libfake_cublaslt.so");
  fmt::print("{:<20} {:>6} {:>8} {:<8} {:>9} {:>9} {:>9} {:>10} {:>8} {:>12} {:>10} {:>8}\n", "graph",
             "steps", "streams", "mode", "us", "us, other", "goal, us", "ns a step", "calls", "calls, other",
             "calls, new", "allocs");
  if (argc > 1) {
    for (int i = 1; i < argc; ++i) rows(from_file(argv[i]), fake, blas);
    return 0;
  }
  for (const int kernels : {1, 10, 100, 1000}) rows(chain(kernels), fake, blas);
  for (const char* name : {"softmax", "layernorm", "transformer_block", "bert_layer"}) {
    rows(from_file(fmt::format("{}/{}.fuse", FUSE_BENCH_GRAPHS, name)), fake, blas);
  }
  return 0;
}

}  // namespace
}  // namespace fuse::bench

int main(int argc, char** argv) {
  try {
    return fuse::bench::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "host_overhead: {}\n", error.what());
    return 1;
  }
}
