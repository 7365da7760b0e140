// SPDX-License-Identifier: Apache-2.0
#include "first/first_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "cases/cases.hpp"

namespace fuse::bench {
namespace {

constexpr const char* unknown = "-";
using Cells = std::vector<std::string>;

/// The first column is text, and so is the last where `text_last`; the others are numbers.
std::string aligned(const std::vector<Cells>& lines, bool text_last) {
  std::vector<std::size_t> widths(lines.front().size());
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const Cells& line : lines) {
    std::string row;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const bool left = i == 0 || (text_last && i + 1 == line.size());
      row += left ? fmt::format("{:<{}}  ", line[i], widths[i]) : fmt::format("{:>{}}  ", line[i], widths[i]);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + '\n';
  }
  return text;
}

/// Null where nobody measured it.
const Json* case_of(const Json& results, const std::string& name, const std::string& by) {
  if (results.is_null()) return nullptr;
  for (const Json& row : results.at("cases")) {
    if (row.at("name") == name && row.at("by") == by) return &row;
  }
  return nullptr;
}

std::optional<double> seconds_of(const Json* row) {
  if (!row || !row->contains("device_us") || !row->at("device_us").is_object()) return std::nullopt;
  const double microseconds = row->at("device_us").at("median");
  return microseconds > 0 ? std::optional(microseconds * 1e-6) : std::nullopt;
}

std::string rate(double bytes, std::optional<double> seconds) {
  return seconds ? fmt::format("{:.0f}", bytes / *seconds / 1e9) : unknown;
}

std::string percent(std::optional<double> share) {
  return share ? fmt::format("{:.1f}%", *share * 100) : unknown;
}

/// "ok, the first 12 of 128 rows", or the status and why.
std::string verdict(const Json& row) {
  const std::string status = row.at("status");
  if (status != "ok") return status + ": " + row.at("why").get<std::string>().substr(0, 90);
  if (!row.contains("error") || !row.at("error").is_object()) return status;
  const std::string checked = row.at("error").at("checked");
  return checked.starts_with("nothing") ? status + ", not checked" : status + ", checked: " + checked;
}

std::string cases_text(const FirstInputs& in) {
  const bool compared = !in.other.is_null();
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const Json* const results : {&in.fuse, &in.other, &in.torch}) {
    if (results->is_null()) continue;
    for (const Json& row : results->at("cases")) {
      if (seen.insert(row.at("name")).second) names.push_back(row.at("name"));
    }
  }
  if (names.empty()) return "";
  // What was stopped left no row.
  for (const Case& c : cases_that_fit("first", false)) {
    if (seen.insert(c.name).second) names.push_back(c.name);
  }
  const std::string gpu = in.fuse.is_null() ? "" : in.fuse.at("device").at("name");
  Cells heading{"case", "us", "GB/s", "of copy", "predicted", "eager", "compile", "liger"};
  if (compared) heading.insert(heading.end(), {"other", "first/other"});
  heading.push_back("result");
  std::vector<Cells> lines{heading};
  for (const std::string& name : names) {
    const Json* const row = case_of(in.fuse, name, "fuse");
    const std::optional<double> ours = seconds_of(row);
    // The same bytes for all: inputs and outputs once. What nobody of fuse measured has those of PyTorch.
    const Json* const counted = seconds_of(row) ? row : case_of(in.torch, name, "torch.eager");
    const double bytes =
        counted && counted->contains("bytes")
            ? counted->at("bytes").at("read").get<double>() + counted->at("bytes").at("written").get<double>()
            : 0;
    std::optional<double> share;
    if (row && row->contains("copy") && row->at("copy").is_object())
      share = row->at("copy").at("share").get<double>();
    const std::optional<double> predicted = predicted_share(in.counts, name, gpu);
    Cells line{name, ours ? fmt::format("{:.2f}", *ours * 1e6) : unknown, rate(bytes, ours), percent(share),
               predicted ? percent(predicted) : "not predicted"};
    for (const char* const by : {"torch.eager", "torch.compile", "liger"}) {
      line.push_back(rate(bytes, seconds_of(case_of(in.torch, name, by))));
    }
    if (compared) {
      const std::optional<double> theirs = seconds_of(case_of(in.other, name, "fuse"));
      line.push_back(rate(bytes, theirs));
      line.push_back(ours && theirs ? fmt::format("{:.3f}", *theirs / *ours) : unknown);
    }
    line.push_back(row ? verdict(*row) : "not measured");
    lines.push_back(line);
  }
  return "\ncases: GB/s of the inputs and outputs, once; eager, compile, liger" +
         std::string(compared ? ", other" : "") + " too\n" + aligned(lines, true);
}

