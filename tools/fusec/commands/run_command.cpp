// fusec run: runs a graph on a device, and checks what it made. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fuse/numerics.hpp>
#include <fuse/session.hpp>
#include <limits>
#include <map>

#include "base/access.hpp"
#include "base/quoting.hpp"
#include "eval/evaluate.hpp"
#include "fusec/commands.hpp"
#include "fusec/common.hpp"
#include "fusec/device_choice.hpp"
#include "fusec/print/trace.hpp"
#include "fusec/progress.hpp"
#include "fusec/repro.hpp"
#include "fusec/values/check.hpp"
#include "fusec/values/inputs.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/prepare/recorded_run.hpp"
#include "schedule/decisions/gemm_decisions.hpp"
#include "tensors/npy.hpp"

namespace fuse::fusec {
namespace {

/// "y f32[37, 4096]  min 1.2e-05  max 0.04  mean 0.000244"
std::string summary(const std::string& name, const runtime::HostTensor& tensor) {
  double least = std::numeric_limits<double>::infinity(), greatest = -least, sum = 0;
  std::int64_t nans = 0;
  const std::int64_t count = tensor.element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = tensor.get(i);
    if (std::isnan(value)) ++nans;
    least = std::fmin(least, value);
    greatest = std::fmax(greatest, value);
    sum += value;
  }
  std::string text = fmt::format("{} {}", name, runtime::type_text(tensor.dtype, tensor.shape));
  if (count == 0) return text + "  no elements";
  text +=
      fmt::format("  min {:.6g}  max {:.6g}  mean {:.6g}", least, greatest, sum / static_cast<double>(count));
  return nans == 0 ? text : text + fmt::format("  {} NaN", nans);
}

std::map<std::string, runtime::HostTensor> read_outputs(const Executable& executable,
                                                        const Session& session) {
  std::map<std::string, runtime::HostTensor> outputs;
  for (std::size_t i = 0; i < executable.slots().size(); ++i) {
    const Slot& slot = executable.slots()[i];
    if (slot.kind != Slot::Kind::output) continue;
    outputs[slot.name] = {slot.dtype, session.prepared().shape(i), session.get(slot.name)};
  }
  return outputs;
}

/// What the next run reads where the last one wrote its outputs in the place of inputs.
void take_donated(const Executable& executable, const Session& session, runtime::Values& inputs) {
  for (const Slot& slot : executable.slots()) {
    if (slot.donor) inputs.at(executable.slots()[*slot.donor].name).data = session.get(slot.name);
  }
}

bool check_outputs(const ir::Graph& graph, const Inputs& inputs,
                   const std::map<std::string, runtime::HostTensor>& outputs, Progress& progress) {
  const auto dim = [&](std::string_view name) { return inputs.dims.find(name)->second; };
  OutputChecker checker(graph, inputs.values, dim, [&](std::string what) { progress.now(std::move(what)); });
  bool ok = true;
  for (const ir::Output& output : graph.outputs) {
    const Verdict verdict = checker.check(output.name, outputs.at(output.name));
    progress.print(fmt::format("check {}: {}", output.name, verdict.text));
    ok &= verdict.ok;
  }
  return ok;
}

/// A line for each value that is made not finite; whether there is none.
bool report_numerics(const Graph& graph, const Executable& executable, const Inputs& inputs,
                     const CompileOptions& options, Progress& progress) {
  const Device& device = executable.device();
  std::vector<Buffer> buffers;
  std::vector<BufferView> views;
  for (const Slot& slot : executable.slots()) {
    if (slot.kind == Slot::Kind::output) break;
    const std::vector<std::byte>& data = inputs.values.at(slot.name).data;
    buffers.push_back(device.allocate(static_cast<std::int64_t>(data.size())));
    buffers.back().upload(data);
    views.push_back(buffers.back().view());
  }
  Stream stream = device.stream();
  const std::vector<NotFinite> found = check_numerics(graph, device, inputs.dims, stream, views, options);
  for (const NotFinite& value : found) progress.print("numerics " + to_string(value));
  if (found.empty()) progress.print("numerics every value is finite");
  return found.empty();
}

/// An output's name may hold what a file name cannot.
std::string file_name(std::string name) {
  for (char& c : name) {
    if (c == '/' || c == '\0') c = '_';
  }
  return (name.starts_with('.') ? '_' + name : name) + ".npy";
}

/// Before the work: two names may become one file.
void check_file_names(const ir::Graph& graph) {
  std::map<std::string, std::string> output_of;
  for (const ir::Output& output : graph.outputs) {
    const auto [found, added] = output_of.emplace(file_name(output.name), output.name);
    if (added) continue;
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("--output-dir: the outputs '{}' and '{}' would be one file, {}",
                                        found->second, output.name, found->first),
                 .hint = "give one of them another name in the graph"});
  }
}

