// What decisions say about the target that they are for. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fuse/error.hpp>
#include <map>
#include <utility>

#include "base/key_values.hpp"
#include "base/quoting.hpp"
#include "base/suggest.hpp"
#include "schedule/decisions/decisions.hpp"

namespace fuse::schedule {
namespace {

std::vector<std::pair<std::string, std::int64_t>> target_fields(const Target& target) {
  return {{"arch", target.arch},
          {"sms", target.sms},
          {"threads_per_block", target.max_threads_per_block},
          {"threads_per_sm", target.max_threads_per_sm},
          {"blocks_per_sm", target.max_blocks_per_sm},
          {"registers_per_sm", target.registers_per_sm},
          {"shared_per_block", target.shared_per_block},
          {"shared_per_sm", target.shared_per_sm},
          {"cluster", target.max_cluster}};
}

}  // namespace

std::string target_text(const Target& target) {
  std::string text;
  for (const auto& [key, value] : target_fields(target))
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key, value);
  return text;
}

std::string parse_target(std::string_view text, int line) {
  const std::string where = line_of_decisions(line);
  const std::vector<KeyValue> items = key_values(text, where);
  check_once(items, where);
  std::vector<std::string> keys;
  for (const auto& [key, value] : target_fields({})) keys.push_back(key);
  std::map<std::string, std::int64_t> values;
  for (const KeyValue& item : items) {
    if (std::find(keys.begin(), keys.end(), item.key) == keys.end())
      refuse_text(where, fmt::format("no target has the key {}", in_quotes(item.key)),
                  nearest_names(keys, item.key));
    const std::string_view digits = item.value.value_or("");
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), values[item.key]);
    if (error != std::errc() || end != digits.data() + digits.size())
      refuse_text(where, fmt::format("{} is {}", item.key, in_quotes(digits)),
                  fmt::format("{0} takes a number, as in {0} = 64", item.key));
  }
  std::string result;
  for (const std::string& key : keys) {
    const auto value = values.find(key);
    if (value == values.end())
      refuse_text(where, fmt::format("the target lacks the key '{}'", key),
                  "fusec plan --decisions writes all of them");
    result += fmt::format("{}{} = {}", result.empty() ? "" : ", ", key, value->second);
  }
  return result;
}

namespace {

/// The fields of "sms = 132, cluster = 8".
std::vector<std::string> fields_of(const std::string& text) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.size(), text.find(", ", begin));
    fields.push_back(text.substr(begin, end - begin));
    begin = end + 2;
  }
  return fields;
}

/// The fields of `one` that `other` does not have.
std::string differing(const std::string& one, const std::string& other) {
  const std::vector<std::string> others = fields_of(other);
  std::string text;
  for (const std::string& field : fields_of(one)) {
    if (std::find(others.begin(), others.end(), field) != others.end()) continue;
    text += (text.empty() ? "" : ", ") + field;
  }
  return text;
}

}  // namespace

void check_target(const Decisions& decisions, const Target& target) {
  const std::string own = target_text(target);
  if (decisions.target == own) return;
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format(
                   "decisions: the file is for another device: it has {{{}}}, and {} has {{{}}}",
                   differing(decisions.target, own), target.name, differing(own, decisions.target)),
               .hint = "fusec plan --decisions writes a file for this one; what was measured on another "
                       "device is not taken, "
                       "even where unfit entries are left out"});
}

}  // namespace fuse::schedule
