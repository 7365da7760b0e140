// The numbers of the text form. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/dtype.hpp>
#include <string>
#include <string_view>
#include <system_error>

namespace fuse {

struct ParsedNumber {
  double value = 0;
  std::errc error{};  ///< invalid_argument, or result_out_of_range: it would round to infinity or to zero
};

/// A decimal ("1.5e3") or hexadecimal ("0x1.8p3") number without a sign, rounded once to a floating type.
ParsedNumber parse_magnitude(std::string_view text, DType dtype);
/// A finite number without a sign as text that is exact and the same on every system: "0x1.8p+3", "0x0p+0".
std::string magnitude_text(double value);

}  // namespace fuse
