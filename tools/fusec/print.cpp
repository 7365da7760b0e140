// fusec print: a graph's text after parsing and verification. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <fuse/graph.hpp>
#include <memory>

#include "commands.hpp"

namespace fuse::fusec {

void add_print(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("print", "Parse and verify a graph, and print its text");
  const auto file = std::make_shared<std::string>();
  command->add_option("FILE", *file, "The graph, .fuse text")->required();
  command->callback([&action, file] {
    action = [file] {
      fmt::print("{}", Graph::load(*file).to_string());
      return 0;
    };
  });
}

}  // namespace fuse::fusec
