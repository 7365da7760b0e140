// A kernel that calls a function of the math library: ptxas reports the function after the kernel.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include "compile/toolchains/cuda/nvrtc.hpp"
#include "support/catch.hpp"

TEST_CASE("ptxas: a called function's figures do not hide the kernel's", "[cuda]") {
  const auto kernels = fuse::runtime::parse_ptxas_log(
      "ptxas info    : Compiling entry function 'p_sin_0' for 'sm_90'\n"
      "ptxas info    : Function properties for p_sin_0\n"
      "ptxas         .     40 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 26 registers, used 0 barriers, 40 bytes cumulative stack size\n"
      "ptxas info    : Compile time = 0.401 ms\n"
      "ptxas info    : Function properties for __internal_trig_reduction_slowpathd\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 4 bytes spill loads\n"
      "ptxas info    : Compiling entry function 'p_neg_1' for 'sm_90'\n"
      "ptxas info    : Function properties for p_neg_1\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n");
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].name == "p_sin_0");
  CHECK(kernels[0].registers == 26);
  CHECK(kernels[0].stack_bytes == 40);
  CHECK(kernels[0].spill_store_bytes == 8);
  CHECK(kernels[0].spill_load_bytes >= 12);  // the function's 4 may count too
  CHECK(kernels[0].spills());
  CHECK_FALSE(kernels[1].spills());
}
#endif
