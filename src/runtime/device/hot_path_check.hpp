// The promise of Prepared::run, checked where FUSE_CONTRACT=1: nothing of ours allocates, compiles, takes a
// lock or waits in it. What breaks the promise becomes a failure of the run.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fuse::runtime::contract {

/// Whether the promise is checked: read once.
bool checked() noexcept;

/// While one lives, this thread is in a run.
class HotPath {
 public:
  explicit HotPath(bool watched) noexcept;
  ~HotPath();
  HotPath(const HotPath&) = delete;
  HotPath& operator=(const HotPath&) = delete;
  /// What was done first that must not be, or null.
  const char* broken() const noexcept;

 private:
  bool watched_;
};

/// What this thread does until it is called with false is no part of the promise: what a fake driver records.
/// Pauses nest.
void pause(bool on) noexcept;
class Pause {
 public:
  Pause() noexcept { pause(true); }
  ~Pause() { pause(false); }
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;
};

/// Said by what a run must not do: "allocates device memory". Outside of a run it is nothing. Never
/// allocates; may be called by a replaced operator new.
void forbid(const char* what) noexcept;

}  // namespace fuse::runtime::contract
