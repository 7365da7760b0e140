// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "base/key_values.hpp"
#include "base/quoting.hpp"
#include "base/suggest.hpp"
#include "plan/decision_line.hpp"
#include "plan/run_decision.hpp"

namespace fuse::schedule {
namespace {

ExecutionMode mode_of(std::string_view word, std::string_view where) {
  for (const ExecutionMode mode : {ExecutionMode::streams, ExecutionMode::graph}) {
    if (word == fuse::to_string(mode)) return mode;
  }
  refuse_text(where, fmt::format("mode is {}", in_quotes(word)), "mode takes streams or graph");
}

std::vector<std::uint32_t> numbers_of(const KeyValue& item, std::string_view where) {
  std::vector<std::uint32_t> result;
  std::string_view rest = item.value.value_or("");
  while (!rest.empty()) {
    if (item.key == "streams" && rest[0] == '-' && (rest.size() == 1 || rest[1] == ' ' || rest[1] == '\t')) {
      result.push_back(open_step);
      rest = without_blanks(rest.substr(1));
      continue;
    }
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), result.emplace_back());
    const std::string_view behind = rest.substr(static_cast<std::size_t>(end - rest.data()));
    rest = without_blanks(behind);
    const bool is_number = error == std::errc() && result.back() != open_step;
    if (is_number && (behind.empty() || rest.size() < behind.size())) continue;
    result.clear();
    break;
  }
  if (!result.empty()) return result;
  refuse_text(where, fmt::format("{} is '{}'", item.key, item.value.value_or("").substr(0, 40)),
              item.key == "order"
                  ? "order lists the steps of the plan: order = 0 2 1 3"
                  : "streams lists a stream for each step of the plan, or -: streams = 0 0 1 -");
}

std::string streams_text(const std::vector<std::uint32_t>& streams) {
  std::string text;
  for (const std::uint32_t stream : streams)
    text += stream == open_step ? std::string(" -") : fmt::format(" {}", stream);
  return text;
}

}  // namespace

std::string to_string(const RunDecision& run) {
  std::string text;
  const auto add = [&](const std::string& item) { text += (text.empty() ? "" : ", ") + item; };
  if (run.mode != ExecutionMode::automatic) add(fmt::format("mode = {}", fuse::to_string(run.mode)));
  if (!run.order.empty()) add(fmt::format("order = {}", fmt::join(run.order, " ")));
  if (!run.streams.empty()) add("streams =" + streams_text(run.streams));
  return text;
}

RunDecision parse_run(std::string_view text, int line) {
  const std::string where = line_of_decisions(line);
  const std::vector<KeyValue> items = key_values(text, where);
  check_once(items, where);
  RunDecision result{.line = line};
  for (const KeyValue& item : items) {
    if (item.key == "mode") {
      result.mode = mode_of(item.value.value_or(""), where);
    } else if (item.key == "order") {
      result.order = numbers_of(item, where);
    } else if (item.key == "streams") {
      result.streams = numbers_of(item, where);
    } else {
      refuse_text(where, fmt::format("there is no key {}", in_quotes(item.key)),
                  nearest_names({"mode", "order", "streams"}, item.key));
    }
  }
  if (items.empty()) refuse_text(where, "run says nothing", "run {mode = graph}");
  return result;
}

}  // namespace fuse::schedule
