// Safetensors files: an 8-byte length, a JSON header of that length, and the data.
//
//   {"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {...}}
//
// F64 F32 F16 BF16 I64 I32 BOOL are read. A tensor of another dtype may stand in the file: it is an error
// only when it is asked for. As the format demands, the tensors cover the data without gap or overlap. A
// malformed file is an Error{user, file_format} that names the file and what is wrong with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "os/mapped_file.hpp"
#include "tensors/host_tensor.hpp"

namespace fuse::runtime {

struct SafetensorsEntry {
  std::string dtype_text{};      ///< as the file spells it: "F32"
  std::optional<DType> dtype{};  ///< empty if fuse has no such type
  std::vector<std::int64_t> shape{};
  std::span<const std::byte> bytes{};  ///< in the file's bytes; need not be aligned for the dtype
};

using SafetensorsIndex = std::map<std::string, SafetensorsEntry, std::less<>>;

/// `file` is a whole file, which the entries point into; `name` stands for it in errors.
SafetensorsIndex parse_safetensors(std::span<const std::byte> file, std::string_view name);

/// Throws unsupported, naming the dtype, unless the entry's dtype is one of fuse's.
DType supported_dtype(const SafetensorsEntry& entry, std::string_view tensor);

/// A mapped file and its index. The entries are valid as long as this object (moving it keeps them).
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path)
      : file_(path), index_(parse_safetensors(file_.bytes(), path)) {}
  const SafetensorsIndex& tensors() const { return index_; }
  /// A copy. Throws unknown_name or unsupported.
  HostTensor read(std::string_view name) const;

 private:
  MappedFile file_;
  SafetensorsIndex index_;
};

/// Widest elements first and then by name, so that every tensor is aligned for its dtype. All or nothing.
void write_safetensors(const std::string& path, const std::map<std::string, HostTensor>& tensors);

}  // namespace fuse::runtime
