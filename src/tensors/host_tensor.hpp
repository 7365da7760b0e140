// HostTensor: a dense row-major tensor in host memory; the currency of files, the oracle and the tools.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <fuse/dtype.hpp>
#include <fuse/error.hpp>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace fuse::runtime {

static_assert(std::endian::native == std::endian::little, "fuse keeps files and memory little endian");

/// Product of the extents, or empty if one is negative or the bytes overflow 63 bits. A zero extent does not
/// hide an overflow of the others: strides are products of them.
std::optional<std::int64_t> checked_element_count(std::span<const std::int64_t> shape,
                                                  std::size_t element_bytes);
inline std::optional<std::int64_t> checked_element_count(std::span<const std::int64_t> shape, DType type) {
  return checked_element_count(shape, size_of(type));
}

/// "f32[4, 8]", as error messages spell a type.
std::string type_text(DType type, std::span<const std::int64_t> shape);

inline constexpr DType all_dtypes[] = {
#define FUSE_DTYPE(name, text, bytes, kind, cuda) DType::name,
#include <fuse/dtypes.def>
};

/// To nearest even, saturating; NaN is 0.
std::int64_t round_to_int64(double value);

/// The host type that stores a DType. A bool is a byte that holds 0 or 1.
template <DType type>
struct StorageOf;
template <>
struct StorageOf<DType::f64> : std::type_identity<double> {};
template <>
struct StorageOf<DType::f32> : std::type_identity<float> {};
template <>
struct StorageOf<DType::f16> : std::type_identity<half> {};
template <>
struct StorageOf<DType::bf16> : std::type_identity<bfloat16> {};
template <>
struct StorageOf<DType::i64> : std::type_identity<std::int64_t> {};
template <>
struct StorageOf<DType::i32> : std::type_identity<std::int32_t> {};
template <>
struct StorageOf<DType::i8> : std::type_identity<std::int8_t> {};
template <>
struct StorageOf<DType::u8> : std::type_identity<std::uint8_t> {};
template <>
struct StorageOf<DType::boolean> : std::type_identity<std::uint8_t> {};

/// Calls f.operator()<type>() for the run-time `type`.
template <class F>
decltype(auto) dispatch(DType type, F&& f) {
  switch (type) {
#define FUSE_DTYPE(name, text, bytes, kind, cuda) \
  case DType::name:                               \
    return f.template operator()<DType::name>();
#include <fuse/dtypes.def>
  }
  throw Error({.kind = ErrorKind::internal, .code = ErrorCode::internal, .message = "unknown dtype value"});
}

struct HostTensor {
  DType dtype = f32;
  std::vector<std::int64_t> shape{};
  std::vector<std::byte> data{};

  /// Zeroed. Throws invalid_extent, or out_of_memory where the machine has not that much.
  static HostTensor make(DType dtype, std::vector<std::int64_t> shape);

  /// Product of the extents; 1 for a scalar. Throws invalid_extent.
  std::int64_t element_count() const;

  /// Any dtype as double (i64 is rounded; use get_int). A bool is 0 or 1.
  double get(std::int64_t index) const;
  /// Rounds once: floats to nearest even, integers to nearest even and saturating (NaN is 0); a bool is
  /// value != 0. A convert that truncates (as a C++ cast does) must call std::trunc first.
  void set(std::int64_t index, double value);

  /// Exact for integers and bools; floats as by round_to_int64.
  std::int64_t get_int(std::int64_t index) const;
  /// Exact for i64; saturates in narrower integers; rounds once to a float; a bool is value != 0.
  void set_int(std::int64_t index, std::int64_t value);

  /// The elements as their host type: double, float, half, bfloat16, int64_t, int32_t, int8_t; uint8_t for u8
  /// and bool. An internal dtype_mismatch for any other type.
  template <class T>
  std::span<T> span() & {
    check_storage<T>();
    return {reinterpret_cast<T*>(data.data()), data.size() / sizeof(T)};
  }
  template <class T>
  std::span<const T> span() const& {
    check_storage<T>();
    return {reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T)};
  }

  /// A span of a temporary would outlive its elements.
  template <class T>
  std::span<T> span() && = delete;

 private:
  [[noreturn]] void throw_storage_mismatch() const;
  template <class T>
  void check_storage() const {
    const bool same = dispatch(dtype, []<DType type>() {
      return std::is_same_v<typename StorageOf<type>::type, std::remove_cv_t<T>>;
    });
    if (!same) throw_storage_mismatch();
  }
};

}  // namespace fuse::runtime
