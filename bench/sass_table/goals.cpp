// SPDX-License-Identifier: Apache-2.0
#include "goals.hpp"

#include <fmt/format.h>

#include <sstream>

namespace fuse::bench::sass {
namespace {

constexpr std::int64_t large = 1 << 20;  // bytes
constexpr std::int64_t shortest = 256, longest = 4096;

constexpr std::string_view all_types = "f32 f16 bf16", half_types = "f16 bf16";
constexpr ShareGoal share_goals[] = {
    {"softmax", all_types, 0.70},
    {"log_softmax", all_types, 0.70},
    {"cross_entropy", "f32", 0.70},
    {"cross_entropy", half_types, 0.70,
     "An element is 2 bytes read and none written, for which the goal allows 10.9 instructions. The "
     "exponential in f32 takes 8; widening, maximum, subtraction and sum take 4: the goal is out of "
     "reach. The comparison with the label, the selection and its sum take most of the rest."},
    {"layer_norm", all_types, 0.70},
    {"rms_norm", all_types, 0.70},
    {"bias_gelu_tanh", "f32", 0.70},
    {"bias_gelu_tanh", half_types, 0.70,
     "The goal allows 21.8 instructions for an element. The hyperbolic tangent within 3 ulp takes 13; "
     "the other operations of the formula take 9, because the graph rounds each of them to f32; "
     "widening, conversion and the accesses take the rest."},
    {"residual_layer_norm", all_types, 0.70,
     "Four norms are one kernel, which moves the bytes of the budget. Two kernels have a share of 0.66, and "
     "move 1.7 times as many bytes: the cost model predicts that they take 1.5 times as long."},
    {"residual_rms_norm", all_types, 0.70},
    {"masked_softmax", "f32", 0.70},
    {"masked_softmax", half_types, 0.70,
     "The goal allows 21.8 instructions for an element. A softmax takes 20 to 21 of them, its IEEE "
     "division included; the comparison of the indices and the selection come on top."},
    {"elementwise", all_types, 0.70},
    {"softmax_backward", all_types, 0.70},
    {"log_softmax_backward", all_types, 0.70},
    {"cross_entropy_backward", "f32", 0.70},
    {"cross_entropy_backward", half_types, 0.70,
     "The goal allows 21.8 instructions for an element. A softmax takes 20 to 21 of them, its IEEE "
     "division included; the comparison with the label, the selection, the subtraction and the product "
     "come on top."},
    {"layer_norm_backward", "f32", 0.70},
    {"layer_norm_backward", half_types, 0.70,
     "The goal allows 32.7 instructions for an element. A row has four reductions, and a thread has "
     "only 8 elements of it to share their cost. A nest that gives a thread more of a row was not "
     "measured yet."},
    {"rms_norm_backward", all_types, 0.70},
    {"bias_gelu_tanh_backward", "f32", 0.70},
    {"bias_gelu_tanh_backward", half_types, 0.70,
     "The goal allows 32.7 instructions for an element. The hyperbolic tangent within 3 ulp takes 13; "
     "the other operations of the formula and of its derivative take 19, because the graph rounds each "
     "of them to f32; widening, conversion and the accesses take the rest."},
    {"residual_layer_norm_backward", all_types, 0.70},
    {"residual_rms_norm_backward", all_types, 0.70},
    {"masked_softmax_backward", all_types, 0.70},
    {"bias_gelu", half_types, 0.95},
    {"dropout", half_types, 0.95},
};

constexpr std::string_view why_narrow =
    "Transposes access a word of 4 bytes for each thread, and sums of very many columns one element, so that "
    "neighbouring threads access neighbouring elements. The blocks' parts of a sum of columns are combined "
    "by one element for each thread. What has one value for each row (labels, losses, sums of short rows) is "
    "accessed by one thread for each row. elementwise.f32.262144x4 has so few elements that a thread takes "
    "two, to "
    "occupy every SM. residual_layer_norm.bf16.8192x4096x4 consists of two kernels that pass a value in "
    "f32, four elements at a time.";

bool in_range(const TableCase& of) {
  return of.row_length == 0 || (shortest <= of.row_length && of.row_length <= longest);
}

std::string narrow_accesses(const KernelCount& kernel) {
  std::string text;
  for (const Access& access : kernel.accesses) {
    if (!narrow(access)) continue;
    text += fmt::format("{}{} of {} by {} B", text.empty() ? "" : ", ", access.stores ? "stores" : "loads",
                        access.buffer, access.bytes);
  }
  return text;
}

std::string narrow_accesses(const CaseCount& count) {
  std::string text;
  std::size_t kernels = 0;
  for (const KernelCount& kernel : count.kernels) {
    const std::string here = narrow_accesses(kernel);
    if (here.empty()) continue;
    ++kernels;
    text += (text.empty() ? "" : ", ") + here;
  }
  if (count.kernels.size() <= listed_kernels || kernels == 0) return text;
  return fmt::format("{} of {} kernels have accesses narrower than 16 B", kernels, count.kernels.size());
}

/// Of many kernels, the one with most cycles: "the longest kernel, k_7, has 2.1% of the cycles: loads of x by
/// 4 B".
std::string longest_of_many(const CaseCount& count) {
  if (count.kernels.size() <= listed_kernels) return "";
  const KernelCount& kernel = count.longest();
  const std::string narrow = narrow_accesses(kernel);
  return fmt::format("the longest kernel, {}, has {:.1f}% of the cycles{}{}", kernel.name,
                     100 * kernel.cycles / count.cycles, narrow.empty() ? "" : ": ", narrow);
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
                         worst->share <= goal.most, fmt::format("{} has {:.3f}", worst->name, worst->share),
                         std::string(worst->share <= goal.most ? "" : goal.why)});
    }
  }
  GoalResult wide{.name = "large operands: accesses of 16 bytes", .met = true};
  int failing = 0;
  for (const Counted& each : cases) {
    if (!in_range(*each.of) || each.of->builder == "example") continue;
    const std::string text = narrow_accesses(*each.count);
    if (text.empty()) continue;
    wide.met = false;
    wide.why = why_narrow;
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
  if (const std::string longest = longest_of_many(count); !longest.empty()) add(longest);
  return text;
}

}  // namespace fuse::bench::sass
