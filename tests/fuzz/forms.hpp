// Forms: what a campaign of generated programs must reach on purpose, counted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compile/pipeline/pipeline.hpp"
#include "fuzz/grow/generated_program.hpp"

namespace fuse::fuzz {

enum class Form : std::uint8_t {
#define FUSE_FORM(name, ...) name,
#include "fuzz/forms.def"
};
inline constexpr std::size_t form_count = 0
#define FUSE_FORM(...) +1
#include "fuzz/forms.def"
    ;

/// A set of forms, a bit each.
using Forms = std::uint64_t;
static_assert(form_count <= 64);
constexpr Forms bit(Form form) { return Forms{1} << static_cast<unsigned>(form); }

/// The forms of one program, as it was compiled and as it is run.
Forms forms_of(const Case&, const Compiled&);

/// How many programs had each form.
class FormCounts {
 public:
  void add(Forms forms, bool checked);
  /// A table in Markdown: one row per form, with its floor on that device.
  std::string table(bool on_gpu) const;
  /// "cluster: 3 of 2000 programs, the floor is 10". Only floors of 10 programs and more are asked of a run:
  /// below that, chance decides. The floors of the cpu device are its own: where the programs did not run
  /// `on_gpu`.
  std::vector<std::string> below_floor(bool on_gpu) const;

 private:
  struct Count {
    std::int64_t programs = 0, checked = 0;
  };
  std::array<Count, form_count> counts_{};
  std::int64_t programs_ = 0;
};

}  // namespace fuse::fuzz
