// fusec diff: what changed between two plans. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/quoting.hpp"
#include "fusec/commands.hpp"
#include "fusec/compiled_graph.hpp"
#include "runtime/saved/container.hpp"
#include "runtime/saved/plan_file.hpp"

namespace fuse::fusec {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

/// A graph's plan; what a saved plan tells of itself; any other text (of `fusec plan`) as it is.
std::string text_of(const std::string& file, const DiffOptions& options) {
  const std::string bytes = runtime::read_whole(file, most_bytes);
  if (bytes.starts_with("fuseplan")) {
    std::string text;
    for (const runtime::SavedTarget& target : runtime::parse_plan_file(bytes, file))
      text += target.provenance.explanation;
    return text;
  }
  const std::size_t start = bytes.find_first_not_of(" \t\r\n");
  if (!file.ends_with(".fuse") && (start == std::string::npos || bytes.compare(start, 7, "graph @") != 0)) {
    return bytes;
  }
  GraphOptions graph = options.graph;
  graph.file = file;
  return plan_text(compile_graph(graph));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

using Lines = std::vector<std::string>;

/// Myers' shortest edit script (1986), over lines: what stays, goes (-) and comes (+), in order.
std::vector<std::pair<char, const std::string*>> edits(const Lines& a, const Lines& b) {
  const auto n = static_cast<std::ptrdiff_t>(a.size()), m = static_cast<std::ptrdiff_t>(b.size());
  const std::ptrdiff_t most = n + m;
  std::vector<std::ptrdiff_t> furthest(static_cast<std::size_t>(2 * most + 2), 0);
  std::vector<std::vector<std::ptrdiff_t>> trace;
  const auto at = [&](std::vector<std::ptrdiff_t>& of, std::ptrdiff_t k) -> std::ptrdiff_t& {
    return of[static_cast<std::size_t>(k + most)];
  };
  const auto down = [&](std::vector<std::ptrdiff_t>& of, std::ptrdiff_t k, std::ptrdiff_t d) {
    return k == -d || (k != d && at(of, k - 1) < at(of, k + 1));
  };
  for (std::ptrdiff_t d = 0; d <= most; ++d) {
    trace.push_back(furthest);
    bool done = false;
    for (std::ptrdiff_t k = -d; k <= d && !done; k += 2) {
      std::ptrdiff_t x = down(furthest, k, d) ? at(furthest, k + 1) : at(furthest, k - 1) + 1;
      while (x < n && x - k < m && a[static_cast<std::size_t>(x)] == b[static_cast<std::size_t>(x - k)]) ++x;
      at(furthest, k) = x;
      done = x >= n && x - k >= m;
    }
    if (done) break;
  }
  std::vector<std::pair<char, const std::string*>> script;
  std::ptrdiff_t x = n, y = m;
  for (auto d = static_cast<std::ptrdiff_t>(trace.size()) - 1; d >= 0; --d) {
    std::vector<std::ptrdiff_t>& before = trace[static_cast<std::size_t>(d)];
    const std::ptrdiff_t k = x - y, from = down(before, k, d) ? k + 1 : k - 1;
    const std::ptrdiff_t start = d == 0 ? 0 : at(before, from), row = d == 0 ? 0 : start - from;
    while (x > start && y > row) script.emplace_back(' ', &a[static_cast<std::size_t>((--y, --x))]);
    if (d == 0) break;
    if (x > start) script.emplace_back('-', &a[static_cast<std::size_t>(--x)]);
    if (y > row) script.emplace_back('+', &b[static_cast<std::size_t>(--y)]);
  }
  std::reverse(script.begin(), script.end());
  return script;
}

}  // namespace

int execute(const DiffOptions& options) {
  const Lines a = lines_of(text_of(options.first, options)), b = lines_of(text_of(options.second, options));
  std::size_t gone = 0, come = 0;
  std::string text;
  for (const auto& [what, line] : edits(a, b)) {
    if (what == ' ') continue;
    ++(what == '-' ? gone : come);
    text += fmt::format("{} {}\n", what, *line);
  }
  fmt::print("{}{} gone, {} come, of {} and {}\n", text, counted(gone, "line"), come, a.size(), b.size());
  return gone + come == 0 ? 0 : 1;
}

}  // namespace fuse::fusec
