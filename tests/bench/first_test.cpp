// The table of dist/first, from results made up here; what the script does is tested in
// tools/bundle/first_test.sh. SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "support/catch.hpp"

#if __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>

namespace {

using FirstJson = nlohmann::json;

FirstJson first_results(const std::string& device) {
  return {{"version", 2},
          {"program", "fuse_bench"},
          {"date", "2026-01-01"},
          {"machine", {{"cpu", "c"}, {"cores", 1}, {"load_before", ""}, {"load_after", ""}}},
          {"device", {{"kind", "cuda"}, {"name", device}, {"clock", "CUDA events"}, {"l2_bytes", 1}}},
          {"rows", FirstJson::array()},
          {"cases", FirstJson::array()},
          {"skipped", FirstJson::array()},
          {"failed", FirstJson::array()}};
}

/// A case of 1e9 bytes that took so many microseconds.
FirstJson first_case(const std::string& name, const std::string& by, double us) {
  const FirstJson spread = {{"median", us}, {"q1", us}, {"q3", us}, {"min", us}, {"max", us}, {"n", 1}};
  return {{"name", name},
          {"builder", "b"},
          {"dtype", "f32"},
          {"dims", {1}},
          {"tags", {"first"}},
          {"by", by},
          {"status", "ok"},
          {"why", ""},
          {"device_us", spread},
          {"bytes", {{"read", 600000000}, {"written", 400000000}, {"moved", nullptr}}},
          {"copy", {{"kernel", 3e12}, {"memcpy", 2e12}, {"share", 0.625}}},
          {"error", {{"over_bound", 0.5}, {"checked", "the first 3 of 9 rows"}}}};
}

FirstJson first_row(const std::string& name, double figure, const std::string& unit) {
  return {{"name", name}, {"figure", figure}, {"cpu", nullptr}, {"unit", unit}, {"goal", ""},
          {"met", ""},    {"n", 1},           {"min", 0},       {"max", 0},     {"how", "so"}};
}

/// Counts of sass_table that predict a share for a case on each GPU.
FirstJson first_counts(const std::string& name, const std::map<std::string, double>& shares) {
  FirstJson gpus = FirstJson::object();
  for (const auto& [gpu, share] : shares) {
    gpus[gpu] = {{"predicted_share_of_copy", share},
                 {"budget", 1},
                 {"slots", 1},
                 {"cycles", 1},
                 {"bound", "issue"},
                 {"share", 1},
                 {"missing", ""},
                 {"kernel_count", 1},
                 {"kernels", FirstJson::array()}};
  }
  const FirstJson entry = {{"name", name},  {"builder", "b"},   {"dtype", "f32"}, {"dims", {1}},
                           {"elements", 1}, {"floor_bytes", 1}, {"gpus", gpus}};
  return {{"version", 1},
          {"program", "sass_table"},
          {"about", ""},
          {"nvrtc", "1.0"},
          {"nvdisasm", "1.0"},
          {"gpus", FirstJson::array()},
          {"goals", FirstJson::array()},
          {"cases", FirstJson::array({entry})},
          {"failed", FirstJson::array()}};
}

struct FirstFolder {
  std::filesystem::path path;
  FirstFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "fuse-first-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()));
    path = name;
  }
  ~FirstFolder() { std::filesystem::remove_all(path); }
  void write(const char* name, const std::string& text) const { std::ofstream(path / name) << text; }

  /// The table, with single spaces between its cells; empty where the program fails, whose words are `said`
  /// then.
  std::string table(std::string& said) const {
    const std::filesystem::path program =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fuse_bench";
    const std::string command = "'" + program.string() + "' --first-table '" + path.string() +
                                "' --counts '" + (path / "counts").string() + "' 2>&1";
    FILE* const pipe = ::popen(command.c_str(), "r");
    REQUIRE(pipe);
    std::array<char, 4096> block;
    for (std::size_t got; (got = std::fread(block.data(), 1, block.size(), pipe)) > 0;)
      said.append(block.data(), got);
    if (::pclose(pipe) != 0) return "";
    std::string single;
    for (const char c : said) {
      if (c != ' ' || (!single.empty() && single.back() != ' ')) single += c;
    }
    return single;
  }
};

