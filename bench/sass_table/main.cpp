// sass_table: a static roofline made from SASS. Each case is compiled by NVRTC and disassembled; nothing
// runs. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/access.hpp"
#include "bench_arguments.hpp"
#include "compile/builds/builds.hpp"
#include "compile/toolchains/cuda/nvrtc.hpp"
#include "counts_json.hpp"
#include "os/parallel.hpp"
#include "watched.hpp"

namespace fuse::bench::sass {
namespace {

struct Options {
  std::string filter, gpu = "h200", json, nvdisasm, against, check, keep;
  bool watched = false;
  DimValues at{};  ///< empty: the hints, and one build
};

void help() {
  fmt::print(
      "sass_table: what kernels issue for each element, counted in their SASS, beside what a GPU can issue\n"
      "while it copies that element. Nothing is measured, and no GPU is needed.\n\n"
      "  --filter TEXT    cases whose name contains the text; of several by comma all have to fit\n"
      "  --gpu NAME       h200, h100, a100 or all [h200]; the table is of the first\n"
      "  --at B=64,T=128  at these dims: the build and the versions of kernels that they take [the hints, "
      "one "
      "build]\n"
      "  --json FILE      write the counts there too (bench/sass_table/schema.json)\n"
      "  --nvdisasm PATH  the disassembler; else FUSE_NVDISASM, build/tools/nvdisasm (./dev setup --bench), "
      "PATH\n"
      "  --against FILE   exit 1 where a count is worse than in this file by more than 3%; 77 where its "
      "versions\n"
      "                   of NVRTC and nvdisasm are others, or one of them is missing\n"
      "  --watched        the cases that the tests look at\n"
      "  --check FILE     count nothing: check a file against the schema\n"
      "  --keep DIR       write texts and disassemblies there\n"
      "  --help           this text\n\n"
      "exit status: 0, 1 (a case could not be counted, or is worse), 2 (the command line), 77 (skipped)\n");
}

DimValues dims_of(const std::string& text) {
  DimValues dims;
  for (const std::string& part : parts_of(text)) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) wrong("--at wants NAME=NUMBER, not '" + part + "'");
    const std::string name = part.substr(0, equals);
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    if (!dims.emplace(name, number_of(name, part.substr(equals + 1), 0, most)).second)
      wrong("--at has two values for " + name);
  }
  return dims;
}

Options parse(int argc, char** argv) {
  Options options;
  std::string at;
  read_arguments(argc, argv,
                 {{"--watched", nullptr, &options.watched},
                  {"--filter", &options.filter},
                  {"--gpu", &options.gpu},
                  {"--at", &at},
                  {"--json", &options.json},
                  {"--nvdisasm", &options.nvdisasm},
                  {"--against", &options.against},
                  {"--check", &options.check},
                  {"--keep", &options.keep}},
                 help);
  options.at = dims_of(at);
  try {
    if (options.gpu != "all") gpu_of(options.gpu);
  } catch (const std::exception& error) {
    wrong(error.what());
  }
  return options;
}

std::vector<TableCase> chosen_cases(const Options& options) {
  const std::vector<std::string> parts = parts_of(options.filter);
  const auto names = watched();
  std::vector<TableCase> cases;
  for (TableCase& each : table_cases()) {
    if (options.watched && std::find(names.begin(), names.end(), each.name) == names.end()) continue;
    const bool fits = std::all_of(parts.begin(), parts.end(), [&](const std::string& part) {
      return each.name.find(part) != std::string::npos;
    });
    if (fits) cases.push_back(std::move(each));
  }
  if (cases.empty()) wrong("no case's name contains '" + options.filter + "'");
  return cases;
}

/// "37 of 450", in place, once a run has taken two seconds.
class Progress {
 public:
  explicit Progress(std::size_t all) : all_(all) {}
  ~Progress() {
    if (shown_) fmt::print(stderr, "\r{:24}\r", "");
  }
  void step() {
    const std::lock_guard lock(mutex_);
    ++done_;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::milliseconds(500);
    fmt::print(stderr, "\r  {} of {} cases", done_, all_);
    shown_ = true;
  }

 private:
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  std::mutex mutex_;
  std::size_t done_ = 0, all_ = 0;
  bool shown_ = false;
};

CaseCount count_at(Counter& counter, const TableCase& of, const DimValues& dims, const Gpu& gpu) {
  const Graph graph = of.build();
  if (dims.empty()) return counter.count(of.name, graph, gpu);
  for (const ir::Symbol& symbol : ir_of(graph).symbols) {
    const auto found = dims.find(symbol.name);
    if (found != dims.end() && (found->second < symbol.range.min || found->second > symbol.range.max))
      throw std::runtime_error(fmt::format("{} = {} is outside of its range [{}, {}]", symbol.name,
                                           found->second, symbol.range.min, symbol.range.max));
  }
  PipelineOptions options = pipeline_options({});
  options.threads = 1;
  return counter.count(of.name, run_builds(ir_of(graph), target_profile(gpu.profile), options), dims, gpu);
}

