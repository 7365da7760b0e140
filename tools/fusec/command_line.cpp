// The one file that includes CLI11: all of it is inline, so that each file which does compiles it anew.
// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <fuse/error.hpp>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/quoting.hpp"
#include "base/suggest.hpp"
#include "commands.hpp"
#include "common.hpp"
#include "compile/pipeline/experiments.hpp"
#include "target/target.hpp"
#include "tensors/host_tensor.hpp"

namespace fuse::fusec {
namespace {

/// What is to be done where `command` is chosen; the options, for it to fill, live as long as it.
template <class Options>
Options& set_action(CLI::App& command, Action& action) {
  const auto options = std::make_shared<Options>();
  command.callback([&action, options] { action = [options] { return execute(*options); }; });
  return *options;
}

/// Refuses what `wrong` says something of. The help shows the option's type name and nothing of this.
CLI::Validator refuse_where(std::function<std::string(const std::string&)> wrong) {
  return {[wrong = std::move(wrong)](std::string& text) { return wrong(text); }, ""};
}

/// Of a few words one.
CLI::Validator one_of(const std::vector<std::string>& words) {
  return refuse_where([words](const std::string& text) {
    if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
    std::string list;
    for (std::size_t i = 0; i < words.size(); ++i) {
      list += (i == 0 ? "'" : i + 1 == words.size() ? " or '" : ", '") + words[i] + '\'';
    }
    return fmt::format("'{}' is not {}", text, list);
  });
}

CLI::Validator whole_number(std::uint64_t low, std::uint64_t high) {
  return refuse_where([low, high](const std::string& text) {
    std::uint64_t value = 0;
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, value);
    if (error == std::errc() && end == last && low <= value && value <= high) return std::string();
    return fmt::format("'{}' is not an integer from {} to {}", text, low, high);
  });
}

/// An option whose value is one of a few words.
template <class T>
CLI::Option* add_choice(CLI::App& command, const char* name, T& value,
                        const std::vector<std::pair<std::string, T>>& choices, const char* help) {
  std::vector<std::string> words;
  for (const auto& [word, meaning] : choices) words.push_back(word);
  const auto set = [&value, choices](const std::string& text) {
    for (const auto& [word, meaning] : choices) {
      if (word == text) value = meaning;
    }
  };
  return command.add_option_function<std::string>(name, set, help)->check(one_of(words))->type_name("WORD");
}

/// An option that is given once for each value, so that it never takes the arguments after it.
void add_list_option(CLI::App& command, const char* name, std::vector<std::string>& values, const char* form,
                     const char* help) {
  command.add_option(name, values, help)->allow_extra_args(false)->type_name(form);
}

/// An option that names a file or a directory.
CLI::Option* add_path(CLI::App& command, const char* name, std::string& value, const char* form,
                      const char* help) {
  return command.add_option(name, value, help)->type_name(form);
}

/// How the graph is cut.
void add_cut_options(CLI::App& command, CompileOptions& options) {
  Experiments& experiments = change_experiments(options);  // of these options, as long as they live
  add_choice<int>(
      command, "--layers", experiments.layers, {{"1", 1}, {"1,2", 2}, {"1,2,3", 3}},
      "APOLLO's layers: 1 (aggregate), 1,2 (stitch), 1,2,3 (independent branches too; the default)");
  CLI::Option* rules =
      add_choice<Cut>(command, "--partition", experiments.cut, {{"fuse", Cut::fuse}, {"apollo", Cut::apollo}},
                      "fuse (the default), or apollo: its rules as printed");
  add_choice<Cut>(
      command, "--baseline", experiments.cut,
      {{"xla", Cut::xla}, {"tvm", Cut::tvm}, {"one-op", Cut::one_op}, {"none", Cut::one_op}},
      "Cut as another compiler would: xla, tvm, or one-op (one kernel per op; none is its old name)")
      ->excludes(rules);
  add_choice<Stitch>(command, "--stitch", experiments.stitch,
                     {{"mapping", Stitch::mapping}, {"no-merge", Stitch::no_merge}, {"full", Stitch::full}},
                     "full (the default), mapping: a kernel for each value, none passed inside, or no-merge: "
                     "those after grid barriers in one kernel");
  add_choice<Schemes>(
      command, "--schemes", experiments.schemes,
      {{"fuse", Schemes::fuse}, {"astitch", Schemes::astitch}, {"paper", Schemes::astitch}},
      "fuse (the default), or astitch: its schemes and thread mapping as printed (paper is its old "
      "name)");
  command.add_flag("--search", options.search,
                   "Search for the loops of kernels instead of choosing them by rules");
  command.add_flag_callback(
      "--no-grid-barriers", [&options] { options.grid_barriers = false; },
      "No kernel waits for all of its blocks: launches of their own instead");
  command.add_option("--max-inputs", options.max_inputs, "Values that a kernel reads at most")
      ->capture_default_str()
      ->check(whole_number(1, 400))
      ->type_name("N");
  command.add_option("--versions", options.versions, "Ways to run of a kernel at most, each for some dims")
      ->capture_default_str()
      ->check(whole_number(1, 16))
      ->type_name("N");
  command
      .add_option("--builds", options.builds, "Times that the graph is compiled at most, each for some dims")
      ->capture_default_str()
      ->check(whole_number(1, 8))
      ->type_name("N");
}

std::string profile_names() {
  std::string text;
  for (const std::string_view name : target_profile_names()) {
    text += (text.empty() ? "" : ", ") + std::string(name);
  }
  for (const std::string_view machine : cpu_machines()) text += ", " + std::string(machine);
  return text;
}

/// --profile, and what is decided when a graph is compiled.
void add_plan_options(CLI::App& command, GraphOptions& options) {
  command
      .add_option("--profile", options.profile,
                  "The GPU, or the level of CPUs, to schedule for: " + profile_names())
      ->capture_default_str()
      ->each([&options](const std::string&) { options.profile_named = true; })
      ->type_name("NAME");
  command.add_flag("--relaxed-rounding", options.compile.relaxed_rounding,
                   "Let the passes change roundings where that saves work");
  command.add_flag_callback(
      "--no-gemm-merge", [&options] { options.compile.merge_gemms = false; },
      "Keep GEMMs apart that share an operand or a shape");
  add_cut_options(command, options.compile);
  command
      .add_option_function<std::string>(
          "--use-decisions",
          [&options](const std::string& file) {
            options.compile.decisions = read_text(file) + '\n';  // an empty file is an error, too
          },
          "Cut the graph and run its kernels as this file says, which plan --decisions wrote")
      ->type_name("FILE");
  command.add_flag("--skip-unfit-decisions", options.compile.skip_unfit_decisions,
                   "Leave out the entries of it that fit no kernel of the graph");
}

void add_graph_options(CLI::App& command, GraphOptions& options) {
  add_path(command, "FILE", options.file, "", "The graph, .fuse text; of run and bisect, a repro too")
      ->required();
  add_plan_options(command, options);
}

void add_dim_option(CLI::App& command, GraphOptions& options) {
  add_list_option(command, "--dim", options.dims, "DIM=N",
                  "B=4: the value of a dim; else its hint, else 4 as far as its range allows");
}

void add_drop_barrier_option(CLI::App& command, GraphOptions& options) {
  command
      .add_option_function<int>(
          "--drop-barrier",
          [&options](int k) { change_experiments(options.compile).fault = fmt::format("barrier.{}", k); },
          "Plant a fault: leave out the K-th barrier of the kernels, from 0")
      ->check(whole_number(0, std::numeric_limits<int>::max()))
      ->type_name("K");
}

void add_json_flag(CLI::App& command, bool& json) { command.add_flag("--json", json, "As one JSON object"); }

void add_seed_option(CLI::App& command, std::uint64_t& seed) {
  command.add_option("--seed", seed, "Of the random inputs")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()))
      ->type_name("N")
      ->capture_default_str();
}

