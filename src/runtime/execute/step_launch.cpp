// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/step_launch.hpp"

namespace fuse::runtime {

Work work_of(const ReadyStep& step, const Argument* arguments) noexcept {
  switch (step.kind) {
    case ReadyStep::Kind::kernel:
    case ReadyStep::Kind::pack:  // stands in no graph
      break;
    case ReadyStep::Kind::gemm: {
      using namespace gemm_argument;
      return GemmWork{step.gemm,
                      arguments[a].address,
                      arguments[b].address,
                      arguments[c].address,
                      arguments[scratch].address,
                      arguments[extra].address};
    }
    case ReadyStep::Kind::copy: {
      using namespace copy_argument;
      return CopyWork{arguments[to].address, arguments[from].address, arguments[to].bytes};
    }
    case ReadyStep::Kind::memset: {
      using memset_argument::to;
      return MemsetWork{arguments[to].address, step.byte, arguments[to].bytes};
    }
  }
  return KernelWork{step.function, step.grid, arguments, static_cast<int>(step.arguments.count)};
}

}  // namespace fuse::runtime
