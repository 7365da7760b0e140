// SPDX-License-Identifier: Apache-2.0
#include "runtime/reference/rounding.hpp"

namespace fuse::runtime::reference {

void round_to(DType dtype, double* values, std::size_t count) {
  switch (dtype) {
    case DType::f32:
      for (std::size_t i = 0; i < count; ++i) values[i] = round_f32(values[i]);
      break;
    case DType::f16:
      for (std::size_t i = 0; i < count; ++i) values[i] = round_f16(values[i]);
      break;
    case DType::bf16:
      for (std::size_t i = 0; i < count; ++i) values[i] = round_bf16(values[i]);
      break;
    default:
      break;
  }
}

void wrap_to(DType dtype, std::int64_t* values, std::size_t count) {
  if (dtype != DType::i32) return;
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::int32_t>(values[i]);
}

}  // namespace fuse::runtime::reference
