// SPDX-License-Identifier: Apache-2.0
#include "tensors/safetensors.hpp"

#include <algorithm>
#include <utility>

#include "base/json_reader.hpp"
#include "base/quoting.hpp"

namespace fuse::runtime {
namespace {

constexpr std::uint64_t longest_safetensors_header = 100'000'000;  // as the format's own reader
constexpr std::size_t highest_safetensors_rank = 64;
constexpr std::string_view metadata_key = "__metadata__";

// A switch without default: a new dtype must say how safetensors spells it.
constexpr std::string_view name_of(DType type) {
  switch (type) {
    case f64:
      return "F64";
    case f32:
      return "F32";
    case f16:
      return "F16";
    case bf16:
      return "BF16";
    case i64:
      return "I64";
    case i32:
      return "I32";
    case i8:
      return "I8";
    case u8:
      return "U8";
    case boolean:
      return "BOOL";
  }
  return "?";
}

std::string supported_names() {
  std::string text = "supported:";
  for (const DType type : all_dtypes) text += ' ' + std::string(name_of(type));
  return text;
}

struct ForeignType {
  std::string_view text;
  std::size_t bytes;
};
// Types fuse cannot use whose sizes it can check.
constexpr ForeignType foreign_types[] = {{"F8_E4M3", 1}, {"F8_E5M2", 1}, {"U16", 2}, {"I16", 2},
                                         {"U32", 4},     {"U64", 8},     {"C64", 8}};

[[noreturn]] void bad_safetensors(const std::string& subject, const std::string& what) {
  throw Error({.kind = ErrorKind::user, .code = ErrorCode::file_format, .message = subject + ": " + what});
}

// One tensor of the header, its offsets not yet resolved.
struct Entry {
  SafetensorsEntry tensor{};
  std::int64_t begin = 0, end = 0;
};

Entry parse_entry(JsonReader& json, const std::string& tensor) {
  Entry entry;
  bool has_dtype = false, has_shape = false, has_offsets = false;
  const auto once = [&](bool& seen, std::string_view key) {
    if (std::exchange(seen, true))
      json.fail("tensor " + in_quotes(tensor) + " has " + in_quotes(key) + " twice");
  };
  json.expect('{');
  if (!json.accept('}')) {
    do {
      const std::string key = json.string();
      json.expect(':');
      if (key == "dtype") {
        once(has_dtype, key);
        entry.tensor.dtype_text = json.string();
      } else if (key == "shape") {
        once(has_shape, key);
        json.expect('[');
        if (json.accept(']')) continue;
        do {
          if (entry.tensor.shape.size() == highest_safetensors_rank) {
            json.fail("tensor " + in_quotes(tensor) + " has more than " +
                      std::to_string(highest_safetensors_rank) + " extents");
          }
          entry.tensor.shape.push_back(json.natural());
        } while (json.accept(','));
        json.expect(']');
      } else if (key == "data_offsets") {
        once(has_offsets, key);
        json.expect('[');
        entry.begin = json.natural();
        json.expect(',');
        entry.end = json.natural();
        json.expect(']');
      } else {
        json.skip_value();
      }
    } while (json.accept(','));
    json.expect('}');
  }
  for (const auto& [seen, key] :
       {std::pair{has_dtype, "dtype"}, {has_shape, "shape"}, {has_offsets, "data_offsets"}}) {
    if (!seen) json.fail("tensor " + in_quotes(tensor) + " has no " + in_quotes(key));
  }
  return entry;
}

std::map<std::string, Entry, std::less<>> parse_header(std::string_view text, const std::string& subject) {
  JsonReader json(text, subject);
  std::map<std::string, Entry, std::less<>> entries;
  bool has_metadata = false;
  if (!text.starts_with('{')) bad_safetensors(subject, "its header does not start with '{'");
  json.expect('{');
  if (!json.accept('}')) {
    do {
      const std::string name = json.string();
      json.expect(':');
      if (name == metadata_key) {
        if (std::exchange(has_metadata, true)) json.fail("two '__metadata__'");
        json.skip_value();
        continue;
      }
      if (entries.contains(name)) json.fail("two tensors are named " + in_quotes(name));
      entries.emplace(name, parse_entry(json, name));
    } while (json.accept(','));
    json.expect('}');
  }
  json.finish();
  return entries;
}

// The type is known to us, and the bytes are what it and the shape ask for.
void check_entry(Entry& entry, std::span<const std::byte> data, const std::string& subject,
                 const std::string& name) {
  SafetensorsEntry& tensor = entry.tensor;
  const auto offsets =
      "data_offsets [" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) + ']';
  if (entry.begin > entry.end)
    bad_safetensors(subject, "tensor " + in_quotes(name) + " has " + offsets + " that end before they begin");
  if (static_cast<std::uint64_t>(entry.end) > data.size()) {
    bad_safetensors(subject, "tensor " + in_quotes(name) + " has " + offsets + " beyond the " +
                                 std::to_string(data.size()) + " bytes of data");
  }
  tensor.bytes =
      data.subspan(static_cast<std::size_t>(entry.begin), static_cast<std::size_t>(entry.end - entry.begin));
  std::size_t element = 0;
  for (const DType type : all_dtypes) {
    if (tensor.dtype_text != name_of(type)) continue;
    tensor.dtype = type;
    element = size_of(type);
  }
  for (const ForeignType& row : foreign_types) {
    if (tensor.dtype_text == row.text) element = row.bytes;
  }
  if (element == 0) return;
  const auto count = checked_element_count(tensor.shape, element);
  if (!count) bad_safetensors(subject, "the size of tensor " + in_quotes(name) + " overflows 63 bits");
  const std::uint64_t wanted = static_cast<std::uint64_t>(*count) * element;
  if (wanted != tensor.bytes.size()) {
    bad_safetensors(subject, "tensor " + in_quotes(name) + " should take " + std::to_string(wanted) +
                                 " bytes and takes " + std::to_string(tensor.bytes.size()));
  }
  if (tensor.dtype == boolean &&
      std::ranges::any_of(tensor.bytes, [](std::byte b) { return b > std::byte{1}; })) {
    bad_safetensors(subject, "tensor " + in_quotes(name) + " has a bool that is neither 0 nor 1");
  }
}

// The tensors, in the order of their data, must follow one another from its beginning to its end.
void check_cover(const std::map<std::string, Entry, std::less<>>& entries, std::size_t data_size,
                 const std::string& subject) {
  std::vector<const std::pair<const std::string, Entry>*> order;
  order.reserve(entries.size());
  for (const auto& item : entries) order.push_back(&item);
  std::ranges::sort(order, {},
                    [](const auto* item) { return std::pair(item->second.begin, item->second.end); });
  std::int64_t covered = 0;
  const std::string* previous = nullptr;
  for (const auto* item : order) {
    const Entry& entry = item->second;
    if (entry.begin < covered) {
      bad_safetensors(subject, "the data of tensors " + in_quotes(*previous) + " and " +
                                   in_quotes(item->first) + " overlap");
    }
    if (entry.begin > covered) {
      bad_safetensors(subject, "bytes " + std::to_string(covered) + " to " + std::to_string(entry.begin) +
                                   " of the data belong to no tensor");
    }
    covered = entry.end;
    previous = &item->first;
  }
  if (static_cast<std::uint64_t>(covered) != data_size) {
    bad_safetensors(subject, "the last " + std::to_string(data_size - static_cast<std::uint64_t>(covered)) +
                                 " bytes of the data belong to no tensor");
  }
}

[[noreturn]] void refuse_write(const std::string& path, const std::string& what) {
  throw Error({.kind = ErrorKind::user,
               .code = ErrorCode::invalid_argument,
               .message = "cannot write " + in_quotes(path) + ": " + what});
}

}  // namespace

