// SPDX-License-Identifier: Apache-2.0
#include "first/first_inputs.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>

#include "report/embedded.hpp"
#include "report/schema_check.hpp"

namespace fuse::bench {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<std::string> split(const std::string& line, const std::string& between) {
  std::vector<std::string> fields;
  std::size_t at = 0;
  for (std::size_t next; (next = line.find(between, at)) != std::string::npos; at = next + between.size()) {
    fields.push_back(line.substr(at, next - at));
  }
  fields.push_back(line.substr(at));
  return fields;
}

std::vector<Part> parse_parts(const std::string& text) {
  std::vector<Part> parts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> fields = split(line, "\t");
    fields.resize(4);
    parts.push_back({fields[0], fields[1], fields[2], fields[3]});
  }
  return parts;
}

/// `schema` is the text of bench/`schema_name`. Null where there is no file.
Json read_checked(const fs::path& path, const char* schema, const char* schema_name) {
  if (!fs::exists(path)) return nullptr;
  Json json = read_json(path.string());
  if (const auto errors = schema_errors(json, Json::parse(schema)); !errors.empty()) {
    throw std::runtime_error(path.string() + " does not fit bench/" + schema_name + ": " + errors.front());
  }
  return json;
}

Json results(const fs::path& path) { return read_checked(path, schema_json(), "schema.json"); }

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// Whether the device's name has the word: "NVIDIA A100-SXM4-80GB" has a100, and GH200 is no h200.
bool names(const std::string& device, const std::string& word) {
  std::string spaced = ' ' + lower(device) + ' ';
  std::replace_if(
      spaced.begin(), spaced.end(), [](unsigned char c) { return !std::isalnum(c); }, ' ');
  return spaced.find(' ' + lower(word) + ' ') != std::string::npos;
}

}  // namespace

Profiles parse_profiles(const std::string& text) {
  Profiles profiles;
  std::string name;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("case ")) {
      name = line.substr(5);
    } else if (line.starts_with('"') && line.ends_with('"')) {
      // The last fields are the metric's name, unit and value; a kernel's name before them may have commas.
      const std::vector<std::string> fields = split(line.substr(1, line.size() - 2), "\",\"");
      if (fields.size() >= 3 && fields.back() != "Metric Value") {
        profiles[name][fields[fields.size() - 3]] = fields.back();
      }
    }
  }
  return profiles;
}

std::optional<double> predicted_share(const Json& counts, const std::string& name,
                                      const std::string& device) {
  if (counts.is_null()) return std::nullopt;
  for (const Json& entry : counts.at("cases")) {
    if (entry.at("name") != name) continue;
    for (const auto& [gpu, count] : entry.at("gpus").items()) {
      if (names(device, gpu)) return count.at("predicted_share_of_copy").get<double>();
    }
  }
  return std::nullopt;
}

FirstInputs read_first(const std::string& folder, const std::string& counts_file) {
  const fs::path base = folder;
  if (!fs::is_directory(base)) throw std::runtime_error(folder + " is no folder");
  return {.parts = parse_parts(text_of(base / "parts.tsv")),
          .fuse = results(base / "fuse.json"),
          .other = results(base / "other.json"),
          .torch = results(base / "torch.json"),
          .profiles = parse_profiles(text_of(base / "ncu.txt")),
          .counts = read_checked(counts_file, sass_schema_json(), "sass_table/schema.json")};
}

}  // namespace fuse::bench
