// SPDX-License-Identifier: Apache-2.0
#include "base/quoting.hpp"

#include <algorithm>

namespace fuse {

bool is_identifier(std::string_view name) {
  return !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '.';
  });
}

bool is_plain_file(std::string_view file) {
  return !file.empty() && std::all_of(file.begin(), file.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '.' || c == '/' || c == '+' || c == '-';
  });
}

std::string escaped_byte(char c) {
  constexpr char hex[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
}

std::string printable(std::string_view text) {
  std::string result;
  for (const char c : text) result += c >= 0x20 && c < 0x7f ? std::string(1, c) : escaped_byte(c);
  return result;
}

std::string quoted_word(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      text += escaped_byte(c);
    } else {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
  }
  return text + '"';
}

std::string counted(std::size_t count, std::string_view noun, std::string_view plural) {
  const std::string many = plural.empty() ? std::string(noun) + 's' : std::string(plural);
  return std::to_string(count) + ' ' + (count == 1 ? std::string(noun) : many);
}

std::string listed(const std::vector<std::string_view>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += i == 0 ? "" : i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 200;
  static constexpr char digits[] = "0123456789abcdef";
  std::string out = "'";
  for (const char c : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    } else {
      out += c;
    }
  }
  if (text.size() > longest) out += "...";
  return out + '\'';
}

}  // namespace fuse
