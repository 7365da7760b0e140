// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/quoting.hpp"
#include "compile/compile.hpp"
#include "compile/program_of.hpp"

namespace fuse::runtime {
namespace {

using schedule::Step;
using schedule::ValueId;

std::string bytes_text(const schedule::PlanValue& value) {
  return (product(value.dims) * static_cast<std::int64_t>(size_of(value.dtype))).to_string();
}

class Explainer {
 public:
  explicit Explainer(const Compiled& compiled)
      : compiled_(compiled), plan_(compiled.plan), uses_(kernel_uses(compiled)) {
    for (const schedule::Segment& segment : compiled.partition.segments) ends_[segment.root] = segment.end;
    for (const schedule::Schedule& schedule : compiled.schedules) {
      choices_[schedule.segment.root].push_back(schedule.choices.to_string());
    }
  }

  std::string run() const {
    const schedule::Partition& partition = compiled_.partition;
    const std::string views = print(compiled_.graph, partition.views);
    const std::string updates = print(compiled_.graph, partition.in_place);
    return steps() + (views.empty() ? "" : "slices, concats and transposes in memory:\n" + views) +
           (updates.empty() ? "" : "outputs in the memory of inputs:\n" + updates);
  }

 private:
  std::string steps() const {
    std::size_t kernels = 0, gemms = 0, shared = 0;
    for (const std::size_t uses : uses_) shared += uses > 1 ? uses - 1 : 0;
    for (const Step& step : plan_.steps) {
      kernels += std::holds_alternative<schedule::KernelStep>(step.work);
      gemms += std::holds_alternative<schedule::GemmStep>(step.work);
    }
    std::string text;
    if (!plan_.setup.empty()) {
      text += fmt::format("setup, once for the parameters: {}\n", plan_.setup.size()) + lines(plan_.setup);
    }
    return text +
           fmt::format("steps: {} ({}, {}, {})\n", plan_.steps.size(), counted(kernels, "kernel"),
                       counted(gemms, "gemm"), counted(plan_.steps.size() - kernels - gemms, "other")) +
           (shared > 0 ? fmt::format("{} of the kernels run the text of an equal one\n", shared) : "") +
           tables() + lines(plan_.steps);
  }

  /// Which steps have work for which dims.
  std::string tables() const {
    std::string text;
    for (std::size_t i = 0; i < plan_.tables.size(); ++i) {
      const schedule::VersionTable& table = plan_.tables[i];
      text += fmt::format("table {}, one of {} versions by the dims:\n", i, table.versions) +
              to_string(table, "  ");
      text += versions_text(compiled_, i);
    }
    return text;
  }

  std::string lines(const std::vector<Step>& steps) const {
    std::string text;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      const std::string version =
          step.version ? fmt::format("version {} of table {}: ", step.version->version, step.version->table)
                       : std::string();
      text += fmt::format("  {} {}{}{}\n", i, version, std::visit(Headline{*this, step}, step.work),
                          reason(step));
      text += fmt::format("    {}reads {} writes {}\n", ops(step), values(step.reads), values(step.writes));
    }
    return text;
  }

  struct Headline {
    const Explainer& explainer;
    const Step& step;
    std::string operator()(const schedule::KernelStep& s) const {
      const codegen::KernelInfo& kernel = explainer.compiled_.source.kernels[s.kernel];
      const std::size_t uses = explainer.uses_[s.kernel];
      return fmt::format("kernel {} grid {} x {} threads{}{}", step.name, s.grid.to_string(),
                         kernel.block_threads, step.cooperative ? " cooperative" : "",
                         uses == 1 ? "" : fmt::format("; {} shared by {} steps", kernel.name, uses));
    }
    std::string operator()(const schedule::GemmStep& s) const {
      return fmt::format("gemm {} {} x {} x {} batch {} {} -> {}{}{}", step.name, s.m.to_string(),
                         s.n.to_string(), s.k.to_string(), s.batch.to_string(), fuse::to_string(s.operand),
                         fuse::to_string(s.result), s.transpose_a ? " a transposed" : "",
                         s.transpose_b ? " b transposed" : "");
    }
    std::string operator()(const schedule::CopyStep&) const { return "copy " + step.name; }
    std::string operator()(const schedule::MemsetStep& s) const {
      return fmt::format("memset {} to {}", step.name, s.byte);
    }
  };

  /// How the step's segment was scheduled, and why it ends where it does.
  std::string reason(const Step& step) const {
    std::string text;
    for (const ir::NodeId node : step.nodes) {
      if (const auto found = choices_.find(node); found != choices_.end())
        text += "; " + found->second.at(step.version ? step.version->version : 0);
      if (const auto found = ends_.find(node); found != ends_.end() && !found->second.empty()) {
        text += "; ends at " + found->second;
      }
    }
    return text;
  }

  std::string ops(const Step& step) const {
    const std::string text = describe_ops(compiled_.graph, step.nodes, step.nodes.size());
    return text.empty() ? text : text + "; ";
  }

  std::string values(const std::vector<ValueId>& ids) const {
    std::string text;
    for (const ValueId id : ids) {
      const schedule::PlanValue& value = plan_.values[id];
      text += fmt::format("{}{} ({} bytes)", text.empty() ? "" : ", ", value.name, bytes_text(value));
    }
    return text.empty() ? "nothing" : text;
  }

  const Compiled& compiled_;
  const schedule::Plan& plan_;
  const std::vector<std::size_t> uses_;  // for each kernel, its uses
  std::map<ir::NodeId, std::string> ends_;
  std::map<ir::NodeId, std::vector<std::string>>
      choices_;  // by the root of a kernel's segment, of each version
};

}  // namespace

std::string explain(const Executable::Impl& impl, const CompiledBuilds& builds) {
  const Signature& signature = impl.signature();
  std::string text = fmt::format("graph {} on {}\n", signature.name, impl.device.name());
  for (std::size_t i = 0; i < signature.slots.size(); ++i) {
    const Slot& slot = signature.slots[i];
    text += fmt::format("  slot {} {} {} {}\n", i, to_string(slot.kind), slot.name,
                        ir::to_string(ir::Type{slot.dtype, slot.dims}));
  }
  for (const ir::Guard& guard : signature.guards) text += "  guard " + guard.to_string() + '\n';
  if (impl.device.kind() == DeviceKind::reference) {
    return text +
           fmt::format("evaluates {} ops one by one in double precision; each output is rounded once\n",
                       signature.values);
  }
  const std::size_t count = builds.each.size();
  if (count > 1)
    text += fmt::format("one of {} builds by the dims:\n", count) +
            to_string(builds.regions.table, "  ", "build");
  for (std::size_t i = 0; i < count; ++i) {
    if (count > 1) text += build_text(builds.regions, i) + '\n';
    text += decisions_line(builds.each[i]) + Explainer(builds.each[i]).run();
  }
  return text;
}

}  // namespace fuse::runtime
