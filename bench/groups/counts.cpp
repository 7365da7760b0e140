// What the graphs of examples/graphs become: kernels, launches, GEMMs, barriers, and bytes over the floor.
// The numbers are those of `fusec stats` and `fusec plan`, run from the folder that this program lies in.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "groups/groups.hpp"

namespace fuse::bench {
namespace {

namespace fs = std::filesystem;

// Extents that make the large values pass 1 MB; below, fusec counts them apart, since caches hide how often
// they are read.
const std::map<std::string, std::string>& dims() {
  static const std::map<std::string, std::string> table = {
      {"softmax", "B=1024"}, {"layernorm", "B=1024"}, {"transformer_block", "B=128"}, {"bert_layer", "B=2"}};
  return table;
}

/// Too large to run on a CPU: its bytes are not counted.
bool is_planned_only(const std::string& name) { return name == "bert_large"; }

std::string in_shell_quotes(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::string output_of(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot start " + command);
  std::string out;
  char part[4096];
  for (std::size_t got; (got = fread(part, 1, sizeof part, pipe)) > 0;) out.append(part, got);
  const int status = pclose(pipe);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw std::runtime_error("failed: " + command);
  return out;
}

/// The object's members in turn; `member(key)` reads the value.
template <class F>
void read_object(JsonReader& json, F&& member) {
  json.expect('{');
  if (json.accept('}')) return;
  do {
    const std::string key = json.string();
    json.expect(':');
    member(key);
  } while (json.accept(','));
  json.expect('}');
}

struct Counts {
  std::int64_t kernels = 0, launches = 0, gemms = 0, barriers = 0;
  std::int64_t requested = 0, sectors = 0, floor = 0;
};

void read_stats(const std::string& text, Counts& counts) {
  JsonReader json(text, "fusec stats");
  const auto total = [&] {
    std::int64_t sum = 0;
    read_object(json, [&](const std::string&) { sum += json.natural(); });
    return sum;
  };
  read_object(json, [&](const std::string& key) {
    if (key == "kernels") {
      counts.kernels = json.natural();
    } else if (key == "launches") {
      counts.launches = json.natural();
    } else if (key == "gemms") {
      counts.gemms = json.natural();
    } else if (key == "floor") {
      counts.floor = json.natural();
    } else if (key == "bytes") {
      read_object(json, [&](const std::string& kind) {
        (kind == "sectors" ? counts.sectors : counts.requested) = total();
      });
    } else {
      json.skip_value();
    }
  });
}

/// The elements of an array in turn; returns how many there are.
template <class F>
std::int64_t read_array(JsonReader& json, F&& element) {
  std::int64_t count = 0;
  json.expect('[');
  if (json.accept(']')) return count;
  do {
    element();
    ++count;
  } while (json.accept(','));
  json.expect(']');
  return count;
}

/// Barriers; and what stats tells of a graph that it can run.
void read_plan(const std::string& text, bool all, Counts& counts) {
  JsonReader json(text, "fusec plan");
  const auto skip = [&] { json.skip_value(); };
  std::int64_t launches = 0;
  read_object(json, [&](const std::string& key) {
    if (key == "steps") {  // kernels are shared: a kernel may be several launches
      read_array(json, [&] {
        read_object(json, [&](const std::string& field) {
          if (field != "kind") return json.skip_value();
          launches += json.string() == "kernel";
        });
      });
    } else if (key == "gemms") {
      const std::int64_t gemms = read_array(json, skip);
      if (all) counts.gemms = gemms;
    } else if (key == "kernels") {
      const std::int64_t kernels = read_array(json, [&] {
        read_object(json, [&](const std::string& field) {
          if (field != "barriers") return json.skip_value();
          counts.barriers += json.natural();
        });
      });
      if (all) counts.kernels = kernels;
    } else {
      json.skip_value();
    }
  });
  if (all) counts.launches = launches;
}

void add_rows(Report& report, const std::string& name, const std::string& dim, const Counts& counts) {
  const auto add = [&](const char* what, double figure, const char* unit, const char* how) -> Row& {
    Row& row = report.add({.name = name + '.' + what, .unit = unit, .figure = figure});
    row.min = row.max = figure;
    row.how = fmt::format("{}{}h200", how, dim.empty() ? "" : dim + ", ");
    return row;
  };
  add("kernels", static_cast<double>(counts.kernels), "", "");
  add("launches", static_cast<double>(counts.launches), "", "");
  add("gemms", static_cast<double>(counts.gemms), "", "");
  add("barriers", static_cast<double>(counts.barriers), "", "of the kernels' text; ");
  if (counts.floor == 0) return;
  const auto floor = static_cast<double>(counts.floor);
  add("requested", static_cast<double>(counts.requested) / floor, "x the floor", "values of 1 MB and more; ");
  add("sectors", static_cast<double>(counts.sectors) / floor, "x the floor", "values of 1 MB and more; ");
}

}  // namespace

void bench_counts(Report& report, const Settings& settings) {
  const std::string fusec = (fs::read_symlink("/proc/self/exe").parent_path() / "fusec").string();
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(settings.graphs)) {
    if (entry.path().extension() == ".fuse") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) throw std::runtime_error("no .fuse file in " + settings.graphs);
  for (const fs::path& file : files) {
    const std::string name = file.stem().string();
    const auto known = dims().find(name);
    const std::string dim = known == dims().end() ? "" : known->second;
    const std::string rest = ' ' + in_shell_quotes(file.string()) + " --json" +
                             (dim.empty() ? "" : " --dim " + in_shell_quotes(dim));
    Counts counts;
    const bool planned = is_planned_only(name);
    if (!planned) read_stats(output_of(in_shell_quotes(fusec) + " stats" + rest), counts);
    read_plan(output_of(in_shell_quotes(fusec) + " plan" + rest), planned, counts);
    add_rows(report, name, dim, counts);
  }
}

}  // namespace fuse::bench
