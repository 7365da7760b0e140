// Lexer: words of the text form, with line and column.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/error.hpp>
#include <string>
#include <string_view>

namespace fuse::ir {

struct Token {
  enum class Kind : std::uint8_t { end, identifier, number, string, value, symbol };
  Kind kind = Kind::end;
  std::string_view text;  ///< as written; a value without its %
  std::string name;       ///< string, or a value in quotes: what the quotes hold
  bool quoted = false;
  std::size_t offset = 0;
  std::uint32_t line = 1;
};

class Lexer {
 public:
  Lexer(std::string_view text, std::string file) : text_(text), file_(std::move(file)) { next(); }

  const Token& peek() const { return token_; }
  Token take();
  const std::string& file() const { return file_; }
  bool is(std::string_view symbol_or_word) const;
  /// Takes it if it is next.
  bool accept(std::string_view symbol_or_word);
  void expect(std::string_view symbol_or_word, std::string_view what);

  /// The offset of the next token.
  std::size_t offset() const { return token_.offset; }
  /// The offset just after the token taken last.
  std::size_t end_of_last() const { return last_end_; }
  /// The text from the next token through the first `stop` on its line, if that is near; else empty.
  std::string_view through(char stop) const;
  /// Goes on after the next `size` characters, which have no line break.
  void skip(std::size_t size);
  /// Goes on after the % of the next token, a value: `B %4` is a remainder after all.
  void split_value();
  /// A position in the text to come back to.
  struct Mark {
    std::size_t offset = 0;
    std::uint32_t line = 1;
  };
  Mark mark() const { return {token_.offset, token_.line}; }
  void rewind(Mark mark);
  /// What stands after `at`: a file and a line, or `?`.
  SourceLocation take_location();
  SourceLocation here() const { return {file_, token_.line}; }
  SourceLocation location(std::size_t offset) const;

  [[noreturn]] void fail(std::string message, ErrorCode code = ErrorCode::parse, std::string hint = {}) const;
  [[noreturn]] void fail_at(std::size_t offset, std::string message, ErrorCode code = ErrorCode::parse,
                            std::string hint = {}) const;
  /// "'{'", "the end of the text"
  std::string found() const;
  [[noreturn]] void fail_expected(std::string_view what) const;
  /// What is wanted stands next: an identifier or a quoted string.
  std::string take_name(std::string_view what);
  std::int64_t take_integer(std::string_view what);

 private:
  void next();
  void skip_space();
  std::string read_string();

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0;
  std::size_t last_end_ = 0;
  std::uint32_t line_ = 1;  ///< the line of at_
  Token token_;
};

}  // namespace fuse::ir
