// What stands in braces in a file of decisions: "nest = r:grid c:lane32, register_cache = 32, packed".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fuse {

struct KeyValue {
  std::string_view text{};  ///< all of it
  std::string key{};
  std::optional<std::string_view> value{};  ///< after the sign =
};

/// What stands between commas outside of inner braces. Throws Error with code parse, whose message begins
/// with `where` ("decisions: line 4"), where a key is missing.
std::vector<KeyValue> key_values(std::string_view text, std::string_view where);
/// Throws Error with code parse where a key stands there twice.
void check_once(const std::vector<KeyValue>&, std::string_view where);
/// Throws Error with code parse: what is wrong, and what would be right.
[[noreturn]] void refuse_text(std::string_view where, std::string_view what, std::string hint);
std::string_view without_blanks(std::string_view text);

}  // namespace fuse