bool no_bench() {
  const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fuse_bench";
  if (std::filesystem::exists(program)) return false;
  WARN("skipped: there is no " << program.string());
  return true;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the first table has each case beside a copy, PyTorch, another build and the prediction",
          "[bench]") {
  if (no_bench()) return;
  const FirstFolder folder;
  FirstJson fuse = first_results("NVIDIA H100 80GB HBM3"), other = fuse, torch = fuse;
  fuse["cases"] = {first_case("a.f32.1", "fuse", 500), first_case("b.f32.2", "fuse", 250)};
  fuse["cases"][1]["status"] = "wrong";
  fuse["cases"][1]["why"] = "worst at [3]";
  other["cases"] = {first_case("a.f32.1", "fuse", 1000)};
  torch["cases"] = {first_case("a.f32.1", "torch.eager", 2000), first_case("a.f32.1", "torch.compile", 625),
                    first_case("c.f32.3", "torch.eager", 100)};
  folder.write("fuse.json", fuse.dump());
  folder.write("torch.json", torch.dump());
  folder.write("counts", first_counts("a.f32.1", {{"a100", 0.9}, {"h100", 0.81}}).dump());
  folder.write("parts.tsv", "cases\tfailed\t7\t1 of 2: b.f32.2\nncu\tskipped\t0\tno ncu\n");
  std::string said;
  const std::string alone = folder.table(said);
  INFO(said);
  CHECK(has(alone, "case us GB/s of copy predicted eager compile liger result\n"));
  CHECK(has(alone, "a.f32.1 500.00 2000 62.5% 81.0% 500 1600 - ok, checked: the first 3 of 9 rows\n"));
  CHECK(has(alone, "b.f32.2 250.00 4000 62.5% not predicted - - - wrong: worst at [3]\n"));
  CHECK(has(alone, "c.f32.3 - - - not predicted 10000 - - not measured\n"));
  CHECK(has(alone, "softmax.bf16.16384x4096 - - - not predicted - - - not measured\n"));  // of the selection
  CHECK(has(alone, "cases 7 failed: 1 of 2: b.f32.2\n"));
  CHECK(has(alone, "ncu 0 skipped: no ncu\n"));
  std::ifstream written(folder.path / "first.txt");
  CHECK(std::string(std::istreambuf_iterator<char>(written), {}) == said);

  folder.write("other.json", other.dump());
  said.clear();
  const std::string both = folder.table(said);
  INFO(said);
  CHECK(has(both, "a.f32.1 500.00 2000 62.5% 81.0% 500 1600 - 1000 2.000 ok, "));
  CHECK(has(both, "b.f32.2 250.00 4000 62.5% not predicted - - - - - wrong: "));
}

TEST_CASE("the first table predicts for the GPU that the device is, and for no other", "[bench]") {
  if (no_bench()) return;
  const FirstFolder folder;
  folder.write("counts", first_counts("a.f32.1", {{"a100", 0.5}, {"h100", 0.25}, {"h200", 0.75}}).dump());
  const std::pair<const char*, const char*> devices[] = {{"NVIDIA A100-SXM4-80GB", "50.0%"},
                                                         {"NVIDIA H100 80GB HBM3", "25.0%"},
                                                         {"NVIDIA H200", "75.0%"},
                                                         {"NVIDIA GH200 480GB", "not predicted"},
                                                         {"NVIDIA L4", "not predicted"}};
  for (const auto& [device, predicted] : devices) {
    FirstJson fuse = first_results(device);
    fuse["cases"] = {first_case("a.f32.1", "fuse", 500)};
    folder.write("fuse.json", fuse.dump());
    std::string said;
    const std::string table = folder.table(said);
    INFO(said);
    CHECK(has(table, std::string("a.f32.1 500.00 2000 62.5% ") + predicted + " - - - ok"));
  }
}

TEST_CASE("the first table has the model's constants beside the ladder's, the profiler and the probe",
          "[bench]") {
  if (no_bench()) return;
  const FirstFolder folder;
  FirstJson fuse = first_results("NVIDIA H200");
  fuse["rows"] = {first_row("ladder.launch.empty", 2.125, "us"),
                  first_row("ladder.grid_barrier.33", 1, "us"),
                  first_row("ladder.grid_barrier.132", 1.75, "us"),
                  first_row("ladder.grid_barrier.264", 3, "us"),
                  first_row("ladder.cluster_barrier.8", 0.25, "us"),
                  first_row("ladder.copy.kernel", 4125, "GB/s"),
                  first_row("ladder.target.launch_seconds", 2.5, "us"),
                  first_row("ladder.target.barrier_seconds", 1.5, "us"),
                  first_row("probe.latency", 612, "ns")};
  folder.write("fuse.json", fuse.dump());
  folder.write(
      "ncu.txt",
      "case a.f32.1\n==PROF== Connected to process 7\n"
      "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
      "\"0\",\"k(float, int)\",\"dram__throughput.avg.pct_of_peak_sustained_elapsed\",\"%\",\"88.5\"\n"
      "\"0\",\"k(float, int)\",\"sm__warps_active.avg.pct_of_peak_sustained_active\",\"%\",\"97.1\"\n"
      "case b.f32.2\n==ERROR== no such metric\n");
  std::string said;
  const std::string table = folder.table(said);
  INFO(said);
  CHECK(has(table, "launch_seconds 2.5 us 2.125 (launch.empty)\n"));
  CHECK(has(table, "node_seconds - us -\n"));
  CHECK(has(table, "barrier_seconds 1.5 us 1.75 (grid_barrier.132)\n"));
  CHECK(has(table, "cluster_seconds - us 0.25 (cluster_barrier.8)\n"));
  CHECK(has(table, "bandwidth - GB/s 4125 (copy.kernel)\n"));
  CHECK(has(table, "a.f32.1 88.5 - - 97.1\n"));
  CHECK(!has(table, "b.f32.2"));
  CHECK(has(table, "latency 612 ns so\n"));
}

TEST_CASE("the first table is made of nothing, and refuses what is no result", "[bench]") {
  if (no_bench()) return;
  const FirstFolder folder;
  folder.write("parts.tsv", "machine\tskipped\t0\tno GPU\n");
  std::string said;
  CHECK(has(folder.table(said), "machine 0 skipped: no GPU\n"));
  folder.write("fuse.json", R"({"version": 2})");
  said.clear();
  CHECK(folder.table(said).empty());
  CHECK(has(said, "fuse.json does not fit bench/schema.json"));
  std::filesystem::remove(folder.path / "fuse.json");
  folder.write("counts", R"({"cases": []})");
  said.clear();
  CHECK(folder.table(said).empty());
  CHECK(has(said, "counts does not fit bench/sass_table/schema.json"));
}
#endif
