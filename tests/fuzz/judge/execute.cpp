// SPDX-License-Identifier: Apache-2.0
#include "fuzz/judge/execute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fuse/fuse.hpp>
#include <map>
#include <stdexcept>
#include <tuple>

#include "base/access.hpp"
#include "compile/compile.hpp"
#include "compile/pipeline/experiments.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "fuzz/grow/random.hpp"
#include "fuzz/grow/random_choices.hpp"
#include "fuzz/judge/run_results.hpp"
#include "runtime/device/backend.hpp"

namespace fuse::fuzz {

std::string_view to_string(Verdict verdict) {
  constexpr std::array<std::string_view, 8> names = {"ok",    "wasted", "mismatch", "unstable",
                                                     "fault", "build",  "crash",    "hang"};
  return names[static_cast<std::size_t>(verdict)];
}

/// One case after the pipeline. `module` is shared by all cases of the same mode.
struct Batch::Built {
  CompiledBuilds builds;
  std::shared_ptr<runtime::Module> module;
  std::string failure;  ///< not empty: it could not be built
};

namespace {

using runtime::HostTensor;

/// A module that other executables use as well.
class SharedModule final : public runtime::Module {
 public:
  explicit SharedModule(std::shared_ptr<runtime::Module> module)
      : Module(module->binary), module_(std::move(module)) {}
  const runtime::Function& function(const std::string& name) const override {
    return module_->function(name);
  }

 private:
  std::shared_ptr<runtime::Module> module_;
};

void append(codegen::Source& all, const codegen::Source& one) {
  const int lines = static_cast<int>(std::count(all.body.begin(), all.body.end(), '\n'));
  const int shift = all.body_line() + lines - one.body_line();
  for (codegen::KernelInfo kernel : one.kernels) {
    for (codegen::OpLine& line : kernel.lines) line.line += shift;
    all.kernels.push_back(std::move(kernel));
  }
  for (const std::size_t start : one.starts) all.starts.push_back(all.body.size() + start);
  all.body += one.body;
}

Device device_for(const RunOptions& options) {
  if (is_on_cpu(options)) return Device::cpu({.threads = options.threads, .machine = machine_of(options)});
  return Device::emulated({.profile = options.profile,
                           .checked = options.checked,
                           .threads = options.threads,
                           .shuffle_seed = options.shuffle_seed,
                           .optimization = options.optimization});
}

std::string text_of(const DimValues& dims) {
  std::string text;
  for (const auto& [name, value] : dims) text += fmt::format(" {}={}", name, value);
  return text.empty() ? "" : " with" + text;
}

/// NaNs of any bits are alike: a payload is not specified.
bool same_bits(const HostTensor& a, const HostTensor& b) {
  if (a.data == b.data) return true;
  if (a.shape != b.shape) return false;
  const Enclosure point{ReferenceTensor::from_host(a), std::nullopt, std::nullopt};
  return mismatch(point, b).empty();
}

bool has_custom_kernels(const Program& program) {
  return std::any_of(program.graph.nodes.begin(), program.graph.nodes.end(),
                     [](const ir::Node& node) { return node.op == ir::Op::custom_call; });
}

/// Whether each of several builds has a module of its own: a saved plan has all kernels of its module, and
/// users' kernels have their own names.
bool is_compiled_alone(const Case& c) { return c.options.saved || has_custom_kernels(c.program); }

}  // namespace

PipelineOptions pipeline_of(std::string_view rules) {
  CompileOptions options;
  if (rules == "astitch") change_experiments(options).schemes = Schemes::astitch;
  if (rules == "no-merge") change_experiments(options).stitch = Stitch::no_merge;
  return pipeline_options(options);
}

CompiledBuilds compiled(const Case& c, const std::string& name, const Rewrite& rewrite,
                        const Choose& choose) {
  const RunOptions& options = c.options;
  Random random(options.choices_seed);
  PipelineOptions pipeline = pipeline_of(options.rules);
  pipeline.fault = parse_fault(options.fault);
  pipeline.choose = choose;
  pipeline.versions = {.most = options.versions, .price = 0};
  if (options.versions > 1) pipeline.builds = {.most = 4, .price = 0};
  if (options.choices_seed != 0) {
    // From a stream of its own, so that the choices of a seed do not depend on how often it draws.
    pipeline.partition = random_partition(Random(~options.choices_seed));
    if (options.nests) {
      pipeline.answer = [answers = Random(seed_of(options.choices_seed, 2))](const ir::Asked& asked) mutable {
        return answers.chance(0.25) != asked.by_cost;
      };
    }
    Random nests(seed_of(options.choices_seed, 1));
    pipeline.choose = [&, nests](const ir::Graph& graph, const schedule::Segment& segment,
                                 const Target& of) mutable -> schedule::KernelChoices {
      const schedule::KernelChoices drawn = random_choices(graph, segment, of, random);
      const auto loops = options.nests ? random_nest(graph, segment, of, nests) : std::nullopt;
      return loops ? *loops : drawn;
    };
  }
  ir::Graph graph = rewrite ? rewrite(c.program.graph) : c.program.graph;
  graph.name = name;
  const Target target = target_of(options);
  CompiledBuilds builds{.regions = build_regions(graph, target, pipeline), .each = {}};
  for (const schedule::Version& region : builds.regions.each) {
    ir::Graph of_region = schedule::graph_of(graph, region);
    if (!builds.each.empty())
      of_region.name = fmt::format("{}b{}", name, builds.each.size());  // one text has all
    builds.each.push_back(run_pipeline(of_region, target, pipeline));
  }
  return builds;
}

Batch::Batch(std::vector<Case> cases, const Rewrite& rewrite, const Choose& choose)
    : cases_(std::move(cases)) {
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    built_.push_back(std::make_unique<Built>());
    try {
      built_[i]->builds = compiled(cases_[i], "p" + std::to_string(i), rewrite, choose);
    } catch (const std::exception& error) {
      built_[i]->failure = error.what();
    }
  }
  build_modules();
}