std::vector<CaseResult> count_all(Counter& counter, std::vector<TableCase> cases,
                                  const std::vector<std::string>& names, const DimValues& dims) {
  std::vector<CaseResult> results(cases.size());
  Progress progress(cases.size());
  parallel_for(0, cases.size(), [&](std::size_t i) {
    results[i].of = std::move(cases[i]);
    for (const std::string& name : names) {
      try {
        results[i].on.emplace(name, count_at(counter, results[i].of, dims, gpu_of(name)));
      } catch (const std::exception& error) {
        results[i].failed.emplace(name, error.what());
      }
    }
    progress.step();
  });
  return results;
}

/// The narrowest accesses: loads, then stores.
std::string widths_of(const CaseCount& count) {
  int loads = 16, stores = 16;
  for (const KernelCount& kernel : count.kernels) {
    for (const Access& access : kernel.accesses) {
      int& width = access.stores ? stores : loads;
      if (access.extent_bytes >= 1 << 20) width = std::min(width, access.bytes);
    }
  }
  return fmt::format("{}/{}", loads, stores);
}

constexpr const char* row_format =
    "{:<42} {:>3} {:>6} {:>6} {:>9} {:>6} {:>6} {:>6} {:>5} {:>5} {:>6} {:>6} {:>8} {:>5}  {}\n";

void print_table(const std::vector<CaseResult>& results, const std::string& gpu) {
  fmt::print(fmt::runtime(row_format), "case", "k", "slots", "cycles", "bound by", "budget", "share", "copy",
             "regs", "blk", "waves", "last", "flight", "width", "missing");
  for (const CaseResult& result : results) {
    const auto at = result.on.find(gpu);
    if (at == result.on.end()) continue;
    const CaseCount& count = at->second;
    const KernelCount& kernel = count.longest();
    const auto fixed = [](double value, int digits) { return fmt::format("{:.{}f}", value, digits); };
    fmt::print(fmt::runtime(row_format), count.name, count.kernels.size(), fixed(count.slots, 1),
               fixed(count.cycles, 1), to_string(kernel.bound), fixed(count.budget, 1), fixed(count.share, 3),
               fixed(count.predicted_share_of_copy, 2), kernel.registers, kernel.blocks_per_sm,
               fixed(kernel.waves, 1), fixed(kernel.last_wave, 2), kernel.bytes_in_flight, widths_of(count),
               missing(count));
  }
}

void print_notes(const std::vector<CaseResult>& results, const std::string& gpu) {
  const Gpu& of = gpu_of(gpu);
  fmt::print(
      "\n{}: {} SMs of {} sub-partitions at {:.3f} GHz, {:.1f} TB/s of a copy: {:.2f} instructions of "
      "threads for "
      "each byte.\n({})\n"
      "k: kernels; slots: instructions that a thread issues for each element of the largest operand; cycles: "
      "the\n"
      "most of slots and of what any pipe is busy, in the same unit; budget: what can be issued while the "
      "floor's\n"
      "bytes (given values read once, results written once) of an element are copied; share: cycles / "
      "budget.\n"
      "Of the kernel with most cycles: registers, blocks of an SM, waves, how full the last one is, and "
      "bytes of\n"
      "loads of an SM that are issued before the first is used. width: bytes of the narrowest load and store "
      "of\n"
      "values of 1 MB and more.\n"
      "copy: the predicted share of a copy: floor / rate of copy over the sum of the kernels' times, each\n"
      "(max(m, c) + min(m, c) / n) * ceil(w) / w, where m: its bytes at the rate of copy, longer where fewer "
      "loads\n"
      "are under way than a latency of {:.0f} ns asks for; c: its cycles; n: blocks that an SM has at a "
      "time, without\n"
      "barriers warps; w: waves. At most min(1, budget / cycles).\n",
      of.name, of.sms, sub_partitions, of.clock * 1e-9, of.copy * 1e-12, budget_of_byte(of), of.source,
      latency * 1e9);
  std::map<std::string, int> slow;
  std::set<std::string> waits;
  for (const CaseResult& result : results) {
    const auto at = result.on.find(gpu);
    if (at == result.on.end()) continue;
    std::set<std::string> routines;
    for (const KernelCount& kernel : at->second.kernels) {
      for (const Unweighted& each : kernel.slow) routines.insert(each.routine);
      for (const std::string& wait : kernel.waits) waits.insert(wait.substr(wait.find(": ") + 2));
    }
    for (const std::string& routine : routines) ++slow[routine];
  }
  if (!slow.empty()) fmt::print("\nCounted as never run:\n");
  for (const auto& [routine, times] : slow)
    fmt::print("  {} ({} case{})\n", routine, times, times == 1 ? "" : "s");
  if (!waits.empty()) fmt::print("Loops that wait for other blocks, counted once:\n");
  for (const std::string& wait : waits) fmt::print("  {}\n", wait);
}

