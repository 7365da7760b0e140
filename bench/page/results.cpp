// SPDX-License-Identifier: Apache-2.0
#include "page/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <tuple>

#include "cases/cases.hpp"
#include "report/embedded.hpp"
#include "report/schema_check.hpp"

namespace fuse::bench {
namespace {

namespace fs = std::filesystem;

std::size_t position_of(const std::string& name) {
  static const std::vector<Case> cases = all_cases();
  const auto same = [&](const Case& c) { return c.name == name; };
  return static_cast<std::size_t>(std::find_if(cases.begin(), cases.end(), same) - cases.begin());
}

}  // namespace

std::string ResultFile::origin() const {
  const Json& machine = json.at("machine");
  return fmt::format("{}, {}, {} cores, load {} before and {} after: [{}](../bench/results/{})",
                     json.at("date").get<std::string>(), machine.at("cpu").get<std::string>(),
                     machine.at("cores").get<int>(), machine.at("load_before").get<std::string>(),
                     machine.at("load_after").get<std::string>(), name, name);
}

double CaseRow::floor() const {
  return row.at("bytes").at("read").get<double>() + row.at("bytes").at("written").get<double>();
}

Results::Results(const std::string& folder) {
  const Json schema = Json::parse(schema_json()), sass_schema = Json::parse(sass_schema_json());
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    ResultFile file{entry.path().filename().string(), read_json(entry.path().string())};
    const bool counts = file.json.value("program", "") == "sass_table";
    if (const auto errors = schema_errors(file.json, counts ? sass_schema : schema); !errors.empty()) {
      throw std::runtime_error(entry.path().string() + ": " + errors.front());
    }
    if (counts) {
      sass_ = std::move(file.json);
      continue;
    }
    files_.push_back(std::move(file));
  }
  std::sort(files_.begin(), files_.end(), [](const ResultFile& a, const ResultFile& b) {
    return std::pair(a.json.at("date").get<std::string>(), a.name) <
           std::pair(b.json.at("date").get<std::string>(), b.name);
  });
}

const ResultFile* Results::newest_with(const std::string& group, const std::string& kind) const {
  const auto has = [&](const ResultFile& file) {
    if (!kind.empty() && file.json.at("device").at("kind") != kind) return false;
    return std::any_of(file.json.at("rows").begin(), file.json.at("rows").end(), [&](const Json& row) {
      return row.at("name").get<std::string>().starts_with(group + '.');
    });
  };
  const auto found = std::find_if(files_.rbegin(), files_.rend(), has);
  return found == files_.rend() ? nullptr : &*found;
}

const ResultFile* Results::newest_compared() const {
  const auto has = [](const ResultFile& file) { return file.json.contains("compare"); };
  const auto found = std::find_if(files_.rbegin(), files_.rend(), has);
  return found == files_.rend() ? nullptr : &*found;
}

std::vector<CaseRow> Results::cases(const std::string& kind) const {
  std::map<std::tuple<std::size_t, std::string, std::string>, CaseRow> newest;
  for (const ResultFile& file : files_) {
    // A peer that found no GPU says so under the kind `none`: it belongs to the GPU's table.
    const std::string of = file.json.at("device").at("kind");
    if (of != kind && !(kind == "cuda" && of == "none")) continue;
    for (const Json& row : file.json.at("cases")) {
      const std::string name = row.at("name"), by = row.at("by");
      CaseRow& slot = newest[{position_of(name), name, by}];
      // A later attempt that measured nothing does not hide an earlier figure.
      if (slot.file && slot.measured() && !row.contains("device_us")) continue;
      slot = {&file, row};
    }
  }
  std::vector<CaseRow> rows;
  for (auto& [key, row] : newest) rows.push_back(std::move(row));
  return rows;
}

}  // namespace fuse::bench
