// SPDX-License-Identifier: Apache-2.0
#include "command_file.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace fuse::test {
namespace {

const std::string indent = "    ", anything = "...";

bool starts_command(const std::string& line) { return line.starts_with(indent + "$ "); }
bool is_output(const std::string& line) { return line.starts_with(indent) && !starts_command(line); }

/// What the marker behind a text, as in 'y: .* OK (re)', leaves of it; empty: it has none.
std::string without(const std::string& marker, const std::string& line) {
  return line.ends_with(marker) ? line.substr(0, line.size() - marker.size()) : "";
}

bool matches(const std::string& expected, const std::string& actual) {
  if (expected == actual) return true;
  if (const std::string pattern = without(" (re)", expected); !pattern.empty()) {
    try {
      return std::regex_match(actual, std::regex(pattern));
    } catch (const std::regex_error& error) {
      throw std::runtime_error("'" + expected + "': " + error.what());
    }
  }
  const std::string pattern = without(" (glob)", expected);
  return !pattern.empty() && ::fnmatch(pattern.c_str(), actual.c_str(), 0) == 0;
}

/// What it costs that one line is taken for another which was changed: 50, and up to 100 for what differs.
std::int32_t cost_of_change(const std::string& from, const std::string& to) {
  const std::size_t longest = std::max({from.size(), to.size(), std::size_t{1}});
  const auto front = std::ranges::mismatch(from, to).in1 - from.begin();
  const auto back = std::mismatch(from.rbegin(), from.rend() - front, to.rbegin(), to.rend()).first;
  const std::size_t common = static_cast<std::size_t>(front + (back - from.rbegin()));
  return static_cast<std::int32_t>(150 - 100 * std::min(common, longest) / longest);
}

std::string words_of(const std::string& text) {
  std::istringstream in(text);
  std::string words, word;
  while (in >> word) words += (words.empty() ? "" : " ") + word;
  return words;
}

/// Whether a line is progress, as in 'compiling ... 20 s': a busy machine prints it and an idle one does not.
bool is_progress(const std::string& line) {
  static const std::regex progress(".* \\.\\.\\. [0-9]+ s");
  return std::regex_match(line, progress);
}

std::string joined(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

/// Takes the lines of one command, from its '$' on, and moves to the line behind them.
Command take_command(const Lines& lines, std::size_t& at, bool page) {
  Command command{.line = at + 1, .text = lines[at].substr(indent.size() + 2)};
  for (++at; at < lines.size() && (lines[at] + ' ').starts_with(indent + "> "); ++at) {
    command.text += '\n' + lines[at].substr(std::min(lines[at].size(), indent.size() + 2));
  }
  command.output = at;
  for (std::size_t next = at; next < lines.size(); ++next) {
    if (lines[next].empty()) continue;  // a part of the output where more of it follows
    if (!is_output(lines[next])) break;
    command.expected.resize(next - command.output);
    command.expected.push_back(lines[next].substr(indent.size()));
    at = next + 1;
  }
  for (std::size_t i = command.output; i < at; ++i) {
    if (!lines[i].empty()) command.expected[i - command.output] = lines[i].substr(indent.size());
  }
  command.behind = at;
  std::smatch found;
  if (page) {
    if (std::regex_search(command.text, found, std::regex("# exits ([0-9]+)$")))
      command.status = std::stoi(found[1]);
  } else if (!command.expected.empty() &&
             std::regex_match(command.expected.back(), found, std::regex("\\[([0-9]+)\\]"))) {
    command.status = std::stoi(found[1]);
    command.expected.pop_back();
  }
  return command;
}

}  // namespace

CommandFile read_command_file(const std::filesystem::path& path) {
  CommandFile file{.path = path, .page = path.extension() == ".md"};
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) file.lines.push_back(line);
  std::string needs;
  for (std::size_t at = 0; at < file.lines.size();) {
    const std::string& line = file.lines[at];
    if (starts_command(line)) {
      file.commands.push_back(take_command(file.lines, at, file.page));
      file.commands.back().needs = needs;
      continue;
    }
    std::smatch found;
    if (!file.page && line.starts_with("needs: ")) needs = line.substr(7);
    if (file.page && !line.empty() && !line.starts_with(indent)) {  // of the block below it
      needs = std::regex_match(line, found, std::regex("<!-- (needs: (.*)|(not run): .*) -->"))
                  ? found[2].str() + found[3].str()
                  : "";
    }
    ++at;
  }
  return file;
}

