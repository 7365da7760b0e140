// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>
#include <string>

#include "rows.hpp"

int main() try {
  const std::string result = check_rows();
  std::puts(result.c_str());
  return result == "ok" ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
