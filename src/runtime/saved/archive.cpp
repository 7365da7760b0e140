// SPDX-License-Identifier: Apache-2.0
#include "runtime/saved/archive.hpp"

#include <fmt/format.h>

#include <fuse/error.hpp>

#include "base/quoting.hpp"
#include "ir/dims/dim_parser.hpp"
#include "runtime/saved/fields.hpp"

namespace fuse::runtime {
namespace {

// How a dim is kept: a constant, a text that comes for the first time, or the number of one that came before.
enum DimForm : std::uint8_t { constant, text, again };

/// With quotes about names that are no identifiers: "B * T" may be one symbol.
std::string text_of(const Dim& dim) {
  Dim shown = dim;
  for (const Dim& symbol : dim.symbols()) {
    const std::string name(symbol.name());
    if (!is_identifier(name))
      shown = shown.substitute(name, Dim::symbol(quoted_word(name), {symbol.min(), symbol.max(), 0}));
  }
  return shown.to_string();
}

}  // namespace

void ArchiveWriter::number(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
  bytes_ += static_cast<char>(value);
}

void ArchiveWriter::put(const std::string& text) {
  number(text.size());
  bytes_ += text;
}

void ArchiveWriter::put(const std::vector<char>& bytes) {
  number(bytes.size());
  bytes_.append(bytes.data(), bytes.size());
}

void ArchiveWriter::put(const Dim& dim) {
  if (dim.is_constant()) {
    number(DimForm::constant);
    put(dim.constant());
    return;
  }
  const auto [entry, added] = dims_.try_emplace(text_of(dim), dims_.size());
  number(added ? DimForm::text : DimForm::again);
  if (added) {
    put(entry->first);
  } else {
    number(entry->second);
  }
}

void ArchiveReader::damaged(std::string_view how) const {
  throw Error({.kind = ErrorKind::runtime,
               .code = ErrorCode::file_format,
               .message = fmt::format("{} is damaged: {} at byte {} of {}", what_, how, at_, bytes_.size())});
}

std::uint64_t ArchiveReader::number() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at_ == bytes_.size()) damaged("its end");
    const auto byte = static_cast<unsigned char>(bytes_[at_++]);
    if (shift == 63 && byte > 1) break;
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  damaged("a number of more than 64 bits");
}

std::uint64_t ArchiveReader::number(std::uint64_t most, std::string_view what) {
  const std::uint64_t value = number();
  if (value > most) damaged(fmt::format("{} of {}, where {} is the most", what, value, most));
  return value;
}

std::string_view ArchiveReader::run(std::uint64_t count) {
  if (count > bytes_.size() - at_)
    damaged(fmt::format("{} bytes, of which {} are there", count, bytes_.size() - at_));
  at_ += count;
  return bytes_.substr(at_ - count, count);
}

void ArchiveReader::take(std::string& text) { text = run(number()); }

void ArchiveReader::take(std::vector<char>& bytes) {
  const std::string_view all = run(number());
  bytes.assign(all.begin(), all.end());
}

void ArchiveReader::symbols(std::vector<ir::Symbol>& symbols) {
  take(symbols);
  for (const ir::Symbol& symbol : symbols) {
    try {
      if (symbols_.emplace(symbol.name, Dim::symbol(symbol.name, symbol.range)).second) continue;
    } catch (const Error& error) {
      damaged(error.info().message);
    }
    damaged("two dims of one name");
  }
}

void ArchiveReader::take(Dim& dim) {
  switch (number(DimForm::again, "the form of a dim")) {
    case DimForm::constant: {
      std::int64_t value = 0;
      take(value);
      dim = Dim(value);
      return;
    }
    case DimForm::text: {
      std::string text;
      take(text);
      try {
        ir::Lexer lexer(text, what_);
        dim = ir::parse_dim(lexer, symbols_);
        if (lexer.peek().kind != ir::Token::Kind::end) damaged("an extent with more after it");
      } catch (const Error& error) {
        if (error.code() == ErrorCode::file_format) throw;
        damaged("an extent, '" + text + "': " + error.info().message);
      }
      dims_.push_back(dim);
      return;
    }
    default:
      const std::uint64_t index = number();
      if (index >= dims_.size()) damaged("an extent that did not come before");
      dim = dims_[index];
  }
}

void ArchiveReader::finish() const {
  if (at_ != bytes_.size()) damaged("more than was expected");
}

}  // namespace fuse::runtime
