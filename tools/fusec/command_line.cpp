// The one file that includes CLI11: all of it is inline, so that each file which does compiles it anew.
// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include <CLI/CLI.hpp>
#include <fuse/error.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "commands.hpp"
#include "schedule/target.hpp"

namespace fuse::fusec {
namespace {

/// What is to be done where `command` is chosen; the options, for it to fill, live as long as it.
template <class Options>
Options& set_action(CLI::App& command, Action& action) {
  const auto options = std::make_shared<Options>();
  command.callback([&action, options] { action = [options] { return execute(*options); }; });
  return *options;
}

/// An option whose value is one of a few words.
template <class T>
CLI::Option* add_choice(CLI::App& command, const char* name, T& value,
                        const std::map<std::string, T>& choices, const char* help) {
  std::vector<std::string> words;
  for (const auto& [word, meaning] : choices) words.push_back(word);
  return command
      .add_option_function<std::string>(
          name, [&value, choices](const std::string& word) { value = choices.at(word); }, help)
      ->check(CLI::IsMember(words))
      ->type_name("TEXT");
}

/// An option that is given once for each value, so that it never takes the arguments after it.
void add_list_option(CLI::App& command, const char* name, std::vector<std::string>& values,
                     const char* help) {
  command.add_option(name, values, help)->allow_extra_args(false);
}

/// How the graph is cut.
void add_cut_options(CLI::App& command, CompileOptions& options) {
  add_choice<int>(
      command, "--layers", options.layers, {{"1", 1}, {"1,2", 2}, {"1,2,3", 3}},
      "APOLLO's layers: 1 (aggregate), 1,2 (stitch), 1,2,3 (independent branches too; the default)");
  CLI::Option* rules =
      add_choice<Cut>(command, "--partition", options.cut, {{"fuse", Cut::fuse}, {"apollo", Cut::apollo}},
                      "fuse (the default), or apollo: its rules as printed");
  add_choice<Cut>(command, "--baseline", options.cut,
                  {{"xla", Cut::xla}, {"tvm", Cut::tvm}, {"none", Cut::one_op}},
                  "Cut as another compiler would: xla, tvm, none (a kernel an op)")
      ->excludes(rules);
  add_choice<Stitch>(command, "--stitch", options.stitch,
                     {{"mapping", Stitch::mapping}, {"no-merge", Stitch::no_merge}, {"full", Stitch::full}},
                     "full (the default), mapping: a kernel for each value, none passed inside, or no-merge: "
                     "those behind grid barriers in one kernel");
  add_choice<Schemes>(command, "--schemes", options.schemes,
                      {{"fuse", Schemes::fuse}, {"paper", Schemes::paper}},
                      "fuse (the default), or paper: AStitch's schemes and thread mapping as printed");
  command.add_flag_callback(
      "--no-grid-barriers", [&options] { options.grid_barriers = false; },
      "No kernel waits for all of its blocks: launches of their own instead");
  command.add_option("--max-inputs", options.max_inputs, "Values that a kernel reads at most")
      ->capture_default_str()
      ->check(CLI::Range(1, 400));
}

std::string profile_names() {
  std::string text;
  for (const std::string_view name : target_profile_names()) {
    text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text;
}

/// --profile, and what is decided when a graph is compiled.
void add_plan_options(CLI::App& command, GraphOptions& options) {
  command.add_option("--profile", options.profile, "The GPU to schedule for: " + profile_names())
      ->capture_default_str();
  command.add_flag("--relaxed-rounding", options.compile.relaxed_rounding,
                   "Let the passes change roundings where that saves work");
  command.add_flag("!--no-gemm-merge", options.compile.merge_gemms,
                   "Keep GEMMs apart that share an operand or a shape");
  add_cut_options(command, options.compile);
}

void add_graph_options(CLI::App& command, GraphOptions& options) {
  command.add_option("FILE", options.file, "The graph, .fuse text; of run and bisect, a repro too")
      ->required();
  add_plan_options(command, options);
}

void add_dim_option(CLI::App& command, GraphOptions& options) {
  add_list_option(command, "--dim", options.dims,
                  "B=4: the value of a dim; else its hint, else 4 as far as its range allows");
}

void add_drop_barrier_option(CLI::App& command, GraphOptions& options) {
  command
      .add_option("--drop-barrier", options.compile.drop_barrier,
                  "Plant a fault: leave out the K-th barrier of the kernels, from 0")
      ->check(CLI::NonNegativeNumber);
}

void add_json_flag(CLI::App& command, bool& json) { command.add_flag("--json", json, "As one JSON object"); }

void add_print(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("print", "Parse and verify a graph, and print its text");
  auto& options = set_action<PrintOptions>(command, action);
  command.add_option("FILE", options.file, "The graph, .fuse text")->required();
}

void add_run(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("run", "Run a graph, and check what it made");
  auto& options = set_action<RunOptions>(command, action);
  add_graph_options(command, options.graph);
  const std::vector<std::string> devices = {"auto", "cuda", "emulated", "reference"};
  command
      .add_option("--device", options.device,
                  "auto (the first GPU, else emulated), cuda, emulated or reference")
      ->check(CLI::IsMember(devices))
      ->capture_default_str();
  add_list_option(command, "--input", options.inputs,
                  "x=x.npy: an input or parameter; the others are random");
  add_dim_option(command, options.graph);
  const std::vector<std::string> modes = {"streams", "graph", "automatic"};
  command
      .add_option(
          "--mode", options.mode,
          "streams, graph (one CUDA graph, launched whole) or automatic (which of them the cost model "
          "prefers)")
      ->check(CLI::IsMember(modes))
      ->capture_default_str();
  command.add_option("--runs", options.runs, "Run so many times, and tell the first time and the median")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Of the random inputs")->capture_default_str();
  command.add_option("--output-dir", options.output_dir, "Write each output there as NAME.npy");
  command.add_option("--trace", options.trace,
                     "Write the run's steps there as a Chrome trace, streams as rows: as the cost model has "
                     "them, and as they were");
  command.add_flag("--check", options.check, "Compare each output with the exact reference");
  command.add_flag("--checked", options.checked,
                   "The emulated device finds races, bad accesses and divergent barriers");
  command.add_flag("--check-numerics", options.check_numerics,
                   "Name the ops that make a NaN or an infinity; exit 1 where one does");
  add_drop_barrier_option(command, options.graph);
}

void add_bisect(CLI::App& app, Action& action) {
  CLI::App& command =
      *app.add_subcommand("bisect", "Find the first wrong value of a run, and the pass that made it");
  auto& options = set_action<BisectOptions>(command, action);
  add_graph_options(command, options.run.graph);
  add_list_option(command, "--input", options.run.inputs,
                  "x=x.npy: an input or parameter; the others are random");
  add_dim_option(command, options.run.graph);
  command.add_option("--seed", options.run.seed, "Of the random inputs")->capture_default_str();
  command.add_flag("--checked", options.run.checked,
                   "The emulated device finds races, bad accesses and divergent barriers");
}

void add_plan(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("plan", "Show how a graph is cut, scheduled and run");
  auto& options = set_action<PlanOptions>(command, action);
  add_graph_options(command, options.graph);
  add_dim_option(command, options.graph);
  add_json_flag(command, options.json);
  command.add_flag("--kernels", options.kernels, "The kernel IR too")->excludes("--json");
  command.add_option("--dot", options.dot, "Write a picture there instead, as Graphviz DOT")
      ->excludes("--json")
      ->excludes("--kernels");
  command
      .add_option("--picture", options.picture,
                  "Write a picture of ops becoming kernels there instead, as SVG")
      ->excludes("--json")
      ->excludes("--kernels")
      ->excludes("--dot");
}

void add_emit(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("emit", "Write a graph's CUDA text, and its cubin");
  auto& options = set_action<EmitOptions>(command, action);
  add_graph_options(command, options.graph);
  command.add_option("-o,--output", options.directory, "Directory for NAME.cu and NAME.cubin")->required();
  command.add_option("--arch", options.arch, "sm_90: what the cubin is for; else the profile's");
  command.add_flag("--cubin", options.cubin, "Compile through NVRTC; exit 1 where registers spill to memory");
  add_drop_barrier_option(command, options.graph);
}

void add_explain(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("explain", "Tell why values are stored between kernels");
  auto& options = set_action<ExplainOptions>(command, action);
  add_graph_options(command, options.graph);
  add_dim_option(command, options.graph);
  command
      .add_option("--edge", options.edge,
                  "Only from A to B: a piece's number, or a value as fusec plan names it")
      ->expected(2)
      ->type_name("A B");
}

void add_stats(CLI::App& app, Action& action) {
  CLI::App& command =
      *app.add_subcommand("stats", "Count what the kernels move, against the least they could");
  auto& options = set_action<StatsOptions>(command, action);
  add_graph_options(command, options.graph);
  add_dim_option(command, options.graph);
  add_json_flag(command, options.json);
}

void add_diff(CLI::App& app, Action& action) {
  CLI::App& command =
      *app.add_subcommand("diff", "Show what changed between two plans; exit 1 where something did");
  auto& options = set_action<DiffOptions>(command, action);
  const char* const help = "A graph, a saved plan, or a text that fusec plan printed";
  command.add_option("A", options.first, help)->required();
  command.add_option("B", options.second, help)->required();
  add_plan_options(command, options.graph);
}

void add_save(CLI::App& app, Action& action) {
  CLI::App& command =
      *app.add_subcommand("save", "Compile a graph into a file that runs where there is no compiler");
  auto& options = set_action<SaveOptions>(command, action);
  add_graph_options(command, options.graph);
  command.add_option("-o,--output", options.output, "The file")->required();
  add_list_option(command, "--for", options.profiles,
                  "An emulated device of this profile; several times for several in one file");
  command.add_flag("--cuda", options.cuda, "For the first GPU too");
}

void add_cache(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("cache", "Show, check or empty what is kept on disk");
  auto& options = set_action<CacheOptions>(command, action);
  using Act = CacheOptions::Action;
  const std::map<std::string, Act> actions = {
      {"list", Act::list}, {"verify", Act::verify}, {"clear", Act::clear}};
  add_choice<Act>(command, "ACTION", options.action, actions, "list, verify or clear")->required();
}

void add_ops(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("ops", "Print the op reference (Markdown): types, errors, NaN");
  set_action<OpsOptions>(command, action);
}

void add_doctor(CLI::App& app, Action& action) {
  CLI::App& command =
      *app.add_subcommand("doctor", "Show what fuse finds on this machine, and what is wrong");
  auto& options = set_action<DoctorOptions>(command, action);
  add_json_flag(command, options.json);
}

}  // namespace

Action parse_command_line(int argc, const char* const* argv) {
  CLI::App app("Compiles tensor graphs (.fuse text) into fused CUDA kernels: shows, runs and checks them.",
               "fusec");
  app.require_subcommand(1);
  app.set_version_flag("--version", "fusec " FUSE_COMPILER_VERSION);
  app.footer("Exit status: 0 done, 1 a check or the machine failed, 2 wrong use or input.");
  Action action;
  add_print(app, action);
  add_run(app, action);
  add_bisect(app, action);
  add_plan(app, action);
  add_emit(app, action);
  add_explain(app, action);
  add_stats(app, action);
  add_diff(app, action);
  add_save(app, action);
  add_cache(app, action);
  add_ops(app, action);
  add_doctor(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw Error({.message = error.what(), .hint = "fusec --help"});
    app.exit(error);  // prints what --help or --version asked for
    return [] { return 0; };
  }
  return action;
}

}  // namespace fuse::fusec
