// Runs a saved plan, with the library that cannot compile: run_plan PLAN [cpu].
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>

#include "drawn.hpp"

int main(int argc, char** argv) try {
  if (argc < 2) return 2;
  const fuse::Executable executable = fuse::Executable::load(argv[1], device_of(argc, argv, 2));
  std::printf("%016llx\n", static_cast<unsigned long long>(run_on_drawn(executable)));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
