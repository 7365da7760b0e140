// SPDX-License-Identifier: Apache-2.0
#include "runtime/specialise/static_build.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <fuse/graph.hpp>
#include <string>
#include <vector>

#include "base/access.hpp"
#include "compile/compile.hpp"
#include "ir/graph/rewrite_dims.hpp"
#include "runtime/device/backend.hpp"
#include "schedule/search/reduction_order.hpp"

namespace fuse::runtime {
namespace {

using schedule::KernelChoices;
using schedule::Segment;

[[noreturn]] void refuse(const std::string& why) {
  throw Error({.code = ErrorCode::invalid_argument,
               .message = "a static build would not have the same bits: " + why,
               .hint = "Bits::any allows other last bits"});
}

/// What is one number for all elements and runs of some dims: with numbers in place of symbols it is computed
/// by the compiler.
std::vector<bool> numbers_of(const ir::Graph& graph) {
  std::vector<bool> result(graph.nodes.size());
  for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
    const ir::Node& node = graph[id];
    const bool computed = !node.operands.empty() && !info(node.op).has(ir::Trait::source) &&
                          (node.type.dims.empty() || info(node.op).relation == ir::Relation::broadcast);
    result[id] = node.op == ir::Op::constant || node.op == ir::Op::dim_size ||
                 (computed && std::ranges::all_of(node.operands, [&](ir::NodeId o) { return result[o]; }));
  }
  return result;
}

/// The ops of each segment, with their operands: equal texts, equal cuts.
std::string cut_text(const ir::Graph& graph, const schedule::Partition& partition) {
  const std::vector<bool> numbers = numbers_of(graph);
  std::string text;
  for (const Segment& segment : partition.segments) {
    text += fmt::format("{}:", to_string(segment.kind));
    for (const ir::NodeId id : segment.nodes) {
      if (numbers[id]) continue;
      // Passes turn a division by a power of two into a product, which is as exact.
      const bool divides = graph[id].op == ir::Op::div && numbers[graph[id].operands[1]];
      text += fmt::format(" {}(", divides ? "mul" : to_string(graph[id].op));
      for (const ir::NodeId operand : graph[id].operands)
        text += fmt::format("{} ", numbers[operand] ? "number" : to_string(graph[operand].op));
      text += ')';
    }
    text += '\n';
  }
  return text;
}

/// How a kernel runs for the dims, and in which order it adds.
struct Taken {
  KernelChoices choices{};
  std::string order{};
};

/// In the order of the kernel segments.
std::vector<Taken> taken_for(const Compiled& compiled, const DimValues& dims) {
  const auto value = [&](const Dim& dim) {
    return dim.evaluate([&](std::string_view name) { return dims.at(name); });
  };
  std::vector<Taken> result;
  std::size_t table = 0;
  for (std::size_t i = 0; i < compiled.schedules.size();) {
    const std::uint32_t number = compiled.segment_of[i];
    std::size_t end = i;
    while (end < compiled.schedules.size() && compiled.segment_of[end] == number) ++end;
    const Segment& segment = compiled.partition.segments[number];
    const bool has_versions = end - i > 1;
    const std::size_t taken =
        has_versions ? schedule::version_for(compiled.versions.at(table++).table, value) : 0;
    const KernelChoices& choices = compiled.schedules.at(i + taken).choices;
    result.push_back({choices, schedule::reduction_order(compiled.graph, segment, choices)});
    i = end;
  }
  return result;
}

}  // namespace

Executable static_build(const Graph& graph, const DimValues& dims, const CompiledBuilds& usual,
                        const Device& device, const CompileOptions& options, Bits bits) {
  const auto value = [&](std::string_view name) { return dims.at(name); };
  const Graph fixed = graph_of<Graph>(ir::with_values(ir_of(graph), value));
  if (bits == Bits::any) return compile_candidate(fixed, device, options);
  if (options.relaxed_rounding) refuse("relaxed_rounding lets a graph with numbers round otherwise");
  const std::uint32_t number =
      schedule::version_for(usual.regions.table, [&](const Dim& dim) { return dim.evaluate(value); });
  const Compiled& build = usual.each.at(number);
  const std::vector<Taken> taken = taken_for(build, dims);
  const auto made_like = [&] {
    std::size_t next = 0;
    return compile_candidate(fixed, device, options, [&](PipelineOptions& how) {
      const Outline outline = outline_of(ir_of(fixed), backend_of(device)->target(), how);
      if (cut_text(outline.graph, outline.partition) != cut_text(build.graph, build.partition))
        refuse("with these numbers other ops share a kernel");
      how.choose = [&](const ir::Graph&, const Segment&, const Target&) { return taken.at(next++).choices; };
    });
  };
  const Executable made = [&] {
    try {
      return made_like();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::internal) throw;
      refuse("loops for all dims do not fit these numbers: " + error.info().message);
    }
  }();
  const std::vector<Taken> own = taken_for(stages_of(made), {});
  if (own.size() != taken.size()) refuse("with these numbers there are other kernels");
  for (std::size_t i = 0; i < own.size(); ++i)
    if (own[i].order != taken[i].order) refuse("a kernel would add in another order");
  return made;
}

}  // namespace fuse::runtime
