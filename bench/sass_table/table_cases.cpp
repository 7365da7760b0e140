// SPDX-License-Identifier: Apache-2.0
#include "table_cases.hpp"

#include "cases.hpp"

namespace fuse::bench::sass {

std::vector<TableCase> table_cases() {
  std::vector<TableCase> cases;
  for (const Case& each : all_cases()) {
    if (!each.tagged("memory") || each.tagged("smoke")) continue;
    cases.push_back({each.name, each.builder, std::string(to_string(each.dtype)), each.dims,
                     [each] { return builder_of(each.builder).build(each.dtype, each.dims); }});
  }
  return cases;
}

}  // namespace fuse::bench::sass
