// SPDX-License-Identifier: Apache-2.0
#include "tensors/random_fill.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

namespace fuse::runtime {
namespace {

// The finaliser of splitmix64 (Steele, Lea and Flood): a bijection that mixes every bit into every other.
constexpr std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;

// FNV-1a: std::hash may differ between libraries.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325u;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return value;
}

// Draws by counter: (index, attempt) names a draw, so nothing is carried from element to element.
class Stream {
 public:
  Stream(std::uint64_t seed, std::string_view name) : key_(mix(mix(seed + golden) ^ hash(name))) {}

  std::uint64_t bits(std::uint64_t index, std::uint64_t attempt) const {
    return mix(mix(key_ + (index + 1) * golden) + (attempt + 1) * 0xd1342543de82ef95u);
  }
  /// A number in [0, 1), a multiple of 2^-53.
  double unit(std::uint64_t index, std::uint64_t attempt) const {
    return static_cast<double>(bits(index, attempt) >> 11) * 0x1p-53;
  }

 private:
  std::uint64_t key_;
};

[[noreturn]] void refuse(const HostTensor& tensor, ErrorCode code, const std::string& what) {
  throw Error({.kind = ErrorKind::user,
               .code = code,
               .message = "cannot fill " + type_text(tensor.dtype, tensor.shape) + " at random: " + what});
}

template <class T>
void fill_floats(HostTensor& tensor, const Stream& stream, double low, double high) {
  const std::span<T> out = tensor.span<T>();
  constexpr std::uint64_t attempts = 32;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<T>(low);
    if (low == high) continue;
    for (std::uint64_t attempt = 0; attempt < attempts; ++attempt) {
      const double u = stream.unit(i, attempt);
      // Not low + u * (high - low), whose difference may overflow.
      const T value = static_cast<T>(low * (1 - u) + high * u);
      const double rounded = static_cast<double>(value);
      if (rounded < low || rounded >= high) continue;
      out[i] = value;
      break;
    }
  }
}

template <class T>
void fill_integers(HostTensor& tensor, const Stream& stream, double low, double high) {
  // Both ends inclusive from here on, so that the dtype's largest value has a name.
  constexpr std::int64_t least = std::numeric_limits<T>::min(), greatest = std::numeric_limits<T>::max();
  const double first = std::ceil(low), end = std::ceil(high);
  constexpr double past = static_cast<double>(greatest / 2 + 1) * 2;  // greatest + 1, exact
  if (low == high && low == first && first >= static_cast<double>(least) && first < past) {
    std::ranges::fill(tensor.span<T>(), static_cast<T>(first));
    return;
  }
  if (!(first < end) || first >= past || end <= static_cast<double>(least)) {
    refuse(tensor, ErrorCode::invalid_argument,
           "no such integer lies in [" + std::to_string(low) + ", " + std::to_string(high) + ')');
  }
  const std::int64_t from = first <= static_cast<double>(least) ? least : static_cast<std::int64_t>(first);
  const std::int64_t to = end >= past ? greatest : static_cast<std::int64_t>(end) - 1;
  const std::uint64_t count =
      static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from) + 1;  // 0: 2^64
  // Draws at or above the largest multiple of count would favour the small values.
  const std::uint64_t excess = count ? (0 - count) % count : 0;
  const std::span<T> out = tensor.span<T>();
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint64_t attempt = 0;
    std::uint64_t bits = stream.bits(i, attempt);
    while (bits > ~excess) bits = stream.bits(i, ++attempt);
    const std::uint64_t offset = count ? bits % count : bits;
    out[i] = static_cast<T>(static_cast<std::int64_t>(static_cast<std::uint64_t>(from) + offset));
  }
}

}  // namespace

void random_fill(HostTensor& tensor, std::uint64_t seed, std::string_view name, double low, double high) {
  const Stream stream(seed, name);
  if (tensor.dtype == boolean) {
    const std::span<std::uint8_t> out = tensor.span<std::uint8_t>();
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint8_t>(stream.bits(i, 0) >> 63);
    return;
  }
  if (!std::isfinite(low) || !std::isfinite(high) || low > high) {
    refuse(
        tensor, ErrorCode::invalid_argument,
        "the bounds [" + std::to_string(low) + ", " + std::to_string(high) + ") are not finite and ordered");
  }
  dispatch(tensor.dtype, [&]<DType type>() {
    using T = typename StorageOf<type>::type;
    if constexpr (kind_of(type) == DTypeKind::integer) {
      fill_integers<T>(tensor, stream, low, high);
    } else if constexpr (kind_of(type) == DTypeKind::floating) {
      if (!std::isfinite(static_cast<double>(static_cast<T>(low))) ||
          !std::isfinite(static_cast<double>(static_cast<T>(high)))) {
        refuse(tensor, ErrorCode::invalid_argument,
               "the bounds [" + std::to_string(low) + ", " + std::to_string(high) + ") are beyond the dtype");
      }
      fill_floats<T>(tensor, stream, low, high);
    }
  });
}

void random_fill_normal(HostTensor& tensor, std::uint64_t seed, std::string_view name, double stddev) {
  if (!is_floating(tensor.dtype))
    refuse(tensor, ErrorCode::dtype_mismatch, "a normal distribution needs floats");
  if (!std::isfinite(stddev) || stddev < 0) {
    refuse(tensor, ErrorCode::invalid_argument, "the deviation is negative or not finite");
  }
  const Stream stream(seed, name);
  dispatch(tensor.dtype, [&]<DType type>() {
    if constexpr (kind_of(type) == DTypeKind::floating) {
      using T = typename StorageOf<type>::type;
      const std::span<T> out = tensor.span<T>();
      for (std::size_t i = 0; i < out.size(); ++i) {
        // 1 - unit is in (0, 1], where the logarithm is finite.
        const double radius = std::sqrt(-2 * std::log(1 - stream.unit(i, 0)));
        out[i] = static_cast<T>(stddev * radius * std::cos(2 * std::numbers::pi * stream.unit(i, 1)));
      }
    }
  });
}

}  // namespace fuse::runtime
