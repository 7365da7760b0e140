// 5. Embedding: fuse inside an application that has an allocator and a stream of its own.
//
// A session is convenient and owns everything. A server wants the opposite: compile and prepare once, take
// all memory from its own allocator, enqueue on its own stream, and pay nothing else per request.
// Prepared::run does that: it gets raw pointers by slot, allocates nothing and does not wait.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fuse/fuse.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "support/options.hpp"
#include "support/run.hpp"

namespace {

constexpr std::int64_t rows = 64, width = 256;

fuse::Graph embed_graph() {
  fuse::Graph graph("embed");
  const fuse::Dim B = graph.dim("B", {.min = 1, .max = 1 << 16, .hint = rows});
  const fuse::Tensor h = graph.input("x", fuse::f32, {B, width});
  graph.output("y", fuse::softmax(fuse::linear(h, graph.parameter("w", fuse::f32, {width, width}))));
  return graph;
}

/// The application's allocator: one block of device memory, given out from front to back. It starts anew when
/// all of it is back. fuse calls it when it makes workspaces and buffers, and never inside a run.
class Arena final : public fuse::MemoryResource {
 public:
  Arena(const fuse::Device& device, std::int64_t bytes) : block_(device.allocate(bytes)) {}

  void* allocate(std::int64_t bytes) override {
    const std::lock_guard lock(mutex_);
    // Null is an answer: fuse makes an out_of_memory error of it, and keeps nothing.
    if (bytes > block_.size() - used_) return nullptr;
    void* const address = static_cast<std::byte*>(block_.address()) + used_;
    used_ += std::min((bytes + 255) / 256 * 256, block_.size() - used_);  // 256-byte aligned
    ++blocks_;
    ++calls_;
    return address;
  }
  void deallocate(void*, std::int64_t) noexcept override {
    const std::lock_guard lock(mutex_);
    if (--blocks_ == 0) used_ = 0;
  }

  int calls() const { return calls_; }
  int blocks() const { return blocks_; }
  std::int64_t used() const { return used_; }

 private:
  std::mutex mutex_;
  const fuse::Buffer block_;
  std::int64_t used_ = 0;
  int blocks_ = 0, calls_ = 0;
};

/// Request `i` has other values than the one before it.
std::vector<float> request(int i) {
  std::vector<float> x(rows * width);
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = std::sin(static_cast<float>(k % 1000 + 7 * i));
  return x;
}

int embed(int requests) {
  // An application names its device. What is compiled for `pooled` takes its memory from the arena.
  const fuse::Device device = fuse::Device::auto_select();
  const auto arena = std::make_shared<Arena>(device, std::int64_t{64} << 20);
  const fuse::Device pooled = device.with_memory(arena);
  std::printf("%s (%s)\n", device.name().c_str(), device.why().c_str());

  // Once: compile, prepare, and what a run in flight needs for itself.
  const fuse::Executable executable = fuse::compile(embed_graph(), pooled);
  const fuse::Prepared prepared = executable.prepare({{"B", rows}});
  fuse::Workspace workspace = prepared.workspace();
  fuse::Buffer packed = pooled.allocate(prepared.packed_bytes());

  // The application's stream. On a GPU that is a CUstream that it made with CUDA; this program links no CUDA,
  // so it takes one from fuse and wraps it as if it were its own. Other devices have no CUstream to wrap.
  const fuse::Stream theirs = device.stream();
  fuse::Stream stream =
      device.kind() == fuse::DeviceKind::cuda ? device.wrap_stream(theirs.native()) : device.stream();

  // The application's memory, bound by slot: an address and a size, 16-byte aligned. The names are looked up
  // once; no string is compared in a run.
  const std::size_t x = executable.slot("x"), w = executable.slot("w"), y = executable.output_slot("y");
  std::map<std::size_t, fuse::Buffer> memory;
  std::vector<fuse::BufferView> views(executable.slots().size());
  for (std::size_t slot = 0; slot < views.size(); ++slot) {
    memory[slot] = pooled.allocate(prepared.bytes(slot));
    views[slot] = {.address = memory[slot].address(), .bytes = prepared.bytes(slot)};
  }

  // Weights are there once, and are packed once if GEMMs want them otherwise than they lie.
  std::vector<float> weights(width * width);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = std::cos(static_cast<float>(i % 777)) / 16;
  memory[w].upload(std::as_bytes(std::span(weights)));
  prepared.pack(stream, views, packed.view()).throw_if_failed();

  // Per request: a run is enqueued and nothing else. It reports by a Status and never throws.
  const int calls = arena->calls();
  double worst = 0;
  std::vector<float> result(rows * width);
  for (int i = 0; i < requests; ++i) {
    const std::vector<float> values = request(i);
    memory[x].upload(std::as_bytes(std::span(values)));
    const fuse::Status status = prepared.run(stream, views, workspace, packed.view());
    if (!status) {
      std::fprintf(stderr, "request %d: %s\n", i, std::string(status.message()).c_str());
      return 1;
    }
    stream.synchronize().throw_if_failed();  // the buffers are used again
    memory[y].download(std::as_writable_bytes(std::span(result)));
    for (std::int64_t row = 0; row < rows; ++row) {
      double sum = 0;
      for (std::int64_t k = 0; k < width; ++k) sum += static_cast<double>(result[row * width + k]);
      worst = std::fmax(worst, std::fabs(sum - 1));
    }
  }
  std::printf("%d requests, %d allocations before them, %d for them; %lld bytes of the arena in %d blocks\n",
              requests, calls, arena->calls() - calls, static_cast<long long>(arena->used()),
              arena->blocks());
  std::printf("sums of softmax are off 1 by at most %.2g\n", worst);
  return worst < 1e-5 && arena->calls() == calls ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return example::run([&] {
    const example::Options options(argc, argv, "embed: own allocator, own stream, prepared once, run often",
                                   {{"--requests", "N", "20", "runs of what was prepared"}});
    return embed(static_cast<int>(options.integer("--requests", 1, 1000000)));
  });
}
