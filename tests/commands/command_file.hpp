// A file of commands and of the output expected of each: a .t file, or a page of the documentation. The
// format stands in CONTRIBUTING.md. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace fuse::test {

using Lines = std::vector<std::string>;

struct Command {
  std::size_t line = 0;  // of its '$', from 1
  std::string text;
  Lines expected = {};
  int status = 0;
  std::string needs = {};              // programs, or 'not run'; empty: nothing
  std::size_t output = 0, behind = 0;  // where its output begins and ends in the lines of the file
};

struct CommandFile {
  std::filesystem::path path;
  bool page = false;  // shows excerpts of outputs
  Lines lines = {};
  std::vector<Command> commands = {};
};

CommandFile read_command_file(const std::filesystem::path& path);

/// How the output of a command compares with what was expected of it.
struct Comparison {
  bool same = false;
  Lines difference = {};  // as in a unified diff
  Lines renewed = {};     // the expected lines, where those that still match are as they were
};
Comparison compare(const Lines& expected, const Lines& actual);

/// Of a page: each line stands in the output, in this order. White space, and so where lines end, does not
/// count, and
/// '...' stands for anything.
Comparison compare_excerpt(const Lines& expected, const Lines& actual);

/// The lines of an output as they would stand in a file: white space at the ends of lines is no part of them,
/// and neither are empty lines at the end of all.
Lines lines_of(const std::string& output);

/// Writes what was expected of each command anew.
void rewrite(const CommandFile& file, const std::vector<Lines>& renewed, const std::vector<int>& statuses);

}  // namespace fuse::test
