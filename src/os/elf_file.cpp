// SPDX-License-Identifier: Apache-2.0
#include "os/elf_file.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace fuse {

std::string elf_truncation(const std::string& path) {
  std::error_code failed;
  const std::uint64_t size = std::filesystem::file_size(path, failed);
  std::ifstream in(path, std::ios::binary);
  Elf64_Ehdr header{};
  if (failed || !in.read(reinterpret_cast<char*>(&header), sizeof header)) return {};
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return {};
  }
  std::uint64_t needed = header.e_phoff + std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  in.seekg(static_cast<std::streamoff>(header.e_phoff));
  Elf64_Phdr segment{};
  for (int i = 0; i < header.e_phnum && in.read(reinterpret_cast<char*>(&segment), sizeof segment); ++i) {
    if (segment.p_type == PT_LOAD) needed = std::max(needed, segment.p_offset + segment.p_filesz);
  }
  if (size >= needed) return {};
  return fmt::format("cut short: {} bytes, its segments need {}", size, needed);
}

}  // namespace fuse
