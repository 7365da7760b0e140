// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm_layout.hpp"

#include <fmt/format.h>

namespace fuse::schedule {

std::string to_string(const GemmLayout& layout) {
  std::string text = fmt::format("rows {} apart", layout.row.to_string());
  if (!layout.inner.is(1)) {
    text += fmt::format(", {} matrices {} apart", layout.inner.to_string(), layout.inner_stride.to_string());
  }
  if (!layout.outer.is(1)) {
    text += fmt::format(", {} calls {} apart", layout.outer.to_string(), layout.outer_stride.to_string());
  }
  return text;
}

}  // namespace fuse::schedule