Comparison compare(const Lines& expected, const Lines& actual) {
  enum Step : std::uint8_t { done, keep, skip, pass, remove, add, change };
  const std::size_t n = expected.size(), m = actual.size();
  std::vector<std::int32_t> costs((n + 1) * (m + 1));  // of the lines from i and from j on
  std::vector<Step> steps(costs.size(), done);
  const auto index = [m](std::size_t i, std::size_t j) { return i * (m + 1) + j; };
  for (std::size_t i = n + 1; i-- > 0;) {
    for (std::size_t j = m + 1; j-- > 0;) {
      if (i == n && j == m) continue;
      std::int32_t& least = costs[index(i, j)] = INT32_MAX;
      const auto offer = [&](Step step, std::int32_t cost, std::size_t next) {
        if (costs[next] + cost < least) least = costs[next] + cost, steps[index(i, j)] = step;
      };
      const bool any = i < n && expected[i] == anything;
      if (any && j < m) offer(skip, 0, index(i, j + 1));
      if (any) offer(pass, 0, index(i + 1, j));
      if (i < n && j < m && !any && matches(expected[i], actual[j])) offer(keep, 0, index(i + 1, j + 1));
      if (i < n && !any) offer(remove, 120, index(i + 1, j));
      if (j < m) offer(add, 120, index(i, j + 1));
      if (i < n && j < m && !any && least > 50) {
        offer(change, cost_of_change(expected[i], actual[j]), index(i + 1, j + 1));
      }
    }
  }
  Comparison result{.same = costs[0] == 0};
  for (std::size_t i = 0, j = 0; i < n || j < m;) {
    const Step step = steps[index(i, j)];
    if (step == keep || step == pass) {
      result.difference.push_back("  " + expected[i]);
      if (step == keep || result.renewed.empty() || result.renewed.back() != anything) {
        result.renewed.push_back(expected[i]);
      }
    }
    if (step == remove || step == change) result.difference.push_back("- " + expected[i]);
    if (step == add || step == change) {
      result.difference.push_back("+ " + actual[j]);
      result.renewed.push_back(actual[j]);
    }
    i += step == keep || step == pass || step == remove || step == change;
    j += step == keep || step == skip || step == add || step == change;
  }
  return result;
}

Comparison compare_excerpt(const Lines& expected, const Lines& actual) {
  const std::string all = words_of(joined(actual));
  Comparison result{.same = true, .difference = {}, .renewed = expected};
  std::size_t from = 0;
  for (std::string line : expected) {
    while (!line.empty()) {
      const std::size_t end = line.find(anything);
      const std::string part = words_of(line.substr(0, end));
      line = end == std::string::npos ? "" : line.substr(end + anything.size());
      const std::size_t found = all.find(part, from);
      if (found == std::string::npos) {
        result.same = false;
        result.difference.push_back("- " + part);
      } else {
        from = found + part.size();
      }
    }
  }
  if (!result.same) {
    for (const std::string& line : actual) result.difference.push_back("+ " + line);
  }
  return result;
}

Lines lines_of(const std::string& output) {
  Lines lines = {};
  std::istringstream in(output);
  for (std::string line; std::getline(in, line);) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (!is_progress(line)) lines.push_back(line);
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

void rewrite(const CommandFile& file, const std::vector<Lines>& renewed, const std::vector<int>& statuses) {
  std::ofstream out(file.path);
  std::size_t from = 0;
  const auto copy_until = [&](std::size_t end) {
    for (; from < end; ++from) out << file.lines[from] << '\n';
  };
  for (std::size_t k = 0; k < file.commands.size(); ++k) {
    copy_until(file.commands[k].output);
    for (const std::string& line : renewed[k]) out << (line.empty() ? "" : indent) << line << '\n';
    if (statuses[k] != 0) out << indent << '[' << statuses[k] << "]\n";
    from = file.commands[k].behind;
  }
  copy_until(file.lines.size());
}

}  // namespace fuse::test
