// The commands of a prepared run keep every dependency: two steps that touch the same memory, one of them
// writing, are ordered by streams and events alone. Kernels are not run, so that no order of this machine
// helps. SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <fmt/format.h>

#include <map>
#include <set>

#include "base/access.hpp"
#include "compile/pipeline/experiments.hpp"
#include "cuda/fake_device.hpp"
#include "cuda/step_accesses.hpp"
#include "support/examples.hpp"

namespace fuse::test {
namespace {

using runtime::Command;

/// What the device was told to end before each command, from the commands alone; the last entry is the run's
/// end.
std::vector<std::set<std::size_t>> order_of(const Prepared::Impl& p) {
  const std::vector<Command>& list = p.commands.list;
  std::vector<std::set<std::size_t>> before(list.size() + 1);
  std::map<int, std::size_t> last;                // command of each stream
  std::map<std::uint32_t, std::size_t> recorded;  // command of each event
  const auto follow = [&](std::size_t i, std::size_t other) {
    before[i].insert(before[other].begin(), before[other].end());
    before[i].insert(other);
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (const auto found = last.find(list[i].stream); found != last.end()) follow(i, found->second);
    for (std::uint32_t w = 0; w < list[i].waits.count; ++w) {
      follow(i, recorded.at(p.commands.waits[list[i].waits.first + w]));
    }
    last[list[i].stream] = i;
    if (list[i].record != Command::no_event) recorded[list[i].record] = i;
  }
  if (last.contains(0)) follow(list.size(), last[0]);
  for (const std::uint32_t event : p.commands.final_waits) follow(list.size(), recorded.at(event));
  return before;
}

int check_order(const Graph& graph, const DimValues& dims = {}) {
  INFO(graph.name());
  const Executable executable =
      compile(graph, Device::cuda(), {.experiments = experiments({.stitch = Stitch::mapping})});
  const Workspace workspace = executable.prepare(dims).workspace();
  const Prepared::Impl& p = *impl_of(workspace)->prepared;
  const std::vector<std::set<std::size_t>> before = order_of(p);
  CHECK(before.back().size() == p.commands.list.size());
  std::vector<std::vector<Access>> touched;
  for (const Command& command : p.commands.list) touched.push_back(accesses(p, p.steps[command.step]));
  for (std::size_t j = 0; j < touched.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      if (!conflict(touched[i], touched[j])) continue;
      INFO(fmt::format("{} and {}", p.steps[p.commands.list[i].step].label,
                       p.steps[p.commands.list[j].step].label));
      CHECK(before[j].contains(i));
    }
  }
  return p.streams.streams;
}

TEST_CASE("steps that touch the same memory are ordered by streams and events", "[cuda][streams]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  CHECK(check_order(branches(4)) > 1);
  CHECK(check_order(overwritten()) > 1);
  CHECK(check_order(example("transformer_block"), {{"B", 2}}) > 1);
  check_order(example("bert_layer"), {{"B", 1}, {"S", 16}});
  check_order(example("layernorm"), {{"B", 16}});
}

}  // namespace
}  // namespace fuse::test
#endif
