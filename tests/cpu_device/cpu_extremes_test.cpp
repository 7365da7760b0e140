// Maxima and minima of floats on the cpu device, whose kernels take them by the bits: signs of zeros,
// infinities and NaNs in any order and place. SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <cstdint>
#include <fuse/fuse.hpp>
#include <limits>
#include <string>
#include <vector>

#include "runtime/cpu/cores/machine.hpp"
#include "support/catch.hpp"
#include "target/target.hpp"

using namespace fuse;  // NOLINT

namespace {

float greater(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<float>::quiet_NaN();
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

bool same(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// Each row has few kinds of numbers, so that each kind is the extreme of some rows.
std::vector<float> rows_of_few_kinds(std::size_t rows, std::size_t columns) {
  using limits = std::numeric_limits<float>;
  const std::vector<std::vector<float>> kinds = {
      {1.0F, 2.5F, 1e30F},
      {-1.0F, -2.5F, -1e30F},
      {-0.0F},
      {0.0F, -0.0F},
      {-0.0F, -1.0F, -limits::denorm_min()},
      {0.0F, -0.0F, 1.0F, limits::denorm_min()},
      {-1.0F, 3.0F, -0.0F},
      {limits::infinity(), 1.0F, limits::max()},
      {-limits::infinity(), -1.0F, limits::lowest()},
      {-limits::infinity()},
      {limits::infinity(), -limits::infinity()},
  };
  std::vector<float> x(rows * columns);
  unsigned state = 20261130;
  const auto draw = [&](std::size_t count) {
    state = state * 1664525U + 1013904223U;
    return static_cast<std::size_t>(state >> 8) % count;
  };
  for (std::size_t row = 0; row < rows; ++row) {
    const std::vector<float>& kind = kinds[row % kinds.size()];
    for (std::size_t c = 0; c < columns; ++c) x[row * columns + c] = kind[draw(kind.size())];
    // One NaN, of either sign, in every third row.
    if (row % 3 == 2)
      x[row * columns + draw(columns)] = row % 2 == 0 ? limits::quiet_NaN() : -limits::quiet_NaN();
  }
  return x;
}

/// Of the elements first, first + step, ... as many as `count`.
float greatest(const std::vector<float>& x, std::size_t first, std::size_t step, std::size_t count,
               float sign) {
  float most = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < count; ++i) most = greater(most, sign * x[first + i * step]);
  return sign * most;
}

void check(std::size_t rows, std::size_t columns, const char* level) {
  INFO(level << ", " << rows << " rows of " << columns);
  Graph g("extremes");
  // The text calls a running extreme by this name where no value has it.
  const Tensor x =
      g.input("running0", f32, {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)});
  g.output("most", max(x, {1}));
  g.output("least", min(x, {1}));
  g.output("most_down", max(x, {0}));
  g.output("least_down", min(x, {0}));
  Session session(compile(g, Device::cpu({.machine = level})));
  const std::vector<float> values = rows_of_few_kinds(rows, columns);
  session.set("running0", values);
  session.run();
  const auto most = session.get<float>("most"), least = session.get<float>("least"),
             most_down = session.get<float>("most_down"), least_down = session.get<float>("least_down");
  for (std::size_t row = 0; row < rows; ++row) {
    INFO("row " << row);
    CHECK(same(most[row], greatest(values, row * columns, 1, columns, 1.0F)));
    CHECK(same(least[row], greatest(values, row * columns, 1, columns, -1.0F)));
  }
  for (std::size_t c = 0; c < columns; ++c) {
    INFO("column " << c);
    CHECK(same(most_down[c], greatest(values, c, columns, rows, 1.0F)));
    CHECK(same(least_down[c], greatest(values, c, columns, rows, -1.0F)));
  }
}

}  // namespace

TEST_CASE("cpu: maxima and minima of floats of every kind", "[cpu][emulated]") {
  for (const char* level : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "armv8-a"}) {
    if (!runs_on(runtime::cpu::this_machine().level, level)) continue;
    for (const std::size_t columns : {std::size_t{33}, std::size_t{256}, std::size_t{517}, std::size_t{2048}})
      check(66, columns, level);
    check(9, 40'000, level);
  }
}
