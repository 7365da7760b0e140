// One program with both libraries. Nothing is mounted: that would need /dev/fuse.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>

#include "filesystem.hpp"

int main() {
  const std::string text = read_file("/rows");
  std::printf("libfuse %d: %s\n", libfuse_version(), text.c_str());
  return text == "ok" ? 0 : 1;
}
