// NumPy's .npy files, versions 1.0, 2.0 and 3.0, little endian.
//
//   '<f8' f64   '<f4' f32   '<f2' f16   '<i8' i64   '<i4' i32   '|b1' bool   '<V2' bf16
//
// NumPy has no bfloat16 of its own: ml_dtypes registers one, which numpy.save writes as the void type '<V2'
// and numpy.load gives back as '|V2'. Both are read as bf16 here, and bf16 is written as '<V2'. In Python,
// `numpy.load(path).view(ml_dtypes.bfloat16)` completes the round trip.
//
// A malformed file is an Error{user, file_format} that names the file and what is wrong with it. Sizes are
// checked against the file before anything is allocated. Bytes after the data are an error too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "tensors/host_tensor.hpp"

namespace fuse::runtime {

/// Fortran order is transposed: the result is always row-major.
HostTensor read_npy(const std::string& path);

/// `bytes` is a whole file; `name` stands for it in errors.
HostTensor parse_npy(std::span<const std::byte> bytes, std::string_view name);

/// Version 1.0 (2.0 where the header needs it), C order, data aligned to 64 bytes as numpy does.
/// All or nothing: see write_file_atomically.
void write_npy(const std::string& path, const HostTensor& tensor);

/// What write_npy puts before the data.
std::string npy_header(const HostTensor& tensor);

}  // namespace fuse::runtime
