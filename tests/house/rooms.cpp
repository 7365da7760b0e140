// SPDX-License-Identifier: Apache-2.0
#include "house/rooms.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "support/catch.hpp"
#include "support/paths.hpp"

namespace fuse::test {
namespace {

namespace fs = std::filesystem;

std::string stripped(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, by);) parts.push_back(stripped(part));
  return parts;
}

SourceFile read_source(const fs::path& path) {
  SourceFile file{.path = fs::relative(path, source_directory() / "src").generic_string()};
  std::ifstream in(path);
  const std::string include = "#include \"";
  for (std::string line; std::getline(in, line); ++file.lines) {
    if (!line.starts_with(include)) continue;
    file.includes.push_back(line.substr(include.size(), line.find('"', include.size()) - include.size()));
  }
  return file;
}

}  // namespace

std::size_t Room::lines() const {
  std::size_t sum = 0;
  for (const SourceFile& file : files) sum += file.lines;
  return sum;
}

std::string room_of(const std::string& path) { return fs::path(path).parent_path().generic_string(); }

bool has_sources() { return fs::exists(source_directory() / "src/rooms.txt"); }

std::vector<fs::path> files_below(const std::string& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(source_directory() / folder)) {
    if (entry.is_regular_file()) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

std::vector<Room> read_rooms() {
  std::vector<Room> rooms;
  std::ifstream in(source_directory() / "src/rooms.txt");
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::vector<std::string> fields = split(line, '|');
    INFO(line);
    REQUIRE(fields.size() == 4);
    Room room{.name = fields[0], .library = fields[1], .holds = fields[3]};
    if (fields[2] != "-") room.may_include = split(fields[2], ' ');
    rooms.push_back(std::move(room));
  }
  for (const fs::path& path : files_below("src")) {
    if (path.extension() != ".cpp" && path.extension() != ".hpp") continue;
    SourceFile file = read_source(path);
    const auto room = std::ranges::find(rooms, room_of(file.path), &Room::name);
    if (room != rooms.end()) room->files.push_back(std::move(file));
  }
  return rooms;
}

}  // namespace fuse::test
