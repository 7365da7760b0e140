// SPDX-License-Identifier: Apache-2.0
#include "cpu_doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fuse/device.hpp>
#include <optional>

#include "compile/toolchains/host_compiler.hpp"
#include "runtime/cpu/cores/machine.hpp"

namespace fuse::fusec {
namespace {

using runtime::Diagnosis;

/// Nothing where the device opens: that asks for no compiler.
std::optional<std::string> why_it_does_not_open() {
  try {
    static_cast<void>(Device::cpu());
    return std::nullopt;
  } catch (const Error& error) {
    return error.info().message;
  }
}

/// The problem that the emulated device has found with what both build their kernels with.
const runtime::Problem* fault_of_building(const Diagnosis& d) {
  const auto at = std::find_if(d.problems.begin(), d.problems.end(), [](const runtime::Problem& problem) {
    return problem.where == "the C++ compiler" || problem.where == "the temporary directory";
  });
  return at == d.problems.end() ? nullptr : &*at;
}

}  // namespace

void diagnose_cpu(Diagnosis& d) {
  if (d.compiler.looked_for.empty()) {  // a build without the emulated device
    const runtime::emulated::HostCompiler compiler(3, {}, "the cpu device");
    d.compiler = {.path = compiler.path(), .version = {}, .looked_for = compiler.report()};
    check(d, "the C++ compiler", [&] {
      compiler.require();
      d.compiler.version = compiler.version();
    });
  }
  if (const std::optional<std::string> why = why_it_does_not_open()) {
    d.devices.push_back({"cpu", false, *why});
  } else if (const runtime::Problem* const fault = fault_of_building(d)) {
    d.devices.push_back({"cpu", false, fault->where + " is at fault; saved plans run"});
  } else {
    try_device(d, "cpu", [] { return Device::cpu(); });
  }
  // Beside the devices that need no GPU.
  const auto cuda = std::find_if(d.devices.begin(), d.devices.end(),
                                 [](const runtime::DeviceFinding& found) { return found.name == "cuda"; });
  if (cuda != d.devices.end()) std::rotate(cuda, d.devices.end() - 1, d.devices.end());
}

std::string cpu_report() {
  if (const std::optional<std::string> why = why_it_does_not_open()) return *why;
  return Device::cpu().report();
}

Json cpu_json() {
  const runtime::cpu::Machine& machine = runtime::cpu::this_machine();
  return {{"opens", !why_it_does_not_open()},
          {"model", machine.model},
          {"level", machine.level},
          {"cores", machine.cores},
          {"l1d_bytes", machine.l1d_bytes},
          {"l2_bytes", machine.l2_bytes},
          {"last_level_bytes", machine.last_level_bytes}};
}

}  // namespace fuse::fusec
