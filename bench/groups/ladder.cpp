// The ladder of costs under every plan: a launch, a dependent launch, an event, a node of a CUDA graph, a
// grid barrier, a copy. What the cost model knows of a GPU comes from these rows.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/access.hpp"
#include "codegen_cuda/primitives/primitives.hpp"
#include "copy_rate.hpp"
#include "groups/groups.hpp"
#include "timing.hpp"

namespace fuse::bench {
namespace {

std::vector<int> clusters_of(const Target& target) {
  std::vector<int> sizes;
  for (const int blocks : {2, 8, 16}) {
    if (blocks <= target.max_cluster) sizes.push_back(blocks);
  }
  return sizes;
}

std::string cluster_kernel(int blocks, int barriers) {
  return fmt::format("cluster_{}_{}", blocks, barriers);
}

codegen::Source ladder_source(const Target& target) {
  using Kind = codegen::KernelParam::Kind;
  codegen::Source source;
  source.name = "ladder";
  source.primitives = {"global", "grid_barrier", "kernel", "load", "store"};
  source.prelude = codegen::cuda_prelude(source.primitives);
  source.body = R"(
FUSE_KERNEL(128) empty(global<float> x) {
}
FUSE_KERNEL(256) increment(global<float> x) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  store(x, i, load(x, i) + 1.0f);
}
FUSE_KERNEL(128) one_barrier(global<int> counter) {
  grid_barrier(counter);
}
FUSE_KERNEL(128) more_barriers(global<int> counter) {
  for (int i = 0; i < 33; ++i) grid_barrier(counter);
}
)";
  for (const auto& [name, threads] : {std::pair{"empty", 128}, std::pair{"increment", 256}}) {
    codegen::KernelInfo info{.name = name, .block_threads = threads};
    info.params = {{Kind::buffer, "x", DType::f32, true}};
    source.kernels.push_back(info);
  }
  for (const char* name : {"one_barrier", "more_barriers"}) {
    codegen::KernelInfo info{.name = name, .block_threads = 128, .communicates = true, .cooperative = true};
    info.params = {{Kind::buffer, "counter", DType::i32, true}};
    source.kernels.push_back(info);
  }
  for (const int blocks : clusters_of(target)) {
    for (const int barriers : {1, 33}) {
      const std::string name = cluster_kernel(blocks, barriers);
      source.body += fmt::format(
          "FUSE_KERNEL(128) FUSE_CLUSTER({}) {}(global<int> x) {{\n"
          "  for (int i = 0; i < {}; ++i) cluster_barrier();\n}}\n",
          blocks, name, barriers);
      codegen::KernelInfo info{.name = name, .block_threads = 128, .communicates = true, .cluster = blocks};
      info.params = {{Kind::buffer, "x", DType::i32, true}};
      source.kernels.push_back(info);
    }
  }
  if (!clusters_of(target).empty()) {
    source.primitives.insert(source.primitives.end(), {"cluster_barrier", "cluster_size"});
    source.prelude = codegen::cuda_prelude(source.primitives);
  }
  return source;
}

class Ladder {
 public:
  Ladder(Report& report, const Device& device)
      : report_(report),
        device_(device),
        timer_(device),
        module_(backend_of(device)->load(ladder_source(backend_of(device)->target()))),
        wave_(backend_of(device)->target().sms),
        memory_(device.allocate(wave_ * 256 * static_cast<std::int64_t>(sizeof(float)))),
        event_(backend_of(device)->create_event()) {
    timer_.backend()
        .memset(queue_of(timer_.stream()), memory_.address(), 0, memory_.size())
        .throw_if_failed();
  }

  void run() {
    const auto empty = [&](std::int64_t) { return launch("empty", 1); };
    const auto increment = [&](std::int64_t) { return launch("increment", wave_); };
    const auto mark = [&](std::int64_t) {
      return timer_.backend().record(queue_of(timer_.stream()), *event_);
    };
    const auto round_trip = [&](std::int64_t) {
      Status status = launch("empty", 1);
      return status ? timer_.stream().synchronize() : status;
    };
    add("launch.empty", timer_.device(1, empty), "an empty kernel of one block, back to back");
    add("launch.dependent", timer_.device(1, increment),
        fmt::format("{} blocks of 256, each launch reads what the last one wrote", wave_));
    add("launch.round_trip", timer_.device(1, round_trip), "an empty kernel, waited for");
    add("event", timer_.device(1, mark), "recording one event");
    add_or_skip("launch.host", timer_.host(1, 1, empty), "host time of a launch, in bursts");
    add_or_skip("event.host", timer_.host(1, 1, mark), "host time of recording an event, in bursts");
    add_or_skip("graph.empty", timer_.captured(1, empty), "a node of a CUDA graph: an empty kernel");
    add_or_skip("graph.dependent", timer_.captured(1, increment),
                fmt::format("a node of a CUDA graph: {} blocks of 256", wave_));
    const auto zero = [&](std::int64_t) {
      return timer_.backend().memset(queue_of(timer_.stream()), memory_.address(), 0, sizeof(std::int32_t));
    };
    add("memset.counter", timer_.device(1, zero), "setting the counter of a grid barrier to zero");
    for (const std::int64_t blocks : {wave_ / 4, wave_, 2 * wave_})
      add_barrier(std::max<std::int64_t>(1, blocks));
    for (const int blocks : clusters_of(timer_.backend().target())) add_cluster_barrier(blocks);
    add_copies();
    add_target();
  }

