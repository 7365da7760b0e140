// 6. Two threads, two streams: one executable serves both.
//
// An Executable and a Prepared are immutable, so threads share them without locks. What a run in flight needs
// for itself is a workspace and a stream; each thread has its own, and so neither waits for the other.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fuse/fuse.hpp>
#include <span>
#include <thread>
#include <vector>

#include "support/options.hpp"
#include "support/run.hpp"

namespace {

constexpr std::int64_t width = 1024;

fuse::Graph two_streams_graph() {
  fuse::Graph graph("two_streams");
  const fuse::Dim B = graph.dim("B", {.min = 1, .max = 1 << 16, .hint = 32});
  const fuse::Tensor x = graph.input("x", fuse::f32, {B, width});
  graph.output("y", fuse::softmax(x * 2.0f + 1.0f));
  return graph;
}

std::vector<float> values(std::int64_t rows, int round) {
  std::vector<float> x(static_cast<std::size_t>(rows * width));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i % 991 + 13 * round));
  return x;
}

/// What one thread has: dims of its own, a workspace, a stream, buffers. All of it goes when the thread ends;
/// the kernels go with the last copy of the executable.
class Worker {
 public:
  Worker(const fuse::Executable& executable, std::int64_t rows)
      : rows_(rows),
        prepared_(executable.prepare({{"B", rows}})),
        workspace_(prepared_.workspace()),
        stream_(executable.device().stream()) {
    for (std::size_t slot = 0; slot < executable.slots().size(); ++slot) {
      buffers_.push_back(executable.device().allocate(prepared_.bytes(slot)));
      views_.push_back(buffers_.back().view());
    }
    x_ = executable.slot("x");
    y_ = executable.output_slot("y");
  }

  std::vector<float> run(int round) {
    const std::vector<float> x = values(rows_, round);
    buffers_[x_].upload(std::as_bytes(std::span(x)));
    prepared_.run(stream_, views_, workspace_).throw_if_failed();
    // Waits for this stream alone: what the other thread has under way goes on.
    stream_.synchronize().throw_if_failed();
    std::vector<float> y(x.size());
    buffers_[y_].download(std::as_writable_bytes(std::span(y)));
    return y;
  }

 private:
  std::int64_t rows_ = 0;
  fuse::Prepared prepared_;
  fuse::Workspace workspace_;
  fuse::Stream stream_;
  std::vector<fuse::Buffer> buffers_;
  std::vector<fuse::BufferView> views_;
  std::size_t x_ = 0, y_ = 0;
};

/// Rounds of one thread, and what became of them.
struct Work {
  std::int64_t rows = 0;
  std::vector<std::vector<float>> results{};
  std::exception_ptr failure{};

  void operator()(const fuse::Executable& executable, int rounds) noexcept {
    try {
      Worker worker(executable, rows);
      for (int round = 0; round < rounds; ++round) results.push_back(worker.run(round));
    } catch (...) {
      failure = std::current_exception();  // an exception must not leave a thread
    }
  }
};

int two_streams(int rounds) {
  const fuse::Device device = fuse::Device::auto_select();
  std::printf("%s (%s)\n", device.name().c_str(), device.why().c_str());
  const fuse::Executable executable = fuse::compile(two_streams_graph(), device);

  // The threads have different numbers of rows: one compilation serves both.
  std::array<Work, 2> work = {Work{.rows = 32}, Work{.rows = 5}};
  std::array<std::thread, 2> threads;
  for (std::size_t i = 0; i < work.size(); ++i) {
    threads[i] = std::thread([&, i] { work[i](executable, rounds); });
  }
  for (std::thread& thread : threads) thread.join();

  // One behind the other, on one thread: the same bits.
  bool same = true;
  for (const Work& done : work) {
    if (done.failure) std::rethrow_exception(done.failure);
    Work alone{.rows = done.rows};
    alone(executable, rounds);
    if (alone.failure) std::rethrow_exception(alone.failure);
    same &= alone.results == done.results;
    std::printf("%2lld rows: %zu runs\n", static_cast<long long>(done.rows), done.results.size());
  }
  std::printf("results %s those of one thread\n", same ? "equal" : "DIFFER FROM");
  return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return example::run([&] {
    const example::Options options(argc, argv, "two_streams: two threads, each with a workspace and a stream",
                                   {{"--rounds", "N", "10", "runs of each thread"}});
    return two_streams(static_cast<int>(options.integer("--rounds", 1, 1000000)));
  });
}
