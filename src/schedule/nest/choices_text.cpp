// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/choices_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "base/key_values.hpp"
#include "base/quoting.hpp"
#include "base/suggest.hpp"

namespace fuse::schedule {
namespace {

/// A key with a number, and the numbers that it takes.
template <class Record>
struct NumberKey {
  std::string_view name;
  int Record::*field;
  int least, most;

  bool takes(int value) const { return value >= least && value <= most; }
  std::string values() const { return fmt::format("{} takes a number from {} to {}", name, least, most); }
};

constexpr NumberKey<KernelChoices> kernel_keys[] = {
    {"blocks", &KernelChoices::blocks, 0, 1 << 20},
    {"slices", &KernelChoices::slices, 0, 1 << 20},
};
constexpr NumberKey<Choices> number_keys[] = {
    {"blocks", &Choices::blocks, 0, 1 << 20},
    {"register_cache", &Choices::register_cache, 0, 255},
    {"shared_cache", &Choices::shared_cache, 0, 1 << 20},
    {"accumulators", &Choices::accumulators, 1, 8},
    {"registers", &Choices::registers, 16, 255},
};

struct FlagKey {
  std::string_view name;
  bool Choices::*field;
};
constexpr FlagKey flag_keys[] = {
    {"online_softmax", &Choices::online_softmax},
    {"across", &Choices::across},
    {"packed", &Choices::packed},
    {"ahead", &Choices::ahead},
    {"invariants", &Choices::invariants},
    {"columns_once", &Choices::columns_once},
};

constexpr std::string_view a_nest =
    "a nest is a list of splits, a dim and a level each: nest = r:grid r:warp8 c:serial c:lane32 c:vector4";

std::vector<std::string> key_names(bool of_kernel) {
  std::vector<std::string> names = {of_kernel ? "phase" : "nest"};
  if (of_kernel) {
    for (const auto& key : kernel_keys) names.emplace_back(key.name);
    names.emplace_back("tile");
    return names;
  }
  for (const auto& key : number_keys) names.emplace_back(key.name);
  for (const FlagKey& key : flag_keys) names.emplace_back(key.name);
  return names;
}

class Parser {
 public:
  explicit Parser(std::string_view where) : where_(where) {}

  KernelChoices kernel(std::string_view text) {
    std::vector<KeyValue> items = key_values(text, where_);
    const auto is_phase = [](const KeyValue& item) {
      return item.text.starts_with("phase") && without_blanks(item.text.substr(5)).starts_with('{');
    };
    if (std::none_of(items.begin(), items.end(), is_phase)) return {.phases = {choices(items)}};
    KernelChoices result;
    for (const KeyValue& item : items) {
      if (is_phase(item)) result.phases.push_back(choices(key_values(phase(item.text), where_)));
    }
    std::erase_if(items, is_phase);
    check_once(items, where_);
    for (const KeyValue& item : items) {
      if (item.key == "tile") {
        result.tile = tile(item.value.value_or(""));
        continue;
      }
      const auto* row = row_of(kernel_keys, item.key);
      if (!row) unknown(item.key, true);
      result.*(row->field) = number(*row, item);
    }
    return result;
  }

 private:
  Choices choices(const std::vector<KeyValue>& items) const {
    check_once(items, where_);
    Choices result;
    for (const KeyValue& item : items) {
      if (item.key == "nest") {
        result.splits = nest(item.value.value_or(""));
      } else if (const auto* row = row_of(number_keys, item.key)) {
        result.*(row->field) = number(*row, item);
      } else if (const auto* flag = row_of(flag_keys, item.key)) {
        if (item.value) fail(fmt::format("{} has a value", item.key), "it stands alone");
        result.*(flag->field) = true;
      } else {
        unknown(item.key, false);
      }
    }
    if (result.splits.empty()) fail("there is no nest", std::string(a_nest));
    return result;
  }

  /// What stands in its braces.
  std::string_view phase(std::string_view text) const {
    const std::string_view body = without_blanks(text.substr(5));
    if (body.back() != '}') fail(fmt::format("{} is no phase", in_quotes(text)), "phase {nest = ...}");
    return body.substr(1, body.size() - 2);
  }

  std::vector<int> tile(std::string_view text) const {
    constexpr NumberKey<KernelChoices> extent{"an extent of a tile", nullptr, 1, 1 << 20};
    std::vector<int> extents;
    for (std::string_view rest = text;;) {
      const std::size_t end = std::min(rest.find('x'), rest.size());
      extents.push_back(number(extent, without_blanks(rest.substr(0, end))));
      if (end == rest.size()) return extents;
      rest = rest.substr(end + 1);
    }
  }

  std::vector<Split> nest(std::string_view text) const {
    std::optional<std::vector<Split>> splits = parse_splits(text);
    if (splits && !splits->empty()) return std::move(*splits);
    const std::string what = fmt::format("nest is {}", in_quotes(text));
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view word = rest.substr(0, rest.find_first_of(" \t"));
      rest = without_blanks(rest.substr(word.size()));
      if (!parse_splits(word)) refuse_split(what, word);
    }
    fail(what, std::string(a_nest));
  }

  [[noreturn]] void refuse_split(const std::string& what, std::string_view word) const {
    if (word.size() < 3 || word[1] != ':')
      fail(fmt::format("{}: {} is no dim and its level", what, in_quotes(word)), std::string(a_nest));
    const std::string level(word.substr(2, std::min(word.size(), word.find_first_of("0123456789")) - 2));
    const std::vector<std::string> levels = level_names();
    if (std::find(levels.begin(), levels.end(), level) == levels.end())
      fail(fmt::format("{}: there is no level {}", what, in_quotes(level)), nearest_names(levels, level));
    fail(fmt::format("{}: {} has no number of units that a split can have", what, in_quotes(word)),
         fmt::format("a number of units is from 1 to 1048576, as in {}:{}2", word[0], level));
  }

  /// Null where no row has the key.
  template <class Rows>
  static auto row_of(const Rows& rows, std::string_view key) -> decltype(std::begin(rows)) {
    const auto found =
        std::find_if(std::begin(rows), std::end(rows), [&](const auto& each) { return each.name == key; });
    return found == std::end(rows) ? nullptr : found;
  }

  template <class Record>
  int number(const NumberKey<Record>& row, const KeyValue& item) const {
    return number(row, std::string_view(item.value ? *item.value : std::string_view()));
  }
  template <class Record>
  int number(const NumberKey<Record>& row, std::string_view text) const {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !row.takes(value))
      fail(fmt::format("{} is {}", row.name, in_quotes(text)), row.values());
    return value;
  }

  [[noreturn]] void unknown(const std::string& key, bool of_kernel) const {
    fail(fmt::format("there is no key {}", in_quotes(key)), nearest_names(key_names(of_kernel), key));
  }

  [[noreturn]] void fail(const std::string& what, const std::string& hint) const {
    refuse_text(where_, what, hint);
  }

  const std::string_view where_;
};

}  // namespace

KernelChoices parse_choices(std::string_view text, std::string_view where) {
  return Parser(where).kernel(text);
}

}  // namespace fuse::schedule
