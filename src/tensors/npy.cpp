// SPDX-License-Identifier: Apache-2.0
#include "tensors/npy.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/quoting.hpp"
#include "os/mapped_file.hpp"

namespace fuse::runtime {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t longest_preamble = 12;                          // magic, version, and a 4-byte length
constexpr std::uint64_t longest_npy_header = std::uint64_t{1} << 20;  // numpy itself refuses more than 10,000
constexpr std::size_t highest_npy_rank = 64;                          // numpy's own limit

// A switch without default: a new dtype must say how numpy spells it.
constexpr std::string_view descr_of(DType type) {
  switch (type) {
    case f64:
      return "<f8";
    case f32:
      return "<f4";
    case f16:
      return "<f2";
    case bf16:
      return "<V2";
    case i64:
      return "<i8";
    case i32:
      return "<i4";
    case i8:
      return "|i1";
    case u8:
      return "|u1";
    case boolean:
      return "|b1";
  }
  return "?";
}

std::string supported_descrs() {
  std::string text = "supported:";
  for (const DType type : all_dtypes) {
    text += ' ' + in_quotes(descr_of(type));
    if (type == bf16) text += " (bf16)";
  }
  return text;
}

struct Header {
  DType dtype = f32;
  bool fortran_order = false;
  std::vector<std::int64_t> shape{};
};

[[noreturn]] void bad_npy(std::string_view name, const std::string& what, std::string hint = {}) {
  throw Error({.kind = ErrorKind::user,
               .code = ErrorCode::file_format,
               .message = "npy file " + in_quotes(name) + ": " + what,
               .hint = std::move(hint)});
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The header is a Python dict literal with three known keys; this reads that much of Python and no more.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Header parse() {
    Header header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      bool* seen = key == "descr"           ? &has_descr
                   : key == "fortran_order" ? &has_order
                   : key == "shape"         ? &has_shape
                                            : nullptr;
      if (!seen) bad_npy(name_, "the header has the unknown key " + in_quotes(key));
      if (*seen) bad_npy(name_, "the header has the key " + in_quotes(key) + " twice");
      *seen = true;
      if (seen == &has_descr) header.dtype = descr();
      if (seen == &has_order) header.fortran_order = truth();
      if (seen == &has_shape) header.shape = shape();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail_here("nothing but spaces");
    if (!has_descr) bad_npy(name_, "the header has no 'descr'");
    if (!has_order) bad_npy(name_, "the header has no 'fortran_order'");
    if (!has_shape) bad_npy(name_, "the header has no 'shape'");
    return header;
  }

 private:
  [[noreturn]] void fail_here(std::string_view wanted) {
    bad_npy(name_, "the header has " +
                       (at_ < text_.size() ? in_quotes(text_.substr(at_, 1)) : std::string("its end")) +
                       " at character " + std::to_string(at_) + ", where " + std::string(wanted) +
                       " should be");
  }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }

  bool accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail_here(in_quotes({&c, 1}));
  }

  std::string_view string() {
    skip_space();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) fail_here("a string");
    const char quote = text_[at_++];
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) bad_npy(name_, "the header has a string without an end");
    const std::string_view value = text_.substr(at_, end - at_);
    at_ = end + 1;
    return value;
  }

  DType descr() {
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '(')) {
      bad_npy(name_, "its elements are structures", "save each field in a file of its own");
    }
    const std::string_view text = string();
    if (text == "|V2") return bf16;  // as numpy.load and then numpy.save leave it
    for (const DType type : all_dtypes) {
      if (text == descr_of(type)) return type;
    }
    if (text.starts_with('>')) {
      bad_npy(name_, "its elements are big endian: " + in_quotes(text),
              "save array.astype(array.dtype.newbyteorder('<'))");
    }
    bad_npy(name_, "unsupported element type " + in_quotes(text), supported_descrs());
  }

  bool truth() {
    skip_space();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    fail_here("True or False");
  }

  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> extents;
    expect('(');
    while (!accept(')')) {
      if (extents.size() == highest_npy_rank) {
        bad_npy(name_, "its shape has more than " + std::to_string(highest_npy_rank) + " extents");
      }
      extents.push_back(extent());
      if (accept(',')) continue;
      // "(3)" is a number in Python; only a comma makes it a shape.
      if (extents.size() == 1) fail_here("','");
      expect(')');
      break;
    }
    return extents;
  }

  std::int64_t extent() {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '-') bad_npy(name_, "its shape has a negative extent");
    const std::size_t begin = at_;
    std::int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const int digit = text_[at_] - '0';
      if (value > (std::numeric_limits<std::int64_t>::max() - digit) / 10) {
        bad_npy(name_, "its shape has an extent that overflows 63 bits");
      }
      value = value * 10 + digit;
    }
    if (at_ == begin) fail_here("an extent");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // as Python 2 wrote a long
    return value;
  }

  std::string_view text_, name_;
  std::size_t at_ = 0;
};

