// fuse_bench: what fuse costs and saves, as a table and as JSON. Figures are not assertions: the exit status
// is 0 unless something failed to run (1) or the command line is wrong (2).
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <fuse/error.hpp>
#include <string>
#include <string_view>

#include "groups.hpp"
#include "report.hpp"

namespace {

using fuse::bench::Report;
using fuse::bench::Settings;

struct Group {
  const char* name;
  const char* about;
  void (*run)(Report&, const Settings&);
};

constexpr Group groups[] = {
    {"elementwise", "emulated kernels without barriers, against the same loop",
     fuse::bench::bench_elementwise},
    {"softmax", "emulated softmax, plain and checked, through the pipeline and by hand",
     fuse::bench::bench_softmax},
    {"graph", "building, printing, parsing, cutting and compiling large graphs", fuse::bench::bench_graph},
    {"compile", "the system compiler and NVRTC", fuse::bench::bench_compile},
    {"counts", "kernels, barriers and bytes of examples/graphs", fuse::bench::bench_counts},
};

struct Options {
  std::string filter, json;
  Settings settings{.graphs = FUSE_BENCH_GRAPHS};
};

[[noreturn]] void wrong(const std::string& why) {
  fmt::print(stderr, "error: {}; see --help\n", why);
  std::exit(2);
}

[[noreturn]] void help() {
  fmt::print(
      "fuse_bench: what fuse costs and saves\n\n"
      "  --filter TEXT   groups whose name contains the text\n"
      "  --json FILE     write the rows there too\n"
      "  --graphs DIR    the .fuse files of group counts [{}]\n"
      "  --help          this text\n\ngroups:\n",
      FUSE_BENCH_GRAPHS);
  for (const Group& group : groups) fmt::print("  {:<14}  {}\n", group.name, group.about);
  std::exit(0);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i], value;
    if (name == "--help" || name == "-h") help();
    const std::size_t equals = name.find('=');
    const bool joined = equals != std::string::npos;
    if (joined) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    std::string* const target = name == "--filter"   ? &options.filter
                                : name == "--json"   ? &options.json
                                : name == "--graphs" ? &options.settings.graphs
                                                     : nullptr;
    if (!target) wrong("unknown option " + name);
    if (!joined) {
      if (++i == argc) wrong(name + " needs a value");
      value = argv[i];
    }
    *target = value;
  }
  return options;
}

int run(const Options& options) {
  const std::string load = fuse::bench::load_average();
  Report report;
  bool any = false;
  for (const Group& group : groups) {
    if (std::string_view(group.name).find(options.filter) == std::string_view::npos) continue;
    any = true;
    fmt::print(stderr, "{} ...\n", group.name);
    report.begin(group.name);
    try {
      group.run(report, options.settings);
    } catch (const std::exception& error) {
      report.fail(error.what());
    }
  }
  if (!any) wrong("no group's name contains '" + options.filter + "'");
  fmt::print("load before: {}, after: {}\n\n", load, fuse::bench::load_average());
  report.print_table();
  if (!options.json.empty()) report.write_json(options.json, load);
  return report.failed() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  try {
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
