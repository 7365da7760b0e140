// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/fault.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fuse::runtime::emulated {
namespace {

// "line 41 (%7 reduce_sum, softmax.sum)": the op is that of the nearest entry at or before the line.
std::string at_line(const codegen::KernelInfo& kernel, int line) {
  const auto after =
      std::upper_bound(kernel.lines.begin(), kernel.lines.end(), line,
                       [](int value, const codegen::OpLine& entry) { return value < entry.line; });
  if (after == kernel.lines.begin()) return fmt::format("line {}", line);
  const codegen::OpLine& entry = *(after - 1);
  if (entry.scope.empty()) return fmt::format("line {} ({})", line, entry.op);
  return fmt::format("line {} ({}, {})", line, entry.op, entry.scope);
}

std::string waits(const Place& place, const codegen::KernelInfo& kernel) {
  if (!place.what) return fmt::format("thread {} has exited", place.thread);
  return fmt::format("thread {} waits in {} at {}", place.thread, place.what, at_line(kernel, place.line));
}

std::string race(const Fault& f, const codegen::KernelInfo& kernel) {
  const bool blocks = f.here.block != f.other.block;
  const auto who = [&](const Place& p) {
    return blocks ? fmt::format("block {} thread {}", p.block, p.thread) : fmt::format("thread {}", p.thread);
  };
  return fmt::format("{} {} at {}, {} {} at {}; {}", who(f.here), f.here.store ? "writes" : "reads",
                     at_line(kernel, f.here.line), who(f.other), f.other.store ? "wrote" : "read",
                     at_line(kernel, f.other.line),
                     blocks ? "blocks of one launch are not ordered"
                            : fmt::format("missing barrier? (block {})", f.here.block));
}

}  // namespace

std::string describe(const Fault& f, const codegen::KernelInfo& kernel) {
  const std::string object = fmt::format("{} '{}'[{}]", f.shared ? "shared" : "global", f.object, f.index);
  const std::string place =
      fmt::format("block {} thread {} at {}", f.here.block, f.here.thread, at_line(kernel, f.here.line));
  const char* access = f.here.store ? "write" : "read";
  std::string text;
  switch (f.kind) {
    case Fault::Kind::out_of_bounds:
      text = fmt::format("out of bounds {} of {}, which has {} elements: {}", access, object, f.limit, place);
      break;
    case Fault::Kind::misaligned:
      text = fmt::format("misaligned {} of {}: {}", access, object, place);
      break;
    case Fault::Kind::unwritten:
      text = fmt::format("read of {}, which nobody wrote: {}", object, place);
      break;
    case Fault::Kind::race:
      text = fmt::format("race on {}: {}", object, race(f, kernel));
      break;
    case Fault::Kind::read_only:
      text = fmt::format("write of {}, which the kernel declares as only read: {}", object, place);
      break;
    case Fault::Kind::divergence:
      text = fmt::format(
          "divergent {}: {}, {} (block {})",
          f.here.what && std::string_view(f.here.what) == "block_barrier" ? "barrier" : "exchange",
          waits(f.here, kernel), waits(f.other, kernel), f.here.block);
      break;
    case Fault::Kind::partial_warp:
      text = fmt::format("{} in a warp of {} lanes: {}", f.here.what, f.limit, place);
      break;
    case Fault::Kind::undeclared:
      text = fmt::format("{} in a kernel that declares no communication: line {}", f.here.what, f.here.line);
      break;
    case Fault::Kind::shared_size:
      text = fmt::format("shared '{}' at line {} needs more than the {} bytes of shared memory declared",
                         f.object, f.here.line, f.limit);
      break;
    case Fault::Kind::stack:
      text = fmt::format("a thread's stack overflowed: block {} thread {}", f.here.block, f.here.thread);
      break;
    case Fault::Kind::memory:
      text = "the host ran out of memory";
      break;
  }
  return kernel.name + ": " + text;
}

}  // namespace fuse::runtime::emulated