std::optional<double> rung(const Json& results, const std::string& name) {
  if (results.is_null()) return std::nullopt;
  for (const Json& row : results.at("rows")) {
    if (row.at("name") == "ladder." + name && row.at("figure").is_number())
      return row.at("figure").get<double>();
  }
  return std::nullopt;
}

/// Of the rungs PREFIX.N that with the most blocks, or with `blocks`; empty where there is none.
std::string rung_of_blocks(const Json& results, const std::string& prefix, int blocks) {
  std::string best;
  int most = 0;
  if (results.is_null()) return best;
  const std::string start = "ladder." + prefix + '.';
  for (const Json& row : results.at("rows")) {
    const std::string name = row.at("name");
    if (!name.starts_with(start)) continue;
    const int n = std::atoi(name.c_str() + start.size());
    if (blocks ? n != blocks : n <= most) continue;
    most = n;
    best = name.substr(7);
  }
  return best;
}

/// As many blocks as multiprocessors: the middle one of the rungs, which have a quarter, as many and twice as
/// many.
std::string middle_barrier(const Json& results) {
  const std::string most = rung_of_blocks(results, "grid_barrier", 0);
  if (most.empty()) return most;
  return rung_of_blocks(results, "grid_barrier", std::atoi(most.c_str() + most.find('.') + 1) / 2);
}

std::string constants_text(const Json& fuse) {
  struct Constant {
    const char *name, *unit;
    std::vector<std::string> rungs;
  };
  const Constant constants[] = {{"launch_seconds", "us", {"launch.empty", "launch.dependent"}},
                                {"node_seconds", "us", {"graph.empty", "graph.dependent"}},
                                {"barrier_seconds", "us", {middle_barrier(fuse)}},
                                {"cluster_seconds", "us", {rung_of_blocks(fuse, "cluster_barrier", 0)}},
                                {"bandwidth", "GB/s", {"copy.kernel", "copy.memcpy"}}};
  std::vector<Cells> lines{{"constant", "Target", "unit", "measured"}};
  bool any = false;
  for (const Constant& constant : constants) {
    const std::optional<double> target = rung(fuse, std::string("target.") + constant.name);
    std::string measured;
    for (const std::string& name : constant.rungs) {
      const std::optional<double> figure = rung(fuse, name);
      if (figure) measured += fmt::format("{}{:.4g} ({})", measured.empty() ? "" : ", ", *figure, name);
    }
    any |= target || !measured.empty();
    lines.push_back({constant.name, target ? fmt::format("{:.4g}", *target) : unknown, constant.unit,
                     measured.empty() ? unknown : measured});
  }
  return any ? "\nconstants of the cost model\n" + aligned(lines, true) : "";
}

std::string profiles_text(const Profiles& profiles) {
  if (profiles.empty()) return "";
  std::vector<Cells> lines{{"case", "DRAM %", "issue %", "XU %", "occupancy %"}};
  for (const auto& [name, metrics] : profiles) {
    Cells line{name};
    for (const char* const metric : {"dram__throughput.avg.pct_of_peak_sustained_elapsed",
                                     "sm__inst_issued.avg.pct_of_peak_sustained_active",
                                     "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
                                     "sm__warps_active.avg.pct_of_peak_sustained_active"}) {
      const auto found = metrics.find(metric);
      line.push_back(found == metrics.end() ? unknown : found->second);
    }
    lines.push_back(line);
  }
  return "\nncu: the first kernel of a case, of the peak\n" + aligned(lines, false);
}

std::string probe_text(const Json& fuse) {
  if (fuse.is_null()) return "";
  std::vector<Cells> lines{{"probe", "figure", "unit", "how"}};
  for (const Json& row : fuse.at("rows")) {
    const std::string name = row.at("name");
    if (!name.starts_with("probe.")) continue;
    lines.push_back(
        {name.substr(6),
         row.at("figure").is_number() ? fmt::format("{:.4g}", row.at("figure").get<double>()) : unknown,
         row.at("unit"), row.at("how")});
  }
  return lines.size() == 1 ? "" : "\nprobe\n" + aligned(lines, true);
}

}  // namespace

std::string first_table(const FirstInputs& in) {
  std::string text;
  if (!in.fuse.is_null()) text += "device: " + in.fuse.at("device").at("name").get<std::string>() + '\n';
  if (!in.torch.is_null()) text += "peers: " + in.torch.at("device").at("name").get<std::string>() + '\n';
  text += cases_text(in) + constants_text(in.fuse) + profiles_text(in.profiles) + probe_text(in.fuse);
  std::vector<Cells> parts{{"part", "s", "outcome"}};
  for (const Part& part : in.parts) {
    parts.push_back({part.name, part.seconds, part.outcome + (part.text.empty() ? "" : ": " + part.text)});
  }
  return text + "\nparts\n" + aligned(parts, true);
}

}  // namespace fuse::bench
