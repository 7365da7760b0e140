// SPDX-License-Identifier: Apache-2.0
#include "bench_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace fuse::bench {

void wrong(const std::string& why) {
  fmt::print(stderr, "error: {}; see --help\n", why);
  std::exit(2);
}

void read_arguments(int argc, char** argv, const std::vector<Argument>& known, void (*help)()) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help" || word == "-h") {
      help();
      std::exit(0);
    }
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto at =
        std::find_if(known.begin(), known.end(), [&](const Argument& each) { return each.name == name; });
    if (at == known.end()) wrong("unknown option " + name);
    const bool joined = equals != std::string::npos;
    if (at->flag) {
      if (joined) wrong(name + " takes no value");
      *at->flag = true;
      continue;
    }
    if (!joined && ++i == argc) wrong(name + " needs a value");
    *at->value = joined ? word.substr(equals + 1) : argv[i];
    if (at->value->empty()) wrong(name + " has an empty value");
  }
}

std::int64_t number_of(std::string_view option, std::string_view text, std::int64_t least,
                       std::int64_t most) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || read != end || value < least || value > most)
    wrong(fmt::format("{} is a number from {} to {}, not '{}'", option, least, most, text));
  return value;
}

std::vector<std::string> parts_of(const std::string& filter) {
  std::vector<std::string> parts;
  if (filter.empty()) return parts;
  std::istringstream text(filter + ',');
  for (std::string part; std::getline(text, part, ',');) {
    if (part.empty()) wrong("a list has an empty part: '" + filter + "'");
    parts.push_back(part);
  }
  return parts;
}

}  // namespace fuse::bench
