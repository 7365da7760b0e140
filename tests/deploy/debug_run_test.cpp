// What a failed run tells, and what it leaves for another run to fail again.
// SPDX-License-Identifier: Apache-2.0
#include <regex>

#include "base/access.hpp"
#include "deploy/deploy_support.hpp"
#include "ir/text/print.hpp"
#include "runtime/runtime_support.hpp"
#include "support/examples.hpp"
#include "support/variable.hpp"

namespace fuse::test {
namespace {

/// Reads one element too many, by a fault that is planted in its kernel.
std::string failure(const Device& device) {
  const Variable fault("FUSE_FAULT", "extent.0+1");
  return error_of([&] { run_on_drawn(compile(example("layernorm"), device), {{"B", 2}}); });
}

Device checked() { return Device::emulated({.profile = "h200", .checked = true, .optimization = 0}); }

}  // namespace

TEST_CASE("debug run: a failure names the step, its ops and the builder's line", "[deploy][emulated]") {
  const std::string said = failure(checked());
  INFO(said);
  CHECK(said.find("step 0, kernel 'layernorm_layer_norm_0' (convert in layer_norm; ") != std::string::npos);
  CHECK(said.find(") of 02_layernorm.cpp:27 failed: ") != std::string::npos);
  CHECK(said.find("out of bounds read") != std::string::npos);
  CHECK(said.find("(%x input)") != std::string::npos);
}

TEST_CASE("debug run: FUSE_SYNC changes no result", "[deploy][emulated]") {
  const Executable executable = compile(example("transformer_block"), checked());
  const Results right = run_on_drawn(executable, {{"B", 1}});
  const Variable sync("FUSE_SYNC", "1");
  CHECK(run_on_drawn(executable, {{"B", 1}}) == right);
  CHECK(failure(checked()).find("of 02_layernorm.cpp:27 failed: ") != std::string::npos);
}

TEST_CASE("debug run: FUSE_REPRO leaves graph, dims and options; values only where they are asked for",
          "[deploy][emulated]") {
  const Folder folder;
  const Variable repro("FUSE_REPRO", (folder / "repros").c_str());
  for (const bool values : {false, true}) {
    const Variable data("FUSE_REPRO_DATA", values ? "1" : nullptr);
    const std::string said = failure(checked());
    const std::size_t at = said.find("; repro in ");
    REQUIRE(at != std::string::npos);
    const std::string path = said.substr(at + 11);
    INFO(path);
    std::vector<std::string> names = {"graph.fuse", "repro.json"};
    if (values) names.insert(names.begin(), {"0.npy", "1.npy", "2.npy"});
    CHECK(Folder::names_in(path) == names);
    CHECK(ir::print(ir_of(Graph::load(path + "/graph.fuse"))) == ir::print(ir_of(example("layernorm"))));
    const std::string json = contents_of(path + "/repro.json");
    for (const char* part : {"\"dims\": {\"B\": 2}", "\"target\": \"h200\"", "\"fault\": \"extent.0+1\"",
                             "\"max_inputs\": 48", "out of bounds read"}) {
      INFO(json);
      CHECK(json.find(part) != std::string::npos);
    }
    CHECK((json.find("\"name\": \"x\"") != std::string::npos) == values);
  }
  // A directory that cannot be made is told, and hides nothing.
  const Variable nowhere("FUSE_REPRO", "/proc/no/such/place");
  const std::string without = failure(checked());
  INFO(without);
  CHECK(without.starts_with("kernel-fault: step 0, "));
  CHECK(without.find("; no repro: ") != std::string::npos);
}

TEST_CASE("debug run: a saved plan's failure leaves the same repro", "[deploy][emulated]") {
  const Folder folder;
  {
    const Variable fault("FUSE_FAULT", "extent.0+1");
    compile(example("layernorm"), checked()).save(folder / "plan");
  }
  const Variable repro("FUSE_REPRO", (folder / "repros").c_str());
  const std::string said = error_of([&] {
    run_on_drawn(Executable::load(folder / "plan", checked()), {{"B", 2}});
  });
  CHECK(said.find(" of 02_layernorm.cpp:27 failed: ") != std::string::npos);
  const std::string path = said.substr(said.find("; repro in ") + 11);
  const std::string compiled = failure(checked());
  const std::string its = compiled.substr(compiled.find("; repro in ") + 11);
  REQUIRE(Folder::names_in(path) == Folder::names_in(its));
  CHECK(contents_of(path + "/graph.fuse") == contents_of(its + "/graph.fuse"));
  const auto options_in = [](const std::string& folder) {
    const std::string json = contents_of(folder + "/repro.json");
    const std::size_t at = json.find("\"options\": {");
    REQUIRE(at != std::string::npos);
    return json.substr(at, json.find('}', at) - at);
  };
  CHECK(options_in(path) == options_in(its));
}

TEST_CASE("debug run: the fault of bench/gpu_queue.md reads past an input", "[deploy][emulated]") {
  const std::string queue = contents_of(source_directory() / "bench/gpu_queue.md");
  std::smatch planted;
  REQUIRE(std::regex_search(queue, planted, std::regex(R"(FUSE_FAULT=(\S+)[^\n]*\$G/(\w+)\.fuse)")));
  const Variable fault("FUSE_FAULT", planted[1].str().c_str());
  const std::string said = error_of([&] {
    run_on_drawn(compile(example(planted[2]), checked(), {.versions = 1}), {{"B", 2}, {"S", 128}});
  });
  INFO(said);
  CHECK(said.find("out of bounds read of global 'mask'[256]") != std::string::npos);
}

TEST_CASE("debug run: a graph's name that no file could have", "[deploy][emulated]") {
  const Folder folder;
  const Variable repro("FUSE_REPRO", folder.path().c_str()), fault("FUSE_FAULT", "extent.0+1");
  Graph g("../a-b c." + std::string(300, 'n'));
  g.output("y", softmax(g.input("x", f32, {g.dim("N"), 4})));
  const std::string said = error_of([&] { run_on_drawn(compile(g, checked()), {{"N", 2}}); });
  INFO(said);
  REQUIRE(folder.names().size() == 1);
  CHECK(folder.names()[0].starts_with("___a-b_c_nnnn"));
  CHECK(ir::print(ir_of(Graph::load(folder / folder.names()[0] + "/graph.fuse"))) == ir::print(ir_of(g)));
}

TEST_CASE("FUSE_KEEP keeps the text that the kernels are known by", "[deploy][emulated]") {
  const Folder folder;
  const Graph graph = example("softmax");
  const Executable without = compile(graph, checked());
  const Variable keep("FUSE_KEEP", (folder / "kept").c_str());
  const Executable with = compile(graph, checked());
  const std::vector<std::string> names = Folder::names_in(folder / "kept");
  REQUIRE(names.size() == 1);
  CHECK(names[0].starts_with("softmax-"));
  CHECK(contents_of(folder / "kept/" + names[0]) == with.source());
  CHECK(run_on_drawn(with, {{"B", 2}}) == run_on_drawn(without, {{"B", 2}}));
  const Variable nowhere("FUSE_KEEP", "/proc/no/such/place");
  CHECK(error_of([&] { compile(graph, checked()); }).starts_with("io: FUSE_KEEP: cannot make the directory"));
}

}  // namespace fuse::test
