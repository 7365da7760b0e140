// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm_layout.hpp"

#include <fmt/format.h>

namespace fuse::schedule {

std::string to_string(const GemmLayout& places) {
  std::string text = fmt::format("rows {} apart", places.row.to_string());
  if (!places.inner.is(1)) {
    text += fmt::format(", {} matrices {} apart", places.inner.to_string(), places.inner_stride.to_string());
  }
  if (!places.outer.is(1)) {
    text += fmt::format(", {} calls {} apart", places.outer.to_string(), places.outer_stride.to_string());
  }
  return text;
}

}  // namespace fuse::schedule
