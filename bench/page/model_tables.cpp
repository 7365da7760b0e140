// SPDX-License-Identifier: Apache-2.0
#include "page/model_tables.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <vector>

namespace fuse::bench {
namespace {

struct Rules {
  const char *key, *title;
};
constexpr Rules all_rules[] = {{"one_op", "op by op"}, {"xla", "XLA"},         {"tvm", "TVM"},
                               {"apollo", "APOLLO"},   {"astitch", "AStitch"}, {"fuse", "fuse"}};

/// The figures of a model by their names: "launches.fuse", "bound".
class ModelRows {
 public:
  explicit ModelRows(const Json& file) {
    for (const Json& row : file.at("rows")) {
      const std::string name = row.at("name");
      if (!name.starts_with("models.")) continue;
      const std::size_t dot = name.find('.', 7);
      const std::string model = name.substr(7, dot - 7);
      if (models_.empty() || models_.back() != model) models_.push_back(model);
      rows_[{model, name.substr(dot + 1)}] = row;
    }
  }

  const std::vector<std::string>& models() const { return models_; }
  std::optional<double> figure(const std::string& model, const std::string& what) const {
    const auto found = rows_.find({model, what});
    if (found == rows_.end() || !found->second.at("figure").is_number()) return std::nullopt;
    return found->second.at("figure").get<double>();
  }

 private:
  std::vector<std::string> models_;
  std::map<std::pair<std::string, std::string>, Json> rows_;
};

std::string count(const std::optional<double>& figure) {
  return figure ? fmt::format("{:.0f}", *figure) : "";
}

std::string heading(const std::vector<std::string>& columns) {
  std::string titles = "| model |", rule = "| --- |";
  for (const std::string& column : columns) {
    titles += ' ' + column + " |";
    rule += " ---: |";
  }
  return titles + '\n' + rule + '\n';
}

std::vector<std::string> with_rules(std::vector<std::string> before, const std::vector<std::string>& after) {
  for (const Rules& rules : all_rules) before.emplace_back(rules.title);
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

std::string launches_table(const ModelRows& rows) {
  std::string text =
      heading(with_rules({"ops", "GEMMs"}, {"bound", "fuse / bound", "XLA, printed", "AStitch, printed"}));
  for (const std::string& model : rows.models()) {
    text += fmt::format("| `{}` | {} | {} |", model, count(rows.figure(model, "ops")),
                        count(rows.figure(model, "gemms.fuse")));
    for (const Rules& rules : all_rules)
      text += ' ' + count(rows.figure(model, std::string("launches.") + rules.key)) + " |";
    const std::optional<double> bound = rows.figure(model, "bound"),
                                ours = rows.figure(model, "launches.fuse");
    text += fmt::format(
        " {} | {} | {} | {} |\n", count(bound), bound && ours ? fmt::format("{:.2f}", *ours / *bound) : "",
        count(rows.figure(model, "printed_xla")), count(rows.figure(model, "printed_astitch")));
  }
  return text;
}

std::string bytes_table(const ModelRows& rows) {
  std::string text = heading(with_rules({"floor, MB"}, {}));
  for (const std::string& model : rows.models()) {
    const std::optional<double> floor = rows.figure(model, "floor");
    if (!floor || *floor == 0) continue;
    text += fmt::format("| `{}` | {:.1f} |", model, *floor * 1e-6);
    for (const Rules& rules : all_rules) {
      const std::optional<double> bytes = rows.figure(model, std::string("bytes.") + rules.key);
      text += bytes ? fmt::format(" {:.2f} |", *bytes / *floor) : " |";
    }
    text += '\n';
  }
  return text;
}

std::string costly_table(const ModelRows& rows) {
  std::string text = heading(with_rules({}, {}));
  for (const std::string& model : rows.models()) {
    if (!rows.figure(model, "costly.fuse")) continue;
    text += fmt::format("| `{}` |", model);
    for (const Rules& rules : all_rules)
      text += ' ' + count(rows.figure(model, std::string("costly.") + rules.key)) + " |";
    text += '\n';
  }
  return text;
}

}  // namespace

std::string models_part(const Results& results) {
  const ResultFile* const file = results.newest_with("models");
  if (!file) return "Not measured: no results of `model_table` are on file.\n";
  const ModelRows rows(file->json);
  return file->origin() + "\n\nLaunches of kernels, by whose rules:\n\n" + launches_table(rows) +
         "\nBytes that kernels ask for, over the floor of fuse's plan:\n\n" + bytes_table(rows) +
         "\nCostly ops (exp, log, tanh, erf) that all threads executed:\n\n" + costly_table(rows);
}

}  // namespace fuse::bench
