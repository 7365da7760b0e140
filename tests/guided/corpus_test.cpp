// Every input of the guided fuzzers' corpora, without their fuzzer. SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>

#include "deploy/deploy_support.hpp"
#include "guided/targets.hpp"
#include "runtime/saved/container.hpp"
#include "runtime/saved/fields.hpp"
#include "support/paths.hpp"

namespace fuse::test {
namespace {

namespace fs = std::filesystem;

fs::path corpus(const char* target) { return source_directory() / "tests/guided/corpus" / target; }

/// Where the graphs lie whose plans the fuzzers of saved plans and of cache entries start from.
std::vector<fs::path> seed_graphs() {
  const fs::path examples = source_directory() / "examples/graphs";
  return {corpus("fuse") / "dims.fuse", examples / "layer_norm_backward.fuse", examples / "softmax.fuse",
          examples / "transformer_block.fuse"};
}

/// Without machine code and without texts, which nobody looks into.
runtime::SavedTarget seed_target(const fs::path& graph) {
  const Folder folder;
  compile(Graph::load(graph), Device::emulated({.profile = "tiny3", .optimization = 0}))
      .save(folder / "plan");
  runtime::SavedTarget target = runtime::parse_plan_file(contents_of(folder / "plan"), "plan").at(0);
  for (runtime::Binary::Image& image : target.builds.at(0).images) image.bytes.assign(4, 'x');
  target.provenance = {};
  return target;
}

std::string plan_content(const runtime::SavedTarget& target) {
  runtime::ArchiveWriter writer;
  writer(std::vector{target});
  return writer.bytes();
}

std::string cache_content(const runtime::SavedTarget& target) {
  runtime::ArchiveWriter writer;
  writer(std::string("key"), std::string("title"), target);
  return writer.bytes();
}

}  // namespace

TEST_CASE("guided corpora: each input has an answer", "[guided][emulated]") {
  for (const guided::Target& target : guided::targets) {
    std::size_t inputs = 0;
    for (const auto& entry : fs::directory_iterator(corpus(target.name))) {
      INFO(entry.path().string());
      CHECK_NOTHROW(target.run(contents_of(entry.path())));
      ++inputs;
    }
    INFO(target.name);
    CHECK(inputs > 0);
  }
}

// A fuzzer that starts from what another version wrote sees the first refusal alone.
TEST_CASE("guided corpora: seeds are of this version; FUSE_UPDATE_GOLDENS=1 rewrites them",
          "[guided][emulated]") {
  const char* update = std::getenv("FUSE_UPDATE_GOLDENS");
  for (const fs::path& graph : seed_graphs()) {
    const std::string name = graph.stem();
    INFO(name);
    const fs::path plan = corpus("plan") / name, entry = corpus("cache") / name;
    if (update && std::string(update) == "1") {
      const runtime::SavedTarget target = seed_target(graph);
      write_contents(plan, plan_content(target));
      write_contents(entry, cache_content(target));
    }
    const std::vector<runtime::SavedTarget> targets =
        runtime::parse_plan_file(runtime::seal("fuseplan", runtime::plan_format, contents_of(plan)), "seed");
    REQUIRE(targets.size() == 1);
    CHECK_NOTHROW(runtime::runnable(targets[0], "seed"));
    CHECK(cache_content(targets[0]) == contents_of(entry));
  }
}

}  // namespace fuse::test
