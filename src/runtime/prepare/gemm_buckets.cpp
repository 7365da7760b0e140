// SPDX-License-Identifier: Apache-2.0
#include "runtime/prepare/gemm_buckets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

namespace fuse::runtime {
namespace {

using schedule::VersionTable;

/// Divides what was timed by one extent after the other. Each leaf is a version.
class BucketTree {
 public:
  BucketTree(const std::vector<Dim>& extents, std::vector<TimedExtents> timed)
      : extents_(extents), timed_(std::move(timed)) {}

  schedule::GemmAlgorithms run() {
    table_.versions = 0;
    divide(std::span(timed_), 0);
    // Leaves with one algorithm are one version, and tests between them go.
    schedule::GemmAlgorithms made;
    std::vector<std::uint32_t> name;
    for (const std::string& algorithm : leaves_) {
      const auto found = std::find(made.recorded.begin(), made.recorded.end(), algorithm);
      name.push_back(static_cast<std::uint32_t>(found - made.recorded.begin()));
      if (found == made.recorded.end()) made.recorded.push_back(algorithm);
    }
    made.table = renamed(table_, name);
    return made;
  }

 private:
  using Timed = std::span<TimedExtents>;

  VersionTable::Branch divide(Timed timed, std::size_t axis) {
    if (axis == extents_.size()) {
      leaves_.push_back(timed.front().algorithm);
      return {.ends = true, .to = table_.versions++};
    }
    const auto bucket = [axis](const TimedExtents& each) { return bucket_of(each.values[axis]); };
    std::stable_sort(timed.begin(), timed.end(),
                     [&](const TimedExtents& a, const TimedExtents& b) { return bucket(a) < bucket(b); });
    std::vector<std::size_t> starts;  // of the buckets, but for those that are like the one before
    std::vector<std::pair<std::vector<int>, std::string>> last;
    for (std::size_t i = 0, end = 0; i < timed.size(); i = end) {
      while (end < timed.size() && bucket(timed[end]) == bucket(timed[i])) ++end;
      auto own = behind(timed.subspan(i, end - i), axis + 1);
      if (own != last) starts.push_back(i);
      last = std::move(own);
    }
    starts.push_back(timed.size());
    return divide(timed, axis, starts, 0, starts.size() - 1);
  }

  /// By the buckets of the extents from `axis` on, the algorithms.
  std::vector<std::pair<std::vector<int>, std::string>> behind(Timed timed, std::size_t axis) const {
    std::vector<std::pair<std::vector<int>, std::string>> result;
    for (const TimedExtents& each : timed) {
      std::vector<int> buckets;
      for (std::size_t i = axis; i < extents_.size(); ++i) buckets.push_back(bucket_of(each.values[i]));
      result.emplace_back(std::move(buckets), each.algorithm);
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  /// Of the buckets from `first` on up to `end`.
  VersionTable::Branch divide(Timed timed, std::size_t axis, const std::vector<std::size_t>& starts,
                              std::size_t first, std::size_t end) {
    if (end - first == 1) return divide(timed.subspan(starts[first], starts[end] - starts[first]), axis + 1);
    const std::size_t middle = (first + end) / 2;
    const std::int64_t most = std::int64_t{1} << bucket_of(timed[starts[middle] - 1].values[axis]);
    const auto at = static_cast<std::uint32_t>(table_.tests.size());
    table_.tests.push_back({.relation = at_most(extents_[axis], most)});
    const VersionTable::Branch yes = divide(timed, axis, starts, first, middle);
    const VersionTable::Branch no = divide(timed, axis, starts, middle, end);
    table_.tests[at].yes = yes;
    table_.tests[at].no = no;
    return {.ends = false, .to = at};
  }

  const std::vector<Dim>& extents_;
  std::vector<TimedExtents> timed_;
  VersionTable table_{};
  std::vector<std::string> leaves_;  // for each version, its algorithm
};

}  // namespace

int bucket_of(std::int64_t extent) {
  return extent <= 1 ? 0 : std::bit_width(static_cast<std::uint64_t>(extent - 1));
}

std::vector<Dim> symbolic_extents(const schedule::GemmStep& gemm) {
  std::vector<Dim> extents;
  for (const Dim& extent : {gemm.batch, gemm.m, gemm.n, gemm.k})
    if (!extent.is_constant() && std::find(extents.begin(), extents.end(), extent) == extents.end())
      extents.push_back(extent);
  return extents;
}

std::string gemm_text(const schedule::GemmStep& gemm) {
  std::string text = fmt::format("{} x {} by k = {}, batch {}, {} to {}", gemm.m.to_string(),
                                 gemm.n.to_string(), gemm.k.to_string(), gemm.batch.to_string(),
                                 to_string(gemm.operand), to_string(gemm.result));
  if (gemm.transpose_a) text += ", a transposed";
  if (gemm.transpose_b) text += ", b transposed";
  if (gemm.epilogue != schedule::EpilogueKind::none)
    text += fmt::format(", {}", schedule::to_string(gemm.epilogue));
  for (const auto& [layout, name] :
       {std::pair(&gemm.layout_a, "a"), std::pair(&gemm.layout_b, "b"), std::pair(&gemm.layout, "c")})
    if (*layout) text += fmt::format("; {}: {}", name, schedule::to_string(**layout));
  return text;
}

schedule::GemmAlgorithms algorithms_by_bucket(const std::vector<Dim>& extents,
                                              std::vector<TimedExtents> timed) {
  return BucketTree(extents, std::move(timed)).run();
}

}  // namespace fuse::runtime
