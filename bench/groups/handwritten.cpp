// SPDX-License-Identifier: Apache-2.0
#include "groups/handwritten.hpp"

#include <fmt/format.h>

#include "codegen_cuda/primitives/primitives.hpp"
#include "graph_run.hpp"
#include "runtime/emulated/emulated.hpp"

namespace fuse::bench {
namespace {

constexpr std::int64_t warp_columns = 1024;

constexpr const char* warp_body = R"(
  const int lane = threadIdx.x & 31;
  const int row = blockIdx.x * 4 + (threadIdx.x >> 5);
  if (row < rows) {
    float m = -infinity_f32();
    for (int c = lane; c < columns; c += 32) m = maximum(m, load(x, row * columns + c));
    m = warp_max(m);
    float s = 0.0f;
    for (int c = lane; c < columns; c += 32) s = s + expf(load(x, row * columns + c) - m);
    s = warp_sum(s);
    for (int c = lane; c < columns; c += 32) store(y, row * columns + c, expf(load(x, row * columns + c) - m) / s);
  }
}
)";

constexpr const char* block_body = R"(
  FUSE_SHARED(float, 8, maxima);
  FUSE_SHARED(float, 8, sums);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int base = blockIdx.x * columns;
  float m = -infinity_f32();
  for (int c = threadIdx.x; c < columns; c += 256) m = maximum(m, load(x, base + c));
  m = warp_max(m);
  if (lane == 0) store(maxima, warp, m);
  block_barrier();
  m = warp_max(load(maxima, lane & 7));
  float s = 0.0f;
  for (int c = threadIdx.x; c < columns; c += 256) s = s + expf(load(x, base + c) - m);
  s = warp_sum(s);
  if (lane == 0) store(sums, warp, s);
  block_barrier();
  s = warp_sum(lane < 8 ? load(sums, lane) : 0.0f);
  for (int c = threadIdx.x; c < columns; c += 256) store(y, base + c, expf(load(x, base + c) - m) / s);
}
)";

codegen::KernelInfo kernel_info(std::string name, int threads, std::int64_t shared_bytes) {
  codegen::KernelInfo info{.name = std::move(name), .block_threads = threads, .communicates = true};
  info.shared_bytes = shared_bytes;
  using Kind = codegen::KernelParam::Kind;
  info.params = {{Kind::buffer, "x", DType::f32, false},
                 {Kind::buffer, "y", DType::f32, true},
                 {Kind::extent, "rows", DType::i32, false},
                 {Kind::extent, "columns", DType::i32, false}};
  return info;
}

void append(codegen::Source& source, const codegen::KernelInfo& info, const char* body) {
  source.starts.push_back(source.body.size());
  source.body +=
      fmt::format("FUSE_KERNEL({}) {}(global<const float> x, global<float> y, int rows, int columns) {{{}",
                  info.block_threads, info.name, body);
  source.kernels.push_back(info);
}

codegen::Source finish(codegen::Source source, std::vector<std::string> primitives) {
  source.name = "softmax";
  source.primitives = std::move(primitives);
  source.prelude = codegen::cuda_prelude(source.primitives);
  return source;
}

}  // namespace

codegen::Source softmax_warp_source(int copies) {
  codegen::Source source;
  for (int i = 0; i < copies; ++i)
    append(source, kernel_info(fmt::format("softmax_warp_{}", i), 128, 0), warp_body);
  return finish(std::move(source),
                {"global", "infinity_f32", "load", "maximum", "store", "warp_max", "warp_sum"});
}

codegen::Source softmax_block_source() {
  codegen::Source source;
  append(source, kernel_info("softmax_block", 256, 2 * 8 * sizeof(float)), block_body);
  return finish(std::move(source), {"block_barrier", "global", "infinity_f32", "load", "maximum", "shared",
                                    "store", "warp_max", "warp_sum"});
}

HandwrittenSoftmax::HandwrittenSoftmax(std::int64_t rows, std::int64_t columns, bool checked)
    : rows_(rows),
      columns_(columns),
      bytes_(rows * columns * static_cast<std::int64_t>(sizeof(float))),
      by_warp_(columns <= warp_columns),
      backend_(runtime::make_emulated_backend({.checked = checked})),
      queue_(backend_->create_queue()),
      module_(backend_->load(by_warp_ ? softmax_warp_source(1) : softmax_block_source())),
      x_(backend_->allocate(bytes_)),
      y_(backend_->allocate(bytes_)) {
  const std::vector<float> x = test_numbers(static_cast<std::size_t>(rows * columns));
  backend_->upload(*queue_, x_, x.data(), bytes_).throw_if_failed();
}

HandwrittenSoftmax::~HandwrittenSoftmax() {
  backend_->free(x_);
  backend_->free(y_);
}

void HandwrittenSoftmax::run() {
  const runtime::Argument arguments[] = {{.address = x_, .bytes = bytes_},
                                         {.address = y_, .bytes = bytes_},
                                         {.value = rows_},
                                         {.value = columns_}};
  const runtime::Function& kernel = module_->function(by_warp_ ? "softmax_warp_0" : "softmax_block");
  backend_->launch(*queue_, kernel, {.x = by_warp_ ? (rows_ + 3) / 4 : rows_}, arguments, 4)
      .throw_if_failed();
}

std::vector<float> HandwrittenSoftmax::result() {
  std::vector<float> values(static_cast<std::size_t>(rows_ * columns_));
  backend_->download(*queue_, values.data(), y_, bytes_).throw_if_failed();
  return values;
}

std::string HandwrittenSoftmax::about() const {
  return by_warp_ ? "1 launch, a warp a row" : "1 launch, a block of 256 a row";
}

}  // namespace fuse::bench
