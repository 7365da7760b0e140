// SPDX-License-Identifier: Apache-2.0
#include "eval/bounds/reference_tensor.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <new>
#include <stdexcept>
#include <utility>

namespace fuse::runtime {
namespace {

std::size_t checked_count(DType dtype, const std::vector<std::int64_t>& shape) {
  // Eight bytes for each element, whatever the dtype takes.
  if (const auto count = checked_element_count(shape, sizeof(double)))
    return static_cast<std::size_t>(*count);
  throw Error({.kind = ErrorKind::user,
               .code = ErrorCode::invalid_extent,
               .message = "an extent of " + type_text(dtype, shape) +
                          " is negative, or its size as doubles overflows 63 bits"});
}

// Exact, and much faster than the scaling that fuse::half must do in general.
double decode_f16(half value) {
  const unsigned magnitude = value.bits & 0x7fffU;
  if (magnitude >= 0x7c00U) return static_cast<double>(value);
  // The same bits read as an f32 are the value scaled by 2^-112, for subnormals too.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  return (value.bits & 0x8000U) != 0 ? -scaled : scaled;
}

/// Toward zero, with the last bit set where something was lost.
double rounded_to_odd(Wide value) {
  const auto nearest = static_cast<double>(value);
  if (static_cast<Wide>(nearest) == value ||
      !(std::fabs(nearest) < std::numeric_limits<double>::infinity())) {
    return nearest;
  }
  const bool beyond = std::fabs(static_cast<Wide>(nearest)) > std::fabs(value);
  const double truncated = beyond ? std::nextafter(nearest, 0.0) : nearest;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(truncated) | 1U);
}

double decode_bf16(bfloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

}  // namespace

ReferenceTensor::ReferenceTensor(DType dtype, std::vector<std::int64_t> shape, Hold floats)
    : dtype_(dtype), shape_(std::move(shape)) {
  const std::size_t count = checked_count(dtype_, shape_);
  const auto no_memory = [&] {
    return Error({.kind = ErrorKind::runtime,
                  .code = ErrorCode::out_of_memory,
                  .message = "no memory for " + type_text(dtype_, shape_) + " as doubles"});
  };
  try {
    with_storage(dtype_, floats, [&]<class T>() { elements_.emplace<std::vector<T>>(count); });
  } catch (const std::length_error&) {
    throw no_memory();
  } catch (const std::bad_alloc&) {
    throw no_memory();
  }
}

ReferenceTensor::ReferenceTensor(DType dtype, std::vector<std::int64_t> shape, ReferenceTensor&& storage)
    : dtype_(dtype), shape_(std::move(shape)), elements_(std::move(storage.elements_)) {
  if (is_real() != is_floating(dtype_) || element_count() != checked_count(dtype_, shape_)) {
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::internal,
                 .message = "the storage of another tensor does not fit " + type_text(dtype_, shape_)});
  }
}

ReferenceTensor ReferenceTensor::from_host(const HostTensor& tensor, Hold floats) {
  const auto count = checked_element_count(tensor.shape, tensor.dtype);
  if (!count || tensor.data.size() != static_cast<std::size_t>(*count) * size_of(tensor.dtype)) {
    throw Error({.kind = ErrorKind::user,
                 .code = ErrorCode::buffer_size,
                 .message = "a tensor " + type_text(tensor.dtype, tensor.shape) + " has " +
                            std::to_string(tensor.data.size()) + " bytes"});
  }
  ReferenceTensor result(tensor.dtype, tensor.shape, floats);
  dispatch(tensor.dtype, [&]<DType type>() {
    using Stored = typename StorageOf<type>::type;
    const std::span<const Stored> from = tensor.span<Stored>();
    with_storage(type, floats, [&]<class T>() {
      const std::span<T> to = result.elements<T>();
      const auto convert = [&](auto&& decode) {
        for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<T>(decode(from[i]));
      };
      if constexpr (type == DType::f16) {
        convert(decode_f16);
      } else if constexpr (type == DType::bf16) {
        convert(decode_bf16);
      } else if constexpr (kind_of(type) == DTypeKind::boolean) {
        convert([](Stored v) { return v != 0; });
      } else {
        convert([](Stored v) { return v; });
      }
    });
  });
  return result;
}

std::size_t ReferenceTensor::element_count() const {
  return std::visit([](const auto& elements) { return elements.size(); }, elements_);
}

double ReferenceTensor::get(std::size_t index) const {
  return std::visit([&](const auto& elements) { return static_cast<double>(elements.at(index)); }, elements_);
}

Wide ReferenceTensor::get_wide(std::size_t index) const {
  return std::visit([&](const auto& elements) { return static_cast<Wide>(elements.at(index)); }, elements_);
}

HostTensor ReferenceTensor::to_host(DType dtype) const {
  HostTensor result = HostTensor::make(dtype, shape_);
  const std::size_t count = element_count();
  if (is_wide()) {
    for (std::size_t i = 0; i < count; ++i) {
      // A double that is rounded to odd rounds on as the wide value itself does.
      const Wide value = elements<Wide>()[i];
      result.set(static_cast<std::int64_t>(i),
                 dtype == f64 ? static_cast<double>(value) : rounded_to_odd(value));
    }
  } else if (is_real() && dtype == f32) {
    const auto to = result.span<float>();
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<float>(real()[i]);
  } else if (is_real() && dtype == f64) {
    std::copy(real().begin(), real().end(), result.span<double>().begin());
  } else if (is_real()) {
    for (std::size_t i = 0; i < count; ++i) result.set(static_cast<std::int64_t>(i), real()[i]);
  } else {
    for (std::size_t i = 0; i < count; ++i) result.set_int(static_cast<std::int64_t>(i), integer()[i]);
  }
  return result;
}

}  // namespace fuse::runtime
