// What the counts should be. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roofline.hpp"
#include "table_cases.hpp"

namespace fuse::bench::sass {

/// The share of H200's issue budget that kernels of rows of 256 to 4,096 elements may need.
struct ShareGoal {
  std::string_view builder;
  std::string_view dtypes;  ///< "f32 f16 bf16"
  double most = 0;
  std::string_view why{};  ///< kernels miss it, where they do
};

struct GoalResult {
  std::string name;  ///< "softmax bf16: share <= 0.70"
  bool met = false;
  std::string worst{};  ///< "softmax.bf16.262144x256 has 0.95"
  std::string why{};    ///< it is missed, where that is known
};

/// A case and what it counts on H200.
struct Counted {
  const TableCase* of = nullptr;
  const CaseCount* count = nullptr;
};

/// Of the goals that the cases say something about.
std::vector<GoalResult> goal_results(const std::vector<Counted>&);

/// Of graphs of more kernels than these the sums and the longest kernel say enough.
inline constexpr std::size_t listed_kernels = 8;

/// What keeps a case from its goals: "bound by xu; one block per SM; stores of t3 by 2 B"; empty: nothing.
std::string missing(const CaseCount&);

/// An access of a value of 1 MB or more is narrow where it could take 16 bytes at a time and does not.
bool narrow(const Access&);

}  // namespace fuse::bench::sass
