// Command lines of the programs of this folder, and the filters that pick their cases.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fuse::bench {

/// An option with a value, or a flag.
struct Argument {
  std::string_view name;  ///< "--json"
  std::string* value = nullptr;
  bool* flag = nullptr;
};

/// The command line is wrong: says why and ends the program with status 2.
[[noreturn]] void wrong(const std::string& why);

/// Reads `--name VALUE`, `--name=VALUE` and `--flag`; `help` prints the text for --help and -h, which ends
/// the program. An unknown option and an empty value are wrong.
void read_arguments(int argc, char** argv, const std::vector<Argument>& known, void (*help)());

/// The number that an option was given, from `least` to `most`; anything else is wrong.
std::int64_t number_of(std::string_view option, std::string_view text, std::int64_t least, std::int64_t most);

/// The parts of a filter, by comma; none of an empty one, which every case fits. An empty part would fit
/// every case too and is wrong, so that a variable of a script that is not set does not run everything.
std::vector<std::string> parts_of(const std::string& filter);

}  // namespace fuse::bench
