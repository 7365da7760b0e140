// SPDX-License-Identifier: Apache-2.0
#include "eval/bounds/rounding.hpp"

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
  const auto wrap = [&]<class T>(T) {
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(values[i]);
  };
  if (dtype == DType::i32) wrap(std::int32_t{});
  if (dtype == DType::i8) wrap(std::int8_t{});
  if (dtype == DType::u8) wrap(std::uint8_t{});
}

}  // namespace fuse::runtime::reference
