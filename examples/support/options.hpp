// A small option parser, so that the examples need nothing but the standard library.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace example {

/// One option: "--blocks N", or a flag where `argument` is empty.
struct Option {
  std::string name, argument, fallback, help;
};

/// The options of a program. A wrong command line ends it with status 2, --help with status 0.
class Options {
 public:
  Options(int argc, char** argv, std::string_view about, std::vector<Option> known)
      : known_(std::move(known)) {
    for (const Option& option : known_) values_[option.name] = option.fallback;
    for (int i = 1; i < argc; ++i) {
      std::string text = argv[i];
      if (text == "--help" || text == "-h") help(about);
      std::string value;
      const std::size_t equals = text.find('=');
      const bool joined = equals != std::string::npos;
      if (joined) value = text.substr(equals + 1);
      if (joined) text.resize(equals);
      const auto option = std::find_if(known_.begin(), known_.end(),
                                       [&](const Option& candidate) { return candidate.name == text; });
      if (option == known_.end()) fail("unknown option " + text + "; see --help");
      if (option->argument.empty()) {
        if (joined) fail(text + " takes no value");
        value = "yes";
      } else if (!joined) {
        if (i + 1 == argc) fail(text + " needs " + option->argument);
        value = argv[++i];
      }
      values_[text] = value;
    }
  }

  const std::string& text(const std::string& name) const { return values_.at(name); }
  bool flag(const std::string& name) const { return !values_.at(name).empty(); }

  std::int64_t integer(const std::string& name, std::int64_t min, std::int64_t max) const {
    const std::string& digits = values_.at(name);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < min || value > max) {
      fail(name + " " + digits + ": an integer from " + std::to_string(min) + " to " + std::to_string(max) +
           " is needed");
    }
    return value;
  }

  [[noreturn]] static void fail(const std::string& message) {
    std::fprintf(stderr, "error: %s\n", message.c_str());
    std::exit(2);
  }

 private:
  [[noreturn]] void help(std::string_view about) const {
    std::printf("%.*s\n\n", static_cast<int>(about.size()), about.data());
    for (const Option& option : known_) {
      const std::string left = option.name + (option.argument.empty() ? "" : " " + option.argument);
      const std::string fallback = option.fallback.empty() ? "" : " [" + option.fallback + "]";
      std::printf("  %-26s %s%s\n", left.c_str(), option.help.c_str(), fallback.c_str());
    }
    std::printf("  %-26s %s\n", "--help", "this text");
    std::exit(0);
  }

  std::vector<Option> known_;
  std::map<std::string, std::string> values_;
};

}  // namespace example
