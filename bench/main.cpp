// fuse_bench: what fuse costs and saves, as a table and as JSON. Figures are not assertions: the exit status
// is 0 unless something failed or computed a wrong result (1), the command line is wrong (2), or there is no
// GPU to measure (77). SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <fuse/error.hpp>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>

#include "base/access.hpp"
#include "bench_arguments.hpp"
#include "cases/cases.hpp"
#include "first/first_table.hpp"
#include "groups/groups.hpp"
#include "page/page.hpp"
#include "report/embedded.hpp"
#include "report/report.hpp"
#include "report/schema_check.hpp"
#include "runtime/device/backend.hpp"
#include "serve/serve.hpp"

namespace {

using fuse::bench::Json;
using fuse::bench::Report;
using fuse::bench::Settings;
using fuse::bench::wrong;

struct Group {
  const char* name;
  const char* about;
  void (*run)(Report&, const Settings&);
  bool on_gpu;  ///< measures the device asked for, not the emulated one or the host
};

constexpr Group groups[] = {
    {"elementwise", "emulated kernels without barriers, against the same loop",
     fuse::bench::bench_elementwise, false},
    {"softmax", "emulated softmax, plain and checked, through the pipeline and by hand",
     fuse::bench::bench_softmax, false},
    {"graph", "building, printing, parsing, cutting and compiling large graphs", fuse::bench::bench_graph,
     false},
    {"compile", "the system compiler and NVRTC", fuse::bench::bench_compile, false},
    {"deploy", "plans from the cache and from files", fuse::bench::bench_deploy, false},
    {"counts", "kernels, barriers and bytes of examples/graphs", fuse::bench::bench_counts, false},
    {"ladder", "a launch, an event, a node of a CUDA graph, a barrier, a copy, on the device",
     fuse::bench::bench_ladder, true},
    {"probe", "single instructions, barriers, accesses and blocks, on the device", fuse::bench::bench_probe,
     true},
    {"cases", "the cases of bench/cases.json, on the device", fuse::bench::bench_cases, true},
};

struct Options {
  std::string filter, json, graphs = FUSE_BENCH_GRAPHS, device = "emulated", profile = "h200", check, page,
                            first, list, graph, decisions, serve;
  std::string counts = FUSE_BENCH_COUNTS;
  std::string check_elements = "8000000";
  bool append = false, checked = false;
};

void help() {
  fmt::print(R"(fuse_bench: what fuse costs and saves

measuring
  --device NAME       emulated or cuda: what the groups ladder, probe and cases measure [emulated]
  --profile NAME      the GPU that the emulated device stands for [h200]
  --checked           the emulated device finds races and bad accesses; its times are those of the checks
  --filter TEXT       groups and cases whose name contains the text, or cases with that tag; of several by
                      comma all have to fit: smoke,softmax.f32. A case's whole name picks that case alone.
  --check-elements N  elements that the reference evaluates of a case at most; 0 checks nothing [8000000]
  --use-decisions FILES
                      measure each case once by each of these files, which docs/decisions.md tells of; by comma
  --json FILE         write the results there too (bench/schema.json), after each case and each row
  --append            keep what FILE has of other cases and rows
  --graphs DIR        the .fuse files of group counts [{}]
not measuring
  --check FILE        check a file of results against the schema
  --report DIR        write DIR/docs/performance.md and its plots from DIR/bench/results
  --list FILTER       the names of the cases for a GPU that fit the filter
  --print-graph CASE  the graph of a case, as .fuse text
  --first-table DIR   write DIR/first.txt, the table of what dist/first left there, and print it
  --serve THREADS     answer requests on stdin with the cpu device, as bench/compare asks them
  --counts FILE       the static counts that it predicts from [{}]
  --help              this text

groups:
)",
             FUSE_BENCH_GRAPHS, FUSE_BENCH_COUNTS);
  for (const Group& group : groups) fmt::print("  {:<14}  {}\n", group.name, group.about);
  fmt::print("\nexit status: 0, 1 (something failed, or is wrong), 2 (the command line), 77 (no GPU)\n");
}

Options parse(int argc, char** argv) {
  Options options;
  fuse::bench::read_arguments(argc, argv,
                              {{"--append", nullptr, &options.append},
                               {"--checked", nullptr, &options.checked},
                               {"--filter", &options.filter},
                               {"--json", &options.json},
                               {"--graphs", &options.graphs},
                               {"--device", &options.device},
                               {"--profile", &options.profile},
                               {"--check-elements", &options.check_elements},
                               {"--check", &options.check},
                               {"--report", &options.page},
                               {"--first-table", &options.first},
                               {"--counts", &options.counts},
                               {"--list", &options.list},
                               {"--print-graph", &options.graph},
                               {"--serve", &options.serve},
                               {"--use-decisions", &options.decisions}},
                              help);
  fuse::bench::parts_of(options.filter);  // what is wrong with it ends the program before any work
  if (options.device != "emulated" && options.device != "cuda") {
    wrong("--device " + options.device + ": there are emulated and cuda");
  }
  const std::string& number = options.check_elements;
  if (number.empty() || number.size() > 15 || number.find_first_not_of("0123456789") != std::string::npos) {
    wrong("--check-elements " + number + ": not a number of elements");
  }
  if (options.append && options.json.empty()) wrong("--append needs --json");
  if (!options.decisions.empty() && !options.json.empty()) {
    wrong("--json has what fuse chooses by itself, so it does not go with --use-decisions");
  }
  return options;
}

