// sass_table: counts of instructions do not get worse than those on file, and what it needs is named where it
// is missing. SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "support/catch.hpp"

#if FUSE_COMPILER_HAS_CUDA && __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>

#include "base/access.hpp"
#include "compile/builds/builds.hpp"
#include "compile/toolchains/cuda/nvrtc.hpp"

namespace {

using SassJson = nlohmann::ordered_json;
namespace stdfs = std::filesystem;

constexpr const char* committed_counts = FUSE_TEST_SOURCE_DIR "/bench/results/sass_counts.json";

/// Built beside fuse_tests, but not by every preset.
stdfs::path beside_tests(const std::string& program) {
  return stdfs::read_symlink("/proc/self/exe").parent_path() / program;
}

stdfs::path sass_table() { return beside_tests("sass_table"); }

struct SassRan {
  int status = -1;
  std::string output;
  bool says(const std::string& part) const { return output.find(part) != std::string::npos; }
};

SassRan run_with_sass(const stdfs::path& program, const std::string& arguments,
                      const std::string& environment = "") {
  const std::string command = environment + " '" + program.string() + "' " + arguments + " 2>&1";
  FILE* const pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe);
  SassRan ran;
  std::array<char, 4096> block;
  for (std::size_t got; (got = std::fread(block.data(), 1, block.size(), pipe)) > 0;)
    ran.output.append(block.data(), got);
  const int status = ::pclose(pipe);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

SassRan run_sass_table(const std::string& arguments, const std::string& environment = "") {
  return run_with_sass(sass_table(), arguments, environment);
}

bool no_sass_table() {
  if (stdfs::exists(sass_table())) return false;
  WARN("skipped: there is no " << sass_table().string());
  return true;
}

/// A file that goes away.
struct SassFile {
  std::string path;
  explicit SassFile(const std::string& text = "", bool program = false) {
    path = (stdfs::temp_directory_path() / "fuse-sass-XXXXXX").string();
    const int made = ::mkstemp(path.data());
    REQUIRE(made >= 0);
    ::close(made);
    std::ofstream(path) << text;
    if (program) stdfs::permissions(path, stdfs::perms::owner_all);
  }
  ~SassFile() { stdfs::remove(path); }
};

/// The count of example.layernorm on h200; null where a tool is missing.
SassJson count_of_layernorm(const std::string& arguments) {
  const SassFile file;
  const SassRan ran = run_sass_table("--filter example.layernorm --json " + file.path + " " + arguments);
  if (ran.says("nvdisasm is missing") || !fuse::runtime::nvrtc_available()) {
    WARN("skipped: " << ran.output);
    return {};
  }
  INFO(ran.output);
  REQUIRE(ran.status == 0);
  return SassJson::parse(std::ifstream(file.path)).at("cases").at(0).at("gpus").at("h200");
}

/// The one kernel that the example launches with `rows` rows.
std::string layernorm_kernel_for(std::int64_t rows) {
  std::ifstream in(FUSE_TEST_SOURCE_DIR "/examples/graphs/layernorm.fuse");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const fuse::Graph graph = fuse::Graph::parse(text);
  const fuse::CompiledBuilds builds =
      fuse::run_builds(fuse::ir_of(graph), fuse::target_profile("h200"), fuse::pipeline_options({}));
  const auto at_rows = [&](const fuse::Dim& dim) {
    return dim.is_constant() ? dim.constant() : dim.evaluate([&](std::string_view) { return rows; });
  };
  const fuse::Compiled& build = builds.each.at(version_for(builds.regions.table, at_rows));
  std::vector<std::uint32_t> taken;
  for (const fuse::schedule::VersionTable& table : build.plan.tables)
    taken.push_back(version_for(table, at_rows));
  const fuse::schedule::Plan plan = with_versions(build.plan, taken);
  REQUIRE(plan.steps.size() == 1);
  return build.kernels.at(std::get<fuse::schedule::KernelStep>(plan.steps[0].work).kernel).name;
}

SassJson committed() { return SassJson::parse(std::ifstream(committed_counts)); }

}  // namespace

