// SPDX-License-Identifier: Apache-2.0
#include "rows.hpp"

#include <cstddef>
#include <fuse/fuse.hpp>
#include <span>
#include <string>
#include <vector>

namespace {

// Row sums of 2 x + 1 over [3, 4], x = 0, 1, .. 11: exact in f32.
std::string check_numbers() {
  fuse::Graph g("rows");
  const fuse::Dim rows = g.dim("B", {.min = 1, .max = 1024});
  g.output("y", sum(g.input("x", fuse::f32, {rows, 4}) * 2 + 1, {1}));

  fuse::Session session(fuse::compile(g, fuse::Device::emulated({.profile = "tiny2"})), {{"B", 3}});
  std::vector<float> x(12), y(3);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  session.set("x", std::as_bytes(std::span(x)));
  session.run();
  session.get("y", std::as_writable_bytes(std::span(y)));
  for (std::size_t row = 0; row < y.size(); ++row) {
    const float expected = 16 + 32 * static_cast<float>(row);
    if (y[row] != expected) {
      return "y[" + std::to_string(row) + "] is " + std::to_string(y[row]) + ", not " +
             std::to_string(expected);
    }
  }
  return "ok";
}

// Thrown in the library, caught here by its type.
std::string check_error() {
  try {
    fuse::Graph g;
    const fuse::Tensor x = g.input("x", fuse::f32, {2, 3});
    matmul(x, x);
  } catch (const fuse::Error& error) {
    return error.code() == fuse::ErrorCode::shape_mismatch ? "ok" : error.what();
  }
  return "matmul of [2, 3] and [2, 3] is no error";
}

}  // namespace

std::string check_rows() {
  const std::string numbers = check_numbers();
  return numbers == "ok" ? check_error() : numbers;
}
