// What single instructions, barriers, accesses and blocks cost on the device: what the counts of a kernel's
// text assume and the cost model does not have. Every figure is a difference of two runs, so that what a
// launch costs is not in it. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <vector>

#include "base/access.hpp"
#include "groups/groups.hpp"
#include "probe/kernels.hpp"
#include "timing.hpp"

namespace fuse::bench {
namespace {

/// How much of it: on the emulated device enough to run every line.
struct Size {
  std::int64_t blocks;  ///< as many as fill the device
  std::int64_t few, many;
  std::int64_t few_blocks, many_blocks;
  std::int64_t lines;  ///< of 128 bytes, a power of two
};

Size size_on(const Device& device) {
  const Target& target = backend_of(device)->target();
  if (device.kind() != DeviceKind::cuda) return {target.sms, 1, 3, 1, 3, 64};
  const auto lines = std::bit_ceil(static_cast<std::uint64_t>(4 * target.l2_bytes / (4 * words_of_a_line)));
  return {.blocks = static_cast<std::int64_t>(target.sms) * target.max_threads_per_sm / probe_threads,
          .few = 256,
          .many = 2304,
          .few_blocks = target.sms,
          .many_blocks = 1 << 20,
          .lines = static_cast<std::int64_t>(lines)};
}

class Probe {
 public:
  Probe(Report& report, const Device& device)
      : report_(report),
        timer_(device),
        module_(backend_of(device)->load(probe_source(backend_of(device)->target()))),
        size_(size_on(device)),
        memory_(device.allocate((size_.blocks * probe_threads + 4) * 4)),
        counter_(device.allocate(4)),
        lines_(device.allocate(size_.lines * words_of_a_line * 4)) {}

  void run() {
    conversions();
    divisions();
    barriers();
    latency();
    blocks();
  }

 private:
  void conversions() {
    for (const auto& [kernel, instruction] :
         {std::pair{"convert_f2f", "cvt.rn.bf16.f32"}, std::pair{"convert_f2fp", "cvt.rn.bf16x2.f32"}}) {
      if (timer_.backend().target().arch < 80) {
        report_.skip(kernel, fmt::format("{} is of sm_80 and newer", instruction));
        continue;
      }
      set_floats(1.5f, 1.5f);
      add_rate(kernel, fmt::format("f32 to bf16 by {}, on all multiprocessors", instruction));
    }
  }

  void divisions() {
    for (const auto& [name, numerator, what] :
         {std::tuple{"divide.one", 1.0f, "of 1"}, std::tuple{"divide.zero", 0.0f, "of 0"},
          std::tuple{"divide.tiny", 0x1p-120f, "of 2^-120"}}) {
      set_floats(numerator, 3.0f);
      add_rate(name, fmt::format("IEEE division {}, and an addition, on all multiprocessors", what),
               "divide");
    }
  }

  void barriers() {
    const std::int64_t sms = timer_.backend().target().sms;
    add_time("block_barrier", "barrier_of_block", 1, "a barrier of one block of 256");
    add_time("store", "store_alone", sms,
             fmt::format("a store by each thread and a barrier of its block, {} blocks", sms));
    add_time("store.grid_barrier", "store_and_grid_barrier", sms,
             fmt::format("a store by each thread and a barrier of all {} blocks", sms));
    if (const int most = timer_.backend().target().max_cluster; most > 1) {
      const int blocks = std::min(most, 8);
      add_time("store.cluster_barrier", "store_and_cluster_barrier", blocks,
               fmt::format("a store by each thread and a barrier of a cluster of {} blocks", blocks));
    } else {
      report_.skip("store.cluster_barrier", "the device has no clusters");
    }
  }

