// SPDX-License-Identifier: Apache-2.0
#include "page/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace fuse::bench {
namespace {

constexpr const char *ink = "#24292f", *faint = "#d0d7de", *good = "#2f6f9f", *poor = "#c4673a";
constexpr std::array<const char*, 8> hues = {"#2f6f9f", "#c4673a", "#4f8f4f", "#8a5fa8",
                                             "#a08a2a", "#3a9a9a", "#b0507a", "#6a6a6a"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  }
  return out;
}

class Svg {
 public:
  Svg(double width, double height)
      : text_(fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
            "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
            width, height)) {}

  void rect(double x, double y, double width, double height, const char* fill) {
    text_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n",
                         x, y, std::max(width, 0.5), height, fill);
  }
  void line(double x1, double y1, double x2, double y2, const char* stroke, bool dashed = false) {
    text_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"{}/>\n",
                         x1, y1, x2, y2, stroke, dashed ? " stroke-dasharray=\"4 3\"" : "");
  }
  void path(const std::string& points, const char* stroke) {
    text_ += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", points,
                         stroke);
  }
  void dot(double x, double y, const char* fill) {
    text_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x, y, fill);
  }
  /// `anchor`: start, middle or end.
  void text(double x, double y, const std::string& content, const char* anchor = "start", bool bold = false) {
    text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\"{}>{}</text>\n", x, y,
                         anchor, ink, bold ? " font-weight=\"bold\"" : "", escaped(content));
  }
  std::string done() const { return text_ + "</svg>\n"; }

 private:
  std::string text_;
};

/// A round step that divides [0, top] into at most 6.
double step_of(double top) {
  const double rough = top / 5, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

std::string tick_text(double value) { return fmt::format("{:g}", std::round(value * 1e6) / 1e6); }

}  // namespace

std::string BarChart::svg() const {
  constexpr double left = 250, right = 60, top = 40, row = 20, plot = 450;
  double most = reference;
  for (const Bar& bar : bars) most = std::max(most, bar.value);
  const double step = step_of(most), scale = plot / most;
  const double bottom = top + row * static_cast<double>(bars.size());
  const auto is_poor = [&](double value) {
    return more_is_better ? value < reference * 0.97 : value > reference * 1.005;
  };
  Svg svg(left + plot + right, bottom + 40);
  svg.text(12, 22, title, "start", true);
  for (double at = 0; at <= most * 1.0001; at += step) {
    svg.line(left + at * scale, top, left + at * scale, bottom, faint);
    svg.text(left + at * scale, bottom + 16, tick_text(at), "middle");
  }
  svg.text(left + plot / 2, bottom + 34, unit, "middle");
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double y = top + row * static_cast<double>(i);
    svg.text(left - 8, y + 14, bars[i].label, "end");
    svg.rect(left, y + 4, bars[i].value * scale, row - 8, is_poor(bars[i].value) ? poor : good);
    svg.text(left + bars[i].value * scale + 4, y + 14, fmt::format(fmt::runtime(format), bars[i].value));
  }
  svg.line(left + reference * scale, top - 6, left + reference * scale, bottom, poor, true);
  return svg.done();
}

std::string LineChart::svg() const {
  constexpr double left = 60, top = 40, plot = 480, height = 260, legend = 200;
  double most = 0;
  for (const Series& one : series) {
    for (const auto& value : one.values) most = std::max(most, value.value_or(0));
  }
  if (most <= 0) most = 1;
  const double step = step_of(most), scale = height / (std::ceil(most / step) * step);
  const auto x_of = [&](std::size_t position) {
    return left + plot * (static_cast<double>(position) + 0.5) / static_cast<double>(labels.size());
  };
  Svg svg(left + plot + legend, top + height + 56);
  svg.text(12, 22, title, "start", true);
  for (double at = 0; at <= std::ceil(most / step) * step * 1.0001; at += step) {
    svg.line(left, top + height - at * scale, left + plot, top + height - at * scale, faint);
    svg.text(left - 6, top + height - at * scale + 4, tick_text(at), "end");
  }
  svg.text(left + plot + 12, top + 4, y_axis);
  for (std::size_t i = 0; i < labels.size(); ++i) svg.text(x_of(i), top + height + 18, labels[i], "middle");
  svg.text(left + plot / 2, top + height + 40, x_axis, "middle");
  for (std::size_t s = 0; s < series.size(); ++s) {
    const char* const hue = hues[s % hues.size()];
    std::string points;
    for (std::size_t i = 0; i <= series[s].values.size(); ++i) {
      if (i < series[s].values.size() && series[s].values[i]) {
        const double y = top + height - *series[s].values[i] * scale;
        points += fmt::format("{:.1f},{:.1f} ", x_of(i), y);
        svg.dot(x_of(i), y, hue);
      } else if (!points.empty()) {
        points.pop_back();
        svg.path(points, hue);
        points.clear();
      }
    }
    const double y = top + 28 + 18 * static_cast<double>(s);
    svg.line(left + plot + 12, y - 4, left + plot + 30, y - 4, hue);
    svg.text(left + plot + 36, y, series[s].name);
  }
  return svg.done();
}

}  // namespace fuse::bench
