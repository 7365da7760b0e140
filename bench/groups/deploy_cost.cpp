// What a process pays for a plan of 24 layers that another one made: from the cache, and from a saved plan.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fuse/fuse.hpp>

#include "groups/groups.hpp"
#include "measure.hpp"
#include "os/temporary_folder.hpp"

namespace fuse::bench {

void bench_deploy(Report& report, const Settings& settings) {
  const TemporaryFolder folder;
  const std::string cache = folder.path() + "/cache", plan = folder.path() + "/plan";
  // The one thing that is measured here and needs the cache; the folder is ours.
  ::setenv("FUSE_CACHE", "1", 1);
  ::setenv("FUSE_CACHE_DIR", cache.c_str(), 1);
  const Graph graph = Graph::load(settings.graphs + "/bert_large.fuse");
  const auto time = [&](const std::string& name, int count, double goal_ms, const std::string& how,
                        const auto& work) {
    Samples times;
    for (int i = 0; i < count; ++i) {
      const Device device = Device::emulated();  // remembers nothing, as in another process
      times.add(time_once([&] { work(device); }), 1);
    }
    auto& row = report.add(times.seconds(name, "ms", 1e3));
    row.how = how;
    if (goal_ms > 0) row.goal = {Goal::Kind::below, goal_ms};
  };
  time("compile.24_layers", 1, 0, "bert_large, planned and built: nothing is kept yet",
       [&](const Device& device) { compile(graph, device).save(plan); });
  time("cached.24_layers", 9, 20, "bert_large: compile, found in the cache directory",
       [&](const Device& device) { static_cast<void>(compile(graph, device)); });
  time("load.24_layers", 9, 20, "bert_large: Executable::load of a saved plan",
       [&](const Device& device) { static_cast<void>(Executable::load(plan, device)); });
  ::unsetenv("FUSE_CACHE_DIR");
  ::setenv("FUSE_CACHE", "0", 1);
}

}  // namespace fuse::bench
