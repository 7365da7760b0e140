// A Status with a formatted message, cut rather than allocated. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <fuse/error.hpp>
#include <span>

namespace fuse {

/// As much of the text as `out` holds.
std::string_view format_cut(std::span<char> out, fmt::string_view format, fmt::format_args args) noexcept;
Status format_status(ErrorCode code, fmt::string_view format, fmt::format_args args) noexcept;

/// A status from strings, numbers and addresses, whose formatting throws nothing.
template <class... Args>
Status status(ErrorCode code, fmt::format_string<Args...> format, const Args&... args) noexcept {
  return format_status(code, format, fmt::make_format_args(args...));
}

}  // namespace fuse
