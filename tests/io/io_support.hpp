// What the io tests share: a directory that goes away, raw bytes, and the error a call throws.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <fuse/error.hpp>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tensors/host_tensor.hpp"

namespace fuse::test {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    path_ = (std::filesystem::temp_directory_path() / "fuse-io-XXXXXX").string();
    if (!::mkdtemp(path_.data())) throw std::runtime_error("mkdtemp failed for " + path_);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(std::string_view name) const { return path_ + '/' + std::string(name); }
  std::size_t count_files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::string path_;
};

inline void write_text(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// A literal with zero bytes in it.
template <std::size_t size>
std::string literal(const char (&text)[size]) {
  return {text, size - 1};
}

/// A version 1.0 npy file; the header is not padded, which a reader must not ask for.
inline std::string npy_file(const std::string& dict, const std::string& data) {
  std::string file = literal("\x93NUMPY\x01\x00");
  file += static_cast<char>(dict.size() & 0xff);
  file += static_cast<char>(dict.size() >> 8);
  return file + dict + data;
}

inline std::string safetensors_file(const std::string& header, const std::string& data) {
  std::string file;
  for (int i = 0; i < 8; ++i)
    file += static_cast<char>(static_cast<std::uint64_t>(header.size()) >> (8 * i) & 0xff);
  return file + header + data;
}

/// The fuse::Error that `f` throws, or nothing; any other exception passes through.
template <class F>
std::optional<ErrorInfo> error_of(F&& f) {
  try {
    std::forward<F>(f)();
  } catch (const Error& error) {
    return error.info();
  }
  return std::nullopt;
}

/// A tensor of every kind of value its dtype has: extremes, specials, and a ramp.
inline runtime::HostTensor ramp(DType type, std::vector<std::int64_t> shape) {
  runtime::HostTensor tensor = runtime::HostTensor::make(type, std::move(shape));
  const std::int64_t count = tensor.element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    if (is_floating(type)) {
      tensor.set(i, static_cast<double>(i) * 1.37 - 2.5);
    } else {
      tensor.set_int(i, type == boolean ? i % 2 : i * 12345 - 7);
    }
  }
  return tensor;
}

inline constexpr DType all_dtypes[] = {f64, f32, f16, bf16, i64, i32, boolean};

}  // namespace fuse::test
