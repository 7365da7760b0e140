// SPDX-License-Identifier: Apache-2.0
#include "report/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <thread>

#include "report/embedded.hpp"
#include "report/schema_check.hpp"

namespace fuse::bench {
namespace {

std::string text(double value) {
  if (value == std::floor(value) && std::fabs(value) < 1e15) {
    return fmt::format("{}", static_cast<std::int64_t>(value));
  }
  return fmt::format("{:.{}f}", value,
                     std::fabs(value) >= 100   ? 0
                     : std::fabs(value) >= 10  ? 1
                     : std::fabs(value) >= 0.1 ? 3
                                               : 5);
}

Json remarks(const std::vector<std::pair<std::string, std::string>>& list) {
  Json all = Json::array();
  for (const auto& [name, why] : list) all.push_back({{"name", name}, {"why", why}});
  return all;
}

Json to_json(const Row& row) {
  return {
      {"name", row.name}, {"figure", figure(row.figure)}, {"cpu", row.cpu ? figure(*row.cpu) : Json(nullptr)},
      {"unit", row.unit}, {"goal", row.goal.to_string()}, {"met", row.met()},
      {"n", row.n},       {"min", figure(row.min)},       {"max", figure(row.max)},
      {"how", row.how}};
}

/// What `kept` has of names that `out` has no news of goes before what `out` has. The remarks on a case have
/// its name behind that of its group.
void prepend_others(Json& out, const Json& kept) {
  std::set<std::string> news;
  for (const char* const list : {"rows", "cases", "skipped", "failed"}) {
    for (const Json& entry : out.at(list)) {
      const std::string name = entry.at("name");
      news.insert(list == std::string_view("cases") ? "cases." + name : name);
    }
  }
  for (const char* const list : {"rows", "cases", "skipped", "failed"}) {
    Json all = Json::array();
    for (const Json& entry : kept.at(list)) {
      const std::string name = entry.at("name");
      if (!news.contains(list == std::string_view("cases") ? "cases." + name : name)) all.push_back(entry);
    }
    for (Json& entry : out[list]) all.push_back(std::move(entry));
    out[list] = std::move(all);
  }
}

std::string first_after(const char* path, std::string_view key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (!std::string_view(line).starts_with(key)) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char out[32];
  std::strftime(out, sizeof out, "%Y-%m-%d", &parts);
  return out;
}

}  // namespace

bool Goal::met_by(double figure) const {
  switch (kind) {
    case Kind::none:
      return true;
    case Kind::at_least:
      return figure >= limit;
    case Kind::at_most:
      return figure <= limit;
    case Kind::below:
      return figure < limit;
  }
  return false;
}

std::string Goal::to_string() const {
  const char* const sign = kind == Kind::at_least ? ">=" : kind == Kind::at_most ? "<=" : "<";
  return kind == Kind::none ? "" : fmt::format("{} {:g}", sign, limit);
}

std::string Row::met() const {
  if (goal.kind == Goal::Kind::none) return "";
  if (goal.met_by(figure)) return "yes";
  return cpu && goal.met_by(*cpu) ? "cpu" : "no";
}

void Report::add_case(Json row) {
  cases_.push_back(std::move(row));
  save();
}

Row& Report::add(Row row) {
  save();
  row.name = group_ + '.' + row.name;
  return rows_.emplace_back(std::move(row));
}

void Report::print_table() const {
  for (const auto& [what, why] : skipped_) fmt::print("skipped: {}: {}\n", what, why);
  if (rows_.empty()) return print_failures();
  std::vector<std::vector<std::string>> cells = {
      {"name", "figure", "by CPU time", "unit", "goal", "met", "min", "max", "n", "how"}};
  for (const Row& row : rows_) {
    cells.push_back({row.name, text(row.figure), row.cpu ? text(*row.cpu) : "", row.unit,
                     row.goal.to_string(), row.met(), row.n > 1 ? text(row.min) : "",
                     row.n > 1 ? text(row.max) : "", std::to_string(row.n), row.how});
  }
  std::vector<std::size_t> widths(cells[0].size());
  for (const auto& line : cells) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  for (const auto& line : cells) {
    std::string out;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const bool is_number = i == 1 || i == 2 || (i >= 6 && i <= 8);
      out += is_number ? fmt::format("{:>{}}  ", line[i], widths[i])
                       : fmt::format("{:<{}}  ", line[i], widths[i]);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    fmt::print("{}\n", out);
  }
  print_failures();
}

void Report::print_failures() const {
  for (const auto& [what, why] : failures_) fmt::print(stderr, "error: {}: {}\n", what, why);
}

void Report::write_to(const std::string& path, const Json& device, bool append) {
  path_ = path;
  load_before_ = load_average();
  device_ = device;
  if (!append || !std::filesystem::exists(path)) return;
  kept_ = read_json(path);
  if (const auto errors = schema_errors(kept_, Json::parse(schema_json())); !errors.empty()) {
    throw std::runtime_error(path + " does not fit bench/schema.json: " + errors.front());
  }
}

void Report::save() const {
  if (path_.empty()) return;
  Json rows = Json::array();
  for (const Row& row : rows_) rows.push_back(to_json(row));
  Json out = {{"version", 2},
              {"program", "fuse_bench"},
              {"date", date()},
              {"machine",
               {{"cpu", first_after("/proc/cpuinfo", "model name")},
                {"cores", std::max(1u, std::thread::hardware_concurrency())},
                {"load_before", load_before_},
                {"load_after", load_average()}}},
              {"device", device_},
              {"rows", rows},
              {"cases", cases_},
              {"skipped", remarks(skipped_)},
              {"failed", remarks(failures_)}};
  if (!kept_.is_null()) prepend_others(out, kept_);
  write_text(path_, out.dump(1, ' ', false, Json::error_handler_t::replace) + '\n');
}

std::string load_average() {
  std::ifstream in("/proc/loadavg");
  std::string one, five, fifteen;
  if (!(in >> one >> five >> fifteen)) return "";
  return one + ' ' + five + ' ' + fifteen;
}

}  // namespace fuse::bench