struct Extent {
  std::uint64_t begin = 0, size = 0;  // the header's text in the file
};

// `start` is the file's first bytes, as many as there are up to longest_preamble.
Extent locate_header(std::span<const std::byte> start, std::uint64_t file_size, std::string_view name) {
  const std::string_view text = as_text(start);
  if (!text.starts_with(magic)) {
    bad_npy(name, magic.starts_with(text) ? "it ends inside its magic bytes"
                                          : "it does not start with the magic bytes of npy");
  }
  if (text.size() < 8) bad_npy(name, "it ends inside its version");
  const auto byte = [&](std::size_t i) { return static_cast<std::uint64_t>(start[i]); };
  const std::uint64_t major = byte(6), minor = byte(7);
  if (major < 1 || major > 3 || minor != 0) {
    bad_npy(name, "unknown version " + std::to_string(major) + '.' + std::to_string(minor));
  }
  Extent header{.begin = major == 1 ? 10u : 12u};
  if (text.size() < header.begin) bad_npy(name, "it ends inside the length of its header");
  header.size = byte(8) | byte(9) << 8;
  if (major > 1) header.size |= byte(10) << 16 | byte(11) << 24;
  if (header.size > file_size - header.begin) {
    bad_npy(name, "its header of " + std::to_string(header.size) + " bytes goes beyond the file's " +
                      std::to_string(file_size));
  }
  if (header.size > longest_npy_header) {
    bad_npy(name, "its header of " + std::to_string(header.size) + " bytes is longer than " +
                      std::to_string(longest_npy_header));
  }
  return header;
}

// Parses the header and checks it against the size of the data; nothing is allocated for the data yet.
Header read_header(std::string_view text, std::uint64_t data_size, std::string_view name) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x80 || byte == 0) {
      bad_npy(name, "the header's character " + std::to_string(i) + " is not ASCII text: byte " +
                        std::to_string(byte));
    }
  }
  Header header = HeaderParser(text, name).parse();
  const auto count = checked_element_count(header.shape, header.dtype);
  if (!count) bad_npy(name, "the size of " + type_text(header.dtype, header.shape) + " overflows 63 bits");
  const std::uint64_t wanted = static_cast<std::uint64_t>(*count) * size_of(header.dtype);
  if (wanted != data_size) {
    bad_npy(name, "the data of " + type_text(header.dtype, header.shape) + " should take " +
                      std::to_string(wanted) + " bytes and takes " + std::to_string(data_size));
  }
  return header;
}

// Column-major to row-major: walks the result in order, with the source's offset kept as an odometer.
template <std::size_t size>
void transpose_elements(const std::byte* from, std::byte* to, const std::vector<std::int64_t>& shape,
                        std::int64_t count) {
  const std::size_t rank = shape.size();
  std::vector<std::int64_t> stride(rank), at(rank);
  std::int64_t product = 1;
  for (std::size_t d = 0; d < rank; ++d) stride[d] = std::exchange(product, product * shape[d]);
  std::int64_t source = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * static_cast<std::int64_t>(size), from + source * static_cast<std::int64_t>(size),
                size);
    for (std::size_t d = rank; d-- > 0;) {
      source += stride[d];
      if (++at[d] < shape[d]) break;
      source -= stride[d] * shape[d];
      at[d] = 0;
    }
  }
}

