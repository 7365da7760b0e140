// SPDX-License-Identifier: Apache-2.0
#include "page/cpu_peers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "page/svg.hpp"

namespace fuse::bench {
namespace {

/// The rows of one case: fuse's, and those of all contenders by name.
struct ComparedCase {
  std::string name;
  const Json* fuse = nullptr;
  std::map<std::string, const Json*> rows;

  bool tagged(const char* tag) const {
    const Json& tags = rows.begin()->second->at("tags");
    return std::find(tags.begin(), tags.end(), tag) != tags.end();
  }
  std::optional<double> beside(const char* key) const {
    if (!fuse || !fuse->contains("beside") || !fuse->at("beside").contains(key)) return std::nullopt;
    return fuse->at("beside").at(key).get<double>();
  }
  std::string beside_text(const char* key) const {
    if (!fuse || !fuse->contains("beside") || !fuse->at("beside").contains(key)) return "";
    return fuse->at("beside").at(key).get<std::string>();
  }
};

std::vector<ComparedCase> compared_cases(const Json& file) {
  std::vector<ComparedCase> cases;
  for (const Json& row : file.at("cases")) {
    const std::string name = row.at("name"), by = row.at("by");
    const auto same = [&](const ComparedCase& c) { return c.name == name; };
    auto found = std::find_if(cases.begin(), cases.end(), same);
    if (found == cases.end()) found = cases.insert(cases.end(), {.name = name, .fuse = nullptr, .rows = {}});
    found->rows[by] = &row;
    if (by == "fuse") found->fuse = &row;
  }
  return cases;
}

std::string time_text(double microseconds) {
  if (microseconds >= 1e6) return fmt::format("{:.2f} s", microseconds * 1e-6);
  if (microseconds >= 1e4) return fmt::format("{:.1f} ms", microseconds * 1e-3);
  return fmt::format("{:.{}f} us", microseconds, microseconds < 100 ? 1 : 0);
}

/// What the case measures of a contender: a run, a cold start, or a list of lengths.
std::string row_text(const Json& row) {
  if (row.at("status") != "ok") return row.at("status");
  if (row.contains("cold_ms")) {
    return fmt::format("{}, then {}", time_text(row.at("cold_ms").get<double>() * 1e3),
                       time_text(row.at("steady_ms").get<double>() * 1e3));
  }
  if (row.contains("device_us")) return time_text(row.at("device_us").at("median").get<double>());
  return row.contains("compile_ms") ? time_text(row.at("compile_ms").get<double>() * 1e3) : "";
}

std::string ratio_text(const std::optional<double>& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "";
}

std::string share_of_copy(const ComparedCase& c) {
  if (!c.fuse || !c.fuse->contains("copy") || !c.fuse->at("copy").is_object()) return "";
  return fmt::format("{:.0f}%", 100 * c.fuse->at("copy").at("share").get<double>());
}

std::string compared_line(const ComparedCase& c, const std::vector<std::string>& columns) {
  std::string line = fmt::format("| `{}` |", c.name);
  for (const std::string& by : columns) {
    const auto found = c.rows.find(by);
    line += found == c.rows.end() ? " |" : fmt::format(" {} |", row_text(*found->second));
  }
  const std::optional<double> spread = c.beside("spread");
  return line + fmt::format(" {} | {} | {} | {} | {} |\n", ratio_text(c.beside("ratio"), "{:.2f}"),
                            share_of_copy(c), spread ? fmt::format("{:.0f}%", 100 * *spread) : "",
                            c.beside_text("met"), c.beside_text("goal"));
}

std::string mean_line(const std::string& what, const std::vector<ComparedCase>& cases, bool dropout) {
  double logs = 0;
  int count = 0;
  for (const ComparedCase& c : cases) {
    const std::optional<double> ratio = c.beside("ratio");
    if (!ratio || !c.tagged("memory") || c.name.starts_with("transpose")) continue;
    if (!dropout && c.name.starts_with("dropout")) continue;
    logs += std::log(*ratio);
    ++count;
  }
  if (count == 0) return "";
  return fmt::format("- {}, {} cases: {:.2f}\n", what, count, std::exp(logs / count));
}

std::string versions_text(const Json& setting) {
  std::string text;
  for (const auto& [name, version] : setting.at("versions").items()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, version.get<std::string>());
  }
  return text;
}

std::string ratio_plot(const std::vector<ComparedCase>& cases, Plots& plots) {
  BarChart chart{.title = "Time of the best peer over that of fuse, on the cpu device",
                 .unit = "times",
                 .format = "{:.2f}",
                 .reference = 1,
                 .more_is_better = true};
  for (const ComparedCase& c : cases) {
    if (const std::optional<double> ratio = c.beside("ratio")) chart.bars.push_back({c.name, *ratio});
  }
  if (chart.bars.empty()) return "";
  plots["cpu_peers.svg"] = chart.svg();
  return "![time of the best peer over that of fuse, by case](plots/cpu_peers.svg)\n\n";
}

}  // namespace

std::string cpu_peers_part(const Results& results, Plots& plots) {
  const ResultFile* const file = results.newest_compared();
  if (!file) return "Not measured: no results of `./dev bench --device cpu --peers` are on file.\n";
  const Json& setting = file->json.at("compare");
  const std::vector<ComparedCase> cases = compared_cases(file->json);
  std::string text = fmt::format(
      "{}. {}; {} threads each, {} rounds, huge pages: {}. {}. The command:\n\n    {}\n\n", file->origin(),
      file->json.at("device").at("name").get<std::string>(), setting.at("threads").get<int>(),
      setting.at("rounds").get<int>(), setting.at("huge_pages").get<std::string>(), versions_text(setting),
      setting.at("command").get<std::string>());
  const std::string means = mean_line("memory-bound without dropout (goal 1.6)", cases, false) +
                            mean_line("memory-bound with dropout", cases, true);
  if (!means.empty()) text += "Geometric means of the ratios:\n\n" + means + '\n';
  text += ratio_plot(cases, plots);

  std::vector<std::string> columns = {"fuse"};
  for (const ComparedCase& c : cases) {
    for (const auto& [by, row] : c.rows) {
      const bool known = std::find(columns.begin(), columns.end(), by) != columns.end();
      if (!known && by != "fuse.again") columns.push_back(by);
    }
  }
  std::string rule = "| --- |";
  text += "| case |";
  for (const std::string& by : columns) {
    text += ' ' + by + " |";
    rule += " ---: |";
  }
  text += " ratio | of copy | A/A | met | goal |\n" + rule + " ---: | ---: | ---: | --- | --- |\n";
  for (const ComparedCase& c : cases) text += compared_line(c, columns);
  for (const ComparedCase& c : cases) {
    for (const auto& [by, row] : c.rows) {
      if (row->at("status") == "wrong" || row->at("status") == "failed") {
        text += fmt::format("\n`{}`, {}: {}: {}\n", c.name, by, row->at("status").get<std::string>(),
                            row->at("why").get<std::string>());
      }
    }
  }
  return text;
}

}  // namespace fuse::bench
