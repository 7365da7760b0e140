// SPDX-License-Identifier: Apache-2.0
#include "base/formatted_status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace fuse {

std::string_view format_cut(std::span<char> out, fmt::string_view format, fmt::format_args args) noexcept {
  const auto end = fmt::vformat_to_n(out.data(), out.size(), format, args);
  return {out.data(), std::min(end.size, out.size())};
}

Status format_status(ErrorCode code, fmt::string_view format, fmt::format_args args) noexcept {
  std::array<char, 509> text;
  return {code, format_cut(text, format, args)};
}

}  // namespace fuse
