// SPDX-License-Identifier: Apache-2.0
#include "copy_rate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/access.hpp"
#include "codegen_cuda/primitives/primitives.hpp"

namespace fuse::bench {
namespace {

constexpr int block = 256, words_a_thread = 4;
constexpr std::int64_t word = 16;

// The words that are read and not written end in a store which data never reaches: nothing of theirs can be
// left out by a compiler.
constexpr const char* body = R"(
struct alignas(16) word16 { unsigned a, b, c, d; };
FUSE_KERNEL(256) copy_words(global<const float> x, global<float> y, long long reads, long long writes) {
  const word16* from = reinterpret_cast<const word16*>(x);
  word16* to = reinterpret_cast<word16*>(y);
  word16 words[4];
  for (int k = 0; k < 4; ++k) {
    const long long i = blockIdx.x * 1024ll + k * 256 + threadIdx.x;
    words[k] = i < reads ? from[i] : word16{1u, 2u, 3u, 4u};
  }
  for (int k = 0; k < 4; ++k) {
    const long long i = blockIdx.x * 1024ll + k * 256 + threadIdx.x;
    const bool never = words[k].a == 0x7fc12345u && words[k].b == 0x7fc54321u && words[k].c == words[k].d;
    if (i < writes || (never && i < reads)) to[i < writes ? i : 0] = words[k];
  }
}
)";

struct Buffers {
  Buffer from, to;
};

}  // namespace

codegen::Source copy_source() {
  using Kind = codegen::KernelParam::Kind;
  codegen::KernelInfo info{.name = "copy_words", .block_threads = block};
  info.params = {{Kind::buffer, "x", DType::f32, false},
                 {Kind::buffer, "y", DType::f32, true},
                 {Kind::extent, "reads", DType::i64, false},
                 {Kind::extent, "writes", DType::i64, false}};
  codegen::Source source;
  source.name = "copy";
  source.primitives = {"global", "kernel"};
  source.prelude = codegen::cuda_prelude(source.primitives);
  source.body = body;
  source.kernels = {info};
  return source;
}

CopyYardstick::CopyYardstick(const Device& device, DeviceTimer& timer)
    : device_(device), timer_(timer), module_(backend_of(device)->load(copy_source())) {}

CopyRate CopyYardstick::measure(std::int64_t read, std::int64_t written) {
  runtime::Backend& backend = timer_.backend();
  runtime::Queue& queue = queue_of(timer_.stream());
  const std::int64_t half = std::max(word, (read + written) / 2);
  const std::int64_t reads = read / word, writes = written / word;
  const std::int64_t source_bytes = std::max(read, half), target_bytes = std::max({written, half, word});
  std::vector<Buffers> sets(static_cast<std::size_t>(timer_.sets_past_l2(read + written)));
  for (Buffers& set : sets) {
    set = {device_.allocate(source_bytes), device_.allocate(target_bytes)};
    backend.memset(queue, set.from.address(), 0x3d, source_bytes).throw_if_failed();
  }
  const auto count = static_cast<std::int64_t>(sets.size());
  const auto set_at = [&](std::int64_t i) -> const Buffers& { return sets[static_cast<std::size_t>(i)]; };
  const auto rate = [](double bytes, const Spread& seconds) { return bytes / seconds.median; };

  CopyRate result;
  const Spread driver = timer_.device(count, [&](std::int64_t i) {
    return backend.copy(queue, set_at(i).to.address(), set_at(i).from.address(), half);
  });
  result.memcpy = rate(2.0 * static_cast<double>(half), driver);

  const runtime::Function& kernel = module_->function("copy_words");
  const std::int64_t in_a_block = block * words_a_thread;
  const runtime::Dim3 grid{.x = (std::max(reads, writes) + in_a_block - 1) / in_a_block};
  if (grid.x == 0) return result;
  const Spread ours = timer_.device(count, [&](std::int64_t i) {
    const runtime::Argument arguments[] = {{.address = set_at(i).from.address(), .bytes = source_bytes},
                                           {.address = set_at(i).to.address(), .bytes = target_bytes},
                                           {.value = reads},
                                           {.value = writes}};
    return backend.launch(queue, kernel, grid, arguments, 4);
  });
  result.kernel = rate(static_cast<double>((reads + writes) * word), ours);
  return result;
}

}  // namespace fuse::bench