SafetensorsIndex parse_safetensors(std::span<const std::byte> file, std::string_view name) {
  const std::string subject = "safetensors file " + in_quotes(name);
  constexpr std::size_t prefix = 8;
  if (file.size() < prefix) bad_safetensors(subject, "it ends inside the length of its header");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < prefix; ++i) length |= static_cast<std::uint64_t>(file[i]) << (8 * i);
  if (length > file.size() - prefix) {
    bad_safetensors(subject, "its header of " + std::to_string(length) + " bytes goes beyond the file's " +
                                 std::to_string(file.size()));
  }
  if (length > longest_safetensors_header) {
    bad_safetensors(subject, "its header of " + std::to_string(length) + " bytes is longer than " +
                                 std::to_string(longest_safetensors_header));
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + prefix, length);
  const std::span<const std::byte> data = file.subspan(prefix + length);
  auto entries = parse_header(text, subject);
  for (auto& [tensor, entry] : entries) check_entry(entry, data, subject, tensor);
  check_cover(entries, data.size(), subject);
  SafetensorsIndex index;
  for (auto& [tensor, entry] : entries) index.emplace_hint(index.end(), tensor, std::move(entry.tensor));
  return index;
}

DType supported_dtype(const SafetensorsEntry& entry, std::string_view tensor) {
  if (entry.dtype) return *entry.dtype;
  throw Error(
      {.kind = ErrorKind::user,
       .code = ErrorCode::unsupported,
       .message = "tensor " + in_quotes(tensor) + " has the unsupported dtype " + in_quotes(entry.dtype_text),
       .hint = supported_names()});
}

