// SPDX-License-Identifier: Apache-2.0
#include "runtime/saved/container.hpp"

#include <fmt/format.h>

#include <cstring>
#include <fuse/error.hpp>

#include "os/mapped_file.hpp"

namespace fuse::runtime {
namespace {

template <class T>
T number_at(std::string_view bytes, std::size_t at) {
  T value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// A step has another result for another word, and for another state: one changed word is always seen.
class Checksum {
 public:
  void add(std::string_view bytes) {
    std::size_t at = 0;
    for (; at + 8 <= bytes.size(); at += 8) word(number_at<std::uint64_t>(bytes, at));
    std::uint64_t rest = 0;
    std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
    word(rest);
    word(bytes.size());
  }
  std::uint64_t value() const { return state_; }

 private:
  void word(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15u;
    state_ ^= state_ >> 32;
  }
  std::uint64_t state_ = 0x6675736570 /* "fusep" */;
};

constexpr std::size_t checksum_at = 24;

std::uint64_t checksum_of(std::string_view header, std::string_view content) {
  Checksum sum;
  sum.add(header.substr(0, checksum_at));
  sum.add(content);
  return sum.value();
}

}  // namespace

std::string seal(std::string_view magic, std::uint32_t format, std::string_view content) {
  std::string file(magic);
  append(file, format);
  append(file, std::uint32_t{0});
  append(file, static_cast<std::uint64_t>(container_header_bytes + content.size()));
  append(file, checksum_of(file, content));
  file += content;
  return file;
}

std::string_view unseal(std::string_view magic, std::uint32_t format, std::string_view file,
                        const std::string& name) {
  const auto fail = [&](ErrorCode code, const std::string& why, const std::string& hint = {}) {
    throw Error({.kind = ErrorKind::runtime, .code = code, .message = name + why, .hint = hint});
  };
  if (!file.starts_with(magic)) fail(ErrorCode::file_format, fmt::format(" is no {} of fuse", magic));
  if (file.size() < container_header_bytes)
    fail(ErrorCode::file_format, " is damaged: it ends in its header");
  if (const auto own = number_at<std::uint32_t>(file, 8); own != format) {
    fail(ErrorCode::incompatible_version,
         fmt::format(" has format {}, this version of fuse reads {}", own, format),
         "make it again with this version");
  }
  if (const auto length = number_at<std::uint64_t>(file, 16); length != file.size()) {
    fail(ErrorCode::file_format, fmt::format(" is damaged: it has {} bytes of {}", file.size(), length));
  }
  const std::string_view content = file.substr(container_header_bytes);
  if (number_at<std::uint64_t>(file, checksum_at) != checksum_of(file, content)) {
    fail(ErrorCode::file_format, " is damaged: its checksum is another");
  }
  if (number_at<std::uint32_t>(file, 12) != 0) fail(ErrorCode::file_format, " is damaged: its header");
  return content;
}

std::string read_whole(const std::string& path, std::uint64_t most) {
  const InputFile file(path);
  if (file.size() > most) {
    throw Error(
        {.kind = ErrorKind::runtime,
         .code = ErrorCode::file_format,
         .message = fmt::format("{} has {} bytes, more than the {} that are read", path, file.size(), most)});
  }
  std::string bytes(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

}  // namespace fuse::runtime
