// fuse_bench: what it writes fits its schema, wrong results are seen, and the path of a GPU runs on the fake
// driver, where an operation takes 1 ms and no kernel computes anything. SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "support/catch.hpp"
#include "support/paths.hpp"
#if FUSE_COMPILER_HAS_CUDA
#include "compile/toolchains/cuda/nvrtc.hpp"
#endif

#if __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>

namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

/// Built beside fuse_tests, but not by every preset.
fs::path program() { return fs::read_symlink("/proc/self/exe").parent_path() / "fuse_bench"; }

bool skipped() {
  if (fs::exists(program())) return false;
  WARN("skipped: there is no " << program().string());
  return true;
}

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "fuse-bench-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()));
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  std::string file(const char* name) const { return (path / name).string(); }
};

struct Ran {
  int status = -1;
  std::string output;
};

Ran run(const std::string& arguments, const std::string& environment = "") {
  const std::string command = environment + " '" + program().string() + "' " + arguments + " 2>&1";
  FILE* const pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe);
  Ran ran;
  std::array<char, 4096> block;
  for (std::size_t got; (got = std::fread(block.data(), 1, block.size(), pipe)) > 0;)
    ran.output.append(block.data(), got);
  const int status = ::pclose(pipe);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

/// fuse_bench on its own, to be killed.
class Started {
 public:
  explicit Started(std::vector<std::string> arguments) : process_(::fork()) {
    REQUIRE(process_ >= 0);
    if (process_ > 0) return;
    const std::string name = program().string();
    std::vector<char*> words{const_cast<char*>(name.c_str())};
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    std::freopen("/dev/null", "w", stdout);
    std::freopen("/dev/null", "w", stderr);
    ::execv(name.c_str(), words.data());
    ::_exit(127);
  }
  ~Started() { kill(); }
  bool runs() {
    if (process_ > 0 && ::waitpid(process_, nullptr, WNOHANG) == process_) process_ = 0;
    return process_ > 0;
  }
  void kill() {
    if (!runs()) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }

 private:
  pid_t process_;
};

Json read(const std::string& path) { return Json::parse(std::ifstream(path)); }
std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}
void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A tree that --report can work on, with the repository's template.
void make_root(const Folder& root) {
  fs::create_directories(root.path / "bench/results");
  fs::create_directories(root.path / "bench/page");
  fs::copy_file(fuse::test::source_directory() / "bench/page/page.md", root.path / "bench/page/page.md");
}

}  // namespace

TEST_CASE("a case on the emulated device is measured, checked and fits the schema", "[bench][emulated]") {
  if (skipped()) return;
  const Folder folder;
  const std::string json = folder.file("out.json");
  const Ran ran = run("--profile tiny3 --filter layer_norm.bf16.128x1024 --json " + json);
  INFO(ran.output);
  REQUIRE(ran.status == 0);
  CHECK(run("--check " + json).status == 0);
  const Json row = read(json).at("cases").at(0);
  CHECK(row.at("name") == "layer_norm.bf16.128x1024");
  CHECK(row.at("status") == "ok");
  CHECK(row.at("bytes").at("read") == 2 * 128 * 1024 + 2 * 4 * 1024);
  CHECK(row.at("bytes").at("written") == 2 * 128 * 1024);
  CHECK(row.at("bytes").at("moved") >= 4 * 128 * 1024);
  CHECK(row.at("error").at("checked") == "all");
  CHECK(row.at("error").at("over_bound") > 0);
  CHECK(row.at("error").at("over_bound") <= 1);
  CHECK(row.at("copy").at("kernel") > 0);
  CHECK(row.at("host_us").is_null());  // the emulated device works before a call returns
}

TEST_CASE("a file of results that does not fit the schema is refused, by path", "[bench][emulated]") {
  if (skipped()) return;
  const Folder folder;
  const std::string json = folder.file("out.json");
  REQUIRE(run("--profile tiny3 --filter transpose.f32.512x256 --json " + json).status == 0);
  Json out = read(json);
  out["cases"][0]["device_us"].erase("median");
  out["cases"][0]["status"] = "fine";
  out["cases"][0]["speed"] = 9000;
  out["machine"]["cores"] = "two";
  write(json, out.dump());
  const Ran ran = run("--check " + json);
  CHECK(ran.status == 1);
  CHECK(contains(ran.output, "cases[0].device_us: misses median"));
  CHECK(contains(ran.output, "cases[0].status: is \"fine\", none of"));
  CHECK(contains(ran.output, "cases[0].speed: is unknown"));
  CHECK(contains(ran.output, "machine.cores: is a string, not \"integer\""));
}

