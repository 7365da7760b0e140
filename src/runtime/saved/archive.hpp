// Values to bytes and back, by one list of each type's fields (fields.hpp). Little endian; integers take as
// many bytes as they need, seven bits each. A reader takes any bytes: what is not there, or cannot be,
// throws. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <fuse/dim.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "ir/graph/ir_graph.hpp"

namespace fuse::runtime {

/// What a list of fields sees in a value.
template <class Archive, class T>
using As = std::conditional_t<Archive::reads, T, const T>;

class ArchiveWriter {
 public:
  static constexpr bool reads = false;

  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }
  /// Stands before the dims that mention them.
  void symbols(const std::vector<ir::Symbol>& symbols) { put(symbols); }
  const std::string& bytes() const { return bytes_; }

 private:
  void number(std::uint64_t value);
  void put(const std::string& text);
  void put(const std::vector<char>& bytes);
  void put(const Dim& dim);
  void put(double value) { number(std::bit_cast<std::uint64_t>(value)); }
  template <class T>
  void put(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      number(static_cast<std::uint64_t>(value));
    } else if constexpr (std::is_unsigned_v<T>) {
      number(value);
    } else if constexpr (std::is_integral_v<T>) {
      const auto wide = static_cast<std::int64_t>(value);
      number((static_cast<std::uint64_t>(wide) << 1) ^ static_cast<std::uint64_t>(wide >> 63));
    } else {
      fields(*this, value);
    }
  }
  template <class T>
  void put(const std::vector<T>& list) {
    number(list.size());
    for (const T& value : list) put(value);
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class... T>
  void put(const std::variant<T...>& value) {
    number(value.index());
    std::visit([&](const auto& held) { put(held); }, value);
  }

  std::string bytes_;
  std::unordered_map<std::string, std::uint64_t> dims_;  // by text: their numbers
};

class ArchiveReader {
 public:
  static constexpr bool reads = true;

  /// `what` names the bytes in errors, which are Error{runtime, file_format}.
  ArchiveReader(std::string_view bytes, std::string what) : bytes_(bytes), what_(std::move(what)) {}

  template <class... T>
  void operator()(T&... values) {
    (take(values), ...);
  }
  void symbols(std::vector<ir::Symbol>& symbols);
  /// Throws where bytes are left.
  void finish() const;
  [[noreturn]] void damaged(std::string_view how) const;

 private:
  static constexpr int most_depth = 32;  // the depth of values in values

  std::uint64_t number();
  std::uint64_t number(std::uint64_t most, std::string_view what);
  std::string_view run(std::uint64_t count);
  void take(std::string& text);
  void take(std::vector<char>& bytes);
  void take(Dim& dim);
  void take(double& value) { value = std::bit_cast<double>(number()); }
  template <class T>
  void take(T& value) {
    if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(number(static_cast<std::uint64_t>(last_of(*this, T{})), "an enumeration"));
    } else if constexpr (std::is_same_v<T, bool>) {
      value = number(1, "a truth value") != 0;
    } else if constexpr (std::is_unsigned_v<T>) {
      value = static_cast<T>(number(std::numeric_limits<T>::max(), "a number"));
    } else if constexpr (std::is_integral_v<T>) {
      const std::uint64_t coded = number();
      const auto wide = static_cast<std::int64_t>((coded >> 1) ^ (~(coded & 1) + 1));
      value = static_cast<T>(wide);
      if (value != wide) damaged("a number that is too large");
    } else {
      if (++depth_ > most_depth) damaged("values in values without end");
      fields(*this, value);
      --depth_;
    }
  }
  // Lists grow by what is there, so that a number alone asks for no memory.
  template <class T>
  void take(std::vector<T>& list) {
    const std::uint64_t count = number(bytes_.size() - at_, "a list");
    list.clear();
    for (std::uint64_t i = 0; i < count; ++i) take(list.emplace_back());
  }
  template <class T>
  void take(std::optional<T>& value) {
    bool there = false;
    take(there);
    if (!there) return value.reset();
    if (!value) value.emplace();
    take(*value);
  }
  template <class... T>
  void take(std::variant<T...>& value) {
    const std::uint64_t index = number(sizeof...(T) - 1, "a kind");
    std::uint64_t i = 0;
    ((i++ == index ? take(value.template emplace<T>()) : void()), ...);
  }

  std::string_view bytes_;
  std::string what_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::unordered_map<std::string, Dim> symbols_;
  std::vector<Dim> dims_;
};

}  // namespace fuse::runtime
