// Launches whose blocks wait for each other, run beside each other as on a GPU: a block that has a slot keeps
// it until it ends, and one without a slot does not run; so do the blocks of a cluster together.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/device.hpp>
#include <span>

#include "runtime/emulated/helper_threads.hpp"
#include "runtime/emulated/launch.hpp"
#include "runtime/emulated/lender.hpp"
#include "runtime/emulated/runner.hpp"
#include "runtime/emulated/sm_slots.hpp"

namespace fuse::runtime::emulated {

/// What the blocks of launches that run beside each other run on.
struct LaunchContext {
  const Target& target;
  BlockScheduling scheduling;
  Pool& pool;
  Lender<Runner>& runners;
};

schedule::Residency residency_of(const codegen::KernelInfo&, std::uint64_t blocks);

/// Runs every launch to its end; each then has its own fault, if any. Where nothing can go on, all launches
/// that did not end have the fault `deadlock` and one text.
void run_beside(std::span<Launch* const> launches, const LaunchContext& context) noexcept;

}  // namespace fuse::runtime::emulated
