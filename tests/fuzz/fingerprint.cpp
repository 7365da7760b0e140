// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fingerprint.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <functional>

#include "ir/text/print.hpp"
#include "plan/plan.hpp"
#include "schedule/fusion/partition.hpp"

namespace fuse::fuzz {
namespace {

std::string text_of_kernels(const codegen::Source& source) {
  std::string text = source.body;
  for (const codegen::KernelInfo& kernel : source.kernels) {
    text += fmt::format("// {}: {} threads, {} to {} blocks an SM, cluster {}, {} bytes shared\n",
                        kernel.name, kernel.block_threads, kernel.blocks_per_sm, kernel.min_blocks_per_sm,
                        kernel.cluster, kernel.shared_bytes);
    for (const codegen::OpLine& line : kernel.lines)
      text += fmt::format("//   line {}: {}{}\n", line.line, line.op, line.barrier ? ", barrier" : "");
  }
  return text;
}

/// The time of each kernel by the cost model, and each refusal with its reason.
std::string text_of_costs(const schedule::Partition& partition) {
  std::string text;
  for (const schedule::Segment& segment : partition.segments)
    text += fmt::format("{} {:.6g} us\n", segment.root, segment.chosen ? segment.chosen->seconds * 1e6 : 0.0);
  for (const schedule::Refusal& refusal : partition.refusals) {
    text += fmt::format("group {} at {}: {}", refusal.group, fmt::join(refusal.at, " "),
                        to_string(refusal.reason));
    for (const auto& [name, value] : refusal.numbers) text += fmt::format(", {} {}", name, value);
    text += '\n';
  }
  return text;
}

}  // namespace

std::uint32_t hash_of(const std::string& text) {
  // FNV-1a, folded to 32 bits: std::hash differs between standard libraries.
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

std::vector<std::pair<std::string, std::string>> stage_texts(const Compiled& compiled) {
  return {{"graph", ir::print(compiled.graph)},
          {"partition", schedule::print(compiled.graph, compiled.partition)},
          {"costs", text_of_costs(compiled.partition)},
          {"plan", schedule::print(compiled.plan)},
          {"kernels", text_of_kernels(compiled.source)}};
}

std::string fingerprint(const Compiled& compiled) {
  std::string line;
  for (const auto& [stage, text] : stage_texts(compiled)) {
    line += fmt::format("{}{} {:08x}", line.empty() ? "" : " ", stage, hash_of(text));
  }
  return line;
}

}  // namespace fuse::fuzz
