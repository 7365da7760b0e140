// SPDX-License-Identifier: Apache-2.0
#include "schedule/decisions/measured.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/key_values.hpp"
#include "base/quoting.hpp"
#include "plan/decision_line.hpp"

namespace fuse::schedule {
namespace {

constexpr const char* usual = "it has device, gemms, default_us and tuned_us, as fusec tune writes it";

std::string plain(std::string name) {
  for (char& c : name) {
    const bool separates = c == ',' || c == '{' || c == '}' || c == '=';
    if (separates || static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return std::string(without_blanks(name));
}

double microseconds(const KeyValue& item, std::string_view where) {
  const std::string_view digits = item.value.value_or("");
  double number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error == std::errc() && end == digits.data() + digits.size() && std::isfinite(number) && number > 0)
    return number;
  refuse_text(where, fmt::format("{} is {}", item.key, in_quotes(digits)),
              "a number of microseconds above 0");
}

}  // namespace

std::string to_string(const Measured& measured) {
  std::string text = fmt::format("device = {}", plain(measured.device));
  if (!measured.gemms.empty()) text += fmt::format(", gemms = {}", plain(measured.gemms));
  if (measured.default_us > 0) text += fmt::format(", default_us = {:.6g}", measured.default_us);
  if (measured.tuned_us > 0) text += fmt::format(", tuned_us = {:.6g}", measured.tuned_us);
  return text;
}

Measured parse_measured(std::string_view text, int line) {
  const std::string where = line_of_decisions(line);
  const std::vector<KeyValue> items = key_values(text, where);
  check_once(items, where);
  Measured result{.line = line};
  for (const KeyValue& item : items) {
    if (item.key == "device") {
      result.device = item.value.value_or("");
    } else if (item.key == "gemms") {
      result.gemms = item.value.value_or("");
    } else if (item.key == "default_us") {
      result.default_us = microseconds(item, where);
    } else if (item.key == "tuned_us") {
      result.tuned_us = microseconds(item, where);
    } else {
      refuse_text(where, fmt::format("there is no key {}", in_quotes(item.key)), usual);
    }
  }
  if (plain(result.device).empty()) refuse_text(where, "the device is missing", usual);
  return result;
}

}  // namespace fuse::schedule