TEST_CASE("watched kernels issue no more than the committed counts say", "[bench][nvrtc]") {
  if (no_sass_table()) return;
  const SassRan ran = run_sass_table(std::string("--watched --against ") + committed_counts);
  if (ran.status == 77) {
    WARN(ran.output);
    return;
  }
  INFO(ran.output);
  CHECK(ran.status == 0);
}

TEST_CASE("a count that is worse than the one on file is told, and so is a narrower access",
          "[bench][nvrtc]") {
  if (no_sass_table()) return;
  const std::string name = "transpose.bf16.8192x8192";
  SassJson better = committed();
  for (SassJson& each : better["cases"]) {
    if (each.at("name") != name) continue;
    SassJson& count = each["gpus"]["h200"];
    count["cycles"] = count.at("cycles").get<double>() * 0.96;
    for (SassJson& access : count["kernels"][0]["accesses"]) access["bytes"] = 16;
  }
  const SassFile file(better.dump());
  const SassRan ran = run_sass_table("--filter " + name + " --against " + file.path);
  if (ran.status == 77) {
    WARN(ran.output);
    return;
  }
  INFO(ran.output);
  CHECK(ran.status == 1);
  CHECK(ran.says("worse: " + name + " on h200: "));
  CHECK(ran.says("cycles an element, "));
  CHECK(ran.says("B, by 16 B before"));
}

TEST_CASE("the committed counts fit their schema, and what does not fit is told by path", "[bench]") {
  if (no_sass_table()) return;
  const SassRan fits = run_sass_table(std::string("--check ") + committed_counts);
  INFO(fits.output);
  CHECK(fits.status == 0);
  SassJson counts = committed();
  counts["cases"][0]["gpus"]["h200"].erase("cycles");
  counts["cases"][1]["speed"] = 9;
  const SassFile file(counts.dump());
  const SassRan ran = run_sass_table("--check " + file.path);
  CHECK(ran.status == 1);
  CHECK(ran.says("cases[0].gpus.h200: misses cycles"));
  CHECK(ran.says("cases[1].speed: is unknown"));
}

TEST_CASE("the committed counts say why a goal is missed, and what is missing in words that fit a row",
          "[bench]") {
  const SassJson counts = committed();
  for (const SassJson& goal : counts.at("goals")) {
    INFO(goal.dump());
    CHECK(goal.at("met").get<bool>() == goal.at("why").get<std::string>().empty());
  }
  for (const SassJson& each : counts.at("cases")) {
    for (const auto& [gpu, count] : each.at("gpus").items()) {
      INFO(each.at("name") << " on " << gpu << ": " << count.at("missing"));
      CHECK(count.at("missing").get<std::string>().size() < 300);
      const bool many = count.at("kernel_count").get<int>() > 8;
      CHECK(many ==
            (count.at("missing").get<std::string>().find("the longest kernel, ") != std::string::npos));
    }
  }
}

TEST_CASE("counts of other versions are not compared", "[bench][nvrtc]") {
  if (no_sass_table()) return;
  SassJson other = committed();
  other["nvrtc"] = "11.0";
  const SassFile file(other.dump());
  const SassRan ran = run_sass_table("--filter softmax.f32.65536x1024 --against " + file.path);
  CHECK(ran.status == 77);
  CHECK(ran.says("skipped: "));
}

