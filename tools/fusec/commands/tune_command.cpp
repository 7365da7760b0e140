// fusec tune: explores the ways to run a graph, and writes the best. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <fuse/explore.hpp>
#include <optional>

#include "base/access.hpp"
#include "fusec/commands.hpp"
#include "fusec/common.hpp"
#include "fusec/device_choice.hpp"
#include "fusec/print/run_times.hpp"
#include "fusec/progress.hpp"
#include "fusec/values/inputs.hpp"

namespace fuse::fusec {
namespace {

/// "90s", "5m", "0.5s".
double seconds_of(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit(end, text.data() + text.size());
  if (error == std::errc() && number > 0 && (unit == "s" || unit == "m"))
    return unit == "m" ? 60 * number : number;
  user_error(ErrorCode::invalid_argument, fmt::format("--budget {}", text),
             "a number of seconds or minutes above 0: 90s, 5m");
}

ChosenDevice device_of(const TuneOptions& options) {
  if (!options.virtual_clock) return choose_device(options.run);
  if (options.run.device != "auto" && options.run.device != "emulated") {
    user_error(ErrorCode::invalid_argument,
               fmt::format("--virtual-clock is of the emulated device, not of {}", options.run.device));
  }
  return {Device::emulated({.profile = options.run.graph.profile, .virtual_clock = true}),
          "emulated: --virtual-clock is an option of this device"};
}

/// Buffers for each slot, as the device takes them.
class Buffers {
 public:
  Buffers(const Explorer& explorer, const Device& device, const Inputs& inputs)
      : explorer_(explorer), inputs_(inputs), buffers_(explorer.slots().size()) {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (!explorer.slots()[i].donor) buffers_[i] = device.allocate(explorer.prepared().bytes(i));
    }
    set(true);
  }
  /// What a run overwrote is as it was.
  void reset() { set(false); }
  std::vector<BufferView> views() const {
    std::vector<BufferView> result;
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      result.push_back(buffers_[explorer_.slots()[i].donor.value_or(i)].view());
    return result;
  }

 private:
  void set(bool all) {
    const std::vector<Slot>& slots = explorer_.slots();
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (all && slots[i].kind != Slot::Kind::output)
        buffers_[i].upload(inputs_.values.at(slots[i].name).data);
      if (!all && slots[i].donor) {
        const std::size_t donor = *slots[i].donor;
        buffers_[donor].upload(inputs_.values.at(slots[donor].name).data);
      }
    }
  }

  const Explorer& explorer_;
  const Inputs& inputs_;
  std::vector<Buffer> buffers_;
};

std::string state_of(const ExploreProgress& progress, double seconds, double budget) {
  if (progress.announced == 0) return "measuring the default";
  return fmt::format("{} of {} runs, {} configurations compiled, {} dropped, {:.0f} s of {:.0f} s",
                     progress.explored, progress.announced, progress.built, progress.dropped.size(), seconds,
                     budget);
}

}  // namespace

int execute(const TuneOptions& options) {
  const OtherFile graph_file{"the graph", options.run.graph.file};
  if (!options.output.empty()) try_file("--output", options.output, {graph_file});
  if (!options.picture.empty())
    try_file("--picture", options.picture, {graph_file, {"what --output names", options.output}});
  const double budget = seconds_of(options.budget);
  const Graph graph = load_graph(options.run.graph.file);
  const auto [device, why] = device_of(options);
  Progress progress("making the inputs");
  const Inputs inputs =
      make_inputs(ir_of(graph), options.run.inputs, options.run.graph.dims, options.run.seed);
  progress.now("compiling for " + device.name());
  const Stopwatch watch;
  Explorer explorer(graph, device, inputs.dims,
                    {.bits = options.bits == "any" ? Bits::any : Bits::keep,
                     .max_options = options.options,
                     .max_cuts = options.cuts,
                     .max_groups = options.groups,
                     .max_epochs = options.epochs,
                     .samples = options.samples,
                     .max_seconds = budget},
                    options.run.graph.compile);
  Buffers buffers(explorer, device, inputs);
  const std::vector<BufferView> views = buffers.views();
  progress.print(fmt::format("device   {}", device.name()));
  progress.print(fmt::format("why      {}", why));
  progress.print(fmt::format("dims     {}", to_string(inputs.dims)));
  Stream stream = device.stream();
  progress.now("exploring");
  std::vector<RunTime> times;
  std::int64_t explored = 0;
  while (!explorer.done()) {
    progress.at(state_of(explorer.progress(), watch.seconds(), budget));
    explorer.run(stream, views).throw_if_failed();
    stream.synchronize().throw_if_failed();
    explorer.wait_for_compiler();
    buffers.reset();
    const ExploreProgress now = explorer.progress();
    const bool measured = now.last_seconds > 0 && (times.empty() || now.explored > explored);
    if (measured) times.push_back({now.last_seconds, now.last_is_default});
    explored = now.explored;
  }
  const ExploreProgress end = explorer.progress();
  progress.print(fmt::format("explored {} of {} runs, {} configurations compiled, {:.1f} s", end.explored,
                             end.announced, end.built, watch.seconds()));
  if (end.cut_short) progress.print("time     it was over before all was tried");
  for (const std::string& each : end.dropped) progress.print("dropped  " + each);
  if (!end.stopped.empty()) progress.print("stopped  " + end.stopped);
  if (end.default_seconds > 0) {
    progress.print(fmt::format("time     {} by default, {} tuned: {:.3f}x{}", time_text(end.default_seconds),
                               time_text(end.tuned_seconds), end.default_seconds / end.tuned_seconds,
                               options.virtual_clock ? " by the virtual clock" : ""));
  }
  if (!options.picture.empty()) {
    write_file(options.picture, run_times_svg(ir_of(graph).name + " on " + device.name(), times, end));
    progress.print("wrote    " + options.picture);
  }
  if (!options.output.empty()) {
    write_file(options.output, explorer.tuning().text());
    progress.print("wrote    " + options.output);
  }
  return 0;
}

}  // namespace fuse::fusec
