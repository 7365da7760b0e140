// The bundle's one program: the name that it was started by, or its first argument, says which of the
// programs it is. SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#define FUSE_PROGRAM(name) int name##_main(int argc, char** argv);
#include "programs.def"
#undef FUSE_PROGRAM

namespace {

namespace fs = std::filesystem;

struct Program {
  std::string_view name;
  int (*run)(int, char**);
};

constexpr Program programs[] = {
#define FUSE_PROGRAM(name) {#name, name##_main},
#include "programs.def"
#undef FUSE_PROGRAM
};

const Program* find_program(const std::string& path) {
  for (const Program& program : programs) {
    if (fs::path(path).filename() == program.name) return &program;
  }
  return nullptr;
}

/// The files that a program reads lie beside it. What the user says comes later on the line and wins.
std::vector<std::string> default_arguments(std::string_view program, const fs::path& root) {
  if (program == "fuse_bench") {
    return {"--graphs", root / "examples/graphs", "--counts", root / "bench/results/sass_counts.json"};
  }
  if (program == "transformer_block") return {"--text", root / "LICENSE"};
  return {};
}

int usage(const char* asked) {
  if (asked) std::fprintf(stderr, "error: there is no program '%s'\n", asked);
  std::fprintf(stderr, "usage: fuse PROGRAM [ARGUMENT...], or a link to it by a program's name\nprograms:");
  for (const Program& program : programs) std::fprintf(stderr, " %s", program.name.data());
  std::fprintf(stderr, "\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  const Program* program = words.empty() ? nullptr : find_program(words[0]);
  if (!program && words.size() > 1) {
    program = find_program(words[1]);
    words.erase(words.begin());
  }
  if (!program) return usage(argc > 1 ? argv[1] : nullptr);

  const fs::path root = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  ::setenv("FUSE_TEST_SOURCE_DIR", root.c_str(), 0);
  ::setenv("FUSE_TEST_FAKE_DIR", (root / "lib/fake").c_str(), 0);
  const std::vector<std::string> defaults = default_arguments(program->name, root);
  words.insert(words.begin() + 1, defaults.begin(), defaults.end());

  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return program->run(static_cast<int>(words.size()), pointers.data());
}
