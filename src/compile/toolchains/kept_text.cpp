// SPDX-License-Identifier: Apache-2.0
#include "compile/toolchains/kept_text.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fuse/error.hpp>
#include <span>

#include "ir/graph/hash.hpp"
#include "os/environment.hpp"
#include "os/mapped_file.hpp"

namespace fuse::runtime {

bool keeps_text() { return !value_of(Variable::keep).empty(); }

codegen::Source with_kept_text(const codegen::Source& source) {
  codegen::Source kept = source;
  if (!keeps_text()) return kept;
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path directory = fs::absolute(value_of(Variable::keep), failed);
  if (!failed) fs::create_directories(directory, failed);
  if (failed) {
    throw Error({.kind = ErrorKind::runtime,
                 .code = ErrorCode::io,
                 .message = fmt::format("FUSE_KEEP: cannot make the directory {}: {}",
                                        value_of(Variable::keep), failed.message())});
  }
  const std::string text = source.text();
  const std::uint64_t hash = ir::Hasher().add(std::string_view(text)).value();
  kept.name = (directory / fmt::format("{}-{:016x}", source.name, hash)).string();
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  write_file_atomically(kept.name + ".cu", {&bytes, 1});
  return kept;
}

}  // namespace fuse::runtime