  /// One thread reads where to read next; from sample to sample it goes on, so that no line is read twice.
  void latency() {
    std::vector<std::int32_t> next(static_cast<std::size_t>(size_.lines * words_of_a_line));
    const std::int64_t step = size_.lines / 8 * 5 + 1;  // odd, so that it visits all of a power of two
    for (std::int64_t line = 0; line < size_.lines; ++line) {
      next[static_cast<std::size_t>(line * words_of_a_line)] =
          static_cast<std::int32_t>((line + step) % size_.lines * words_of_a_line);
    }
    next[1] = 0;  // where it is
    lines_.upload(std::as_bytes(std::span(next)));
    add_difference("latency", "ns", 1e9, size_.few, size_.many,
                   fmt::format("a load that the next one waits for, {} MiB of lines",
                               size_.lines * words_of_a_line * 4 >> 20),
                   [&](std::int64_t n) { return launch("chase", 1, lines_, n); });
  }

  void blocks() {
    add_difference("block", "ns", 1e9, size_.few_blocks, size_.many_blocks,
                   "a further block of 32 threads that does nothing, of many",
                   [&](std::int64_t n) { return launch("nothing", n, memory_, 0); });
  }

  void set_floats(float first, float second) {
    std::vector<float> values(static_cast<std::size_t>(memory_.size() / 4), first);
    values[1] = second;
    memory_.upload(std::as_bytes(std::span(values)));
  }

  /// Of all threads of a full device, a second.
  void add_rate(const char* name, const std::string& how, const char* kernel = nullptr) {
    const std::int64_t threads = size_.blocks * probe_threads;
    const auto timed = [&](std::int64_t n) {
      return timer_.device(
          1, [&](std::int64_t) { return launch(kernel ? kernel : name, size_.blocks, memory_, n); });
    };
    const Spread few = timed(size_.few), many = timed(size_.many);
    const auto rate = [&](double seconds) {
      return static_cast<double>((size_.many - size_.few) * threads) / seconds / 1e9;
    };
    add(name, "G/s", rate(many.median - few.median), rate(many.max - few.min), rate(many.min - few.max),
        many.n, how);
  }

  void add_time(const char* name, const char* kernel, std::int64_t blocks, const std::string& how) {
    add_difference(name, "us", 1e6, size_.few, size_.many, how,
                   [&](std::int64_t n) { return launch(kernel, blocks, memory_, n); });
  }

  /// What one of the further ones takes.
  void add_difference(const char* name, const char* unit, double scale, std::int64_t few_n,
                      std::int64_t many_n, const std::string& how,
                      const std::function<Status(std::int64_t)>& run) {
    const auto timed = [&](std::int64_t n) { return timer_.device(1, [&](std::int64_t) { return run(n); }); };
    const Spread few = timed(few_n), many = timed(many_n);
    const auto each = [&](double seconds) { return seconds / static_cast<double>(many_n - few_n) * scale; };
    add(name, unit, each(many.median - few.median), each(many.min - few.max), each(many.max - few.min),
        many.n, how);
  }

  void add(const char* name, const char* unit, double figure, double least, double most, int n,
           const std::string& how) {
    Row& row = report_.add({.name = name, .unit = unit, .figure = figure, .min = least, .max = most, .n = n});
    row.how = how;
  }

  Status launch(const std::string& kernel, std::int64_t blocks, const Buffer& x, std::int64_t n) {
    std::vector<runtime::Argument> arguments{{.address = x.address(), .bytes = x.size()}};
    runtime::Queue& queue = queue_of(timer_.stream());
    if (kernel == "store_and_grid_barrier") {
      if (Status status = timer_.backend().memset(queue, counter_.address(), 0, counter_.size()); !status)
        return status;
      arguments.push_back({.address = counter_.address(), .bytes = counter_.size()});
    }
    arguments.push_back({.value = n});
    return timer_.backend().launch(queue, module_->function(kernel), {.x = blocks}, arguments.data(),
                                   static_cast<int>(arguments.size()));
  }

  Report& report_;
  DeviceTimer timer_;
  std::unique_ptr<runtime::Module> module_;
  const Size size_;
  Buffer memory_, counter_, lines_;
};

}  // namespace

void bench_probe(Report& report, const Settings& settings) { Probe(report, settings.device).run(); }

}  // namespace fuse::bench