void print_goals(const std::vector<GoalResult>& goals) {
  if (!goals.empty()) fmt::print("\nGoals, on h200, rows of 256 to 4,096 elements:\n");
  for (const GoalResult& goal : goals) {
    fmt::print("  {:<7} {}{}{}\n", goal.met ? "met" : "MISSED", goal.name, goal.worst.empty() ? "" : "; ",
               goal.worst.empty()
                   ? ""
                   : (goal.name.find("share") == std::string::npos ? "" : "worst: ") + goal.worst);
    if (!goal.why.empty()) fmt::print("          {}\n", goal.why);
  }
}

[[noreturn]] void skip(const std::string& why) {
  fmt::print(stderr, "skipped: {}\n", why);
  std::exit(77);
}

int check_file(const std::string& path) {
  const std::vector<std::string> errors = schema_errors(read_json(path));
  for (const std::string& error : errors) fmt::print("{}: {}\n", path, error);
  if (errors.empty()) fmt::print("{}: fits bench/sass_table/schema.json\n", path);
  return errors.empty() ? 0 : 1;
}

/// What the counts depend on is there, and is what `committed` was made with. Leaves with 77 where it is not.
Nvdisasm same_tools(const Options& options, const Json& committed) {
  if (!runtime::nvrtc_available()) skip("there is no NVRTC");
  const Nvdisasm nvdisasm = [&] {
    try {
      return Nvdisasm::find(options.nvdisasm);
    } catch (const std::exception& error) {
      skip(error.what());
    }
  }();
  const auto [major, minor] = runtime::nvrtc_version();
  const Versions mine{fmt::format("{}.{}", major, minor), nvdisasm.version()},
      theirs = versions_of(committed);
  if (mine != theirs) {
    skip(fmt::format("{} was made with NVRTC {} and nvdisasm {}; here are {} and {}", options.against,
                     theirs.nvrtc, theirs.nvdisasm, mine.nvrtc, mine.nvdisasm));
  }
  return nvdisasm;
}

int run(const Options& options) {
  if (!options.check.empty()) return check_file(options.check);
  std::vector<std::string> names;
  if (options.gpu == "all") {
    for (const Gpu& gpu : gpus()) names.emplace_back(gpu.name);
  } else {
    names.emplace_back(gpu_of(options.gpu).name);
  }
  std::vector<TableCase> cases = chosen_cases(options);
  const Json committed = options.against.empty() ? Json() : read_json(options.against);
  if (!options.json.empty()) require_writable(options.json);
  Counter counter(options.against.empty() ? Nvdisasm::find(options.nvdisasm)
                                          : same_tools(options, committed));
  counter.keep = options.keep;
  runtime::nvrtc_library().require();
  const std::vector<CaseResult> results = count_all(counter, std::move(cases), names, options.at);

  print_table(results, names.front());
  print_notes(results, names.front());
  std::vector<Counted> on_h200;
  bool failed = false;
  for (const CaseResult& result : results) {
    const auto at = result.on.find("h200");
    if (at != result.on.end()) on_h200.push_back({&result.of, &at->second});
    for (const auto& [gpu, why] : result.failed) {
      fmt::print("{}could not be counted: {} on {}: {}\n", failed ? "" : "\n", result.of.name, gpu, why);
      failed = true;
    }
  }
  const std::vector<GoalResult> goals = goal_results(on_h200);
  print_goals(goals);
  const auto [major, minor] = runtime::nvrtc_version();
  const Versions versions{fmt::format("{}.{}", major, minor), counter.nvdisasm().version()};
  fmt::print("\nNVRTC {}, nvdisasm {} ({})\n", versions.nvrtc, versions.nvdisasm, counter.nvdisasm().path());
  const Json counts = to_json(results, goals, versions);
  if (!options.json.empty()) write_text(options.json, one_case_a_line(counts));
  if (!options.against.empty()) {
    const std::vector<std::string> worse = regressions(committed, counts);
    for (const std::string& line : worse) fmt::print("worse: {}\n", line);
    fmt::print("{} of {} cases compared with {}: {} worse\n", results.size(), results.size(), options.against,
               worse.size());
    failed = failed || !worse.empty();
  }
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace fuse::bench::sass

int main(int argc, char** argv) {
  fuse::bench::sass::set_up_counting();
  const auto options = fuse::bench::sass::parse(argc, argv);
  try {
    return fuse::bench::sass::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
