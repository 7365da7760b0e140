// HostData and HostSpan: elements in host memory together with their type, which vectors, arrays and spans of
// numbers convert to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <fuse/dtype.hpp>
#include <fuse/export.hpp>
#include <iterator>
#include <optional>
#include <span>
#include <type_traits>

namespace fuse {
inline namespace v0 {

/// The element type of a host type: f32 for float, i64 for long. No value for a type that no tensor has.
template <class T>
constexpr std::optional<DType> dtype_of() {
  if constexpr (std::is_same_v<T, float>) return f32;
  if constexpr (std::is_same_v<T, double>) return f64;
  if constexpr (std::is_same_v<T, half>) return f16;
  if constexpr (std::is_same_v<T, bfloat16>) return bf16;
  if constexpr (std::is_same_v<T, bool>) return boolean;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, wchar_t>) {
    if constexpr (std::is_signed_v<T>) {
      if constexpr (sizeof(T) == 8) return i64;
      if constexpr (sizeof(T) == 4) return i32;
      if constexpr (sizeof(T) == 1) return i8;
    }
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == 1) return u8;
  }
  return std::nullopt;
}

}  // namespace v0

namespace detail {

/// Elements of tensors; std::byte stands for those of any type.
template <class T>
concept Element = std::is_same_v<T, std::byte> || dtype_of<T>()
.has_value();

/// The element type of contiguous elements.
template <class C>
using ElementOf = std::remove_cv_t<std::remove_pointer_t<decltype(std::data(std::declval<C&>()))>>;

/// Contiguous elements: std::vector (but for bool's), std::array, std::span, built-in arrays.
template <class C>
concept ElementRange = requires(C& c) {
  std::data(c);
  std::size(c);
}
&&Element<ElementOf<C>>;

/// True for a std::span.
template <class C>
inline constexpr bool is_span = false;
/// True for a std::span.
template <class T>
inline constexpr bool is_span<std::span<T>> = true;

}  // namespace detail

inline namespace v0 {

/// Elements to read. Made in passing, from what holds them; it owns nothing, so it lives no longer than that.
class HostData {
 public:
  /// No elements.
  HostData() = default;
  /// All elements of a vector, an array or a span.
  template <class C>
  requires(detail::ElementRange<const std::remove_cvref_t<C>> &&
           !std::is_same_v<std::remove_cvref_t<C>, HostData>)
      HostData(const C& elements)  // NOLINT: `set("x", values)`
      : HostData(std::data(elements), std::size(elements)) {}
  /// `count` elements from a pointer on.
  template <detail::Element T>
  HostData(const T* elements, std::size_t count)
      : bytes_(std::as_bytes(std::span(elements, count))), dtype_(dtype_of<T>()) {}

  /// The bytes of the elements.
  std::span<const std::byte> bytes() const { return bytes_; }
  /// The type of the elements; no value for bytes, whose type nobody said.
  std::optional<DType> dtype() const { return dtype_; }

 private:
  std::span<const std::byte> bytes_;
  std::optional<DType> dtype_;
};

/// As HostData, of elements to write. A temporary that owns its elements does not compile: they would be
/// lost.
class HostSpan {
 public:
  /// No elements.
  HostSpan() = default;
  /// All elements of a vector, an array or a span.
  template <class C>
  requires(detail::ElementRange<std::remove_reference_t<C>> &&
           !std::is_same_v<std::remove_cvref_t<C>, HostSpan> &&
           !std::is_const_v<std::remove_pointer_t<decltype(std::data(std::declval<C&>()))>>)
      HostSpan(C&& elements)  // NOLINT: `get("y", values)`
      : HostSpan(std::data(elements), std::size(elements)) {
    static_assert(std::is_lvalue_reference_v<C> || detail::is_span<std::remove_cvref_t<C>>,
                  "the elements would be gone with the temporary that holds them: give it a name");
  }
  /// `count` elements from a pointer on.
  template <detail::Element T>
  HostSpan(T* elements, std::size_t count)
      : bytes_(std::as_writable_bytes(std::span(elements, count))), dtype_(dtype_of<T>()) {}

  /// The bytes of the elements.
  std::span<std::byte> bytes() const { return bytes_; }
  /// The type of the elements; no value for bytes, whose type nobody said.
  std::optional<DType> dtype() const { return dtype_; }

 private:
  std::span<std::byte> bytes_;
  std::optional<DType> dtype_;
};

}  // namespace v0
}  // namespace fuse
