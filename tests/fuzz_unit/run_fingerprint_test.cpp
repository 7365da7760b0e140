// What runs of many graphs are made of, and the names of the calls that they make of the driver and of
// cuBLASLt, are what tests/golden/fingerprints/runs.txt says. SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <fmt/format.h>

#include "base/access.hpp"
#include "compile/pipeline/experiments.hpp"
#include "cuda/fake_device.hpp"
#include "fuzz/fingerprint.hpp"
#include "fuzz/grow/generator.hpp"
#include "fuzz/grow/random.hpp"
#include "ir/text/print.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "support/golden.hpp"
#include "support/sanitized.hpp"

namespace fuse::test {
namespace {

std::string print(const runtime::ReadyArgument& argument) {
  if (argument.is_extent) return fmt::format("{}", argument.value);
  return fmt::format("{}+{}:{}", argument.location.slot, argument.location.offset, argument.location.bytes);
}

std::string print(const Prepared::Impl& p, const runtime::ReadyStep& step) {
  std::string text = fmt::format("{} of group {}, {} calls, grid {} {} {}:", step.label, step.group,
                                 step.calls, step.grid.x, step.grid.y, step.grid.z);
  for (std::uint32_t i = 0; i < step.arguments.count; ++i)
    text += ' ' + print(p.arguments[step.arguments.first + i]);
  return fmt::format("{}{}{}\n", text, step.lines.empty() ? "" : " of ", step.lines);
}

/// Where everything lies, and who waits for whom.
std::string print(const Prepared::Impl& p) {
  std::string text;
  for (const runtime::ReadyStep& step : p.setup) text += "setup " + print(p, step);
  for (const runtime::ReadyStep& step : p.steps) text += print(p, step);
  for (const runtime::Command& command : p.commands.list) {
    text += fmt::format("{} on {} records {}, waits for", command.step, command.stream, command.record);
    for (std::uint32_t i = 0; i < command.waits.count; ++i)
      text += fmt::format(" {}", p.commands.waits[command.waits.first + i]);
    text += '\n';
  }
  text += fmt::format("forks {} final {} events {} launches {} gemms {}\n", fmt::join(p.commands.forks, " "),
                      fmt::join(p.commands.final_waits, " "), p.commands.events, p.launches, p.gemm_calls);
  for (std::size_t slot = 0; slot < p.shapes.size(); ++slot) {
    text += fmt::format("{} {} {} bytes, {}{}\n", p.executable->slot_names[slot],
                        runtime::SlotType{p.executable->slots()[slot].dtype, *p.shapes[slot]}, p.bytes[slot],
                        p.packs[slot] ? "packs" : "", p.runs[slot] ? "runs" : "");
  }
  return p.split ? text + "or\n" + print(*p.split) : text;
}

std::string names_of(const std::vector<std::string>& calls) {
  std::string text;
  for (const std::string& call : calls) text += call.substr(0, call.find(' ')) + '\n';
  return text;
}

std::string run(const Fakes& fakes, const Executable& executable, const DimValues& dims, ExecutionMode mode) {
  const int before = fakes.call_count(), products = fakes.blas_call_count();
  Session session(executable, dims, WorkspaceOptions{mode});
  const std::vector<Slot>& slots = executable.slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(session.prepared().bytes(i));
    if (slots[i].kind != Slot::Kind::output) session.set(slots[i].name, std::vector<std::byte>(bytes));
  }
  session.pack();
  session.run();
  session.run();
  std::vector<std::string> calls = fakes.calls_since(before);
  for (int i = products; i < fakes.blas_call_count(); ++i) calls.emplace_back(fakes.blas_call(i));
  return names_of(calls);
}

TEST_CASE("fingerprints of runs of generated programs are as committed",
          "[golden][fuzz][cuda][not-sanitized]") {
  REQUIRE(runtime::contract::checked());  // as in all tests; runs make fewer calls else
  const FakeEnvironment environment;
  std::vector<std::string> lines;
  for (std::uint64_t index = 0; index < fewer<std::uint64_t>(200, 10); ++index) {
    const fuzz::Case c = fuzz::generate(fuzz::seed_of(3, index));
    const Fakes fakes;
    std::string line = fmt::format("--seed 3 --index {}:", index);
    try {
      const Executable executable =
          compile(Graph::parse(ir::print(c.program.graph)), Device::cuda(),
                  {.experiments = experiments({.stitch = index % 3 == 0 ? Stitch::mapping : Stitch::full})});
      for (const DimValues& dims : c.program.bindings) {
        const Prepared prepared = executable.prepare(dims);
        const Workspace workspace = prepared.workspace();
        const std::string text = prepared.explain() + print(*impl_of(workspace)->prepared);
        const ExecutionMode mode = index % 2 == 0 ? ExecutionMode::streams : ExecutionMode::graph;
        line += fmt::format(" prepared {:08x} calls {:08x}", fuzz::hash_of(text),
                            fuzz::hash_of(run(fakes, executable, dims, mode)));
      }
    } catch (const Error& error) {
      line += fmt::format(" {} {:08x}", to_string(error.code()), fuzz::hash_of(error.what()));
    }
    lines.push_back(line);
  }
  check_golden_lines("fingerprints/runs.txt", lines);
}

}  // namespace
}  // namespace fuse::test
#endif
