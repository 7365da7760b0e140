// SPDX-License-Identifier: Apache-2.0
#include "fuzz/forms.hpp"

#include <fmt/format.h>

namespace fuse::fuzz {
namespace {

struct FormRow {
  std::string_view name;
  double per_mille;
  std::string_view note;
  bool of_gpus = false;  ///< no kernel of the cpu device has it
};
constexpr FormRow form_rows[] = {
#define FUSE_FORM(name, per_mille, note) {#name, per_mille, note},
#define FUSE_GPU_FORM(name, per_mille, note) {#name, per_mille, note, true},
#include "fuzz/forms.def"
};
constexpr std::int64_t least_floor = 10;

}  // namespace

void FormCounts::add(Forms forms, bool checked) {
  ++programs_;
  for (std::size_t i = 0; i < form_count; ++i) {
    if ((forms >> i & 1) == 0) continue;
    ++counts_[i].programs;
    counts_[i].checked += checked;
  }
}

std::string FormCounts::table() const {
  std::string text = "| form | programs | checked | floor | |\n| --- | ---: | ---: | ---: | --- |\n";
  for (std::size_t i = 0; i < form_count; ++i) {
    text += fmt::format("| {} | {} | {} | {:.0f} | {} |\n", form_rows[i].name, counts_[i].programs,
                        counts_[i].checked, form_rows[i].per_mille * static_cast<double>(programs_) / 1000,
                        form_rows[i].note);
  }
  return text;
}

std::vector<std::string> FormCounts::below_floor(bool on_gpu) const {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < form_count; ++i) {
    const auto floor =
        static_cast<std::int64_t>(form_rows[i].per_mille * static_cast<double>(programs_) / 1000);
    if ((form_rows[i].of_gpus && !on_gpu) || floor < least_floor || counts_[i].programs >= floor) continue;
    result.push_back(fmt::format("{}: {} of {} programs, the floor is {}", form_rows[i].name,
                                 counts_[i].programs, programs_, floor));
  }
  return result;
}

}  // namespace fuse::fuzz