void add_device_option(CLI::App& command, std::string& device, const std::vector<std::string>& words) {
  command
      .add_option(
          "--device", device,
          "Where to run: the first GPU, else the cores of this machine (auto), or one by its name. With "
          "--checked, or with --profile of a GPU, auto is the emulated device")
      ->check(one_of(words))
      ->type_name("WORD")
      ->capture_default_str();
}

void add_print(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("print", "Parse and verify a graph, and print its text");
  auto& options = set_action<PrintOptions>(command, action);
  add_path(command, "FILE", options.file, "", "The graph, .fuse text")->required();
}

void add_run(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("run", "Run a graph, and check what it made");
  auto& options = set_action<RunOptions>(command, action);
  add_graph_options(command, options.graph);
  add_device_option(command, options.device, {"auto", "cpu", "cuda", "emulated", "reference"});
  add_list_option(command, "--input", options.inputs, "NAME=FILE",
                  "x=x.npy: an input or parameter; the others are random");
  add_dim_option(command, options.graph);
  command
      .add_option("--mode", options.mode,
                  "streams (the default), graph (one CUDA graph, launched whole) or automatic (which of them "
                  "the cost "
                  "model prefers)")
      ->check(one_of({"streams", "graph", "automatic"}))
      ->type_name("WORD");
  command.add_option("--runs", options.runs, "Run so many times, and tell the first time and the median")
      ->check(whole_number(1, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  add_seed_option(command, options.seed);
  add_path(command, "--output-dir", options.output_dir, "DIRECTORY", "Write each output there as NAME.npy");
  add_path(command, "--trace", options.trace, "FILE",
           "Write the run's steps there as a Chrome trace, streams as rows: as the cost model has "
           "them, and as they were");
  add_path(command, "--decisions", options.decisions, "FILE",
           "Write there how the graph is cut, and how this run goes: algorithms of GEMMs, mode, order and "
           "streams of the steps, for --use-decisions");
  command.add_flag("--check", options.check, "Compare each output with the exact reference");
  command.add_flag("--checked", options.checked,
                   "The emulated device finds races, bad accesses and divergent barriers");
  command.add_flag_callback(
      "--check-indices", [&options] { options.checked = options.check_indices = true; },
      "As --checked; an index out of range is a fault, too, where else it is clamped");
  command.add_flag("--check-numerics", options.check_numerics,
                   "Name the ops that make a NaN or an infinity; exit 1 where one does");
  add_drop_barrier_option(command, options.graph);
}

void add_bisect(CLI::App& app, Action& action) {
  CLI::App& command =
      *app.add_subcommand("bisect", "Find the first wrong value of a run, and the pass that made it");
  auto& options = set_action<BisectOptions>(command, action);
  add_graph_options(command, options.run.graph);
  add_device_option(command, options.run.device, {"auto", "cpu", "cuda", "emulated"});
  add_list_option(command, "--input", options.run.inputs, "NAME=FILE",
                  "x=x.npy: an input or parameter; the others are random");
  add_dim_option(command, options.run.graph);
  add_seed_option(command, options.run.seed);
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
  add_path(command, "--dot", options.dot, "FILE",
           "Write a picture there instead, as Graphviz DOT; - is the standard output")
      ->excludes("--json")
      ->excludes("--kernels");
  add_path(command, "--picture", options.picture, "FILE",
           "Write a picture of ops becoming kernels there instead, as SVG; - is the standard output")
      ->excludes("--json")
      ->excludes("--kernels")
      ->excludes("--dot");
  add_path(command, "--decisions", options.decisions, "FILE",
           "Write there instead how the graph is cut and how each kernel runs, for --use-decisions; - is the "
           "standard "
           "output")
      ->excludes("--json")
      ->excludes("--kernels")
      ->excludes("--dot")
      ->excludes("--picture");
}

void add_emit(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("emit", "Write a graph's CUDA text, and its cubin");
  auto& options = set_action<EmitOptions>(command, action);
  add_graph_options(command, options.graph);
  add_path(command, "-o,--output", options.directory, "DIRECTORY", "For NAME.cu and NAME.cubin")->required();
  command.add_option("--arch", options.arch, "sm_90: what the cubin is for; else the profile's")
      ->type_name("ARCH");
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
                  "Only from A to B: a segment's number, or a value as fusec plan names it")
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

void add_nests(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand(
      "nests", "List the loops that kernels can have, and the time that the cost model estimates for each");
  auto& options = set_action<NestsOptions>(command, action);
  add_graph_options(command, options.graph);
  command.add_option("--segment,--piece", options.segment, "Only of this segment, as fusec plan numbers it")
      ->check(whole_number(0, 1000000))
      ->type_name("N");
  command.add_option("--count", options.count, "How many of each kernel, the fastest first")
      ->capture_default_str()
      ->check(whole_number(0, 1000000))
      ->type_name("N");
}

void add_tune(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand(
      "tune", "Run a graph again and again, try other ways to run it meanwhile, and write the best");
  auto& options = set_action<TuneOptions>(command, action);
  add_graph_options(command, options.run.graph);
  add_device_option(command, options.run.device, {"auto", "cpu", "cuda", "emulated"});
  add_list_option(command, "--input", options.run.inputs, "NAME=FILE",
                  "x=x.npy: an input or parameter; the others are random");
  add_dim_option(command, options.run.graph);
  add_seed_option(command, options.run.seed);
  add_path(command, "-o,--output", options.output, "FILE", "Write there what was found, for --use-decisions");
  add_path(command, "--picture", options.picture, "FILE",
           "Draw there how long each measured run took, as SVG");
  command.add_option("--budget", options.budget, "How long it may take, by an estimate: 90s, 5m")
      ->type_name("TIME")
      ->capture_default_str();
  command
      .add_option("--bits", options.bits,
                  "keep: results keep their bits; any: additions may go in another order")
      ->check(one_of({"keep", "any"}))
      ->type_name("WORD")
      ->capture_default_str();
  command
      .add_option("--options", options.options,
                  "Options of each decision that are tried, the default included")
      ->check(whole_number(1, 1000))
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--cuts", options.cuts, "Ways to cut the graph that are tried, the default included")
      ->check(whole_number(1, 100))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--groups", options.groups,
                  "Groups of GEMMs that are merged each in a way of its own, with --bits any")
      ->check(whole_number(0, 100))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--epochs", options.epochs,
                  "Epochs whose kernels and GEMMs are spread over streams in several ways")
      ->check(whole_number(0, 100))
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--samples", options.samples,
                  "Runs that count of each configuration; 0: as many as the noise of the first runs asks "
                  "for; else 5 or more")
      ->check(whole_number(0, 10000))
      ->type_name("N")
      ->capture_default_str();
  command.add_flag(
      "--virtual-clock", options.virtual_clock,
      "The emulated device takes times of a simple model, the same in each run: to see how it proceeds");
}

