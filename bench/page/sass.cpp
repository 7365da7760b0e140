// SPDX-License-Identifier: Apache-2.0
#include "page/sass.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "page/svg.hpp"

namespace fuse::bench {
namespace {

constexpr const char* shown_gpu = "h200";
constexpr std::int64_t plotted_length = 1024;

/// A case that the GPU was counted for.
struct SassRow {
  const Json* of = nullptr;
  const Json* count = nullptr;

  std::string text(const char* key) const { return of->at(key).get<std::string>(); }
  double number(const char* key) const { return count->at(key).get<double>(); }
  /// 0: not of rows. Elementwise chains have elements and links.
  std::int64_t row_length() const {
    const Json& dims = of->at("dims");
    return dims.size() < 2 || text("builder") == "elementwise" ? 0 : dims[1].get<std::int64_t>();
  }
  std::string family() const { return text("builder") + '.' + text("dtype"); }
};

std::vector<SassRow> rows_of(const Json& counts) {
  std::vector<SassRow> rows;
  for (const Json& each : counts.at("cases")) {
    if (each.at("gpus").contains(shown_gpu)) rows.push_back({&each, &each.at("gpus").at(shown_gpu)});
  }
  return rows;
}

/// Of the longest sweep: those that most families have.
std::set<std::int64_t> swept_lengths(const std::vector<SassRow>& rows) {
  std::map<std::int64_t, std::set<std::string>> families;
  std::size_t most = 0;
  for (const SassRow& row : rows) {
    if (row.row_length() == 0) continue;
    families[row.row_length()].insert(row.family());
    most = std::max(most, families[row.row_length()].size());
  }
  std::set<std::int64_t> lengths;
  for (const auto& [length, names] : families) {
    if (2 * names.size() > most) lengths.insert(length);
  }
  return lengths;
}

std::string share_plot(const std::vector<SassRow>& rows, const std::string& dtype, Plots& plots) {
  BarChart chart{
      .title = fmt::format("Counted: share of H200's issue budget, {}, rows of {}", dtype, plotted_length),
      .unit = "cycles of the busiest pipe or of issue, over those of a copy of the same bytes",
      .format = "{:.2f}",
      .reference = 1};
  for (const SassRow& row : rows) {
    const std::int64_t length = row.row_length();
    if (row.text("dtype") != dtype || (length != 0 && length != plotted_length)) continue;
    chart.bars.push_back({row.text(length == 0 ? "name" : "builder"), row.number("share")});
  }
  if (chart.bars.empty()) return "";
  const std::string file = fmt::format("sass_share_{}.svg", dtype);
  plots[file] = chart.svg();
  return fmt::format("![share of the issue budget, {}](plots/{})\n", dtype, file);
}

std::string goals_table(const Json& counts) {
  std::string text = "| goal | | worst |\n| --- | --- | --- |\n";
  for (const Json& goal : counts.at("goals")) {
    text += fmt::format("| {} | {} | {} |\n", goal.at("goal").get<std::string>(),
                        goal.at("met").get<bool>() ? "met" : "missed", goal.at("worst").get<std::string>());
  }
  return text;
}

/// A line for each reason, with the missed goals that have it.
std::string reasons_list(const Json& counts) {
  std::vector<std::pair<std::string, std::string>> reasons;  // why, goals
  for (const Json& goal : counts.at("goals")) {
    if (goal.at("met").get<bool>()) continue;
    const std::string name = goal.at("goal"), subject = name.substr(0, name.find(':'));
    const std::string why = goal.at("why");
    const auto at =
        std::find_if(reasons.begin(), reasons.end(), [&](const auto& known) { return known.first == why; });
    if (at == reasons.end()) {
      reasons.emplace_back(why, subject);
    } else {
      at->second += ", " + subject;
    }
  }
  std::string text;
  for (const auto& [why, goals] : reasons)
    text += fmt::format("- {}: {}\n", goals, why.empty() ? "It is not known why." : why);
  return text.empty() ? "" : "\nWhy goals are missed:\n\n" + text;
}

std::string cell_of(const SassRow& row) {
  return fmt::format("{:.2f}, {:.2f}", row.number("share"), row.number("predicted_share_of_copy"));
}

/// A line for each builder and type, a column for each row length.
std::string swept_table(const std::vector<SassRow>& rows, const std::set<std::int64_t>& lengths) {
  std::vector<std::string> families;
  std::map<std::string, std::map<std::int64_t, SassRow>> table;
  for (const SassRow& row : rows) {
    if (!lengths.contains(row.row_length())) continue;
    if (!table.contains(row.family())) families.push_back(row.family());
    table[row.family()].try_emplace(row.row_length(), row);
  }
  std::string text = "| share, of copy |", rule = "| --- |";
  for (const std::int64_t length : lengths) {
    text += fmt::format(" {} |", length);
    rule += " --- |";
  }
  text += " what is missing |\n" + rule + " --- |\n";
  for (const std::string& family : families) {
    text += fmt::format("| `{}` |", family);
    std::string missing;
    for (const std::int64_t length : lengths) {
      const auto at = table[family].find(length);
      text += at == table[family].end() ? " |" : fmt::format(" {} |", cell_of(at->second));
      if (at == table[family].end()) continue;
      const std::string here = at->second.count->at("missing");
      if (!here.empty()) missing += fmt::format("{}{}: {}", missing.empty() ? "" : "; ", length, here);
    }
    text += fmt::format(" {} |\n", missing);
  }
  return text;
}

std::string others_table(const std::vector<SassRow>& rows, const std::set<std::int64_t>& lengths) {
  std::string text =
      "| case | kernels | cycles | bound by | budget | share | of copy | what is missing |\n"
      "| --- | ---: | ---: | --- | ---: | ---: | ---: | --- |\n";
  for (const SassRow& row : rows) {
    if (lengths.contains(row.row_length())) continue;
    text += fmt::format("| `{}` | {} | {:.1f} | {} | {:.1f} | {:.2f} | {:.2f} | {} |\n", row.text("name"),
                        row.count->at("kernel_count").get<int>(), row.number("cycles"),
                        row.count->at("bound").get<std::string>(), row.number("budget"), row.number("share"),
                        row.number("predicted_share_of_copy"), row.count->at("missing").get<std::string>());
  }
  return text;
}

}  // namespace

std::string sass_part(const Results& results, Plots& plots) {
  const Json* const counts = results.sass();
  if (!counts) return "Not counted: bench/results has no sass_counts.json.\n";
  const std::vector<SassRow> rows = rows_of(*counts);
  const std::set<std::int64_t> lengths = swept_lengths(rows);
  std::string text = fmt::format(
      "[sass_counts.json](../bench/results/sass_counts.json), made with NVRTC {} and nvdisasm {}: {} cases "
      "on {} GPUs.\n\n"
      "| GPU | SMs | GHz | TB/s of a copy | instructions of threads a byte | by |\n"
      "| --- | ---: | ---: | ---: | ---: | --- |\n",
      counts->at("nvrtc").get<std::string>(), counts->at("nvdisasm").get<std::string>(),
      counts->at("cases").size(), counts->at("gpus").size());
  for (const Json& gpu : counts->at("gpus")) {
    text += fmt::format("| {} | {} | {:.3f} | {:.1f} | {:.2f} | {} |\n", gpu.at("name").get<std::string>(),
                        gpu.at("sms").get<int>(), gpu.at("clock").get<double>() * 1e-9,
                        gpu.at("copy").get<double>() * 1e-12, gpu.at("instructions_per_byte").get<double>(),
                        gpu.at("source").get<std::string>());
  }
  text += '\n' + share_plot(rows, "bf16", plots) + share_plot(rows, "f32", plots) + '\n' +
          goals_table(*counts) + reasons_list(*counts);
  text +=
      "\nBy row length, about 2^26 elements each: the share of the budget, and the predicted share of a "
      "copy.\n\n" +
      swept_table(rows, lengths) + "\nThe others.\n\n" + others_table(rows, lengths);
  for (const Json& failure : counts->at("failed")) {
    text += fmt::format("\n`{}` on {} could not be counted: {}\n", failure.at("name").get<std::string>(),
                        failure.at("gpu").get<std::string>(), failure.at("why").get<std::string>());
  }
  return text;
}

}  // namespace fuse::bench
