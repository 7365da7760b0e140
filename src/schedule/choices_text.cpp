// SPDX-License-Identifier: Apache-2.0
#include "schedule/choices_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fuse/error.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/nearest.hpp"
#include "ir/words.hpp"

namespace fuse::schedule {
namespace {

/// A key with a number, and the numbers that it takes.
struct NumberKey {
  std::string_view name;
  int Choices::*field;
  int least, most;

  bool takes(int value) const { return value >= least && value <= most; }
  std::string values() const { return fmt::format("{} takes a number from {} to {}", name, least, most); }
};

constexpr NumberKey blocks_key = {"blocks", &Choices::blocks, 0, 1 << 20};
constexpr NumberKey number_keys[] = {
    blocks_key,
    {"hold", &Choices::hold, 0, 255},
    {"shared_hold", &Choices::shared_hold, 0, 1 << 20},
    {"accumulators", &Choices::accumulators, 1, 8},
    {"registers", &Choices::registers, 16, 255},
};

struct FlagKey {
  std::string_view name;
  bool Choices::*field;
};
constexpr FlagKey flag_keys[] = {
    {"online", &Choices::online}, {"across", &Choices::across},         {"packed", &Choices::packed},
    {"ahead", &Choices::ahead},   {"invariants", &Choices::invariants},
};

constexpr std::string_view a_nest =
    "a nest is a list of splits, a dim and a level each: nest = r:grid r:warp8 c:serial c:lane32 c:vector4";

std::vector<std::string> key_names(bool of_kernel) {
  if (of_kernel) return {"blocks", "phase"};
  std::vector<std::string> names = {"nest"};
  for (const NumberKey& key : number_keys) names.emplace_back(key.name);
  for (const FlagKey& key : flag_keys) names.emplace_back(key.name);
  return names;
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

class Parser {
 public:
  explicit Parser(std::string_view where) : where_(where) {}

  KernelChoices kernel(std::string_view text) {
    const std::vector<std::string_view> all = items(text);
    const auto is_phase = [](std::string_view item) {
      return item.starts_with("phase") && trimmed(item.substr(5)).starts_with('{');
    };
    if (std::none_of(all.begin(), all.end(), is_phase)) return {.phases = {choices(text)}};
    KernelChoices result;
    std::set<std::string> seen;
    for (const std::string_view item : all) {
      if (is_phase(item)) {
        const std::string_view body = trimmed(item.substr(5));
        if (body.size() < 2 || body.front() != '{' || body.back() != '}')
          fail(fmt::format("'{}' is no phase", item), "phase {nest = ...}");
        result.phases.push_back(choices(body.substr(1, body.size() - 2)));
        continue;
      }
      const auto [key, value] = parts(item);
      once(seen, key);
      if (key != blocks_key.name) unknown(key, true);
      result.blocks = number(blocks_key, value);
    }
    return result;
  }

 private:
  Choices choices(std::string_view text) {
    Choices result;
    std::set<std::string> seen;
    for (const std::string_view item : items(text)) {
      const auto [key, value] = parts(item);
      once(seen, key);
      if (key == "nest") {
        result.splits = nest(value);
      } else if (const auto* row =
                     std::find_if(std::begin(number_keys), std::end(number_keys),
                                  [&, key = key](const NumberKey& each) { return each.name == key; });
                 row != std::end(number_keys)) {
        result.*(row->field) = number(*row, value);
      } else if (const auto* flag =
                     std::find_if(std::begin(flag_keys), std::end(flag_keys),
                                  [&, key = key](const FlagKey& each) { return each.name == key; });
                 flag != std::end(flag_keys)) {
        if (item.find('=') != std::string_view::npos)
          fail(fmt::format("{} has a value", key), "it stands alone");
        result.*(flag->field) = true;
      } else {
        unknown(key, false);
      }
    }
    if (!seen.contains("nest")) fail("there is no nest", std::string(a_nest));
    return result;
  }

  std::vector<Split> nest(std::string_view text) const {
    std::optional<std::vector<Split>> splits = parse_splits(text);
    if (splits && !splits->empty()) return std::move(*splits);
    fail(fmt::format("nest is '{}'", text), std::string(a_nest));
  }

  /// What stands between commas outside of braces.
  std::vector<std::string_view> items(std::string_view text) const {
    std::vector<std::string_view> result;
    int depth = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
      const char c = i == text.size() ? ',' : text[i];
      if (c == '{') ++depth;
      if (c == '}') --depth;
      if (c != ',' || (depth != 0 && i < text.size())) continue;
      result.push_back(trimmed(text.substr(begin, i - begin)));
      if (result.back().empty())
        fail("a key is missing", "keys stand between commas: nest = r:grid r:warp8 r:lane32, blocks = 66");
      begin = i + 1;
    }
    return result;
  }

  std::pair<std::string, std::string_view> parts(std::string_view item) const {
    const std::size_t sign = item.find('=');
    const std::string_view key = trimmed(item.substr(0, sign));
    return {std::string(key),
            sign == std::string_view::npos ? std::string_view() : trimmed(item.substr(sign + 1))};
  }

  void once(std::set<std::string>& seen, const std::string& key) const {
    if (!seen.insert(key).second) fail(fmt::format("the key '{}' stands there twice", key), "");
  }

  int number(const NumberKey& row, std::string_view text) const {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !row.takes(value))
      fail(fmt::format("{} is '{}'", row.name, text), row.values());
    return value;
  }

  [[noreturn]] void unknown(const std::string& key, bool of_kernel) const {
    fail(fmt::format("there is no key '{}'", key), ir::nearest_names(key_names(of_kernel), key));
  }

  [[noreturn]] void fail(const std::string& what, const std::string& hint) const {
    throw Error({.code = ErrorCode::parse,
                 .message = fmt::format("{}: {}", where_, ir::printable(what)),
                 .hint = hint});
  }

  const std::string_view where_;
};

}  // namespace

KernelChoices parse_choices(std::string_view text, std::string_view where) {
  return Parser(where).kernel(text);
}

}  // namespace fuse::schedule
