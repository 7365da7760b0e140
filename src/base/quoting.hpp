// Words of the text form, whose names are bare when they are identifiers and else quoted, and of messages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fuse {

inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
/// [A-Za-z_][A-Za-z0-9_.]*
bool is_identifier(std::string_view name);
std::string quoted_word(std::string_view name);
/// A backslash, x and two hexadecimal digits.
std::string escaped_byte(char c);
/// The text with its bytes escaped that a terminal would not print as they are.
std::string printable(std::string_view text);
inline std::string word(std::string_view name) {
  return is_identifier(name) ? std::string(name) : quoted_word(name);
}
/// A file name: bare when it has only [A-Za-z0-9_./+-].
bool is_plain_file(std::string_view file);
inline std::string file_word(std::string_view file) {
  return is_plain_file(file) ? std::string(file) : quoted_word(file);
}

// For messages.

/// The value of `text` fit for an error message: in quotes, unprintable bytes escaped, cut when long.
std::string in_quotes(std::string_view text);
/// "1 operand", "2 operands"; `plural` where it is not the noun and an s.
std::string counted(std::size_t count, std::string_view noun, std::string_view plural = {});
/// "a, b and c"
std::string listed(const std::vector<std::string_view>& words);

}  // namespace fuse
