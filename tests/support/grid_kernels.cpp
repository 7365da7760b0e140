// SPDX-License-Identifier: Apache-2.0
#include "support/grid_kernels.hpp"

#include <algorithm>

namespace fuse::test {
namespace {

std::string text(const std::string& name, const std::string& barrier, const std::string& body) {
  return "FUSE_KERNEL(64) " + name + "(global<const int> x, global<int> y, " + barrier + "long long n) {\n" +
         body + "}\n";
}

const char* const sums = R"(  FUSE_SHARED(int, 2, part);
  const int s = warp_sum(load(x, (long long)blockIdx.x * 64 + threadIdx.x));
  if (threadIdx.x % 32 == 0) store(part, threadIdx.x / 32, s);
  block_barrier();
  if (threadIdx.x == 0) store(y, blockIdx.x, load(part, 0) + load(part, 1));
)";
const char* const total = R"(  if (threadIdx.x == 0) {
    int all = 0;
    for (long long b = 0; b < n; ++b) all = all + load(y, b);
    store(y, n + blockIdx.x, all);
  }
)";

void reference(std::span<const HostView> operands, HostView result) {
  const std::int64_t n = operands[0].dims[0];
  const auto* x = static_cast<const std::int32_t*>(operands[0].data);
  auto* y = static_cast<std::int32_t*>(result.data);
  std::int32_t all = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = 0;
    for (std::int64_t j = 0; j < 64; ++j) y[i] += x[i * 64 + j];
    all += y[i];
  }
  std::fill(y + n, y + 2 * n, all);
}

}  // namespace

CustomKernel row_sums_and_total(const Dim& rows) {
  const std::string name = "row_sums_and_total";
  return {
      .name = name,
      .source = text(name, "global<int> barrier, ", std::string(sums) + "  grid_barrier(barrier);\n" + total),
      .threads = 64,
      .shared_bytes = 16,
      .grid = rows,
      .extents = {rows},
      .reference = reference,
      .grid_barrier = true};
}

CustomKernel row_sums_and_total_in_parts(const Dim& rows) {
  CustomKernel kernel = row_sums_and_total(rows);
  kernel.parts = {text(kernel.name + "_0", "", sums), text(kernel.name + "_1", "", total)};
  return kernel;
}

}  // namespace fuse::test
