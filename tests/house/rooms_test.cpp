// The house: what may stand where in src, and who may include whom (src/rooms.txt; docs/architecture.md).
// SPDX-License-Identifier: Apache-2.0
#include "house/rooms.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "support/catch.hpp"
#include "support/paths.hpp"

namespace fs = std::filesystem;
using namespace fuse::test;  // NOLINT

namespace {

constexpr std::size_t most_files_of_folder = 25, most_lines_of_file = 800;
const std::vector<const char*> folders = {"src", "include", "tests", "tools", "bench", "examples"};

bool is_source(const fs::path& path) { return path.extension() == ".cpp" || path.extension() == ".hpp"; }

bool skip() {
  if (!has_sources()) WARN("skipped: the sources are not here");
  return !has_sources();
}

/// What is wrong with the includes of one file; empty: nothing.
std::string wrong_include(const Room& room, const SourceFile& file, const std::vector<Room>& rooms) {
  for (const std::string& include : file.includes) {
    const std::string other = room_of(include);
    if (std::ranges::find(rooms, other, &Room::name) == rooms.end()) {
      return file.path + " includes \"" + include +
             "\": write the path from src, of a file that is in a room";
    }
    if (other == room.name || std::ranges::count(room.may_include, other) > 0) continue;
    return file.path + " includes \"" + include + "\": src/rooms.txt does not let " + room.name +
           " include " + other;
  }
  return "";
}

/// "schedule/nest": one row of the table in docs/architecture.md without the number of lines.
std::string row_of(const Room& room) {
  std::string includes;
  for (const std::string& name : room.may_include) includes += (includes.empty() ? "" : ", ") + name;
  return "`src/" + room.name + "` | " + room.holds + " | " + (includes.empty() ? "-" : includes);
}

std::string table_of(const std::vector<Room>& rooms) {
  std::string table = "| room | lines | holds | may include |\n| --- | --- | --- | --- |\n";
  for (const Room& room : rooms) {
    std::string row = row_of(room);
    row.insert(row.find('|'), "| " + std::to_string(room.lines()) + ' ');
    table += "| " + row + " |\n";
  }
  return table;
}

/// A number in a page is right while it is this near.
bool near(std::size_t told, std::size_t counted) {
  const std::size_t apart = told > counted ? told - counted : counted - told;
  return apart <= std::max<std::size_t>(100, counted / 4);
}

/// Whether a line declares what two threads could change: a variable that is static or of a namespace, a
/// mutable member, or what threads are made with.
bool has_state(const std::string& line) {
  static const std::regex threads(
      R"(^[^/\"]*(\bthread_local\b|std::(atomic|mutex|shared_mutex|thread|jthread|once_flag|async)\b))");
  static const std::regex member(R"(^ *mutable [^(]*;)");
  static const std::regex variable(
      R"(^( *static|inline|[A-Za-z_][A-Za-z0-9_:<>*, ]*)( [A-Za-z0-9_:<>*, ]+)?( = .*|\{.*)?;)");
  static const std::regex constant(
      R"(\bconst\b|\bconstexpr\b|^(__extension__ |)(using|struct|class|enum|return|extern|template|namespace|typedef|friend)\b)");
  if (std::regex_search(line, threads) || std::regex_search(line, member)) return true;
  return std::regex_search(line, variable) && !std::regex_search(line, constant);
}

std::string contents_of(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("a file includes only its own room and those that src/rooms.txt names", "[house]") {
  if (skip()) return;
  const std::vector<Room> rooms = read_rooms();
  std::size_t files = 0;
  for (const Room& room : rooms) {
    for (const SourceFile& file : room.files) {
      CHECK(wrong_include(room, file, rooms) == "");
      ++files;
    }
  }
  CHECK(files > 400);
}

TEST_CASE("an include that runs up is told with the file and the room", "[house]") {
  const std::vector<Room> rooms = {{.name = "base"}, {.name = "ir", .may_include = {"base"}}};
  CHECK(wrong_include(rooms[1], {.path = "ir/a.cpp", .includes = {"ir/a.hpp", "base/b.hpp"}}, rooms) == "");
  CHECK(wrong_include(rooms[0], {.path = "base/b.cpp", .includes = {"ir/a.hpp"}}, rooms) ==
        "base/b.cpp includes \"ir/a.hpp\": src/rooms.txt does not let base include ir");
  CHECK(wrong_include(rooms[0], {.path = "base/b.cpp", .includes = {"b.hpp"}}, rooms) ==
        "base/b.cpp includes \"b.hpp\": write the path from src, of a file that is in a room");
}

TEST_CASE("a build without the CUDA toolkit's headers reads none of them", "[house]") {
  if (skip()) return;
  static const std::regex of_toolkit(R"(#include [<"](cuda|nvrtc|cublasLt)[.]h[>"])");
  const auto left_out = [](const std::string& room) {
    return room.ends_with("/cuda");
  };  // src/CMakeLists.txt
  std::size_t found = 0;
  for (const Room& room : read_rooms()) {
    if (left_out(room.name)) continue;
    for (const SourceFile& file : room.files) {
      const std::string text = contents_of(source_directory() / "src" / file.path);
      INFO(file.path);
      CHECK_FALSE(std::regex_search(text, of_toolkit));
      const bool includes = std::ranges::any_of(
          file.includes, [&](const std::string& include) { return left_out(room_of(include)); });
      if (includes) CHECK(text.find("#if FUSE_COMPILER_HAS_CUDA\n") != std::string::npos);
      found += includes;
    }
  }
  CHECK(found > 0);
}

TEST_CASE("rooms stand in an order in which includes run one way", "[house]") {
  if (skip()) return;
  std::set<std::string> above;
  for (const Room& room : read_rooms()) {
    for (const std::string& other : room.may_include) {
      INFO(room.name << " may include " << other << ", which stands below it");
      CHECK(above.contains(other));
    }
    INFO(room.name << " stands there twice");
    CHECK(above.insert(room.name).second);
  }
}

TEST_CASE("what the library that only runs is made of includes nothing of the compiler", "[house]") {
  if (skip()) return;
  const std::vector<Room> rooms = read_rooms();
  for (const Room& room : rooms) {
    INFO(room.name << " is of the library '" << room.library << '\'');
    REQUIRE(std::set<std::string>{"both", "compiler", "runtime"}.contains(room.library));
    if (room.library == "compiler") continue;
    for (const std::string& other : room.may_include) {
      INFO(other);
      CHECK(std::ranges::find(rooms, other, &Room::name)->library == "both");
    }
  }
}

TEST_CASE("no room names another that none of its files includes", "[house]") {
  if (skip()) return;
  for (const Room& room : read_rooms()) {
    std::set<std::string> used;
    for (const SourceFile& file : room.files) {
      for (const std::string& include : file.includes) used.insert(room_of(include));
    }
    for (const std::string& other : room.may_include) {
      INFO(room.name << " names " << other);
      CHECK(used.contains(other));
    }
  }
}

TEST_CASE("what is built without TSan has no threads and nothing static that changes", "[house]") {
  if (skip()) return;
  // fuse_tests_threaded takes these folders as they are, since pure functions race with nobody
  // (src/CMakeLists.txt).
  std::smatch folders_found;
  const std::string cmake = contents_of(source_directory() / "src/CMakeLists.txt");
  REQUIRE(std::regex_search(cmake, folders_found, std::regex(R"x(set\(FUSE_PURE_ROOMS "([a-z_|]+)"\))x")));
  std::istringstream pure(folders_found[1].str());
  std::size_t files = 0;
  const std::vector<Room> rooms = read_rooms();
  for (std::string folder; std::getline(pure, folder, '|');) {
    INFO(folder);
    REQUIRE(fs::is_directory(source_directory() / "src" / folder));
    for (const Room& room : rooms)
      if (room.name.starts_with(folder)) CHECK(std::ranges::count(room.may_include, "os") == 0);
    for (const fs::path& path : files_below("src/" + folder)) {
      if (!is_source(path)) continue;
      ++files;
      std::ifstream in(path);
      bool in_text = false;  // of a kernel, which is no code of these folders
      for (std::string line; std::getline(in, line);) {
        if (line.find("R\"(") != std::string::npos) in_text = true;
        INFO(path.string() << ": " << line);
        if (!in_text) CHECK_FALSE(has_state(line));
        if (line.find(")\"") != std::string::npos) in_text = false;
      }
    }
  }
  CHECK(files > 80);

  CHECK(has_state("  static std::map<int, int> seen;"));
  CHECK(has_state("static int calls = 0;"));
  CHECK(has_state("int calls = 0;"));
  CHECK(has_state("std::vector<std::string> names{};"));
  CHECK(has_state("  mutable std::string text_;"));
  CHECK(has_state("  std::atomic<int> next = 0;"));
  CHECK_FALSE(has_state("  static const std::vector<Row> table = make();"));
  CHECK_FALSE(has_state("  static bool is_free(const Dim& dim);"));
  CHECK_FALSE(has_state("const char* const cpu_math = R\"(static int f();"));
}

TEST_CASE("every source of the library is in a room", "[house]") {
  if (skip()) return;
  std::set<std::string> names;
  for (const Room& room : read_rooms()) {
    INFO("room " << room.name);
    CHECK(!room.files.empty());
    names.insert(room.name);
  }
  for (const fs::path& path : files_below("src")) {
    if (!is_source(path)) continue;
    const std::string below = fs::relative(path, source_directory() / "src").generic_string();
    INFO(below << " is in no room of src/rooms.txt");
    CHECK((below == "precompiled.hpp" || names.contains(room_of(below))));
  }
}

TEST_CASE("folders and files are small enough to be read", "[house]") {
  if (skip()) return;
  std::map<fs::path, std::size_t> files;
  for (const char* folder : folders) {
    for (const fs::path& path : files_below(folder)) {
      if (!is_source(path)) continue;
      ++files[path.parent_path()];
      std::ifstream in(path);
      const auto lines = std::count(std::istreambuf_iterator<char>(in), {}, '\n');
      INFO(path << " has " << lines << " lines");
      CHECK(lines <= static_cast<std::ptrdiff_t>(most_lines_of_file));
    }
  }
  for (const auto& [folder, count] : files) {
    INFO(folder << " has " << count << " files");
    CHECK(count <= most_files_of_folder);
  }
}

TEST_CASE("no two sources have the same name without need", "[house]") {
  if (skip()) return;
  // What a program starts with; what a target precompiles; the names of fuzz targets, which are those of the
  // doors.
  const std::set<std::string> needed = {"main.cpp", "precompiled.hpp", "c_api.cpp"};
  std::map<std::string, fs::path> seen;
  for (const char* folder : folders) {
    for (const fs::path& path : files_below(folder)) {
      if (!is_source(path) || needed.contains(path.filename().string())) continue;
      const auto [first, fresh] = seen.emplace(path.filename().string(), path);
      INFO(path << " and " << first->second);
      CHECK(fresh);
    }
  }
}

TEST_CASE("the table of docs/architecture.md has the rooms", "[house]") {
  if (skip()) return;
  const std::vector<Room> rooms = read_rooms();
  const fs::path path = source_directory() / "docs/architecture.md";
  std::string page = contents_of(path);
  const std::string begin = "<!-- rooms -->\n", end = "<!-- end of rooms -->\n";
  const std::size_t first = page.find(begin) + begin.size(), last = page.find(end);
  REQUIRE(last != std::string::npos);
  if (const char* update = std::getenv("FUSE_UPDATE_GOLDENS"); update && std::string(update) == "1") {
    std::ofstream(path) << page.replace(first, last - first, table_of(rooms));
    return;
  }
  std::istringstream table(page.substr(first, last - first));
  std::string line;
  std::getline(table, line);
  std::getline(table, line);
  for (const Room& room : rooms) {
    REQUIRE(std::getline(table, line));
    INFO("FUSE_UPDATE_GOLDENS=1 writes the table again; " << line);
    const std::size_t number = line.find("| ", 2) + 2, behind = line.find(" | ", number);
    REQUIRE(behind != std::string::npos);
    CHECK(near(std::stoul(line.substr(number, behind - number)), room.lines()));
    CHECK(line.erase(number, behind + 3 - number) == "| " + row_of(room) + " |");
  }
  CHECK(!std::getline(table, line));
}
