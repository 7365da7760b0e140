// How much of a workspace lies idle: against the most bytes that are live at one time, which no workspace can
// go below. SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <algorithm>
#include <filesystem>

#include "base/access.hpp"
#include "cuda/fake_device.hpp"
#include "ir/graph/ir_graph.hpp"

namespace fuse::test {
namespace {

TEST_CASE("the workspace of every example is at most 1.1 of its bound", "[cuda][streams]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    const Device device = Device::cuda();
    int seen = 0, with_memory = 0;
    for (const auto& entry : std::filesystem::directory_iterator(source_directory() / "examples/graphs")) {
      if (entry.path().extension() != ".fuse") continue;
      const Graph graph = Graph::load(entry.path());
      DimValues dims;
      for (const ir::Symbol& symbol : ir_of(graph).symbols) {
        dims[symbol.name] =
            symbol.range.hint ? symbol.range.hint : std::max<std::int64_t>(symbol.range.min, 8);
      }
      const Prepared prepared = compile(graph, device).prepare(dims);
      INFO(entry.path().filename().string());
      INFO(prepared.workspace_bytes() << " bytes, bound " << prepared.workspace_bound());
      CHECK(prepared.workspace_bytes() >= prepared.workspace_bound());
      CHECK(static_cast<double>(prepared.workspace_bytes()) <=
            1.1 * static_cast<double>(prepared.workspace_bound()));
      ++seen;
      with_memory += prepared.workspace_bytes() > 0;
    }
    CHECK(seen >= 4);
    CHECK(with_memory >= 3);
  }
  fakes.require_clean();
}

}  // namespace
}  // namespace fuse::test
#endif
