// Products of the cpu device's own: a few rows by a piece of a matrix, with the vectors that the machine has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <fuse/dtype.hpp>
#include <string_view>

namespace fuse::runtime::cpu {

/// sums = a * b, or sums += a * b. Distances are counted in elements.
struct Strip {
  const float* a = nullptr;  ///< element (row, k) lies at row * a_row + k * a_depth
  std::int64_t a_row = 0, a_depth = 1;
  const void* b = nullptr;
  std::int64_t b_row = 0;  ///< between rows of b as it lies
  float* sums = nullptr;
  std::int64_t sums_row = 0;
  std::int64_t rows = 0, columns = 0, depth = 0;
  /// What is fetched meanwhile by `panel`: as many rows as `depth` and as long as b's, so many bytes apart;
  /// or null.
  const void* next = nullptr;
  std::int64_t next_row_bytes = 0;
  bool adds = false;  ///< to what lies in `sums`; the order of additions stays that of ascending pieces
};

/// Functions for one level of machine. The order in which an element is summed follows from the level and
/// from `depth`, for `along` from `rows` too.
struct GemmKernels {
  using Multiply = void (*)(const Strip&) noexcept;
  std::string_view level;
  /// b is depth x columns: an element is summed in ascending k. By type_index.
  std::array<Multiply, 3> across{};
  /// b is columns x depth, and a_depth is 1: lanes have sums of their own, which are added at the end.
  std::array<Multiply, 3> along{};
  /// b is one panel: depth x panel_columns, back to back, of which `columns` count; a_depth is 1. An element
  /// is summed in ascending k, as by `across`.
  std::array<Multiply, 3> panel{};
  int panel_columns = 0;
  /// f32 copies of elements that lie side by side, and back with one rounding.
  std::array<void (*)(const void* from, float* to, std::int64_t count) noexcept, 3> widen{};
  std::array<void (*)(const float* from, void* to, std::int64_t count) noexcept, 3> narrow{};
  /// to += from
  void (*add)(const float* from, float* to, std::int64_t count) noexcept = nullptr;
  void (*scale)(float* of, float by, std::int64_t count) noexcept = nullptr;
  /// to[column * to_row + row] = from[row * from_row + column]
  void (*transpose)(const float* from, std::int64_t from_row, std::int64_t rows, std::int64_t columns,
                    float* to, std::int64_t to_row) noexcept = nullptr;
};

/// 0, 1, 2: f32, bf16, f16, the types that there are kernels for; -1 for others.
constexpr int type_index(DType type) {
  return type == DType::f32 ? 0 : type == DType::bf16 ? 1 : type == DType::f16 ? 2 : -1;
}

/// The kernels of the highest level that this machine has.
const GemmKernels& gemm_kernels();
/// Those of "x86-64-v4", "x86-64-v3" or "portable"; null where this machine does not have the level.
const GemmKernels* gemm_kernels_of(std::string_view level);

}  // namespace fuse::runtime::cpu
