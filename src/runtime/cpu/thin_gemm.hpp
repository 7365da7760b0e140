// GEMMs of a few rows or columns, as products of a matrix and a vector: nothing is rearranged first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/device/host_gemm.hpp"

namespace fuse::runtime::cpu {

/// The most rows, or columns, of a thin result. For k and n of 4096, OpenBLAS 0.3.21 takes as long for 1 row
/// by GEMM as for 15 rows by such products.
constexpr std::int64_t most_thin_rows = 4;

/// Null for what is not thin, and where OpenBLAS does not compute it: of one matrix, without an epilogue. The
/// desc is one that make_host_gemm takes.
std::unique_ptr<HostGemm> make_thin_gemm(const GemmDesc& desc);

}  // namespace fuse::runtime::cpu
