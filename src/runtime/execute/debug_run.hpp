// DebugRun: a workspace's runs step by step, each waited for, so that the step which fails is named, whatever
// device reports it late; and what another run needs to fail again (docs/debugging.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/executable.hpp>
#include <memory>
#include <span>
#include <string>

namespace fuse::runtime {

struct Argument;
class Queue;

class DebugRun {
 public:
  /// Null unless FUSE_SYNC is 1 or FUSE_REPRO names a directory.
  static std::unique_ptr<DebugRun> make();

  /// `arguments` are those of all steps, with their addresses. Done when it returns. Allocates, and writes
  /// the repro.
  Status run(const Prepared::Impl&, std::span<const BufferView> buffers, std::span<const Argument> arguments,
             Queue&) const noexcept;

 private:
  std::string repros_;         // a directory; empty: none are written
  bool keeps_values_ = false;  // FUSE_REPRO_DATA
};

}  // namespace fuse::runtime
