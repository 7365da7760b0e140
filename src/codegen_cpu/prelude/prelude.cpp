// SPDX-License-Identifier: Apache-2.0
#include "codegen_cpu/prelude/prelude.hpp"

#include "codegen_cpu/prelude/parts.hpp"
#include "codegen_cpu/prelude/vector_math.hpp"
#include "codegen_cuda/primitives/primitives.hpp"
#include "plan/cpu_abi.hpp"

namespace fuse::codegen {

std::string cpu_prelude() {
  std::string text(runtime::cpu::abi_text);
  text += '\n';
  text += host_functions();
  for (const std::string_view part : {cpu_parts, cpu_math, cpu_wide_parts, cpu_lanes, cpu_indices, cpu_memory,
                                      cpu_functions, cpu_exchanges})
    text += part;
  return text + "#define FUSE_CPU_KERNEL(name) static void name(const fuse_cpu_call* call)\n\n";
}

}  // namespace fuse::codegen
