// The rooms of src as src/rooms.txt lists them, and the files that are in them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace fuse::test {

struct SourceFile {
  std::string path{};  ///< below src: "ir/dims/dim.cpp"
  std::size_t lines = 0;
  std::vector<std::string> includes{};  ///< between quotes, as they are written
};

struct Room {
  std::string name{}, library{}, holds{};
  std::vector<std::string> may_include{};
  std::vector<SourceFile> files{};

  std::size_t lines() const;
};

/// The room of a path below src: its folder.
std::string room_of(const std::string& path);
/// In the order of src/rooms.txt; fails the test where a line has not its four fields.
std::vector<Room> read_rooms();
/// Whether the sources are here: a bundle has none.
bool has_sources();
/// Those of a folder of the repository and the folders in it, sorted.
std::vector<std::filesystem::path> files_below(const std::string& folder);

}  // namespace fuse::test
