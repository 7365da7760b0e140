// SPDX-License-Identifier: Apache-2.0
#include <fuse/explore.hpp>
#include <span>
#include <utility>
#include <vector>

#include "os/mapped_file.hpp"
#include "schedule/decisions/decisions.hpp"
#include "schedule/decisions/merge_decisions.hpp"

namespace fuse {
inline namespace v0 {

Tuning::Tuning(std::string text) : text_(std::move(text)) {
  static_cast<void>(schedule::parse_decisions(text_));
}

Tuning Tuning::load(const std::string& path) {
  const MappedFile file(path);
  const std::span<const std::byte> bytes = file.bytes();
  return Tuning(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

Tuning Tuning::merge(std::span<const Tuning> found) {
  std::vector<schedule::Decisions> files;
  for (const Tuning& each : found) files.push_back(schedule::parse_decisions(each.text_));
  return Tuning(schedule::print(schedule::merged(files)));
}

void Tuning::save(const std::string& path) const {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text_));
  write_file_atomically(path, std::span(&bytes, 1));
}

}  // namespace v0
}  // namespace fuse
