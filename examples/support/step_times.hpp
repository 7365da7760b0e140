// A picture of how long each step of a program took. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace example {

inline double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

/// The times of steps, of no more than 4,000 of them, and the median of those around each, as SVG. Throws
/// std::runtime_error.
inline void draw_step_times(const std::string& path, const std::vector<double>& seconds) {
  constexpr double width = 860, height = 300, left = 60, top = 20, bottom = 40;
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const double most = 1.1 * sorted[sorted.size() * 98 / 100];  // a few slow steps stand at the upper edge
  const auto x = [&](std::size_t step) {
    return left + (width - left - 20) * static_cast<double>(step) / static_cast<double>(seconds.size());
  };
  const auto y = [&](double time) {
    return height - bottom - (height - top - bottom) * std::min(1.0, time / most);
  };
  std::ofstream svg(path);
  svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << width << ' ' << height
      << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
      << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  for (int tick = 0; tick <= 4; ++tick) {
    const double time = most * tick / 4;
    char label[32];
    std::snprintf(label, sizeof label, "%.2f ms", time * 1e3);
    svg << "<line x1=\"" << left << "\" x2=\"" << width - 20 << "\" y1=\"" << y(time) << "\" y2=\"" << y(time)
        << "\" stroke=\"#e5e7eb\"/><text x=\"4\" y=\"" << y(time) + 4 << "\">" << label << "</text>\n";
  }
  const std::size_t apart = (seconds.size() + 3999) / 4000;  // a million circles are no picture
  for (std::size_t i = 0; i < seconds.size(); i += apart)
    svg << "<circle cx=\"" << x(i) << "\" cy=\"" << y(seconds[i]) << "\" r=\"1.5\" fill=\"#93c5fd\"/>\n";
  svg << "<polyline fill=\"none\" stroke=\"#1d4ed8\" stroke-width=\"2\" points=\"";
  const std::size_t around = std::max<std::size_t>(12, apart);
  for (std::size_t i = 0; i < seconds.size(); i += apart) {
    const std::size_t first = i < around ? 0 : i - around, end = std::min(seconds.size(), i + around + 1);
    svg << x(i) << ','
        << y(median({seconds.begin() + static_cast<std::ptrdiff_t>(first),
                     seconds.begin() + static_cast<std::ptrdiff_t>(end)}))
        << ' ';
  }
  svg << "\"/>\n<text x=\"" << width / 2 << "\" y=\"" << height - 12 << "\">" << seconds.size()
      << " steps</text>\n</svg>\n";
  if (!svg.flush()) throw std::runtime_error(path + " could not be written");
}

}  // namespace example
