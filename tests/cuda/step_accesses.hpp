// What the steps of a prepared run touch. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/execute/executable_impl.hpp"

namespace fuse::test {

struct Access {
  runtime::ValueLocation location;
  bool writes = false;
};

inline std::vector<Access> accesses(const Prepared::Impl& p, const runtime::ReadyStep& step) {
  const Executable::Impl& executable = *p.executable;
  std::vector<Access> found;
  const auto add = [&](runtime::ValueLocation location, bool writes) {
    if (location.slot >= 0) {
      const auto donor = executable.slots()[static_cast<std::size_t>(location.slot)].donor;
      if (donor) location.slot = static_cast<std::int32_t>(*donor);
    }
    if (location.bytes > 0) found.push_back({location, writes});
  };
  if (step.kind == runtime::ReadyStep::Kind::kernel) {
    const auto at = std::find(p.build->functions.begin(), p.build->functions.end(), step.function);
    const auto& params =
        p.build->program->kernels[static_cast<std::size_t>(at - p.build->functions.begin())].params;
    for (std::uint32_t i = 0; i < step.arguments.count; ++i) {
      const runtime::ReadyArgument& argument = p.arguments[step.arguments.first + i];
      if (!argument.is_extent) add(argument.location, params[i].written);
    }
    return found;
  }
  using Kind = runtime::ReadyStep::Kind;
  const auto written = [&](std::uint32_t i) {
    if (step.kind == Kind::gemm)
      return i == runtime::gemm_argument::c || i == runtime::gemm_argument::scratch;
    return step.kind == Kind::copy ? i == runtime::copy_argument::to : i == runtime::memset_argument::to;
  };
  for (std::uint32_t i = 0; i < step.arguments.count; ++i) {
    add(p.arguments[step.arguments.first + i].location, written(i));
  }
  return found;
}

inline bool conflict(const std::vector<Access>& a, const std::vector<Access>& b) {
  for (const Access& x : a) {
    for (const Access& y : b) {
      if (!(x.writes || y.writes) || x.location.slot != y.location.slot) continue;
      if (x.location.offset < y.location.offset + y.location.bytes &&
          y.location.offset < x.location.offset + x.location.bytes)
        return true;
    }
  }
  return false;
}

/// An output takes the memory of an input that several branches still read.
inline Graph overwritten() {
  Graph g("overwritten");
  const Tensor old = g.input("old", f32, {64, 64}), x = g.input("x", f32, {64, 64});
  for (int i = 0; i < 3; ++i) g.output("y" + std::to_string(i), sum(exp(old * (i + 2)), {i % 2}));
  g.output("next", x + 1, old);
  return g;
}

}  // namespace fuse::test
