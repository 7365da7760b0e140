// SPDX-License-Identifier: Apache-2.0
#include "goals.hpp"

#include <fmt/format.h>

#include <sstream>

namespace fuse::bench::sass {
namespace {

constexpr std::int64_t large = 1 << 20;  // bytes
constexpr std::int64_t shortest = 256, longest = 4096;

constexpr std::string_view all_types = "f32 f16 bf16";
constexpr ShareGoal share_goals[] = {
    {"softmax", all_types, 0.70},
    {"log_softmax", all_types, 0.70},
    {"cross_entropy", all_types, 0.70},
    {"layer_norm", all_types, 0.70},
    {"rms_norm", all_types, 0.70},
    {"bias_gelu_tanh", all_types, 0.70},
    {"residual_layer_norm", all_types, 0.70},
    {"residual_rms_norm", all_types, 0.70},
    {"masked_softmax", all_types, 0.70},
    {"elementwise", all_types, 0.70},
    {"softmax_backward", all_types, 0.70},
    {"log_softmax_backward", all_types, 0.70},
    {"cross_entropy_backward", all_types, 0.70},
    {"layer_norm_backward", all_types, 0.70},
    {"rms_norm_backward", all_types, 0.70},
    {"bias_gelu_tanh_backward", all_types, 0.70},
    {"residual_layer_norm_backward", all_types, 0.70},
    {"residual_rms_norm_backward", all_types, 0.70},
    {"masked_softmax_backward", all_types, 0.70},
    {"bias_gelu", "f16 bf16", 0.95},
    {"dropout", "f16 bf16", 0.95},
};

bool in_range(const TableCase& of) {
  return of.row_length == 0 || (shortest <= of.row_length && of.row_length <= longest);
}

std::string narrow_accesses(const CaseCount& count) {
  std::string text;
  for (const KernelCount& kernel : count.kernels) {
    for (const Access& access : kernel.accesses) {
      if (!narrow(access)) continue;
      text += fmt::format("{}{} of {} by {} B", text.empty() ? "" : ", ", access.stores ? "stores" : "loads",
                          access.buffer, access.bytes);
    }
  }
  return text;
}

}  // namespace

bool narrow(const Access& access) {
  return access.extent_bytes >= large && access.could_be_wide && access.bytes < 16;
}

std::vector<GoalResult> goal_results(const std::vector<Counted>& cases) {
  std::vector<GoalResult> results;
  for (const ShareGoal& goal : share_goals) {
    std::istringstream types{std::string(goal.dtypes)};
    for (std::string dtype; types >> dtype;) {
      const CaseCount* worst = nullptr;
      for (const Counted& each : cases) {
        if (each.of->builder != goal.builder || each.of->dtype != dtype || !in_range(*each.of)) continue;
        if (!worst || worst->share < each.count->share) worst = each.count;
      }
      if (!worst) continue;
      results.push_back({fmt::format("{} {}: share <= {:.2f}", goal.builder, dtype, goal.most),
                         worst->share <= goal.most, fmt::format("{} has {:.3f}", worst->name, worst->share)});
    }
  }
  GoalResult wide{.name = "large operands: accesses of 16 bytes", .met = true};
  int failing = 0;
  for (const Counted& each : cases) {
    if (!in_range(*each.of) || each.of->builder == "example") continue;
    const std::string text = narrow_accesses(*each.count);
    if (text.empty()) continue;
    wide.met = false;
    if (failing++ == 0) wide.worst = fmt::format("{}: {}", each.of->name, text);
  }
  if (failing > 1) wide.worst += fmt::format("; and {} more", failing - 1);
  if (!cases.empty()) results.push_back(wide);
  return results;
}

std::string missing(const CaseCount& count) {
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  const KernelCount& kernel = count.longest();
  if (count.share > 0.7) add(fmt::format("bound by {}", to_string(kernel.bound)));
  if (kernel.blocks_per_sm <= 1) add("one block per SM");
  if (kernel.waves < 0.5) add(fmt::format("{} blocks", kernel.grid));
  if (kernel.spilled_bytes > 0) add(fmt::format("{} B spilled", kernel.spilled_bytes));
  if (const std::string narrow = narrow_accesses(count); !narrow.empty()) add(narrow);
  return text;
}

}  // namespace fuse::bench::sass
