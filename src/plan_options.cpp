// SPDX-License-Identifier: Apache-2.0
#include "plan_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "ir/nearest.hpp"
#include "ir/words.hpp"

namespace fuse {
namespace {

using schedule::Baseline;
using schedule::PartitionOptions;
using schedule::RuleSet;
using schedule::SchemeRules;

/// One option: its words or its range, and where it lies.
struct Row {
  std::string_view key;
  std::vector<std::string_view> words{};  ///< by their numbers; none: a number
  int least = 0, most = 0;
  std::function<int(const PipelineOptions&)> get;
  std::function<void(PipelineOptions&, int)> set;
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
       {"off", "xla", "tvm", "none"},
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
      {"join",
       {"never", "gain", "always"},
       0,
       2,
       [](const O& o) { return static_cast<int>(o.partition.join); },
       [](O& o, int v) { o.partition.join = static_cast<PartitionOptions::Join>(v); }},
      {"schemes",
       {"fuse", "paper"},
       0,
       1,
       [](const O& o) { return static_cast<int>(o.partition.schemes); },
       [](O& o, int v) { o.partition.schemes = static_cast<SchemeRules>(v); }},
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

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

std::string plan_options_text(const PipelineOptions& options) {
  std::string text;
  for (const Row& row : rows())
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", row.key, value_text(row, row.get(options)));
  return text;
}

void read_plan_options(std::string_view text, std::string_view where, PipelineOptions& options) {
  const auto fail = [&](const std::string& what, const std::string& hint) {
    throw Error({.code = ErrorCode::parse,
                 .message = fmt::format("{}: {}", where, ir::printable(what)),
                 .hint = hint});
  };
  std::set<std::string_view> seen;
  while (!trimmed(text).empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t sign = item.find('=');
    const std::string_view key = trimmed(item.substr(0, sign));
    const auto row =
        std::find_if(rows().begin(), rows().end(), [&](const Row& each) { return each.key == key; });
    if (row == rows().end()) {
      std::vector<std::string> names;
      for (const Row& each : rows()) names.emplace_back(each.key);
      fail(fmt::format("there is no option '{}'", key), ir::nearest_names(names, key));
    }
    if (!seen.insert(row->key).second) fail(fmt::format("the option '{}' stands there twice", key), "");
    const std::string_view word = sign == std::string_view::npos ? "" : trimmed(item.substr(sign + 1));
    const std::optional<int> value = value_of(*row, word);
    if (!value) fail(fmt::format("{} is '{}'", key, word), values_of(*row));
    row->set(options, *value);
  }
}

}  // namespace fuse
