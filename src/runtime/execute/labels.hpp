// What errors, profiles and explanations call a ready step and the type of a slot. Nobody asks in most runs,
// so texts are written when they are asked for, and into memory that is there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <fuse/dtype.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "plan/program.hpp"

namespace fuse::runtime {

/// "step 2, kernel 'ln_0' (reduce_sum in layer_norm.mean)"
struct StepLabel {
  std::string_view before{};  ///< "setup ", or nothing
  std::size_t number = 0;
  std::string_view noun{};            ///< "kernel"
  const std::string* text = nullptr;  ///< what step_text gives; of the build, or of what is prepared
};

/// What stands behind the number and the noun: "'ln_0' (reduce_sum in layer_norm.mean)"
std::string step_text(const Program&, const schedule::Step&);

/// "f32[4, 256]"
struct SlotType {
  DType dtype;
  const std::vector<std::int64_t>& shape;
};

}  // namespace fuse::runtime

template <>
struct fmt::formatter<fuse::runtime::StepLabel> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  template <class Context>
  auto format(const fuse::runtime::StepLabel& label, Context& context) const {
    return fmt::format_to(context.out(), "{}step {}, {} {}", label.before, label.number, label.noun,
                          *label.text);
  }
};

template <>
struct fmt::formatter<fuse::runtime::SlotType> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  template <class Context>
  auto format(const fuse::runtime::SlotType& type, Context& context) const {
    auto out = fmt::format_to(context.out(), "{}[", to_string(type.dtype));
    for (std::size_t i = 0; i < type.shape.size(); ++i)
      out = fmt::format_to(out, "{}{}", i ? ", " : "", type.shape[i]);
    return fmt::format_to(out, "]");
  }
};
