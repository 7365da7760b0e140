// fusec print: a graph's text after parsing and verification. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <fuse/graph.hpp>

#include "fusec/commands.hpp"

namespace fuse::fusec {

int execute(const PrintOptions& options) {
  fmt::print("{}", Graph::load(options.file).to_string());
  return 0;
}

}  // namespace fuse::fusec
