// The JSON of fusec parses and says what docs/fusec.md promises. SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "support/catch.hpp"
#include "support/paths.hpp"

#if __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>

namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

/// Built beside fuse_tests, but not by every preset.
fs::path fusec() { return fs::read_symlink("/proc/self/exe").parent_path() / "fusec"; }

bool skipped() {
  if (fs::exists(fusec())) return false;
  WARN("skipped: there is no " << fusec().string());
  return true;
}

/// What the command prints; parsing it is part of the test.
Json output_of(const std::string& arguments) {
  const std::string command = '\'' + fusec().string() + "' " + arguments;
  INFO(command);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"),
                                                   [](FILE* f) { return ::pclose(f); });
  REQUIRE(pipe);
  std::string text;
  std::array<char, 4096> block;
  for (std::size_t got; (got = std::fread(block.data(), 1, block.size(), pipe.get())) > 0;) {
    text.append(block.data(), got);
  }
  return Json::parse(text);
}

std::string graph(const std::string& name) {
  return '\'' + (fuse::test::source_directory() / "examples/graphs" / (name + ".fuse")).string() + '\'';
}

}  // namespace

TEST_CASE("fusec plan --json: segments, kernels and steps agree", "[tools]") {
  if (skipped()) return;
  for (const std::string name : {"softmax", "layernorm", "transformer_block"}) {
    CAPTURE(name);
    const Json plan = output_of("plan " + graph(name) + " --json --profile tiny3");
    CHECK(plan.at("version") == 1);
    CHECK(plan.at("graph").at("name") == name);
    CHECK(plan.at("target") == "tiny3");

    std::set<std::string> kernels, gemms;
    for (const Json& kernel : plan.at("kernels")) {
      kernels.insert(kernel.at("name"));
      CHECK(kernel.at("launch").at("grid").is_string());
      CHECK(kernel.at("launch").at("grid_value").get<std::int64_t>() > 0);
      CHECK(kernel.at("launch").at("block").get<int>() <= 512);
      CHECK(kernel.at("shared_bytes").get<std::int64_t>() <= 16384);
      CHECK(!kernel.at("ops").empty());
      CHECK(!kernel.at("params").empty());
      const Json& segment = plan.at("segments").at(kernel.at("segment").get<std::size_t>());
      CHECK(segment.at("kind") == "kernel");
      CHECK(segment.at("nodes").size() == kernel.at("ops").size());
    }
    CHECK(kernels.size() == plan.at("kernels").size());
    for (const Json& gemm : plan.at("gemms")) {
      gemms.insert(gemm.at("name"));
      CHECK(gemm.at("values").at("k").get<std::int64_t>() > 0);
    }
    std::size_t steps = 0;
    for (const Json& step : plan.at("steps")) {
      if (step.at("kind") == "kernel") CHECK(kernels.contains(step.at("kernel")));
      if (step.at("kind") == "gemm") CHECK(gemms.contains(step.at("name")));
      CHECK(!step.at("writes").empty());
      ++steps;
    }
    CHECK(steps >= kernels.size() + gemms.size());
  }
}

TEST_CASE("fusec plan --json: nodes carry the user's scope and line", "[tools]") {
  if (skipped()) return;
  bool found = false;
  const Json plan = output_of("plan " + graph("layernorm") + " --json");
  for (const Json& segment : plan.at("segments")) {
    for (const Json& node : segment.at("nodes")) {
      if (node.at("op") != "reduce_sum") continue;
      found = true;
      CHECK_THAT(node.at("scope").get<std::string>(), Catch::Matchers::StartsWith("layer_norm."));
      CHECK_THAT(node.at("location").get<std::string>(), Catch::Matchers::StartsWith("02_layernorm.cpp:"));
    }
  }
  CHECK(found);
}

TEST_CASE("fusec plan --json: --dim sets the number of blocks", "[tools]") {
  if (skipped()) return;
  const auto blocks = [](const std::string& dim) {
    const Json plan = output_of("plan " + graph("softmax") + " --json --dim B=" + dim);
    CHECK(plan.at("dims").at("B") == std::stoll(dim));
    return plan.at("kernels").back().at("launch").at("grid_value").get<std::int64_t>();
  };
  CHECK(blocks("800") == 100 * blocks("8"));
}

TEST_CASE("fusec stats --json: bytes moved are no less than the floor", "[tools][emulated]") {
  if (skipped()) return;
  // 64 rows of 4096 floats are 1 MiB.
  const Json stats = output_of("stats " + graph("softmax") + " --json --dim B=64 --profile tiny3");
  CHECK(stats.at("version") == 1);
  CHECK(stats.at("launches").get<std::int64_t>() >= 1);
  CHECK(stats.at("gemms") == 0);
  constexpr std::int64_t tensor = 64 * 4096 * 4;
  CHECK(stats.at("floor") == 2 * tensor);
  const Json& requested = stats.at("bytes").at("requested");
  const Json& sectors = stats.at("bytes").at("sectors");
  CHECK(requested.at("store") == tensor);
  CHECK(requested.at("load").get<std::int64_t>() >= tensor);
  CHECK(sectors.at("load").get<std::int64_t>() >= tensor);
  CHECK(stats.at("ratio_requested").get<double>() >= 1);
  CHECK(stats.at("ratio_sectors").get<double>() >= 1);

  const Json small = output_of("stats " + graph("softmax") + " --json --dim B=4 --profile tiny3");
  CHECK(small.at("floor") == 0);
  CHECK(small.at("ratio_requested").is_null());
  CHECK(small.at("small").at("floor") == 2 * 4 * 4096 * 4);
}
#endif
