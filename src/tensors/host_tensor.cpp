// SPDX-License-Identifier: Apache-2.0
#include "tensors/host_tensor.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>

namespace fuse::runtime {
namespace {

// The slot of one element; an index outside is a mistake of ours, reported rather than undefined.
std::size_t offset_of(const HostTensor& tensor, std::int64_t index) {
  const std::size_t size = size_of(tensor.dtype);
  if (index < 0 || static_cast<std::uint64_t>(index) >= tensor.data.size() / size) {
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::internal,
                 .message = "element " + std::to_string(index) + " is outside of " +
                            type_text(tensor.dtype, tensor.shape) + " of " +
                            std::to_string(tensor.data.size()) + " bytes"});
  }
  return static_cast<std::size_t>(index) * size;
}

template <class T>
T load(const HostTensor& tensor, std::int64_t index) {
  T value;
  std::memcpy(&value, tensor.data.data() + offset_of(tensor, index), sizeof value);
  return value;
}

template <class T>
void store(HostTensor& tensor, std::int64_t index, T value) {
  std::memcpy(tensor.data.data() + offset_of(tensor, index), &value, sizeof value);
}

// A double that rounds to any narrower float as `value` itself would: the bits a double cannot hold are
// folded into its last one (round to odd), so the second rounding sees that they were there.
double sticky_double(std::int64_t value) {
  std::uint64_t magnitude =
      value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  if (magnitude >> 53) magnitude = (magnitude & ~0xfffull) | ((magnitude & 0xfff) ? 0x800u : 0u);
  const double result = static_cast<double>(magnitude);
  return value < 0 ? -result : result;
}

}  // namespace

std::optional<std::int64_t> checked_element_count(std::span<const std::int64_t> shape,
                                                  std::size_t element_bytes) {
  std::int64_t bytes = static_cast<std::int64_t>(element_bytes);
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : bytes / static_cast<std::int64_t>(element_bytes);
}

std::string type_text(DType type, std::span<const std::int64_t> shape) {
  std::string text{to_string(type)};
  text += '[';
  constexpr std::size_t shown = 16;  // a hostile file may claim thousands
  for (std::size_t i = 0; i < std::min(shape.size(), shown); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  if (shape.size() > shown) text += ", ... " + std::to_string(shape.size()) + " in all";
  return text + ']';
}

std::int64_t round_to_int64(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
  if (value < -0x1p63) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(std::nearbyint(value));
}

HostTensor HostTensor::make(DType dtype, std::vector<std::int64_t> shape) {
  HostTensor tensor{.dtype = dtype, .shape = std::move(shape)};
  const std::int64_t count = tensor.element_count();
  try {
    tensor.data.resize(static_cast<std::size_t>(count) * size_of(dtype));
  } catch (const std::length_error&) {
    throw Error({.kind = ErrorKind::runtime,
                 .code = ErrorCode::out_of_memory,
                 .message = "no memory for " + type_text(dtype, tensor.shape),
                 .hint = "use smaller dims"});
  } catch (const std::bad_alloc&) {
    throw Error({.kind = ErrorKind::runtime,
                 .code = ErrorCode::out_of_memory,
                 .message = "no memory for " + type_text(dtype, tensor.shape),
                 .hint = "use smaller dims"});
  }
  return tensor;
}

std::int64_t HostTensor::element_count() const {
  if (const auto count = checked_element_count(shape, dtype)) return *count;
  throw Error(
      {.kind = ErrorKind::user,
       .code = ErrorCode::invalid_extent,
       .message = "an extent of " + type_text(dtype, shape) + " is negative, or its size overflows 63 bits"});
}

double HostTensor::get(std::int64_t index) const {
  return dispatch(dtype, [&]<DType type>() -> double {
    const auto value = load<typename StorageOf<type>::type>(*this, index);
    if constexpr (kind_of(type) == DTypeKind::boolean) return value != 0;
    return static_cast<double>(value);
  });
}

void HostTensor::set(std::int64_t index, double value) {
  dispatch(dtype, [&]<DType type>() {
    using T = typename StorageOf<type>::type;
    if constexpr (kind_of(type) == DTypeKind::boolean) {
      store<T>(*this, index, value != 0);
    } else if constexpr (kind_of(type) == DTypeKind::integer) {
      set_int(index, round_to_int64(value));
    } else {
      store<T>(*this, index, static_cast<T>(value));
    }
  });
}

std::int64_t HostTensor::get_int(std::int64_t index) const {
  return dispatch(dtype, [&]<DType type>() -> std::int64_t {
    const auto value = load<typename StorageOf<type>::type>(*this, index);
    if constexpr (kind_of(type) == DTypeKind::boolean) return value != 0;
    if constexpr (kind_of(type) == DTypeKind::floating) {
      return round_to_int64(static_cast<double>(value));
    } else {
      return static_cast<std::int64_t>(value);
    }
  });
}

void HostTensor::set_int(std::int64_t index, std::int64_t value) {
  dispatch(dtype, [&]<DType type>() {
    using T = typename StorageOf<type>::type;
    if constexpr (kind_of(type) == DTypeKind::boolean) {
      store<T>(*this, index, value != 0);
    } else if constexpr (kind_of(type) == DTypeKind::integer) {
      constexpr std::int64_t low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
      store<T>(*this, index, static_cast<T>(std::clamp(value, low, high)));
    } else if constexpr (std::is_same_v<T, double>) {
      store<T>(*this, index, static_cast<double>(value));
    } else {
      store<T>(*this, index, static_cast<T>(sticky_double(value)));
    }
  });
}

void HostTensor::throw_storage_mismatch() const {
  throw Error({.kind = ErrorKind::internal,
               .code = ErrorCode::dtype_mismatch,
               .message = "the elements of " + type_text(dtype, shape) + " were asked for as another type"});
}

}  // namespace fuse::runtime
