// SPDX-License-Identifier: Apache-2.0
#include "fusec/print/run_times.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fusec/print/xml_text.hpp"

namespace fuse::fusec {
namespace {

constexpr double width = 860, height = 340, left = 78, right = 170, top = 48, bottom = 46;
constexpr const char* usual_ink = "#6b7280";
constexpr const char* tried_ink = "#2563eb";
constexpr const char* tuned_ink = "#15803d";

/// Where times lie in the picture. Runs that took far longer than most stand at its upper edge.
class Scale {
 public:
  Scale(const std::vector<RunTime>& times, double usual) : runs_(times.size()) {
    std::vector<double> sorted;
    for (const RunTime& each : times) sorted.push_back(each.seconds);
    std::sort(sorted.begin(), sorted.end());
    most_ = sorted.empty() ? usual : sorted[(sorted.size() - 1) * 98 / 100];
    most_ = 1.1 * std::max(most_, usual);
  }
  double x(std::size_t run) const {
    const double share =
        (static_cast<double>(run) + 0.5) / static_cast<double>(std::max<std::size_t>(1, runs_));
    return left + share * (width - left - right);
  }
  double y(double seconds) const {
    const double share = most_ > 0 ? std::min(1.0, seconds / most_) : 0;
    return height - bottom - share * (height - top - bottom);
  }
  double most() const { return most_; }

 private:
  std::size_t runs_;
  double most_ = 0;
};

std::string text_at(double x, double y, const char* anchor, const char* ink, const std::string& text) {
  return fmt::format("  <text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n", x, y,
                     anchor, ink, xml_text(text));
}

std::string line_at(double y, const char* ink, const char* dashes) {
  return fmt::format(
      "  <line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
      "stroke-dasharray=\"{}\"/>\n",
      left, y, width - right, y, ink, dashes);
}

}  // namespace

std::string time_text(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.4g} us", seconds * 1e6) : fmt::format("{:.4g} ms", seconds * 1e3);
}

std::string run_times_svg(const std::string& title, const std::vector<RunTime>& times,
                          const ExploreProgress& end) {
  const Scale scale(times, end.default_seconds);
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n  <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, height);
  text += text_at(left, 24, "start", "#111827", title + ": each measured run");
  for (int tick = 0; tick <= 4; ++tick) {
    const double seconds = scale.most() * tick / 4;
    text += line_at(scale.y(seconds), "#e5e7eb", "none");
    text += text_at(left - 8, scale.y(seconds) + 4, "end", "#374151", time_text(seconds));
  }
  text += text_at((left + width - right) / 2, height - 14, "middle", "#374151",
                  fmt::format("{} measured runs", times.size()));
  for (std::size_t run = 0; run < times.size(); ++run) {
    text += fmt::format("  <circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\" fill=\"{}\"/>\n", scale.x(run),
                        scale.y(times[run].seconds), times[run].is_usual ? usual_ink : tried_ink);
  }
  if (end.default_seconds > 0) {
    text += line_at(scale.y(end.default_seconds), usual_ink, "6 4");
    text += line_at(scale.y(end.tuned_seconds), tuned_ink, "none");
    const double usual_y = scale.y(end.default_seconds) + 4;
    const double tuned_y = std::max(scale.y(end.tuned_seconds) + 4, usual_y + 16);
    text +=
        text_at(width - right + 8, usual_y, "start", usual_ink, "default: " + time_text(end.default_seconds));
    text += text_at(width - right + 8, tuned_y, "start", tuned_ink, "tuned: " + time_text(end.tuned_seconds));
  }
  text += text_at(width - right + 8, height - bottom, "start", tried_ink, "another way");
  return text + "</svg>\n";
}

}  // namespace fuse::fusec