TEST_CASE("fuse_bench that is killed leaves a whole file with the cases that it had finished",
          "[bench][emulated]") {
  if (skipped()) return;
  const Folder folder;
  const std::string json = folder.file("out.json");
  write(json, "of an earlier run");
  Started bench({"--device", "emulated", "--profile", "tiny3", "--filter", "smoke", "--json", json});
  std::size_t finished = 0;
  while (finished < 2 && bench.runs()) {
    const std::string text = text_of(json);
    if (text != "of an earlier run") finished = Json::parse(text).at("cases").size();  // never half of a file
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  bench.kill();
  REQUIRE(finished >= 2);
  CHECK(finished < 10);  // of 34: each was written when it was finished
  const Ran check = run("--check " + json);
  INFO(check.output);
  CHECK(check.status == 0);
  for (const Json& row : read(json).at("cases")) CHECK(row.at("status") == "ok");
}

TEST_CASE("--append keeps the other cases of the file, and a whole name picks one case",
          "[bench][emulated]") {
  if (skipped()) return;
  const Folder folder;
  const std::string json = folder.file("out.json"), to = "--profile tiny3 --append --json " + json;
  // Each name is a part of a name of log_softmax.
  for (const char* name : {"softmax.f32.128x1024", "row_sum.f32.4000x32", "softmax.f32.128x1024"}) {
    const Ran ran = run(to + " --filter " + name);
    INFO(ran.output);
    REQUIRE(ran.status == 0);
  }
  CHECK(run("--check " + json).status == 0);
  const Json out = read(json);
  REQUIRE(out.at("cases").size() == 2);
  CHECK(out.at("cases").at(0).at("name") == "row_sum.f32.4000x32");
  CHECK(out.at("cases").at(1).at("name") == "softmax.f32.128x1024");
  write(json, R"({"version": 1})");
  const Ran refused = run(to + " --filter row_sum.f32.4000x32");
  CHECK(refused.status == 1);
  CHECK(contains(refused.output, "does not fit bench/schema.json"));
  CHECK(text_of(json) == R"({"version": 1})");
}

TEST_CASE("the reference evaluates as much of a case as is asked for", "[bench][emulated]") {
  if (skipped()) return;
  const Folder folder;
  const std::string json = folder.file("out.json");
  const auto checked = [&](const std::string& elements) {
    const Ran ran =
        run("--profile tiny3 --filter softmax.f32.128x1024 --check-elements " + elements + " --json " + json);
    INFO(ran.output);
    REQUIRE(ran.status == 0);
    return read(json).at("cases").at(0).at("error").at("checked").get<std::string>();
  };
  CHECK(checked("26000") == "the first 12 of 128 rows");  // of 2 * 128 * 1024 elements, x and y
  CHECK(checked("0") == "nothing: as asked");
  CHECK(run("--check-elements many").status == 2);
}

TEST_CASE("a case is measured once by each file of decisions", "[bench][emulated]") {
  if (skipped()) return;
  const Folder folder;
  const Ran graph = run("--print-graph column_sum.f32.1024x128");
  REQUIRE(graph.status == 0);
  CHECK(contains(graph.output, "graph @"));
  const auto decide = [&](const char* name, const std::string& kernel) {
    fuse::PipelineOptions options;
    options.record = true;
    const fuse::Target target = fuse::target_profile("h200");
    const fuse::Compiled compiled = run_pipeline(ir_of(fuse::Graph::parse(graph.output)), target, options);
    const std::string text = fuse::schedule::print(decisions_of(compiled, target));
    const std::size_t at = text.find(" {", text.find("\nkernel "));
    REQUIRE(at != std::string::npos);
    std::ofstream(folder.path / name) << text.substr(0, at) << " {" << kernel << "}\n";
    return (folder.path / name).string();
  };
  const std::string good = decide("good", "nest = r:grid c:serial c:warp2 r:lane32");
  const std::string bad = decide("bad", "nest = r:grid r:warp4 r:lane32");
  const Ran ran = run("--filter column_sum.f32.1024x128 --use-decisions " + good + "," + bad);
  INFO(ran.output);
  CHECK(ran.status == 1);
  CHECK(contains(ran.output, "by " + good + "\ncolumn_sum.f32.1024x128"));
  CHECK(contains(ran.output, "by " + bad + "\ncolumn_sum.f32.1024x128"));
  CHECK(contains(ran.output, "failed: decisions: line "));
  CHECK(run("--use-decisions /nonexistent").status == 2);
  CHECK(run("--use-decisions " + good + " --json x.json").status == 2);
  CHECK(run("--print-graph no_such_case").status == 2);
}

TEST_CASE("without a GPU the exit status says skipped, and a wrong command line is told", "[bench]") {
  if (skipped()) return;
  const Ran none = run("--device cuda --filter smoke", "FUSE_LIBCUDA=/nonexistent/libcuda.so.1");
  CHECK(none.status == 77);
  CHECK(contains(none.output, "skipped: no GPU"));
  CHECK(run("--device gpu").status == 2);
  CHECK(run("--filter no_such_case").status == 2);
  for (const char* empty : {"--filter ''", "--filter=", "--filter smoke,", "--filter ,rows", "--list ''"}) {
    const Ran ran = run(empty);
    INFO(empty << ": " << ran.output);
    CHECK(ran.status == 2);
    CHECK(contains(ran.output, "empty"));
  }
  const Ran flag = run("--append=yes");
  CHECK(flag.status == 2);
  CHECK(contains(flag.output, "--append takes no value"));
}

TEST_CASE("a page is written from no results at all", "[bench]") {
  if (skipped()) return;
  const Folder root;
  make_root(root);
  const Ran ran = run("--report " + root.path.string());
  INFO(ran.output);
  REQUIRE(ran.status == 0);
  const std::string page = text_of(root.path / "docs/performance.md");
  CHECK(contains(page, "Not measured: no results of a GPU are on file."));
  CHECK(contains(page, "Not counted: bench/results has no sass_counts.json."));
  CHECK(contains(page, "Where fuse loses"));
  CHECK(!contains(page, "{{"));
}

TEST_CASE("what the emulated device took stands under its own heading", "[bench]") {
  if (skipped()) return;
  const Folder root;
  make_root(root);
  const std::string name = "bench/results/2026-11-23-epyc-2-cores.json";
  fs::copy_file(fuse::test::source_directory() / name, root.path / name);
  const Ran ran = run("--report " + root.path.string());
  INFO(ran.output);
  REQUIRE(ran.status == 0);
  const std::string page = text_of(root.path / "docs/performance.md");
  CHECK(contains(page, "Not measured: no results of `ladder` on a GPU are on file."));
  const std::size_t heading = page.find("## On the emulated device"),
                    row = page.find("`ladder.launch.empty`");
  CHECK(heading < row);
  CHECK(row != std::string::npos);
}

TEST_CASE("the probe runs on the checked device, and has a row for each cost", "[bench][emulated]") {
  if (skipped()) return;
  const Folder folder;
  const std::string json = folder.file("out.json");
  const auto rows = [&](const std::string& profile) {
    const Ran ran = run("--checked --filter probe --profile " + profile + " --json " + json);
    INFO(ran.output);
    REQUIRE(ran.status == 0);
    CHECK(run("--check " + json).status == 0);
    return read(json).at("rows").size();
  };
  CHECK(rows("tiny3") == 11);
  CHECK(rows("v100") == 8);
  CHECK(contains(read(json).at("skipped").dump(), "the device has no clusters"));
  CHECK(contains(read(json).at("skipped").dump(), "is of sm_80 and newer"));
}

#if FUSE_COMPILER_HAS_CUDA
namespace {

/// An assignment for the environment of `run`.
std::string fake(const std::string& variable, const char* library) {
  return variable + "='" + (fuse::test::fake_directory() / library).string() + "' ";
}

bool no_nvrtc() {
  if (fuse::runtime::nvrtc_available()) return false;
  WARN("skipped: there is no NVRTC to make cubins with");
  return true;
}

}  // namespace

TEST_CASE("the path of a GPU runs on the fake driver, and its results make a page", "[bench][nvrtc]") {
  if (skipped()) return;
  if (no_nvrtc()) return;
  const std::string fakes =
      fake("FUSE_LIBCUDA", "libfake_cuda.so") + fake("FUSE_LIBCUBLASLT", "libfake_cublaslt.so");
  const Folder root;
  make_root(root);
  const std::string json = root.file("bench/results/fake.json");
  const Ran ran = run("--device cuda --filter smoke,rows,f32 --json " + json, fakes);
  INFO(ran.output);
  REQUIRE(ran.status == 1);  // nothing was computed, and that is seen
  const Ran check = run("--check " + json);
  INFO(check.output);
  CHECK(check.status == 0);
  const Json out = read(json);
  CHECK(out.at("device").at("kind") == "cuda");
  CHECK(out.at("device").at("clock") == "CUDA events");
  for (const Json& row : out.at("cases")) {
    CAPTURE(row.at("name"));
    CHECK(row.at("status") == "wrong");
    const Json& counts = row.at("counts");
    const double steps = counts.at("launches").get<double>() + counts.at("memsets").get<double>();
    CHECK(row.at("device_us").at("median").get<double>() == Approx(1000 * steps).epsilon(1e-3));
    CHECK(row.at("graph_us").at("median").get<double>() == Approx(1000 * steps).epsilon(1e-3));
    CHECK(row.at("host_us").at("median") > 0);
    CHECK(row.at("gemm").is_null());
  }

  const std::string report = "--report " + root.path.string();
  REQUIRE(run(report).status == 0);
  CHECK(!contains(text_of(root.path / "docs/performance.md"),
                  "copy_share.svg"));  // wrong results have no speed
  Json right = out;
  for (Json& row : right["cases"]) {
    row["status"] = "ok";
    row["tags"] = {"memory", "rows"};
  }
  write(json, right.dump());
  REQUIRE(run(report).status == 0);
  const std::string page = text_of(root.path / "docs/performance.md");
  CHECK(contains(page, "plots/copy_share.svg"));
  CHECK(contains(page, "plots/rows_softmax_f32.svg"));
  const std::string plot = text_of(root.path / "docs/plots/rows_softmax_f32.svg");
  CHECK(contains(plot, "<polyline"));
  CHECK(contains(plot, "131072"));
  write(root.path / "docs/plots/stale.svg", "");
  write(root.path / "docs/plots/stitch_other.svg", "");
  REQUIRE(run(report).status == 0);
  CHECK(text_of(root.path / "docs/performance.md") == page);
  CHECK(text_of(root.path / "docs/plots/rows_softmax_f32.svg") == plot);
  CHECK(!fs::exists(root.path / "docs/plots/stale.svg"));
  CHECK(fs::exists(root.path / "docs/plots/stitch_other.svg"));
}

TEST_CASE("a case with GEMMs is set beside its GEMMs alone", "[bench][emulated]") {
  if (skipped()) return;
  const Folder folder;
  const std::string json = folder.file("out.json");
  const Ran ran = run("--profile tiny3 --filter matmul_bias_gelu.f32,smoke --json " + json);
  INFO(ran.output);
  REQUIRE(ran.status == 0);
  const Json row = read(json).at("cases").at(0);
  CHECK(row.at("counts").at("gemms") == 1);
  CHECK(row.at("gemm").at("flops") == 2.0 * 128 * 128 * 128);
  CHECK(row.at("gemm").at("share") > 0);
}

TEST_CASE("the probe's launches are ones that a driver takes", "[bench][nvrtc]") {
  if (skipped()) return;
  if (no_nvrtc()) return;
  const Ran ran = run("--device cuda --filter probe", fake("FUSE_LIBCUDA", "libfake_cuda.so"));
  INFO(ran.output);
  CHECK(ran.status == 0);
  CHECK(contains(ran.output, "probe.store.cluster_barrier"));
}

TEST_CASE("the ladder has a rung for every cost that the device can show", "[bench][nvrtc]") {
  if (skipped()) return;
  if (no_nvrtc()) return;
  const Folder folder;
  const std::string json = folder.file("out.json");
  const Ran ran =
      run("--device cuda --filter ladder --json " + json, fake("FUSE_LIBCUDA", "libfake_cuda.so"));
  INFO(ran.output);
  REQUIRE(ran.status == 0);
  std::map<std::string, double> rungs;
  const Json out = read(json);
  for (const Json& row : out.at("rows")) rungs[row.at("name")] = row.at("figure");
  CHECK(rungs.size() == 15 + 2 + 5);  // costs, copies, what the cost model takes
  CHECK(rungs.contains("ladder.grid_barrier.132"));
  CHECK(rungs.contains("ladder.cluster_barrier.16"));
  CHECK(rungs.at("ladder.copy.memcpy") == Approx(2 * 0x1p28 / 1e-3 / 1e9));
  CHECK(rungs.at("ladder.target.launch_seconds") > 0);
  CHECK(rungs.at("ladder.launch.empty") == Approx(1000));
  CHECK(rungs.at("ladder.graph.dependent") == Approx(1000));
  CHECK(rungs.at("ladder.event") == 0);
  CHECK(rungs.at("ladder.launch.host") > 0);
}
#endif
#endif
