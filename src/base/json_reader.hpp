// A pull reader for strict JSON (RFC 8259): the caller asks for what its format has at each position. It
// never recurses, and nesting is bounded, so that hostile text cannot exhaust the stack.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fuse {

/// Whether `text` is well-formed UTF-8: no overlong forms, surrogates, or values above U+10FFFF.
bool is_utf8(std::string_view text);

/// `text` as a JSON string with its quotes. `text` must be UTF-8.
std::string json_string(std::string_view text);

class JsonReader {
 public:
  /// `subject` begins every message: "safetensors file 'a'". Both must outlive the reader.
  JsonReader(std::string_view text, std::string_view subject) : text_(text), subject_(subject) {}

  /// Consumes `c` if it comes next, after white space.
  bool accept(char c);
  void expect(char c);
  /// A string, decoded with its escapes, and checked to be UTF-8.
  std::string string();
  /// A number without sign, fraction, exponent or leading zeros, at most 2^63 - 1.
  std::int64_t natural();
  /// Any value, checked and dropped.
  void skip_value();
  /// Nothing but white space may be left.
  void finish();

  /// Throws Error{user, file_format}: the subject, `what`, and the position.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  void skip_space();
  [[noreturn]] void fail_here(std::string_view wanted);
  void skip_scalar();
  void skip_number();
  std::size_t skip_digits();
  unsigned hex4();
  void append_escape(std::string& out);

  std::string_view text_, subject_;
  std::size_t at_ = 0;
};

}  // namespace fuse
