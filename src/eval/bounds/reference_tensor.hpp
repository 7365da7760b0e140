// ReferenceTensor: a value of the graph as the reference evaluator holds it, wider than its dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <fuse/dtype.hpp>
#include <limits>
#include <span>
#include <variant>
#include <vector>

#include "tensors/host_tensor.hpp"

namespace fuse::runtime {

/// What a wide evaluation of f64 is held in: 64 bits of precision on x86-64, 113 on AArch64 and RISC-V.
using Wide = long double;
static_assert(std::numeric_limits<Wide>::digits >= 64,
              "The reference judges f64 results by an evaluation in long double, which has to be wider.");

enum class Hold : std::uint8_t { real, wide };

/// Dense, row-major. A floating dtype is held in doubles, or in Wide where that was asked for; an integer or
/// bool in int64_t (a bool is 0 or 1). The elements of an exact evaluation are not values of the dtype;
/// to_host rounds them, once.
class ReferenceTensor {
 public:
  ReferenceTensor() : ReferenceTensor(f32, {0}) {}
  /// Zeroed. Throws invalid_extent, or out_of_memory where the machine has not that much.
  ReferenceTensor(DType dtype, std::vector<std::int64_t> shape, Hold floats = Hold::real);
  /// Takes over the elements of `storage`, which must be as many and held alike.
  ReferenceTensor(DType dtype, std::vector<std::int64_t> shape, ReferenceTensor&& storage);
  /// Converts without loss. Throws buffer_size when the bytes do not fit the shape.
  static ReferenceTensor from_host(const HostTensor& tensor, Hold floats = Hold::real);

  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::size_t element_count() const;
  /// Floats, in doubles or in Wide.
  bool is_real() const { return !std::holds_alternative<std::vector<std::int64_t>>(elements_); }
  bool is_wide() const { return std::holds_alternative<std::vector<Wide>>(elements_); }

  /// The elements; T is double (Wide where is_wide) for a floating dtype and std::int64_t otherwise (else
  /// bad_variant_access).
  template <class T>
  std::span<T> elements() {
    return std::get<std::vector<T>>(elements_);
  }
  template <class T>
  std::span<const T> elements() const {
    return std::get<std::vector<T>>(elements_);
  }
  std::span<const double> real() const { return elements<double>(); }
  std::span<const std::int64_t> integer() const { return elements<std::int64_t>(); }

  /// An element as double, whatever the dtype (an i64 beyond 2^53 is rounded).
  double get(std::size_t index) const;
  Wide get_wide(std::size_t index) const;

  /// Rounds each element once to `dtype`, as HostTensor::set and set_int do; by default to its own dtype.
  /// to_host(f64) of a tensor held in doubles is its exact content.
  HostTensor to_host(DType dtype) const;
  HostTensor to_host() const { return to_host(dtype_); }

 private:
  DType dtype_;
  std::vector<std::int64_t> shape_;
  std::variant<std::vector<double>, std::vector<Wide>, std::vector<std::int64_t>> elements_;
};

/// Calls f.operator()<T>() with the type that holds elements of a dtype: double (Wide if asked for) or
/// std::int64_t.
template <class F>
decltype(auto) with_storage(DType dtype, Hold floats, F&& f) {
  if (is_floating(dtype) && floats == Hold::wide) return f.template operator()<Wide>();
  return is_floating(dtype) ? f.template operator()<double>() : f.template operator()<std::int64_t>();
}
template <class F>
decltype(auto) with_storage(DType dtype, F&& f) {
  return is_floating(dtype) ? f.template operator()<double>() : f.template operator()<std::int64_t>();
}

}  // namespace fuse::runtime
