// Stopwatch: reports to PipelineOptions::timed how long each stage took.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <string_view>

#include "compile/pipeline/pipeline.hpp"

namespace fuse {

class Stopwatch {
 public:
  explicit Stopwatch(const PipelineOptions& options) : options_(options) {}
  void lap(std::string_view stage) {
    if (!options_.timed) return;
    const Clock::time_point now = Clock::now();
    options_.timed(stage, std::chrono::duration<double>(now - last_).count());
    last_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;
  const PipelineOptions& options_;
  Clock::time_point last_ = Clock::now();
};

/// The first so many of a list of passes; -1: all.
template <class Pass, std::size_t count>
std::span<const Pass> first_of(const Pass (&passes)[count], int most) {
  return std::span(passes).first(most < 0 ? count : std::min(count, static_cast<std::size_t>(most)));
}

}  // namespace fuse
