// Compiles a graph, runs it and saves it: save_plan GRAPH.fuse PLAN [cpu].
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>
#include <fuse/fuse.hpp>

#include "drawn.hpp"

int main(int argc, char** argv) try {
  if (argc < 3) return 2;
  const fuse::Executable executable = fuse::compile(fuse::Graph::load(argv[1]), device_of(argc, argv, 3));
  executable.save(argv[2]);
  std::printf("%016llx\n", static_cast<unsigned long long>(run_on_drawn(executable)));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
