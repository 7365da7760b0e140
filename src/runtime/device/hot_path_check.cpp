// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/hot_path_check.hpp"

#include "os/environment.hpp"

namespace fuse::runtime::contract {
namespace {

struct State {
  bool in_run = false;
  int paused = 0;
  const char* broken = nullptr;
};
thread_local State state;

}  // namespace

bool checked() noexcept {
  static const bool on = value_of(Variable::contract) == "1";
  return on;
}

HotPath::HotPath(bool watched) noexcept : watched_(watched && checked()) {
  if (watched_) state = {.in_run = true};
}

HotPath::~HotPath() {
  if (watched_) state = {};
}

const char* HotPath::broken() const noexcept { return watched_ ? state.broken : nullptr; }

void pause(bool on) noexcept { state.paused += on ? 1 : -1; }

void forbid(const char* what) noexcept {
  if (state.in_run && state.paused == 0 && !state.broken) state.broken = what;
}

}  // namespace fuse::runtime::contract