// Turns the file's data, as it was read, into what the tensor promises.
void finish(HostTensor& tensor, const Header& header, std::string_view name) {
  if (header.dtype == boolean) {
    const auto odd = std::ranges::find_if(tensor.data, [](std::byte b) { return b > std::byte{1}; });
    if (odd != tensor.data.end()) {
      bad_npy(name, "element " + std::to_string(odd - tensor.data.begin()) + " of its bools is the byte " +
                        std::to_string(static_cast<int>(*odd)) + ", neither 0 nor 1");
    }
  }
  if (!header.fortran_order || header.shape.size() < 2 || tensor.data.empty()) return;
  HostTensor result = HostTensor::make(tensor.dtype, tensor.shape);
  const std::int64_t count = tensor.element_count();
  switch (size_of(tensor.dtype)) {
    case 1:
      transpose_elements<1>(tensor.data.data(), result.data.data(), tensor.shape, count);
      break;
    case 2:
      transpose_elements<2>(tensor.data.data(), result.data.data(), tensor.shape, count);
      break;
    case 4:
      transpose_elements<4>(tensor.data.data(), result.data.data(), tensor.shape, count);
      break;
    default:
      transpose_elements<8>(tensor.data.data(), result.data.data(), tensor.shape, count);
  }
  tensor = std::move(result);
}

}  // namespace

HostTensor read_npy(const std::string& path) {
  const InputFile file(path);
  std::array<std::byte, longest_preamble> buffer{};
  const std::span start = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), file.size()));
  file.read(0, start);
  const Extent extent = locate_header(start, file.size(), path);
  std::string text(extent.size, '\0');
  file.read(extent.begin, std::as_writable_bytes(std::span(text)));
  const std::uint64_t data_at = extent.begin + extent.size;
  const Header header = read_header(text, file.size() - data_at, path);
  HostTensor tensor = HostTensor::make(header.dtype, header.shape);
  file.read(data_at, tensor.data);
  finish(tensor, header, path);
  return tensor;
}

HostTensor parse_npy(std::span<const std::byte> bytes, std::string_view name) {
  const Extent extent =
      locate_header(bytes.first(std::min(bytes.size(), longest_preamble)), bytes.size(), name);
  const std::span data = bytes.subspan(extent.begin + extent.size);
  const Header header = read_header(as_text(bytes.subspan(extent.begin, extent.size)), data.size(), name);
  HostTensor tensor = HostTensor::make(header.dtype, header.shape);
  std::ranges::copy(data, tensor.data.begin());
  finish(tensor, header, name);
  return tensor;
}

std::string npy_header(const HostTensor& tensor) {
  std::string dict =
      "{'descr': '" + std::string(descr_of(tensor.dtype)) + "', 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < tensor.shape.size(); ++i)
    dict += (i ? ", " : "") + std::to_string(tensor.shape[i]);
  dict += tensor.shape.size() == 1 ? ",), }" : "), }";
  // Spaces and a newline bring the data to a multiple of 64 bytes.
  const auto padded = [&](std::size_t preamble) {
    return (preamble + dict.size() + 1 + 63) / 64 * 64 - preamble;
  };
  const bool is_long = padded(10) > 0xffff;
  const std::size_t length = padded(is_long ? 12 : 10);
  std::string header{magic};
  header += {is_long ? '\2' : '\1', '\0'};
  for (int i = 0; i < (is_long ? 4 : 2); ++i) header += static_cast<char>(length >> (8 * i) & 0xff);
  dict.resize(length - 1, ' ');
  return header + dict + '\n';
}

void write_npy(const std::string& path, const HostTensor& tensor) {
  const std::uint64_t wanted = static_cast<std::uint64_t>(tensor.element_count()) * size_of(tensor.dtype);
  if (tensor.data.size() != wanted || tensor.shape.size() > highest_npy_rank) {
    throw Error({.kind = ErrorKind::user,
                 .code = ErrorCode::invalid_argument,
                 .message = "cannot write " + type_text(tensor.dtype, tensor.shape) + " of " +
                            std::to_string(tensor.data.size()) + " bytes to " + in_quotes(path)});
  }
  const std::string header = npy_header(tensor);
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(header)), tensor.data};
  write_file_atomically(path, pieces);
}

}  // namespace fuse::runtime
