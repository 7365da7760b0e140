// model_table: the models of examples/models by the rules of several compilers: launches beside the bound and
// AStitch's own counts, of plans for the papers' sizes; bytes and executed costly ops, counted in one run on
// the emulated device. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fuse/fuse.hpp>
#include <string>
#include <vector>

#include "base/access.hpp"
#include "bench_arguments.hpp"
#include "compile/pipeline/experiments.hpp"
#include "compile/traffic.hpp"
#include "fusec/progress.hpp"
#include "model_table/launch_bound.hpp"
#include "model_table/models.hpp"
#include "report/report.hpp"
#include "support/counted_run.hpp"

namespace fuse::bench {
namespace {

constexpr const char* profile = "h200";

struct Rules {
  const char* name;
  CompileOptions options;
};

const std::vector<Rules>& all_rules() {
  static const std::vector<Rules> rules = {
      {"one_op", {.experiments = experiments({.cut = Cut::one_op})}},
      {"xla", {.experiments = experiments({.cut = Cut::xla})}},
      {"tvm", {.experiments = experiments({.cut = Cut::tvm})}},
      {"apollo", {.experiments = experiments({.cut = Cut::apollo})}},
      {"astitch", {.experiments = experiments({.schemes = Schemes::astitch})}},
      {"fuse", {}},
  };
  return rules;
}

struct Options {
  std::string filter, json, graph;
  bool small = false, plan_only = false, append = false;
};

void help() {
  fmt::print(
      "model_table: the models of examples/models by the rules of several compilers\n\n"
      "  --filter NAME[,NAME]  these models alone\n"
      "  --plan-only           count no bytes: nothing runs\n"
      "  --json FILE           write the figures there too (bench/schema.json), for ./dev report\n"
      "  --append              keep what FILE has of other models\n"
      "  --print-graph NAME    the .fuse text of a model at the papers' sizes, and end\n"
      "  --small               of --print-graph: at the sizes of the tests\n"
      "  --help                this text\n\n"
      "exit status: 0, 1 (something failed), 2 (the command line)\n");
}

Options parse(int argc, char** argv) {
  Options options;
  read_arguments(argc, argv,
                 {{"--filter", &options.filter},
                  {"--plan-only", nullptr, &options.plan_only},
                  {"--json", &options.json},
                  {"--append", nullptr, &options.append},
                  {"--print-graph", &options.graph},
                  {"--small", nullptr, &options.small}},
                 help);
  return options;
}

const TableModel& model_of(const std::string& name) {
  for (const TableModel& model : table_models()) {
    if (model.name == name) return model;
  }
  std::string names;
  for (const TableModel& model : table_models()) names += (names.empty() ? "" : ", ") + model.name;
  wrong("there is no model '" + name + "': there are " + names);
}

class Table {
 public:
  explicit Table(Report& report) : report_(report) {}

  /// Launches by each of the rules at the papers' sizes, and the bound.
  void plan(const TableModel& model) {
    report_.begin("models." + model.name);
    const Graph graph = model.paper();
    add("ops", static_cast<double>(ir_of(graph).nodes.size()), "");
    if (model.astitch != 0) {
      add("printed_xla", model.astitch_xla, "AStitch, Table 3");
      add("printed_astitch", model.astitch, "AStitch, Table 3");
    }
    for (const Rules& rules : all_rules()) {
      fusec::Progress progress(fmt::format("planning {} by the rules of {}", model.name, rules.name));
      const fusec::Stopwatch watch;
      const Compiled compiled =
          run_pipeline(ir_of(graph), target_profile(profile), pipeline_options(rules.options));
      const StepCounts counts = step_counts(compiled.plan);
      const bool ours = rules.options == CompileOptions{};
      const std::int64_t bound = forced_launches(compiled);
      Row& row = add(fmt::format("launches.{}", rules.name), static_cast<double>(counts.kernels),
                     fmt::format("planned in {:.1f} s", watch.seconds()));
      if (ours && model.held_to_bound) row.goal = {Goal::Kind::at_most, 1.1 * static_cast<double>(bound)};
      add(fmt::format("gemms.{}", rules.name), static_cast<double>(counts.gemms), "");
      add(fmt::format("copies.{}", rules.name), static_cast<double>(counts.copies), "copies and memsets");
      if (ours) add("bound", static_cast<double>(bound), "of GEMM dependencies");
    }
  }

  /// Bytes and costly ops by each of the rules, in one checked run.
  void run(const TableModel& model) {
    report_.begin("models." + model.name);
    const Graph graph = model.counted();
    const Device device = Device::emulated({.profile = profile, .checked = true, .optimization = 0});
    for (const Rules& rules : all_rules()) {
      fusec::Progress progress(fmt::format("running {} by the rules of {}", model.name, rules.name));
      const Executable executable = compile(graph, device, rules.options);
      Session session(executable);
      const std::vector<runtime::KernelCounts> counts = test::counted_run(executable, session);
      const runtime::PlanTraffic traffic =
          runtime::traffic_of(stages_of(executable), ir_of(graph), {}, counts);
      const std::int64_t bytes = traffic.small_values.requested() + traffic.large_values.requested();
      std::int64_t costly = 0;
      for (const auto& [name, count] : runtime::executed_costly_ops(counts)) costly += count;
      add(fmt::format("bytes.{}", rules.name), static_cast<double>(bytes),
          "that kernels ask for; " + model.counted_size);
      add(fmt::format("costly.{}", rules.name), static_cast<double>(costly),
          "executed costly ops; " + model.counted_size);
      if (rules.options == CompileOptions{}) {
        add("floor", static_cast<double>(traffic.small_values.floor + traffic.large_values.floor),
            "bytes that the kernels of fuse have to move; " + model.counted_size);
      }
    }
  }

 private:
  Row& add(std::string name, double figure, std::string how) {
    return report_.add(
        {.name = std::move(name), .figure = figure, .min = figure, .max = figure, .how = std::move(how)});
  }

  Report& report_;
};

int run(const Options& options) {
  if (!options.graph.empty()) {
    const TableModel& model = model_of(options.graph);
    if (options.small && !model.small) wrong("the model '" + model.name + "' has no small size");
    fmt::print("{}", (options.small ? model.small : model.paper)().to_string());
    return 0;
  }
  std::vector<TableModel> models = table_models();
  if (!options.filter.empty()) {
    models.clear();
    for (const std::string& name : parts_of(options.filter)) models.push_back(model_of(name));
  }
  Report report;
  if (!options.json.empty()) {
    report.write_to(options.json,
                    {{"kind", "emulated"}, {"name", profile}, {"clock", "none"}, {"l2_bytes", 0}},
                    options.append);
  }
  Table table(report);
  for (const TableModel& model : models) {
    try {
      table.plan(model);
      if (!options.plan_only && model.counted) table.run(model);
    } catch (const std::exception& error) {
      report.fail(error.what());
    }
  }
  report.print_table();
  report.save();
  return report.failed() ? 1 : 0;
}

}  // namespace
}  // namespace fuse::bench

int main(int argc, char** argv) {
  ::setenv("FUSE_CACHE", "0", 0);  // nothing of this is the user's
  try {
    return fuse::bench::run(fuse::bench::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "model_table: %s\n", error.what());
    return 1;
  }
}