fuse::Device open_device(const Options& options) {
  if (options.device == "emulated")
    return fuse::Device::emulated({.profile = options.profile, .checked = options.checked});
  try {
    return fuse::Device::cuda();
  } catch (const fuse::Error& error) {
    if (error.kind() != fuse::ErrorKind::runtime) throw;
    fmt::print(stderr, "skipped: no GPU: {}\n", error.what());
    std::exit(77);
  }
}

Json describe(const fuse::Device& device) {
  return {{"kind", std::string(to_string(device.kind()))},
          {"name", device.name()},
          {"clock", std::string(backend_of(device)->clock())},
          {"l2_bytes", backend_of(device)->target().l2_bytes}};
}

/// A group by its name; group cases also by a case's name or tag.
bool wanted(const Group& group, const Settings& settings) {
  if (settings.device.kind() == fuse::DeviceKind::cuda && settings.filter.empty() && !group.on_gpu)
    return false;
  if (std::string_view(group.name).find(settings.filter) != std::string_view::npos) return true;
  return group.run == fuse::bench::bench_cases && any_case(settings);
}

std::vector<fuse::bench::DecisionsFile> read_decisions(const std::string& files) {
  std::vector<fuse::bench::DecisionsFile> read;
  for (const std::string& path : fuse::bench::parts_of(files)) {
    std::ifstream in(path);
    std::ostringstream text;
    if (!(text << in.rdbuf())) wrong("cannot read '" + path + "'");
    read.push_back({.path = path, .text = text.str()});
  }
  return read;
}

int run(const Options& options) {
  const Settings settings{.graphs = options.graphs,
                          .filter = options.filter,
                          .check_elements = std::stod(options.check_elements),
                          .decisions = read_decisions(options.decisions),
                          .device = open_device(options)};
  const std::string load = fuse::bench::load_average();
  Report report;
  if (!options.json.empty()) report.write_to(options.json, describe(settings.device), options.append);
  bool any = false;
  for (const Group& group : groups) {
    if (!wanted(group, settings)) continue;
    any = true;
    fmt::print(stderr, "{} ...\n", group.name);
    report.begin(group.name);
    try {
      group.run(report, settings);
    } catch (const std::exception& error) {
      report.fail(error.what());
    }
  }
  if (!any)
    wrong("no group's or case's name contains '" + options.filter +
          "', and no case for this device has that tag");
  fmt::print("load before: {}, after: {}\n\n", load, fuse::bench::load_average());
  report.print_table();
  report.save();
  return report.failed() ? 1 : 0;
}

int print_graph(const std::string& name) {
  std::vector<fuse::bench::Case> cases = fuse::bench::all_cases();
  for (fuse::bench::Case& c : fuse::bench::cpu_cases()) cases.push_back(std::move(c));
  for (const fuse::bench::Case& c : cases) {
    if (c.name != name) continue;
    fmt::print("{}", fuse::bench::builder_of(c.builder).build(c.dtype, c.dims).to_string());
    return 0;
  }
  wrong("there is no case '" + name + "'; --list rows prints some");
}

int list(const std::string& filter) {
  const bool smoke = (',' + filter + ',').find(",smoke,") != std::string::npos;
  for (const fuse::bench::Case& c : fuse::bench::cases_that_fit(filter, smoke)) fmt::print("{}\n", c.name);
  return 0;
}

int write_first_table(const Options& options) {
  const std::string table = fuse::bench::first_table(fuse::bench::read_first(options.first, options.counts));
  fmt::print("{}", table);
  fuse::bench::write_text(options.first + "/first.txt", table);
  return 0;
}

int serve(const std::string& threads) {
  if (threads.empty() || threads.size() > 4 || threads.find_first_not_of("0123456789") != std::string::npos ||
      std::stoi(threads) < 1) {
    wrong("--serve " + threads + ": not a number of threads");
  }
  return fuse::bench::serve(std::cin, std::cout, std::stoi(threads));
}

int check(const std::string& path) {
  const auto errors =
      fuse::bench::schema_errors(fuse::bench::read_json(path), Json::parse(fuse::bench::schema_json()));
  for (const std::string& error : errors) fmt::print("{}: {}\n", path, error);
  if (errors.empty()) fmt::print("{}: fits bench/schema.json\n", path);
  return errors.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  ::setenv("FUSE_CACHE", "0", 0);  // what is compiled here is measured
  const Options options = parse(argc, argv);
  try {
    if (!options.check.empty()) return check(options.check);
    if (!options.page.empty()) return fuse::bench::write_page(options.page);
    if (!options.list.empty()) return list(options.list);
    if (!options.graph.empty()) return print_graph(options.graph);
    if (!options.serve.empty()) return serve(options.serve);
    if (!options.first.empty()) return write_first_table(options);
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
