// SPDX-License-Identifier: Apache-2.0
#include "base/key_values.hpp"

#include <fmt/format.h>

#include <fuse/error.hpp>
#include <map>
#include <utility>

#include "base/quoting.hpp"

namespace fuse {
namespace {

KeyValue key_value(std::string_view text) {
  const std::size_t sign = text.find('=');
  KeyValue result{.text = text, .key = std::string(without_blanks(text.substr(0, sign)))};
  if (sign != std::string_view::npos) result.value = without_blanks(text.substr(sign + 1));
  return result;
}

}  // namespace

std::string_view without_blanks(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

void refuse_text(std::string_view where, std::string_view what, std::string hint) {
  throw Error({.code = ErrorCode::parse,
               .message = fmt::format("{}: {}", where, printable(what)),
               .hint = std::move(hint)});
}

std::vector<KeyValue> key_values(std::string_view text, std::string_view where) {
  std::vector<KeyValue> result;
  if (without_blanks(text).empty()) return result;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i == text.size() ? ',' : text[i];
    if (c == '{') ++depth;
    if (c == '}') --depth;
    if (c != ',' || (depth != 0 && i < text.size())) continue;
    result.push_back(key_value(without_blanks(text.substr(begin, i - begin))));
    if (result.back().text.empty())
      refuse_text(where, "a key is missing",
                  "keys stand between commas: nest = r:grid r:warp8 r:lane32, blocks = 66");
    begin = i + 1;
  }
  return result;
}

void check_once(const std::vector<KeyValue>& items, std::string_view where) {
  std::map<std::string_view, std::string_view> seen;
  for (const KeyValue& item : items) {
    const auto [first, added] = seen.emplace(item.key, item.text);
    if (added) continue;
    refuse_text(where, fmt::format("the key {} stands there twice", in_quotes(item.key)),
                first->second == item.text
                    ? fmt::format("write {} once", in_quotes(item.text))
                    : fmt::format("keep {} or {}", in_quotes(first->second), in_quotes(item.text)));
  }
}

}  // namespace fuse
