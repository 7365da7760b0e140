// What is decided about the memory-intensive parts of models at sizes from a few elements to more than a
// device holds at once: the thresholds of choosers and costs lie in between. FUSE_UPDATE_GOLDENS=1 rewrites
// the file. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/fingerprint.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/stitch_graphs.hpp"

namespace fuse::test {
namespace {

using Shape = std::pair<std::int64_t, std::int64_t>;
constexpr Shape shapes[] = {{3, 7},       {1, 8192},    {8192, 1},   {512, 32},   {65536, 96},
                            {2048, 1000}, {8192, 4096}, {64, 65536}, {4, 1 << 20}};

/// The graph without the lines of the file that built it.
ir::Graph unlocated(const Graph& built) {
  ir::Graph graph = built.ir();
  for (ir::Node& node : graph.nodes) node.location = 0;
  for (ir::Scope& scope : graph.scopes) scope.location = 0;
  return graph;
}

TEST_CASE("fingerprints of parts of models in all sizes are as committed", "[golden][fuzz][not-sanitized]") {
  std::vector<std::string> lines;
  for (const StitchGraph& each : stitch_graphs()) {
    for (const char* profile : {"h200", "tiny3", "x86-64-v4"}) {
      for (const auto& [rows, columns] : shapes) {
        for (const DType dtype : {f32, bf16}) {
          const Compiled made =
              run_pipeline(unlocated(each.build(dtype, rows, columns)), target_profile(profile));
          lines.push_back(fmt::format("{}, {}, {}[{}, {}]: {}", each.name, profile, to_string(dtype), rows,
                                      columns, fuzz::fingerprint(made)));
        }
      }
    }
  }
  check_golden_lines("fingerprints/shapes.txt", lines);
}

}  // namespace
}  // namespace fuse::test
