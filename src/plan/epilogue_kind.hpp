// What a GEMM may do to its result before it stores it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace fuse::schedule {

/// One operation per element, in the accumulator's type, rounded once: the result has the bits of the op that
/// it stands for. There is only one, since a library may contract two into a fused multiply-add, which rounds
/// once less.
enum class EpilogueKind : std::uint8_t {
  none,
  bias,     ///< + a vector along n
  add,      ///< + a tensor of the result's shape
  scale,    ///< * a number
  convert,  ///< the rounding to a half type; of a step, its result has that type, and no epilogue is left
};

constexpr std::string_view to_string(EpilogueKind kind) {
  switch (kind) {
    case EpilogueKind::none:
      return "none";
    case EpilogueKind::bias:
      return "bias";
    case EpilogueKind::add:
      return "add";
    case EpilogueKind::scale:
      return "scale";
    case EpilogueKind::convert:
      return "convert";
  }
  return "?";
}

}  // namespace fuse::schedule
