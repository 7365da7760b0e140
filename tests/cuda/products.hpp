// Products of small square matrices, which the fakes compute. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "cuda/fake_device.hpp"

namespace fuse::test {

inline constexpr std::int64_t n = 8;

inline std::vector<float> numbers(int seed) {
  std::vector<float> values;
  for (int i = 0; i < n * n; ++i) values.push_back(static_cast<float>((i * 7 + seed * 13) % 11 - 5));
  return values;
}

inline std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> c(n * n);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t k = 0; k < n; ++k) {
        c[static_cast<std::size_t>(i * n + j)] +=
            a[static_cast<std::size_t>(i * n + k)] * b[static_cast<std::size_t>(k * n + j)];
      }
    }
  }
  return c;
}

inline void upload(Buffer buffer, const std::vector<float>& values) {
  buffer.upload(std::as_bytes(std::span(values)));
}
inline std::vector<float> download(const BufferView& view) {
  std::vector<float> values(n * n);
  std::copy_n(static_cast<const float*>(view.address), values.size(), values.begin());  // host memory
  return values;
}

/// y = a * b * c, whose middle lies in the workspace, and a copy of a.
inline Graph chained() {
  Graph g("chained");
  const Tensor a = g.input("a", f32, {n, n}), b = g.input("b", f32, {n, n}), c = g.input("c", f32, {n, n});
  g.output("y", matmul(matmul(a, b), c));
  g.output("same", a);
  return g;
}

}  // namespace fuse::test
