// SPDX-License-Identifier: Apache-2.0
#include "page/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "page/svg.hpp"

namespace fuse::bench {
namespace {

std::string number(double value) {
  if (value == std::floor(value) && std::fabs(value) < 1e6) return fmt::format("{:.0f}", value);
  const double size = std::fabs(value);
  return fmt::format("{:.{}f}", value, size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 4);
}
std::string cell(const Json& value) { return value.is_number() ? number(value.get<double>()) : ""; }
std::string percent(const Json& share) {
  return share.is_number() ? fmt::format("{:.1f}%", 100 * share.get<double>()) : "";
}
std::string image(const std::string& file, const std::string& alt) {
  return fmt::format("![{}](plots/{})\n", alt, file);
}

std::string not_measured(const std::string& what) {
  return fmt::format("Not measured: no results of {} are on file.\n", what);
}

std::vector<CaseRow> of_fuse(const std::vector<CaseRow>& rows) {
  std::vector<CaseRow> mine;
  for (const CaseRow& row : rows) {
    if (row.text("by") == "fuse" && row.measured()) mine.push_back(row);
  }
  return mine;
}

bool tagged(const CaseRow& row, const char* tag) {
  const Json& tags = row.at("tags");
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

/// Speed is worth nothing before the result is right, and a smoke case on a GPU shows launches.
bool plotted(const CaseRow& row) {
  return row.measured() && row.text("status") == "ok" && !tagged(row, "smoke");
}

std::string traffic_plot(const std::vector<CaseRow>& rows, Plots& plots) {
  BarChart chart{.title = "Bytes that the plan moves, over the floor",
                 .unit = "times inputs read once and outputs written once",
                 .format = "{:.2f}"};
  for (const CaseRow& row : rows)
    chart.bars.push_back({row.text("name"), row.at("bytes").at("moved").get<double>() / row.floor()});
  plots["traffic.svg"] = chart.svg();
  return image("traffic.svg", "bytes moved over the floor, by case");
}

std::string copy_plot(const std::vector<CaseRow>& rows, Plots& plots) {
  BarChart chart{.title = "Share of the copy rate",
                 .unit = "% of a copy of the same bytes in the same run",
                 .format = "{:.1f}",
                 .reference = 100,
                 .more_is_better = true};
  for (const CaseRow& row : rows) {
    if (!plotted(row) || !tagged(row, "memory")) continue;
    chart.bars.push_back({row.text("name"), 100 * row.at("copy").at("share").get<double>()});
  }
  if (chart.bars.empty()) return "";
  plots["copy_share.svg"] = chart.svg();
  return image("copy_share.svg", "share of the copy rate, by case");
}

/// A chart of TB/s by row length for each builder and dtype: fuse, the peers, and a copy.
std::string row_plots(const std::vector<CaseRow>& rows, Plots& plots) {
  std::map<std::pair<std::string, std::string>, std::map<std::int64_t, std::map<std::string, double>>> groups;
  for (const CaseRow& row : rows) {
    if (!plotted(row) || !tagged(row, "rows")) continue;
    auto& rates = groups[{row.text("builder"), row.text("dtype")}][row.at("dims").at(1).get<std::int64_t>()];
    rates[row.text("by")] = row.floor() / row.device_us() * 1e-6;
    if (row.row.contains("copy") && row.at("copy").is_object()) {
      const Json& copy = row.at("copy");
      rates["copy"] = std::max(copy.at("memcpy").get<double>(),
                               copy.at("kernel").is_number() ? copy.at("kernel").get<double>() : 0) *
                      1e-12;
    }
  }
  std::string text;
  for (const auto& [key, lengths] : groups) {
    if (lengths.size() < 2) continue;
    LineChart chart{.title = fmt::format("{} in {} by row length", key.first, key.second),
                    .x_axis = "elements a row",
                    .y_axis = "TB/s of the floor's bytes"};
    std::set<std::string> names;
    for (const auto& [length, values] : lengths) {
      chart.labels.push_back(std::to_string(length));
      for (const auto& [name, value] : values) names.insert(name);
    }
    for (const std::string& name : names) {
      LineChart::Series series{name, {}};
      for (const auto& [length, values] : lengths) {
        const auto found = values.find(name);
        series.values.push_back(found == values.end() ? std::nullopt : std::optional(found->second));
      }
      chart.series.push_back(std::move(series));
    }
    const std::string file = fmt::format("rows_{}_{}.svg", key.first, key.second);
    plots[file] = chart.svg();
    text += image(file, chart.title);
  }
  return text;
}

/// A list of the files that the rows are of.
std::string origins(const std::vector<CaseRow>& rows) {
  std::set<std::string> lines;
  for (const CaseRow& row : rows) {
    const Json& device = row.file->json.at("device");
    lines.insert(fmt::format("- {} (time: {}). {}\n", device.at("name").get<std::string>(),
                             device.at("clock").get<std::string>(), row.file->origin()));
  }
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

std::string case_cells(const CaseRow& row, bool gpu) {
  const Json& counts = row.at("counts");
  const Json& error = row.at("error");
  std::string line = fmt::format(
      "| `{}` | {} | {} | {} | {:.2f} | {} of {} |", row.text("name"), cell(counts.at("kernels")),
      cell(counts.at("launches")), cell(counts.at("gemms")),
      row.at("bytes").at("moved").get<double>() / row.floor(),
      error.at("over_bound").is_number() ? fmt::format("{:.3g}", error.at("over_bound").get<double>())
                                         : "unchecked",
      error.at("checked").get<std::string>());
  if (!gpu) return line + ' ' + row.text("status") + " |\n";
  const Json& time = row.at("device_us");
  return line + fmt::format(" {} | {} to {} | {} | {} | {} | {} | {} |\n", cell(time.at("median")),
                            cell(time.at("q1")), cell(time.at("q3")),
                            row.at("graph_us").is_object() ? cell(row.at("graph_us").at("median")) : "",
                            row.at("host_us").is_object() ? cell(row.at("host_us").at("median")) : "",
                            percent(row.at("copy").at("share")),
                            row.at("gemm").is_object() ? percent(row.at("gemm").at("share")) : "",
                            row.text("status"));
}

}  // namespace

std::string rows_table(const Results& results, const std::string& group, const std::string& kind) {
  const ResultFile* const file = results.newest_with(group, kind);
  if (!file) return not_measured("`" + group + "`" + (kind == "cuda" ? " on a GPU" : ""));
  std::string text = file->origin() +
                     "\n\n| row | figure | least to greatest | by CPU time | unit | goal | met |\n| --- | "
                     "---: | ---: | ---: | --- | --- | --- |\n";
  for (const Json& row : file->json.at("rows")) {
    const std::string name = row.at("name");
    if (!name.starts_with(group + '.')) continue;
    text += fmt::format("| `{}` | {} | {} to {} | {} | {} | {} | {} |\n", name, cell(row.at("figure")),
                        cell(row.at("min")), cell(row.at("max")), cell(row.at("cpu")),
                        row.at("unit").get<std::string>(), row.at("goal").get<std::string>(),
                        row.at("met").get<std::string>());
  }
  return text;
}

std::string counts_table(const Results& results) {
  const ResultFile* const file = results.newest_with("counts");
  if (!file) return not_measured("`counts`");
  static const std::vector<std::string> columns = {"kernels",  "launches",  "gemms",
                                                   "barriers", "requested", "sectors"};
  std::map<std::string, std::map<std::string, Json>> graphs;
  for (const Json& row : file->json.at("rows")) {
    const std::string name = row.at("name");
    if (!name.starts_with("counts.")) continue;
    const std::size_t dot = name.rfind('.');
    graphs[name.substr(7, dot - 7)][name.substr(dot + 1)] = row;
  }
  std::string text = file->origin() +
                     "\n\n| graph | dims, profile | kernels | launches | GEMMs | barriers | requested / "
                     "floor | sectors / floor |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const auto& [name, values] : graphs) {
    const auto kernels = values.find("kernels");
    text += fmt::format("| {} | {} |", name,
                        kernels == values.end() ? "" : kernels->second.at("how").get<std::string>());
    for (const std::string& column : columns) {
      const auto found = values.find(column);
      text += fmt::format(" {} |", found == values.end() ? "" : cell(found->second.at("figure")));
    }
    text += '\n';
  }
  return text;
}

std::string cases_part(const Results& results, const std::string& kind, Plots& plots) {
  const bool gpu = kind == "cuda";
  const std::vector<CaseRow> all = results.cases(kind), rows = of_fuse(all);
  if (rows.empty()) return not_measured(gpu ? "a GPU" : "the " + kind + " device");
  std::string text = origins(rows) + '\n' +
                     (gpu ? copy_plot(rows, plots) + row_plots(all, plots) : traffic_plot(rows, plots));
  text += "\n| case | kernels | launches | GEMMs | moved / floor | error / bound |";
  text += gpu ? " device us | quartiles | as a graph, us | host us | of copy | of GEMM | |\n" : " |\n";
  text += "| --- | ---: | ---: | ---: | ---: | --- |";
  text += gpu ? " ---: | ---: | ---: | ---: | ---: | ---: | --- |\n" : " --- |\n";
  for (const CaseRow& row : rows) text += case_cells(row, gpu);
  for (const CaseRow& row : all) {
    if (row.text("by") == "fuse" && !row.measured())
      text += fmt::format("\n`{}`: {}: {}\n", row.text("name"), row.text("status"), row.text("why"));
  }
  return text;
}

std::string peers_part(const Results& results) {
  std::map<std::string, const CaseRow*> fuse;
  std::vector<std::string> order;
  std::set<std::string> peers;
  const std::vector<CaseRow> rows = results.cases("cuda");
  std::map<std::pair<std::string, std::string>, const CaseRow*> by_name;
  for (const CaseRow& row : rows) {
    if (order.empty() || order.back() != row.text("name")) order.push_back(row.text("name"));
    if (row.text("by") != "fuse") peers.insert(row.text("by"));
    by_name[{row.text("name"), row.text("by")}] = &row;
  }
  if (peers.empty()) return not_measured("a peer on a GPU");
  std::string text =
                  origins(rows) + "\nMicroseconds a run, median; over fuse's in brackets.\n\n| case | fuse |",
              rule = "| --- | ---: |";
  for (const std::string& peer : peers) {
    text += ' ' + peer + " |";
    rule += " ---: |";
  }
  text += '\n' + rule + '\n';
  for (const std::string& name : order) {
    const auto mine = by_name.find({name, "fuse"});
    const bool known = mine != by_name.end() && mine->second->measured();
    text += fmt::format("| `{}` | {} |", name, known ? number(mine->second->device_us()) : "not measured");
    for (const std::string& peer : peers) {
      const auto found = by_name.find({name, peer});
      if (found == by_name.end()) {
        text += " not measured |";
      } else if (!found->second->measured()) {
        text += ' ' + found->second->text("status") + " |";
      } else {
        const double time = found->second->device_us();
        text += known ? fmt::format(" {} ({:.2f}x) |", number(time), time / mine->second->device_us())
                      : fmt::format(" {} |", number(time));
      }
    }
    text += '\n';
  }
  return text;
}

}  // namespace fuse::bench
