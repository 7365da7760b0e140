// What the runtime tests share: a small executable built by hand, and the text of an error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <fuse/fuse.hpp>
#include <string>
#include <vector>

#include "codegen_cuda/primitives/primitives.hpp"
#include "compile/compile.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"

namespace fuse::test {

/// The whole text of the Error that `action` throws.
template <class F>
std::string error_of(F&& action) {
  try {
    action();
  } catch (const Error& error) {
    return std::string(to_string(error.code())) + ": " + error.what();
  }
  return "no error";
}

inline std::string text_of(const Status& status) {
  return std::string(to_string(status.code())) + ": " + std::string(status.message());
}

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <class T>
std::vector<T> values_of(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

codegen::KernelParam buffer_param(std::string name, bool written);
codegen::KernelParam extent_param(std::string name, DType dtype = i64);

/// y = 2 x + w, z = y as two kernels and a copy: x f32[B, 4], parameter w f32[4], B in [0, 1000]. The
/// temporary between the kernels has the size of x.
Graph by_hand_graph();
Compiled by_hand();
/// What by_hand computes.
std::vector<float> by_hand_result(const std::vector<float>& x, const std::vector<float>& w);

Device checked_device();

}  // namespace fuse::test
