// fusec save: a graph, compiled, as a file that runs where there is no compiler.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>

#include "fusec/commands.hpp"
#include "fusec/common.hpp"
#include "fusec/device_choice.hpp"
#include "fusec/progress.hpp"

namespace fuse::fusec {

int execute(const SaveOptions& options) {
  try_file("--output", options.output, {{"the graph", options.graph.file}});
  const Graph graph = load_graph(options.graph.file);
  std::vector<Device> devices;
  for (const std::string& profile : options.profiles)
    devices.push_back(device_of_profile({.profile = profile}));
  if (options.cuda) devices.push_back(Device::cuda());
  if (options.cpu) devices.push_back(Device::cpu());
  if (devices.empty())
    devices.push_back(options.graph.profile_named ? device_of_profile(options.graph) : Device::auto_select());

  std::vector<Executable> executables;
  for (const Device& device : devices) {
    const Progress progress("compiling for " + device.name());
    executables.push_back(compile(graph, device, options.graph.compile));
  }
  save(options.output, executables);
  print_line(fmt::format("{}: {} bytes", options.output, std::filesystem::file_size(options.output)));
  for (const Device& device : devices) print_line("  for " + device.name());
  return 0;
}

}  // namespace fuse::fusec
