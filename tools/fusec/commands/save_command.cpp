// fusec save: a graph, compiled, as a file that runs where there is no compiler.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>

#include "fusec/commands.hpp"
#include "fusec/common.hpp"
#include "fusec/device_choice.hpp"
#include "fusec/progress.hpp"

namespace fuse::fusec {
namespace {

std::string dims_text(const DimValues& dims) {
  std::string text;
  for (const auto& [name, value] : dims)
    text += fmt::format("{}{} = {}", text.empty() ? " at " : ", ", name, value);
  return text;
}

Executable timed(const Executable& executable, Progress& progress) {
  GemmTimingOptions timing;
  timing.progress = [&progress](const GemmTiming& each) {
    progress.print(fmt::format("{}{}: {:.3g} us, {:.3g} us as the library proposes{}", each.gemm,
                               dims_text(each.dims), 1e6 * each.seconds, 1e6 * each.proposed_seconds,
                               each.is_proposal ? "" : "; " + each.algorithm));
  };
  TimedGemms made = time_gemms(executable, timing);
  if (made.timings.empty())
    progress.print("no GEMM was timed: " + executable.device().name() + " has one algorithm for each");
  return std::move(made.executable);
}

}  // namespace

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
    Progress progress("compiling for " + device.name());
    executables.push_back(compile(graph, device, options.graph.compile));
    if (options.time_gemms) executables.back() = timed(executables.back(), progress);
  }
  save(options.output, executables);
  print_line(fmt::format("{}: {} bytes", options.output, std::filesystem::file_size(options.output)));
  for (const Device& device : devices) print_line("  for " + device.name());
  return 0;
}

}  // namespace fuse::fusec
