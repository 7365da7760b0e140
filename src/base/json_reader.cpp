// SPDX-License-Identifier: Apache-2.0
#include "base/json_reader.hpp"

#include <fuse/error.hpp>
#include <limits>

#include "base/quoting.hpp"

namespace fuse {
namespace {

constexpr std::size_t deepest_nesting = 64;

void append_utf8(std::string& out, std::uint32_t code) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    tail(12), tail(6), tail(0);
  }
}

}  // namespace

bool is_utf8(std::string_view text) {
  std::size_t i = 0;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  while (i < text.size()) {
    const unsigned first = byte(i);
    const std::size_t length = first < 0x80   ? 1
                               : first < 0xc2 ? 0
                               : first < 0xe0 ? 2
                               : first < 0xf0 ? 3
                               : first < 0xf5 ? 4
                                              : 0;
    if (length == 0 || text.size() - i < length) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xc0) != 0x80) return false;
    }
    const unsigned second = length > 1 ? byte(i + 1) : 0;
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return false;
    if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return false;
    i += length;
  }
  return true;
}

std::string json_string(std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) {
      out += {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + '"';
}

void JsonReader::fail(const std::string& what) const {
  throw Error({.kind = ErrorKind::user,
               .code = ErrorCode::file_format,
               .message = std::string(subject_) + ": " + what + " (at byte " + std::to_string(at_) +
                          " of the header)"});
}

void JsonReader::fail_here(std::string_view wanted) {
  fail((at_ < text_.size() ? in_quotes(text_.substr(at_, 1)) : std::string("the end")) + " where " +
       std::string(wanted) + " should be");
}

void JsonReader::skip_space() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
    ++at_;
  }
}

bool JsonReader::accept(char c) {
  skip_space();
  if (at_ == text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

void JsonReader::expect(char c) {
  if (!accept(c)) fail_here(in_quotes({&c, 1}));
}

unsigned JsonReader::hex4() {
  unsigned value = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) fail_here("a hexadecimal digit");
    value = value * 16 + static_cast<unsigned>(digit);
  }
  return value;
}

// Appends what follows the backslash.
void JsonReader::append_escape(std::string& out) {
  static constexpr std::string_view names = "\"\\/bfnrt", values = "\"\\/\b\f\n\r\t";
  const char c = at_ < text_.size() ? text_[at_] : '\0';
  if (const std::size_t i = names.find(c); i != std::string_view::npos) {
    ++at_;
    out += values[i];
    return;
  }
  if (c != 'u') fail_here("an escape");
  ++at_;
  std::uint32_t code = hex4();
  if (code >= 0xdc00 && code < 0xe000) fail("the second half of a surrogate pair without the first");
  if (code >= 0xd800 && code < 0xdc00) {
    if (text_.substr(at_, 2) != "\\u") fail_here("the second half of a surrogate pair");
    at_ += 2;
    const unsigned low = hex4();
    if (low < 0xdc00 || low >= 0xe000) fail("the first half of a surrogate pair without the second");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  append_utf8(out, code);
}

std::string JsonReader::string() {
  skip_space();
  if (at_ == text_.size() || text_[at_] != '"') fail_here("a string");
  ++at_;
  std::string out;
  for (;;) {
    if (at_ == text_.size()) fail_here("the end of a string");
    const char c = text_[at_];
    if (static_cast<unsigned char>(c) < 0x20) fail_here("a character of a string");
    ++at_;
    if (c == '"') break;
    if (c == '\\') {
      append_escape(out);
    } else {
      out += c;
    }
  }
  if (!is_utf8(out)) fail("the string " + in_quotes(out) + " is not UTF-8");
  return out;
}

std::int64_t JsonReader::natural() {
  skip_space();
  const std::size_t begin = at_;
  std::int64_t value = 0;
  for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
    const int digit = text_[at_] - '0';
    if (value > (std::numeric_limits<std::int64_t>::max() - digit) / 10)
      fail("a number that overflows 63 bits");
    value = value * 10 + digit;
  }
  if (at_ == begin) fail_here("a whole number");
  if (text_[begin] == '0' && at_ - begin > 1) fail("a number with a leading zero");
  return value;
}

std::size_t JsonReader::skip_digits() {
  const std::size_t begin = at_;
  while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
  if (at_ == begin) fail_here("a digit");
  return at_ - begin;
}

void JsonReader::skip_number() {
  const auto next_is = [&](char c) { return at_ < text_.size() && text_[at_] == c; };
  if (next_is('-')) ++at_;
  const bool zero = next_is('0');
  if (skip_digits() > 1 && zero) fail("a number with a leading zero");
  if (next_is('.')) {
    ++at_;
    skip_digits();
  }
  if (next_is('e') || next_is('E')) {
    ++at_;
    if (next_is('+') || next_is('-')) ++at_;
    skip_digits();
  }
}

void JsonReader::skip_scalar() {
  skip_space();
  const char c = at_ < text_.size() ? text_[at_] : '\0';
  if (c == '"') {
    string();
    return;
  }
  if (c == '-' || (c >= '0' && c <= '9')) {
    skip_number();
    return;
  }
  for (const std::string_view word : {"true", "false", "null"}) {
    if (text_.substr(at_, word.size()) == word) {
      at_ += word.size();
      return;
    }
  }
  fail_here("a value");
}

void JsonReader::skip_value() {
  std::string open;  // what will close each array and object we are in
  const auto skip_key = [&] {
    if (open.back() != '}') return;
    string();
    expect(':');
  };
  do {
    const bool object = accept('{');
    if (object || accept('[')) {
      if (open.size() == deepest_nesting)
        fail("values nested deeper than " + std::to_string(deepest_nesting));
      open += object ? '}' : ']';
      if (!accept(open.back())) {
        skip_key();
        continue;
      }
      open.pop_back();
    } else {
      skip_scalar();
    }
    // A value has ended, and with it perhaps what it stands in.
    while (!open.empty() && !accept(',')) {
      expect(open.back());
      open.pop_back();
    }
    if (!open.empty()) skip_key();
  } while (!open.empty());
}

void JsonReader::finish() {
  skip_space();
  if (at_ != text_.size()) fail_here("nothing");
}

}  // namespace fuse