HostTensor SafetensorsFile::read(std::string_view name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) {
    throw Error({.kind = ErrorKind::user,
                 .code = ErrorCode::unknown_name,
                 .message = "the safetensors file has no tensor " + in_quotes(name)});
  }
  const SafetensorsEntry& entry = found->second;
  HostTensor tensor = HostTensor::make(supported_dtype(entry, name), entry.shape);
  std::ranges::copy(entry.bytes, tensor.data.begin());
  return tensor;
}

void write_safetensors(const std::string& path, const std::map<std::string, HostTensor>& tensors) {
  std::vector<const std::pair<const std::string, HostTensor>*> order;
  for (const auto& item : tensors) {
    const auto& [name, tensor] = item;
    if (name == metadata_key || !is_utf8(name))
      refuse_write(path, "no tensor can be named " + in_quotes(name));
    const std::uint64_t wanted = static_cast<std::uint64_t>(tensor.element_count()) * size_of(tensor.dtype);
    if (tensor.data.size() != wanted || tensor.shape.size() > highest_safetensors_rank) {
      refuse_write(path, "tensor " + in_quotes(name) + " is " + type_text(tensor.dtype, tensor.shape) +
                             " of " + std::to_string(tensor.data.size()) + " bytes");
    }
    order.push_back(&item);
  }
  // Stable: the map has them by name.
  std::ranges::stable_sort(order, std::greater<>{},
                           [](const auto* item) { return size_of(item->second.dtype); });
  std::string header = "{";
  std::uint64_t offset = 0;
  for (const auto* item : order) {
    const auto& [name, tensor] = *item;
    if (header.size() > 1) header += ',';
    header += json_string(name) + ":{\"dtype\":\"" + std::string(name_of(tensor.dtype)) + "\",\"shape\":[";
    for (std::size_t i = 0; i < tensor.shape.size(); ++i)
      header += (i ? "," : "") + std::to_string(tensor.shape[i]);
    header += "],\"data_offsets\":[" + std::to_string(offset) + ',' +
              std::to_string(offset + tensor.data.size()) + "]}";
    offset += tensor.data.size();
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > longest_safetensors_header)
    refuse_write(path, "its header would be longer than any reader accepts");
  std::string length;
  for (int i = 0; i < 8; ++i)
    length += static_cast<char>(static_cast<std::uint64_t>(header.size()) >> (8 * i) & 0xff);
  std::vector<std::span<const std::byte>> pieces = {std::as_bytes(std::span(length)),
                                                    std::as_bytes(std::span(header))};
  for (const auto* item : order) pieces.emplace_back(item->second.data);
  write_file_atomically(path, pieces);
}

}  // namespace fuse::runtime
