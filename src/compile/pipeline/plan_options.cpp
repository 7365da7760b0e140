// SPDX-License-Identifier: Apache-2.0
#include "compile/pipeline/plan_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/key_values.hpp"
#include "base/suggest.hpp"

namespace fuse {
namespace {

using schedule::Baseline;
using schedule::PartitionOptions;
using schedule::RuleSet;
using schedule::SchemeRules;

/// One option: its words or its range, and its location.
struct Row {
  std::string_view key;
  std::vector<std::string_view> words{};  ///< by their numbers; none: a number
  int least = 0, most = 0;
  std::function<int(const PipelineOptions&)> get;
  std::function<void(PipelineOptions&, int)> set;
  bool is_rare = false;  ///< written only where it is not 0
};

int layers_of(const PipelineOptions& options) {
  return std::bit_width(static_cast<unsigned>(options.partition.groups.layers));
}

const std::vector<Row>& rows() {
  using O = PipelineOptions;
  static const std::vector<Row> all = {
      {"rules",
       {"fuse", "apollo"},
       0,
       1,
       [](const O& o) { return o.partition.groups.rules == RuleSet::apollo ? 1 : 0; },
       [](O& o, int v) { o.partition.groups.rules = v == 1 ? RuleSet::apollo : RuleSet::fuse; }},
      {"layers",
       {},
       1,
       3,
       layers_of,
       [](O& o, int v) { o.partition.groups.layers = static_cast<std::uint8_t>((1 << v) - 1); }},
      {"max_inputs",
       {},
       1,
       400,
       [](const O& o) { return o.partition.groups.max_inputs; },
       [](O& o, int v) { o.partition.groups.max_inputs = v; }},
      {"baseline",
       {"off", "xla", "tvm", "one_op"},
       0,
       3,
       [](const O& o) { return static_cast<int>(o.partition.baseline); },
       [](O& o, int v) { o.partition.baseline = static_cast<Baseline>(v); }},
      {"stitch",
       {"no", "yes"},
       0,
       1,
       [](const O& o) { return o.partition.stitch ? 1 : 0; },
       [](O& o, int v) { o.partition.stitch = v == 1; }},
      {"cooperative",
       {"never", "gain", "always"},
       0,
       2,
       [](const O& o) { return static_cast<int>(o.partition.cooperative); },
       [](O& o, int v) { o.partition.cooperative = static_cast<PartitionOptions::Cooperative>(v); }},
      {"regional",
       {"no", "yes"},
       0,
       1,
       [](const O& o) { return o.partition.regional ? 1 : 0; },
       [](O& o, int v) { o.partition.regional = v == 1; }},
      {"horizontal",
       {"no", "yes"},
       0,
       1,
       [](const O& o) { return o.partition.horizontal ? 1 : 0; },
       [](O& o, int v) { o.partition.horizontal = v == 1; }},
      {"schemes",
       {"fuse", "astitch"},
       0,
       1,
       [](const O& o) { return static_cast<int>(o.partition.schemes); },
       [](O& o, int v) { o.partition.schemes = static_cast<SchemeRules>(v); }},
      {"search",
       {"no", "yes"},
       0,
       1,
       [](const O& o) { return o.partition.search ? 1 : 0; },
       [](O& o, int v) { o.partition.search = v == 1; },
       true},
      {"merge_gemms",
       {"no", "yes"},
       0,
       1,
       [](const O& o) { return o.merge_gemms ? 1 : 0; },
       [](O& o, int v) { o.merge_gemms = v == 1; }},
      {"streams",
       {},
       1,
       schedule::most_streams,
       [](const O& o) { return o.streams.max_streams; },
       [](O& o, int v) { o.streams.max_streams = v; }},
  };
  return all;
}

std::string value_text(const Row& row, int value) {
  return row.words.empty() ? std::to_string(value) : std::string(row.words[static_cast<std::size_t>(value)]);
}

std::optional<int> value_of(const Row& row, std::string_view text) {
  int value = 0;
  if (!row.words.empty()) {
    const auto word = std::find(row.words.begin(), row.words.end(), text);
    if (word == row.words.end()) return std::nullopt;
    return static_cast<int>(word - row.words.begin());
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < row.least || value > row.most)
    return std::nullopt;
  return value;
}

std::string values_of(const Row& row) {
  if (row.words.empty()) return fmt::format("{} takes a number from {} to {}", row.key, row.least, row.most);
  return fmt::format("{} takes {}", row.key, fmt::join(row.words, ", "));
}

}  // namespace

std::string plan_options_text(const PipelineOptions& options) {
  std::string text;
  for (const Row& row : rows()) {
    if (row.is_rare && row.get(options) == 0) continue;
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", row.key, value_text(row, row.get(options)));
  }
  return text;
}

void read_plan_options(std::string_view text, std::string_view where, PipelineOptions& options) {
  const std::vector<KeyValue> items = key_values(text, where);
  check_once(items, where);
  for (const KeyValue& item : items) {
    const auto row =
        std::find_if(rows().begin(), rows().end(), [&](const Row& each) { return each.key == item.key; });
    if (row == rows().end()) {
      std::vector<std::string> names;
      for (const Row& each : rows()) names.emplace_back(each.key);
      refuse_text(where, fmt::format("there is no option '{}'", item.key), nearest_names(names, item.key));
    }
    const std::string_view word = item.value.value_or("");
    const std::optional<int> value = value_of(*row, word);
    if (!value) refuse_text(where, fmt::format("{} is '{}'", item.key, word), values_of(*row));
    row->set(options, *value);
  }
}

}  // namespace fuse
