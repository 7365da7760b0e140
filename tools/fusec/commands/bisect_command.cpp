// fusec bisect: the first wrong value of a run, and the pass or the choice that made it wrong
// (docs/debugging.md). SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <functional>
#include <optional>

#include "base/access.hpp"
#include "fusec/commands.hpp"
#include "fusec/common.hpp"
#include "fusec/device_choice.hpp"
#include "fusec/progress.hpp"
#include "fusec/repro.hpp"
#include "fusec/values/value_runs.hpp"

namespace fuse::fusec {
namespace {

using ir::NodeId;

class Bisector {
 public:
  Bisector(const ir::Graph& graph, const Inputs& inputs, const Device& device, PipelineOptions options)
      : graph_(graph),
        inputs_(inputs),
        device_(device),
        runs_(graph, inputs, device),
        options_(std::move(options)) {
    options_.skip_unfit_decisions = true;  // a value that is kept makes another kernel of what stores it
  }

  int run() {
    const std::optional<WrongValue> wrong = find();
    if (!wrong) {
      print_line("every output is right: there is nothing to find");
      return 0;
    }
    print_line(fmt::format("first wrong value: {}\n  {}", runs_.describe(wrong->node), wrong->verdict));
    for (const NodeId operand : graph_[wrong->node].operands) {
      print_line("  of " + runs_.describe(operand));
    }
    print_line(blame(*wrong));
    return 1;
  }

 private:
  std::optional<WrongValue> find() {
    Progress progress("comparing the outputs");
    return runs_.first_wrong_of_all(options_, [&](std::string what) { progress.now(std::move(what)); });
  }

  std::string blame(const WrongValue& wrong) {
    Progress progress("looking for the pass");
    const auto is_wrong = [&](const PipelineOptions& options) -> std::optional<bool> {
      try {
        return runs_.first_wrong(wrong.kept, options).has_value();
      } catch (const Error&) {  // It does not compile or run: that tells nothing.
        return std::nullopt;
      }
    };
    const auto culprit = [&](int PipelineOptions::*passes, const std::vector<std::string_view>& names,
                             const char* kind) -> std::string {
      bool right_before = false;
      for (std::size_t count = 0; count <= names.size(); ++count) {
        PipelineOptions options = options_;
        options.*passes = static_cast<int>(count);
        const std::optional<bool> bad = is_wrong(options);
        if (bad.value_or(false)) {
          if (count == 0 || !right_before) return {};  // wrong without any, or it cannot be told by which
          return fmt::format(
              "made wrong by the {} pass {} ({} of {}): without it and those after it, it is right", kind,
              names[count - 1], count, names.size());
        }
        right_before |= bad.has_value();
      }
      return {};
    };
    if (std::string text = culprit(&PipelineOptions::graph_passes, graph_pass_names(), "graph");
        !text.empty()) {
      return text;
    }
    progress.now("looking for the kernel pass");
    if (std::string text = culprit(&PipelineOptions::kernel_passes, kernel_pass_names(), "kernel");
        !text.empty()) {
      return text;
    }
    progress.now("looking for the choice");
    if (std::string text = blame_choice(is_wrong); !text.empty()) return text;
    progress.now("looking on the emulated device");
    return "wrong without any pass and with one kernel per op: " + blame_code(wrong);
  }

  std::string blame_choice(const std::function<std::optional<bool>(const PipelineOptions&)>& is_wrong) {
    struct Choice {
      const char* name;
      void (*set)(PipelineOptions&);
    };
    using schedule::PartitionOptions;
    static constexpr Choice choices[] = {
        {"--no-grid-barriers", [](PipelineOptions& o) { o.partition.grid_barriers = false; }},
        {"--no-gemm-merge", [](PipelineOptions& o) { o.merge_gemms = false; }},
        {"one stream", [](PipelineOptions& o) { o.streams.max_streams = 1; }},
        {"--stitch mapping",
         [](PipelineOptions& o) {
           o.partition.stitch = false;
           o.partition.cooperative = PartitionOptions::Cooperative::never;
         }},
        {"--baseline none", [](PipelineOptions& o) { o.partition.baseline = schedule::Baseline::one_op; }},
    };
    for (const Choice& choice : choices) {
      PipelineOptions options = options_;
      choice.set(options);
      const std::optional<bool> bad = is_wrong(options);
      if (bad && !*bad) return fmt::format("right with {}: what that turns off made it wrong", choice.name);
    }
    return {};
  }

  /// Another device, whose code is another text, tells whether it is this one that goes wrong.
  std::string blame_code(const WrongValue& wrong) {
    try {
      if (device_.kind() != DeviceKind::emulated) {
        const Device emulated = Device::emulated();
        if (!ValueRuns(graph_, inputs_, emulated).first_wrong(wrong.kept, options_)) {
          return fmt::format(
              "the op's code for {}, its compiler, or the machine; the emulated device is right",
              device_.name());
        }
      }
    } catch (const Error&) {  // It does not compile or run there: that tells nothing.
    }
    return "the op's own code, or the device";
  }

  const ir::Graph& graph_;
  const Inputs& inputs_;
  const Device& device_;
  ValueRuns runs_;
  PipelineOptions options_;
};

}  // namespace

int execute(const BisectOptions& given) {
  RunOptions options = given.run;
  if (is_repro(options.graph.file)) print_line("repro of " + replay(options));
  const Graph graph = load_graph(options.graph.file);
  const Device device = choose_device(options).device;
  print_line("device   " + device.name());
  const Inputs inputs = make_inputs(ir_of(graph), options.inputs, options.graph.dims, options.seed);
  return Bisector(ir_of(graph), inputs, device, pipeline_options(options.graph.compile)).run();
}

}  // namespace fuse::fusec