Batch::~Batch() = default;

Forms Batch::forms(std::size_t i) const {
  return built_[i]->failure.empty() ? forms_of(cases_[i], built_[i]->builds.each.front()) : 0;
}

Executable Batch::executable_on(std::size_t i, const Device& device) const {
  std::unique_ptr<runtime::Module> module;
  if (built_[i]->module) module = std::make_unique<SharedModule>(built_[i]->module);
  const Executable made = runtime::make_executable(std::make_shared<const ir::Graph>(cases_[i].program.graph),
                                                   built_[i]->builds, device, std::move(module));
  return cases_[i].options.saved ? through_file(made) : made;
}

Executable Batch::executable(std::size_t i) const {
  if (!built_[i]->failure.empty()) throw std::runtime_error(built_[i]->failure);
  return executable_on(i, device_for(cases_[i].options));
}

void Batch::build_modules() {
  // A saved plan has all kernels of its module, so such a case has one of its own.
  std::map<std::tuple<std::string, bool, int, std::size_t>, std::vector<std::size_t>> modules;
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    const RunOptions& options = cases_[i].options;
    const std::vector<Compiled>& each = built_[i]->builds.each;
    const bool has_kernels = std::any_of(each.begin(), each.end(),
                                         [](const Compiled& one) { return !one.source.kernels.empty(); });
    if (!built_[i]->failure.empty() || !has_kernels || (each.size() > 1 && is_compiled_alone(cases_[i])))
      continue;
    modules[{is_on_cpu(options) ? options.profile : "", options.checked, options.optimization,
             options.saved ? i : cases_.size()}]
        .push_back(i);
  }
  for (const auto& [key, members] : modules) {
    codegen::Source all;
    const auto start_of = [&](std::size_t i, codegen::Source& source) {
      source.name = "batch";
      // The emulated device has its own, for any kernel.
      if (is_on_cpu(cases_[i].options)) source.prelude = built_[i]->builds.each.front().source.prelude;
    };
    start_of(members[0], all);
    const auto append_all = [&](std::size_t i, codegen::Source& source) {
      for (const Compiled& each : built_[i]->builds.each) append(source, each.source);
    };
    for (const std::size_t i : members) append_all(i, all);
    RunOptions options = cases_[members[0]].options;
    if (!is_on_cpu(options)) options.profile = "h200";
    options.threads = 1;
    options.shuffle_seed = 0;
    const Device device = device_for(options);
    try {
      const std::shared_ptr<runtime::Module> module = backend_of(device)->load(all);
      for (const std::size_t i : members) built_[i]->module = module;
      continue;
    } catch (const Error& error) {
      if (members.size() == 1) built_[members[0]]->failure = error.what();
    }
    if (members.size() == 1) continue;
    for (const std::size_t i : members) {  // whose text is it?
      codegen::Source one;
      start_of(i, one);
      append_all(i, one);
      try {
        built_[i]->module = backend_of(device)->load(one);
      } catch (const Error& error) {
        built_[i]->failure = error.what();
      }
    }
  }
}

