// GEMMs of a few rows or columns of f64, as products of a matrix and a vector: nothing is rearranged first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/device/host_gemm.hpp"

namespace fuse::runtime::cpu {

/// The most rows, or columns, of such a result.
constexpr std::int64_t most_gemv_rows = 4;

/// Null for other types, for what is not thin, and where OpenBLAS does not compute it: of one matrix, without
/// an epilogue. The
/// desc is one that make_host_gemm takes.
std::unique_ptr<HostGemm> make_thin_gemm(const GemmDesc& desc);

}  // namespace fuse::runtime::cpu