void write_outputs(const std::string& directory, const std::map<std::string, runtime::HostTensor>& outputs) {
  for (const auto& [name, tensor] : outputs) {
    const std::string header = runtime::npy_header(tensor);
    std::vector<char> bytes(header.begin(), header.end());
    const auto* data = reinterpret_cast<const char*>(tensor.data.data());
    bytes.insert(bytes.end(), data, data + tensor.data.size());
    write_file(directory, file_name(name), bytes);
  }
}

/// A kernel that stands by for another one, where the device cannot hold all blocks of that, is not launched.
void check_is_launched(std::size_t barrier, const std::vector<KernelBarriers>& kernels,
                       const Session& session) {
  const Profile profile = session.prepared().predicted();
  const auto is_launched = [&](const KernelBarriers& kernel) {
    return std::any_of(profile.steps.begin(), profile.steps.end(), [&](const StepTime& step) {
      return step.step.find("'" + kernel.name + "'") != std::string::npos;
    });
  };
  std::string launched;
  for (const KernelBarriers& kernel : kernels) {
    if (kernel.count == 0 || !is_launched(kernel)) continue;
    if (barrier >= kernel.first && barrier < kernel.first + kernel.count) return;
    launched += fmt::format("{}{}", launched.empty() ? "" : ", ", kernel.first);
    if (kernel.count > 1) launched += fmt::format(" to {}", kernel.first + kernel.count - 1);
  }
  user_error(ErrorCode::invalid_argument,
             fmt::format("--drop-barrier {}: its kernel is not launched for these dims", barrier),
             launched.empty() ? "no kernel that is launched has a barrier"
                              : "barriers of kernels that are launched: " + launched);
}

void write_trace(const std::string& file, const Session& session, Progress& progress) {
  std::vector<Profile> profiles = {session.prepared().predicted()};
  if (std::optional<Profile> measured = session.measured()) profiles.push_back(*std::move(measured));
  write_file(file, chrome_trace(profiles));
  std::string text = fmt::format("trace    {}: {} on {}", file, counted(profiles[0].steps.size(), "step"),
                                 counted(static_cast<std::size_t>(session.prepared().streams()), "stream"));
  for (const Profile& profile : profiles)
    text += fmt::format(", {:.1f} us by the {}", profile.seconds * 1e6, profile.clock);
  progress.print(text);
}

/// What compile decides, and what was decided for this run.
std::string decisions_text_of(const Graph& graph, const Target& target, const CompileOptions& options,
                              schedule::RunDecision run) {
  PipelineOptions how = pipeline_options(options);
  how.record = true;
  const Compiled stages = run_pipeline(ir_of(graph), target, how);
  schedule::Decisions decisions = decisions_of(stages, target);
  decisions.gemms = schedule::all_gemm_decisions_of(stages.graph, stages.partition);
  decisions.run = std::move(run);
  return schedule::print(decisions);
}

/// Nobody asks for one: that of the decisions, if they have one.
ExecutionMode mode_of(const std::string& name, const Executable& executable) {
  const std::optional<schedule::RunDecision>& run = stages_of(executable).run;
  const bool decided = run && run->mode != ExecutionMode::automatic;
  if (name.empty() && decided) return ExecutionMode::automatic;
  for (const ExecutionMode mode : {ExecutionMode::graph, ExecutionMode::automatic}) {
    if (name == to_string(mode)) return mode;
  }
  return ExecutionMode::streams;
}

}  // namespace