void add_merge(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand(
      "merge", "Make one tuning of what tune found on several machines, so that all decide alike");
  auto& options = set_action<MergeOptions>(command, action);
  command.add_option("FILES", options.files, "What tune wrote, for one graph and equal devices")
      ->required()
      ->type_name("FILE");
  add_path(command, "-o,--output", options.output, "FILE", "Write it there, for --use-decisions")->required();
}

void add_diff(CLI::App& app, Action& action) {
  CLI::App& command =
      *app.add_subcommand("diff", "Show what changed between two plans; exit 1 where something did");
  auto& options = set_action<DiffOptions>(command, action);
  const char* const help = "A graph, a saved plan, or a text that fusec plan printed";
  add_path(command, "A", options.first, "", help)->required();
  add_path(command, "B", options.second, "", help)->required();
  add_plan_options(command, options.graph);
}

void add_save(CLI::App& app, Action& action) {
  CLI::App& command =
      *app.add_subcommand("save", "Compile a graph into a file that runs where there is no compiler");
  auto& options = set_action<SaveOptions>(command, action);
  add_graph_options(command, options.graph);
  add_path(command, "-o,--output", options.output, "FILE", "The file")->required();
  add_list_option(command, "--for", options.profiles, "PROFILE",
                  "An emulated device of this profile, or the cpu device of machines of this level; several "
                  "times for several in one file");
  command.add_flag("--cuda", options.cuda, "For the first GPU too");
  command.add_flag("--cpu", options.cpu,
                   "For the cpu device of this machine and of others of its level, too");
  command.add_flag("--time-gemms", options.time_gemms,
                   "Measure which algorithm of the GEMM library is fastest, by buckets of extents");
}

