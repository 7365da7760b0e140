// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_work.hpp"

namespace fuse::runtime {

Work work_of(const ReadyStep& step, const Bases& bases, const Argument* arguments) noexcept {
  switch (step.kind) {
    case ReadyStep::Kind::kernel:
      break;
    case ReadyStep::Kind::gemm:
      return GemmWork{step.gemm,        bases.at(step.a),       bases.at(step.b),
                      bases.at(step.c), bases.at(step.scratch), bases.at(step.extra)};
    case ReadyStep::Kind::copy:
      return CopyWork{bases.at(step.c), bases.at(step.a), step.c.bytes};
    case ReadyStep::Kind::memset:
      return MemsetWork{bases.at(step.c), step.byte, step.c.bytes};
  }
  return KernelWork{step.function, step.grid, arguments, static_cast<int>(step.arguments.count)};
}

}  // namespace fuse::runtime