Outcome Batch::run(std::size_t i, const Observer& observe) {
  if (is_on_cpu(cases_[i].options) && has_custom_kernels(cases_[i].program))
    return {Verdict::wasted, "the cpu device runs no CUDA text", {}};
  if (!built_[i]->failure.empty()) return {Verdict::build, built_[i]->failure, {}};
  Outcome outcome;
  try {
    try_run(i, observe, outcome);
  } catch (const std::exception& error) {
    return {Verdict::fault, error.what(), outcome.shares};
  }
  if (outcome.verdict == Verdict::ok && outcome.shares.undecided * 2 >= outcome.shares.elements) {
    outcome.verdict = Verdict::wasted;
  }
  return outcome;
}

void Batch::try_run(std::size_t i, const Observer& observe, Outcome& outcome) {
  const Program& program = cases_[i].program;
  const RunOptions& options = cases_[i].options;
  const Device device = device_for(options);
  const Executable executable = executable_on(i, device);
  RunOptions in_order = options;
  in_order.shuffle_seed = 0;
  in_order.threads = 1;
  for (const DimValues& dims : program.bindings) {
    const runtime::Values inputs = make_inputs(program, dims);
    const auto expected = enclose(program.graph, inputs, dims);
    std::vector<Results> runs =
        options.together ? run_together(executable, executable_on(i, device), options, inputs, dims)
                         : run_results(executable, options, inputs, dims);
    if (observe) observe({dims, inputs, expected, runs.front()});
    for (const auto& [name, enclosure] : expected) {
      outcome.shares += shares_of(enclosure);
      for (const Results& results : runs) {
        const std::string text = mismatch(enclosure, results.at(name));
        if (text.empty()) continue;
        outcome.verdict = Verdict::mismatch;
        outcome.text = fmt::format("output '{}'{}: {}", name, text_of(dims), text);
        return;
      }
    }
    if (options.shuffle_seed != 0) {
      RunOptions once = in_order;
      once.runs = 1;
      runs.push_back(run_results(executable_on(i, device_for(in_order)), once, inputs, dims).front());
    }
    for (std::size_t r = 1; r < runs.size(); ++r) {
      for (const auto& [name, tensor] : runs[0]) {
        if (same_bits(tensor, runs[r].at(name))) continue;
        outcome.verdict = Verdict::unstable;
        outcome.text = fmt::format("output '{}'{}: other bits in another run", name, text_of(dims));
        return;
      }
    }
  }
}

Outcome run_alone(const Case& c, const Rewrite& rewrite) { return Batch({c}, rewrite).run(0); }

}  // namespace fuse::fuzz
