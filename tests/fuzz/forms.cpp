// SPDX-License-Identifier: Apache-2.0
#include "fuzz/forms.hpp"

#include <fmt/format.h>

namespace fuse::fuzz {
namespace {

struct FormRow {
  std::string_view name;
  double gpu_per_mille, cpu_per_mille;
  std::string_view note;

  std::int64_t floor(bool on_gpu, std::int64_t programs) const {
    return static_cast<std::int64_t>((on_gpu ? gpu_per_mille : cpu_per_mille) *
                                     static_cast<double>(programs) / 1000);
  }
};
constexpr FormRow form_rows[] = {
#define FUSE_FORM(name, gpu_per_mille, cpu_per_mille, note) {#name, gpu_per_mille, cpu_per_mille, note},
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

std::string FormCounts::table(bool on_gpu) const {
  std::string text = "| form | programs | checked | floor | |\n| --- | ---: | ---: | ---: | --- |\n";
  for (std::size_t i = 0; i < form_count; ++i) {
    text += fmt::format("| {} | {} | {} | {} | {} |\n", form_rows[i].name, counts_[i].programs,
                        counts_[i].checked, form_rows[i].floor(on_gpu, programs_), form_rows[i].note);
  }
  return text;
}

std::vector<std::string> FormCounts::below_floor(bool on_gpu) const {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < form_count; ++i) {
    const std::int64_t floor = form_rows[i].floor(on_gpu, programs_);
    if (floor < least_floor || counts_[i].programs >= floor) continue;
    result.push_back(fmt::format("{}: {} of {} programs, the floor is {}", form_rows[i].name,
                                 counts_[i].programs, programs_, floor));
  }
  return result;
}

}  // namespace fuse::fuzz