int execute(const RunOptions& given) {
  RunOptions options = given;
  if (!options.output_dir.empty()) try_directory("--output-dir", options.output_dir);
  if (!options.trace.empty()) try_file("--trace", options.trace, {{"the graph", options.graph.file}});
  if (!options.decisions.empty()) {
    try_file("--decisions", options.decisions,
             {{"the graph", options.graph.file}, {"what --trace names", options.trace}});
    options.graph.compile.versions = options.graph.compile.builds = 1;  // they say one way for all dims
  }
  if (is_repro(options.graph.file)) {
    const std::string failed = replay(options);
    print_line("repro of " + failed);
  }
  const Graph graph = load_graph(options.graph.file);
  const auto [device, why] = choose_device(options);
  const std::optional<std::size_t> dropped = dropped_barrier(pipeline_options(options.graph.compile));
  if (dropped && device.kind() == DeviceKind::reference) {
    user_error(ErrorCode::invalid_argument,
               fmt::format("fault barrier.{}: the reference device has no kernels", *dropped));
  }
  if (!options.trace.empty() && device.kind() == DeviceKind::reference) {
    user_error(ErrorCode::invalid_argument, "--trace: the reference device has no steps");
  }
  if (!options.decisions.empty() && device.kind() == DeviceKind::reference) {
    user_error(ErrorCode::invalid_argument, "--decisions: the reference device has no steps");
  }
  if (!options.output_dir.empty()) check_file_names(ir_of(graph));
  const std::vector<KernelBarriers> barriers =
      check_drop_barrier(ir_of(graph), backend_of(device)->target(), pipeline_options(options.graph.compile));
  Progress progress("making the inputs");
  Inputs inputs = make_inputs(ir_of(graph), options.inputs, options.graph.dims, options.seed);

  progress.now("compiling for " + device.name());
  const Stopwatch compiling;
  const Executable executable = compile(graph, device, options.graph.compile);
  Session session(executable, inputs.dims, {mode_of(options.mode, executable)});
  const double compile_seconds = compiling.seconds();
  std::string decisions;  // of the mode that the runs begin with
  if (!options.decisions.empty())
    decisions = decisions_text_of(graph, backend_of(device)->target(), options.graph.compile,
                                  runtime::run_decision_of(session.workspace()));
  if (!barriers.empty()) check_is_launched(*dropped, barriers, session);
  for (const auto& [name, tensor] : inputs.values) session.set(name, tensor.data);

  progress.print(fmt::format("device   {}", device.name()));
  progress.print(fmt::format("why      {}", why));
  progress.print(fmt::format("dims     {}", to_string(inputs.dims)));
  progress.now("running on " + device.name());
  session.pack();
  if (!options.trace.empty()) session.measure();
  const Stopwatch running;
  session.run();
  const double run_seconds = running.seconds();
  std::vector<double> seconds{run_seconds};
  while (seconds.size() < static_cast<std::size_t>(options.runs)) {
    take_donated(executable, session, inputs.values);
    const Stopwatch again;
    session.run();
    seconds.push_back(again.seconds());
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  progress.print(fmt::format("kernels  {} launched, {}", session.prepared().launches(),
                             counted(static_cast<std::size_t>(session.prepared().gemms()), "GEMM")));
  if (const std::string note = session.workspace().mode_note(); !note.empty())
    progress.print(fmt::format("mode     {}: {}", to_string(session.workspace().mode()), note));
  progress.print(fmt::format(
      "time     compile {:.1f} ms, run {:.3f} ms{}", compile_seconds * 1e3, run_seconds * 1e3,
      options.runs == 1 ? "" : fmt::format(", median of {} {:.3f} ms", options.runs, *middle * 1e3)));

  const std::map<std::string, runtime::HostTensor> outputs = read_outputs(executable, session);
  for (const ir::Output& output : ir_of(graph).outputs) {
    progress.print("output   " + summary(output.name, outputs.at(output.name)));
  }
  if (options.check_numerics) {
    progress.now("running with every value kept");
    if (!report_numerics(graph, executable, inputs, options.graph.compile, progress)) return 1;
  }
  const bool ok = !options.check || check_outputs(ir_of(graph), inputs, outputs, progress);
  if (!ok) return 1;
  if (!options.trace.empty()) write_trace(options.trace, session, progress);
  if (!options.decisions.empty()) {
    write_file(options.decisions, decisions);
    progress.print("wrote    " + options.decisions);
  }
  if (!options.output_dir.empty()) write_outputs(options.output_dir, outputs);
  return 0;
}

}  // namespace fuse::fusec
