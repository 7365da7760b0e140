// SPDX-License-Identifier: Apache-2.0
#include "ir/dims/lexer.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/quoting.hpp"

namespace fuse::ir {
namespace {

bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '.'; }

}  // namespace

SourceLocation Lexer::location(std::size_t offset) const {
  const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(offset), '\n') + 1;
  return {file_, static_cast<std::uint32_t>(line)};
}

void Lexer::fail_at(std::size_t offset, std::string message, ErrorCode code, std::string hint) const {
  const std::size_t line_start = offset == 0 ? 0 : text_.rfind('\n', offset - 1) + 1;
  throw Error({.code = code,
               .message = "column " + std::to_string(offset - line_start + 1) + ": " + std::move(message),
               .location = location(offset),
               .hint = std::move(hint)});
}

void Lexer::fail(std::string message, ErrorCode code, std::string hint) const {
  fail_at(token_.offset, std::move(message), code, std::move(hint));
}

std::string Lexer::found() const {
  if (token_.kind == Token::Kind::end) return "the end of the text";
  constexpr std::size_t longest = 40;
  std::string shown = token_.kind == Token::Kind::value ? "'%" : "'";
  for (const char c : token_.text.substr(0, longest)) {
    const bool plain = c >= ' ' && c <= '~';
    shown += plain ? std::string(1, c) : escaped_byte(c);
  }
  return shown + (token_.text.size() > longest ? "...'" : "'");
}

void Lexer::fail_expected(std::string_view what) const {
  fail("expected " + std::string(what) + ", found " + found());
}

std::string Lexer::take_name(std::string_view what) {
  if (token_.kind != Token::Kind::identifier && token_.kind != Token::Kind::string) fail_expected(what);
  Token taken = take();
  return taken.quoted ? std::move(taken.name) : std::string(taken.text);
}

std::int64_t Lexer::take_integer(std::string_view what) {
  const std::size_t start = token_.offset;
  const bool negative = accept("-");
  if (token_.kind != Token::Kind::number) fail_expected(what);
  std::uint64_t magnitude = 0;
  const char* last = token_.text.data() + token_.text.size();
  const auto [end, error] = std::from_chars(token_.text.data(), last, magnitude);
  // The magnitude of the smallest integer is one above the largest.
  const std::uint64_t limit =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) + (negative ? 1 : 0);
  if (end != last) fail_expected(what);
  if (error != std::errc() || magnitude > limit) {
    fail_at(start, std::string(negative ? "-" : "") + std::string(token_.text) + " does not fit in 64 bits");
  }
  next();
  return static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
}

std::string_view Lexer::through(char stop) const {
  constexpr std::size_t near = 512;
  const std::string_view ahead = text_.substr(token_.offset, near);
  const std::size_t end = ahead.find(stop);
  if (end == std::string_view::npos) return {};
  const std::string_view part = ahead.substr(0, end + 1);
  return part.find('\n') == std::string_view::npos ? part : std::string_view();
}

void Lexer::skip(std::size_t size) {
  at_ = token_.offset + size;
  next();
}

void Lexer::split_value() { skip(1); }

void Lexer::skip_space() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '#') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      line_ += c == '\n';
      ++at_;
    } else {
      return;
    }
  }
}

std::string Lexer::read_string() {
  const std::size_t start = at_++;
  std::string name;
  while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
    char c = text_[at_++];
    if (c != '\\') {
      name += c;
      continue;
    }
    const auto digit = [&](std::size_t at) {
      const char h = at < text_.size() ? text_[at] : ' ';
      return is_digit(h) ? h - '0' : h >= 'a' && h <= 'f' ? h - 'a' + 10 : -1;
    };
    const char escaped = at_ < text_.size() ? text_[at_] : ' ';
    if (escaped == '"' || escaped == '\\') {
      name += escaped;
      ++at_;
    } else if (escaped == 'x' && digit(at_ + 1) >= 0 && digit(at_ + 2) >= 0) {
      name += static_cast<char>(digit(at_ + 1) * 16 + digit(at_ + 2));
      at_ += 3;
    } else {
      fail_at(at_ - 1, "unknown escape in a quoted name");
    }
  }
  if (at_ >= text_.size() || text_[at_] != '"') fail_at(start, "a quoted name does not end on its line");
  ++at_;
  return name;
}

