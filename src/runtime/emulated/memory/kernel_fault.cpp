// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/memory/kernel_fault.hpp"

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

bool is(const char* what, std::string_view primitive) { return what && what == primitive; }

/// What a kernel that comes to this has to declare.
std::string_view declaration_of(const char* what) {
  if (is(what, "grid_barrier") || is(what, "group_barrier")) return "grid barrier";
  return what && std::string_view(what).starts_with("cluster_") ? "cluster" : "communication";
}

std::string object_of(const Fault& f) {
  const char* const space = f.local ? "local" : f.shared ? "shared" : "global";
  return fmt::format("{} '{}'[{}]{}", space, f.object, f.index,
                     f.owner ? fmt::format(" of block {}", *f.owner) : std::string());
}

std::string waits(const WaitPoint& point, const codegen::KernelInfo& kernel, bool blocks) {
  const std::string who =
      blocks ? fmt::format("block {}", point.block) : fmt::format("thread {}", point.thread);
  if (!point.what) return who + (blocks ? " has ended" : " has exited");
  return fmt::format("{} waits in {} at {}", who, point.what, at_line(kernel, point.line));
}

std::string divergence(const Fault& f, const codegen::KernelInfo& kernel) {
  const bool blocks = f.here.block != f.other.block;
  const bool barrier = is(f.here.what, "block_barrier") || is(f.here.what, "grid_barrier") ||
                       is(f.here.what, "group_barrier") || declaration_of(f.here.what) == "cluster";
  const std::string both = fmt::format("divergent {}: {}, {}", barrier ? "barrier" : "exchange",
                                       waits(f.here, kernel, blocks), waits(f.other, kernel, blocks));
  return blocks ? both : fmt::format("{} (block {})", both, f.here.block);
}

std::string race(const Fault& f, const codegen::KernelInfo& kernel) {
  const bool blocks = f.here.block != f.other.block;
  const auto who = [&](const WaitPoint& p) {
    return blocks ? fmt::format("block {} thread {}", p.block, p.thread) : fmt::format("thread {}", p.thread);
  };
  return fmt::format("{} {} at {}, {} {} at {}; {}", who(f.here), f.here.store ? "writes" : "reads",
                     at_line(kernel, f.here.line), who(f.other), f.other.store ? "wrote" : "read",
                     at_line(kernel, f.other.line),
                     blocks && f.shared ? "missing cluster barrier?"
                     : blocks           ? "blocks of one launch are not ordered"
                                        : fmt::format("missing barrier? (block {})", f.here.block));
}

}  // namespace

std::string describe(const Fault& f, const codegen::KernelInfo& kernel) {
  const std::string object = object_of(f);
  const std::string where =
      fmt::format("block {} thread {} at {}", f.here.block, f.here.thread, at_line(kernel, f.here.line));
  const char* access = f.here.store ? "write" : "read";
  std::string text;
  switch (f.kind) {
    case Fault::Kind::out_of_bounds:
      text = fmt::format("out of bounds {} of {}, which has {} elements: {}", access, object, f.limit, where);
      break;
    case Fault::Kind::outside:
      text =
          fmt::format("index {} is none of 0 to {}, and would be clamped: {}", f.index, f.limit - 1, where);
      break;
    case Fault::Kind::misaligned:
      text = fmt::format("misaligned {} of {}: {}", access, object, where);
      break;
    case Fault::Kind::unwritten:
      text = fmt::format("read of {}, which nobody wrote: {}", object, where);
      break;
    case Fault::Kind::race:
      text = fmt::format("race on {}: {}", object, race(f, kernel));
      break;
    case Fault::Kind::read_only:
      text = fmt::format("write of {}, which the kernel declares as only read: {}", object, where);
      break;
    case Fault::Kind::divergence:
      text = divergence(f, kernel);
      break;
    case Fault::Kind::partial_warp:
      text = fmt::format("{} in a warp of {} lanes: {}", f.here.what, f.limit, where);
      break;
    case Fault::Kind::undeclared:
      text = fmt::format("{} in a kernel that declares no {}: line {}", f.here.what,
                         declaration_of(f.here.what), f.here.line);
      break;
    case Fault::Kind::no_counter:
      text = fmt::format("the counter of {} at {} is no written buffer of this kernel", f.here.what,
                         at_line(kernel, f.here.line));
      break;
    case Fault::Kind::wrong_count:
      text = fmt::format(
          "the counter of {} at {} is {} where {} is right: is it zeroed before the "
          "launch, and only the barrier's?",
          f.here.what, at_line(kernel, f.here.line), f.index, f.limit);
      break;
    case Fault::Kind::deadlock:
      text = "blocks wait for blocks that have no slot";
      break;
    case Fault::Kind::rank:
      text = fmt::format("cluster_load from rank {} of a cluster of {} blocks: {}", f.index, f.limit, where);
      break;
    case Fault::Kind::no_array:
      text = fmt::format("cluster_load of what is no shared array: {}", where);
      break;
    case Fault::Kind::arrived:
      text = fmt::format("{} between cluster_arrive and cluster_wait: {}", f.here.what, where);
      break;
    case Fault::Kind::not_arrived:
      text = fmt::format("{} without cluster_arrive before it: {}", f.here.what, where);
      break;
    case Fault::Kind::ended:
      text = fmt::format("read of {}, which may have ended: {}; missing cluster barrier after it?", object,
                         where);
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

std::string describe_deadlock(std::span<const Stuck> launches, std::string_view device) {
  std::string text = fmt::format("deadlock on {}", device);
  const char* separator = ": ";
  for (const Stuck& stuck : launches) {
    text +=
        fmt::format("{}{}: {} of {} blocks wait", separator, stuck.kernel->name, stuck.waiting, stuck.blocks);
    if (stuck.waiting > 0)
      text += fmt::format(" in {} at {}", stuck.what, at_line(*stuck.kernel, stuck.line));
    text += fmt::format(", {} {} no slot", stuck.without_slot, stuck.without_slot == 1 ? "has" : "have");
    separator = "; ";
  }
  return text;
}

}  // namespace fuse::runtime::emulated