 private:
  /// What 32 further barriers cost a kernel whose counter a memset before it has zeroed.
  void add_barrier(std::int64_t blocks) {
    const auto timed = [&](const char* kernel) {
      return timer_.device(1, [&, kernel](std::int64_t) {
        Status status =
            timer_.backend().memset(queue_of(timer_.stream()), memory_.address(), 0, sizeof(std::int32_t));
        return status ? launch(kernel, blocks) : status;
      });
    };
    const Spread one = timed("one_barrier"), more = timed("more_barriers");
    add_difference(fmt::format("grid_barrier.{}", blocks), one, more,
                   fmt::format("a grid barrier among {} blocks of 128: 33 of them less one, by 32", blocks));
  }

  void add_cluster_barrier(int blocks) {
    const auto timed = [&](int barriers) {
      const std::string kernel = cluster_kernel(blocks, barriers);
      return timer_.device(1, [&](std::int64_t) { return launch(kernel, blocks); });
    };
    const Spread one = timed(1), more = timed(33);
    add_difference(
        fmt::format("cluster_barrier.{}", blocks), one, more,
        fmt::format("a barrier of a cluster of {} blocks of 128: 33 of them less one, by 32", blocks));
  }

  void add_copies() {
    const std::int64_t bytes = device_.kind() == DeviceKind::cuda ? 1 << 28 : 1 << 20;
    const CopyRate rate = CopyYardstick(device_, timer_).measure(bytes, bytes);
    const std::string size = fmt::format("{} MiB read and as many written", bytes >> 20);
    report_.add({.name = "copy.kernel",
                 .unit = "GB/s",
                 .figure = rate.kernel.value_or(0) / 1e9,
                 .how = "16 bytes an access, " + size});
    report_.add({.name = "copy.memcpy",
                 .unit = "GB/s",
                 .figure = rate.memcpy / 1e9,
                 .how = "the driver's copy, " + size});
  }

  /// What the cost model takes for this device, to be set beside what was measured.
  void add_target() {
    const Target& target = timer_.backend().target();
    const auto add_constant = [&](const char* name, const char* unit, double figure) {
      report_.add({.name = name, .unit = unit, .figure = figure, .how = "what the cost model takes"});
    };
    add_constant("target.launch_seconds", "us", target.launch_seconds * 1e6);
    add_constant("target.node_seconds", "us", target.node_seconds * 1e6);
    add_constant("target.barrier_seconds", "us", target.barrier_seconds * 1e6);
    add_constant("target.cluster_seconds", "us", target.cluster_seconds * 1e6);
    add_constant("target.bandwidth", "GB/s", target.bandwidth / 1e9);
  }

  /// Of 32 barriers more, for each.
  void add_difference(std::string name, const Spread& one, const Spread& more, std::string how) {
    Row& row = report_.add({.name = std::move(name), .unit = "us"});
    row.figure = (more.median - one.median) / 32 * 1e6;
    row.min = (more.min - one.max) / 32 * 1e6;
    row.max = (more.max - one.min) / 32 * 1e6;
    row.n = more.n;
    row.how = std::move(how);
  }

  Status launch(const std::string& kernel, std::int64_t blocks) {
    const runtime::Argument argument{.address = memory_.address(), .bytes = memory_.size()};
    return timer_.backend().launch(queue_of(timer_.stream()), module_->function(kernel), {.x = blocks},
                                   &argument, 1);
  }

  void add(const char* name, const Spread& spread, const std::string& how) {
    Row& row = report_.add({.name = name, .unit = "us"});
    row.figure = spread.median * 1e6;
    row.min = spread.min * 1e6;
    row.max = spread.max * 1e6;
    row.n = spread.n;
    row.how = how;
  }
  void add_or_skip(const char* name, const std::optional<Spread>& spread, const std::string& how) {
    if (spread) return add(name, *spread, how);
    report_.skip(name, "the emulated device has none: " + how);
  }

  Report& report_;
  const Device& device_;
  DeviceTimer timer_;
  std::unique_ptr<runtime::Module> module_;
  const std::int64_t wave_;
  Buffer memory_;
  std::unique_ptr<runtime::Event> event_;
};

}  // namespace

void bench_ladder(Report& report, const Settings& settings) { Ladder(report, settings.device).run(); }

}  // namespace fuse::bench