void add_cache(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("cache", "Show, check or empty what is kept on disk");
  auto& options = set_action<CacheOptions>(command, action);
  using Act = CacheOptions::Action;
  const std::vector<std::pair<std::string, Act>> actions = {
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

/// A word that is neither an option nor expected: what it may have been meant for.
[[noreturn]] void refuse_word(const CLI::App& app, const std::string& word) {
  const auto chosen = app.get_subcommands();
  const std::string command = "fusec" + (chosen.empty() ? "" : ' ' + chosen[0]->get_name());
  std::vector<std::string> names;
  for (const CLI::Option* option : (chosen.empty() ? &app : chosen[0])->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  if (word.starts_with('-')) {
    const std::string near = did_you_mean(names, word.substr(0, word.find('=')));
    user_error(ErrorCode::unknown_name, fmt::format("{} has no option {}", command, in_quotes(word)),
               near.empty() ? command + " --help" : near);
  }
  if (!chosen.empty()) {
    user_error(ErrorCode::invalid_argument,
               fmt::format("{} takes no argument {} there", command, in_quotes(word)), command + " --help");
  }
  names.clear();
  for (const CLI::App* each : app.get_subcommands(nullptr)) names.push_back(each->get_name());
  const std::string near = did_you_mean(names, word);
  user_error(ErrorCode::unknown_name, fmt::format("fusec has no command {}", in_quotes(word)),
             near.empty() ? "fusec --help" : near);
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
  add_tune(app, action);
  add_merge(app, action);
  add_plan(app, action);
  add_emit(app, action);
  add_explain(app, action);
  add_stats(app, action);
  add_nests(app, action);
  add_diff(app, action);
  add_save(app, action);
  add_cache(app, action);
  add_ops(app, action);
  add_doctor(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // What nothing takes stands before what is missing: a misspelt option leaves its argument over too.
    if (error.get_exit_code() != 0) {
      for (const std::string& word : app.remaining(true)) refuse_word(app, word);
    }
    if (error.get_exit_code() != 0) throw Error({.message = error.what(), .hint = "fusec --help"});
    app.exit(error);  // prints what --help or --version asked for
    return [] { return 0; };
  }
  return action;
}

}  // namespace fuse::fusec