void Lexer::next() {
  last_end_ = at_;
  skip_space();
  token_ = {};
  token_.offset = at_;
  token_.line = line_;
  const std::size_t start = at_;
  if (at_ >= text_.size()) return;
  const char c = text_[at_];
  const char following = at_ + 1 < text_.size() ? text_[at_ + 1] : ' ';
  if (is_letter(c)) {
    token_.kind = Token::Kind::identifier;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
  } else if (is_digit(c)) {
    token_.kind = Token::Kind::number;
    const bool hex = following == 'x';
    const auto signs_exponent = [&](char sign, char before) {
      return (sign == '-' || sign == '+') && (before == 'p' || (before == 'e' && !hex));
    };
    while (at_ < text_.size() &&
           (is_word(text_[at_]) || (at_ > start && signs_exponent(text_[at_], text_[at_ - 1]))))
      ++at_;
  } else if (c == '"') {
    token_.kind = Token::Kind::string;
    token_.name = read_string();
    token_.quoted = true;
  } else if (c == '%' && (is_word(following) || following == '"')) {
    // "B % 4" is a remainder: it has a space.
    token_.kind = Token::Kind::value;
    ++at_;
    if (following == '"') {
      token_.name = read_string();
      token_.quoted = true;
    } else {
      while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    }
    token_.text = text_.substr(start + 1, at_ - start - 1);
    return;
  } else {
    token_.kind = Token::Kind::symbol;
    at_ += c == '-' && following == '>' ? 2 : 1;
  }
  token_.text = text_.substr(start, at_ - start);
}

Token Lexer::take() {
  Token token = std::move(token_);
  next();
  return token;
}

bool Lexer::is(std::string_view word) const {
  return (token_.kind == Token::Kind::symbol || token_.kind == Token::Kind::identifier) &&
         token_.text == word;
}

bool Lexer::accept(std::string_view word) {
  if (!is(word)) return false;
  next();
  return true;
}

void Lexer::expect(std::string_view word, std::string_view what) {
  if (!accept(word)) fail("expected '" + std::string(word) + "' " + std::string(what) + ", found " + found());
}

void Lexer::rewind(Mark mark) {
  at_ = mark.offset;
  line_ = mark.line;
  next();
}

SourceLocation Lexer::take_location() {
  // A file name is not made of the language's tokens: read it from the text, up to ":line".
  const std::size_t start = token_.offset;
  SourceLocation location;
  if (accept("?")) return location;
  if (token_.kind == Token::Kind::string) {
    location.file = token_.name;
  } else {
    at_ = start;
    while (at_ < text_.size() &&
           (is_word(text_[at_]) || text_[at_] == '/' || text_[at_] == '+' || text_[at_] == '-'))
      ++at_;
    location.file = text_.substr(start, at_ - start);
  }
  if (location.file.empty() || at_ >= text_.size() || text_[at_] != ':')
    fail_at(start, "expected a location such as main.cpp:4 after 'at'");
  ++at_;
  std::uint64_t line = 0;
  const std::size_t digits = at_;
  while (at_ < text_.size() && is_digit(text_[at_]) && line <= 0xffffffff)
    line = line * 10 + static_cast<std::uint64_t>(text_[at_++] - '0');
  if (at_ == digits || line > 0xffffffff) fail_at(start, "expected a line number after the file");
  location.line = static_cast<std::uint32_t>(line);
  next();
  return location;
}

}  // namespace fuse::ir
