// Charts as SVG text. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fuse::bench {

struct Bar {
  std::string label;
  double value = 0;
};

/// Horizontal bars from 0, a line each, with a dashed line at `reference`. `format` is of the values:
/// "{:.2f}".
struct BarChart {
  std::string title, unit, format;
  double reference = 1;
  bool more_is_better = false;  ///< colours what stands on the wrong side of the reference
  std::vector<Bar> bars{};

  std::string svg() const;
};

/// Values over labels, one polyline a series; a missing value breaks it.
struct LineChart {
  struct Series {
    std::string name;
    std::vector<std::optional<double>> values;
  };
  std::string title, x_axis, y_axis;
  std::vector<std::string> labels{};
  std::vector<Series> series{};

  std::string svg() const;
};

}  // namespace fuse::bench