TEST_CASE("a missing nvdisasm, another program, and one that fails are named", "[bench][nvrtc]") {
  if (no_sass_table()) return;
  const std::string filter = "--filter softmax.f32.65536x1024 ";
  const SassRan none = run_sass_table(filter + "--nvdisasm /nonexistent/nvdisasm");
  CHECK(none.status == 1);
  CHECK(none.says("--nvdisasm names /nonexistent/nvdisasm, which is no program"));

  const SassFile other("#!/bin/sh\necho hello\n", true);
  const SassRan by_variable = run_sass_table(filter, "FUSE_NVDISASM=" + other.path);
  CHECK(by_variable.status == 1);
  CHECK(by_variable.says("(by FUSE_NVDISASM) is not NVIDIA's nvdisasm"));

  const SassFile failing(
      "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'CUDA disassembler, V9.9.9'; exit 0; fi\n"
      "echo 'fatal: unknown cubin' >&2\nexit 3\n",
      true);
  const SassRan ran = run_sass_table(filter + "--nvdisasm " + failing.path);
  INFO(ran.output);
  CHECK(ran.status == 1);
  if (fuse::runtime::nvrtc_available()) CHECK(ran.says("failed with status 3: fatal: unknown cubin"));
  const SassRan unknown = run_sass_table("--gpu b200");
  CHECK(unknown.status == 2);
  CHECK(unknown.says("unknown GPU 'b200'; there are h200, h100, a100"));
}

TEST_CASE("sass_table refuses an empty filter and a file that it cannot write before it counts anything",
          "[bench][nvrtc]") {
  if (no_sass_table()) return;
  for (const char* empty : {"--filter ''", "--filter=", "--filter softmax,"}) {
    const SassRan ran = run_sass_table(empty);
    INFO(empty << ": " << ran.output);
    CHECK(ran.status == 2);
    CHECK(ran.says("empty"));
  }
  const SassRan unwritable =
      run_sass_table("--filter softmax.f32.65536x1024 --json /nonexistent/counts.json");
  INFO(unwritable.output);
  CHECK(unwritable.status == 1);
  CHECK(unwritable.output == "error: cannot write /nonexistent/counts.json\n");
  const SassFile kept("as it was");
  const SassRan missing = run_sass_table("--json " + kept.path + " --nvdisasm /nonexistent/nvdisasm");
  CHECK(missing.status == 1);
  CHECK(missing.says("/nonexistent/nvdisasm"));
  std::ifstream text(kept.path);
  CHECK(std::string(std::istreambuf_iterator<char>(text), {}) == "as it was");
  CHECK(!stdfs::exists(kept.path + ".part"));
}

TEST_CASE("a count at dims is of the version that they take, and at the hints the count without dims",
          "[bench][nvrtc]") {
  if (no_sass_table()) return;
  const SassJson at_hints = count_of_layernorm("");
  if (at_hints.is_null()) return;
  CHECK(count_of_layernorm("--at B=37") == at_hints);
  std::set<std::string> names;
  for (const std::int64_t rows : {37, 200, 100000}) {
    const SassJson count = count_of_layernorm("--at B=" + std::to_string(rows));
    REQUIRE(count.at("kernels").size() == 1);
    const std::string name = count.at("kernels").at(0).at("name");
    CHECK(name == layernorm_kernel_for(rows));
    names.insert(name);
  }
  CHECK(names.size() == 3);
  const SassRan other = run_sass_table("--filter example.layernorm --at T=4");
  CHECK(other.status == 1);
  CHECK(other.says("dim 'B' has no value"));
  CHECK(run_sass_table("--at B").says("--at wants NAME=NUMBER, not 'B'"));
}

TEST_CASE("dynamic_shapes compares what kernels issue for the first shapes", "[bench][nvrtc]") {
  const stdfs::path program = beside_tests("dynamic_shapes");
  if (no_sass_table() || !stdfs::exists(program)) return;
  const SassRan ran = run_with_sass(program, "--instructions 2 --each --only gelu");
  if (ran.says("nvdisasm is missing") || !fuse::runtime::nvrtc_available()) {
    WARN("skipped: " << ran.output);
    return;
  }
  INFO(ran.output);
  CHECK(ran.status == 0);
  CHECK(ran.says("the first 2 shapes"));
  CHECK(ran.says("gelu bf16, M and N                2   "));
  CHECK(ran.says("  M=76 N=4 "));
  CHECK(!ran.says("left out"));
}
#endif
