// What spills for the blocks that it aims at is compiled for fewer. SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <algorithm>
#include <iostream>
#include <string_view>

#include "compile/toolchains/cuda/nvrtc.hpp"
#include "stitch/stitch_support.hpp"
#include "support/stitch_graphs.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// A kernel that needs more than 32 registers, made to aim at so many blocks that no more are left.
codegen::Source greedy(int least) {
  const std::vector<StitchGraph>& all = stitch_graphs();
  const auto norm = std::find_if(all.begin(), all.end(), [](const StitchGraph& each) {
    return std::string_view(each.name) == "batch_norm";
  });
  codegen::Source source = compiled(norm->build(f32, 1024, 1024), "h200").source;
  REQUIRE(source.kernels.size() == 1);
  codegen::KernelInfo& kernel = source.kernels[0];
  codegen::aim_at(source.body, kernel, 2048 / kernel.block_threads);
  kernel.blocks_per_sm = least;
  return source;
}

bool without_nvrtc() {
  if (runtime::nvrtc_available()) return false;
  std::cout << "skipped: NVRTC not found\n" << runtime::nvrtc_report();
  return true;
}

}  // namespace

TEST_CASE("a kernel that spills is compiled for fewer blocks", "[nvrtc]") {
  if (without_nvrtc()) return;
  const codegen::Source source = greedy(1);
  const int asked = source.kernels[0].min_blocks_per_sm;
  for (const bool cut : {false, true}) {
    const runtime::Cubin cubin =
        cut ? runtime::compile_to_cubins(source, 90, 1).front() : runtime::compile_to_cubin(source, 90);
    REQUIRE(cubin.kernels.size() == 1);
    CHECK_FALSE(cubin.kernels[0].spills());
    CHECK(cubin.kernels[0].registers > 32);
    CHECK(cubin.kernels[0].min_blocks_per_sm < asked);
    CHECK(cubin.kernels[0].min_blocks_per_sm * cubin.kernels[0].registers * source.kernels[0].block_threads <=
          65536);
    CHECK(cubin.log.starts_with("fuse: " + source.kernels[0].name + " stores "));
  }
}

TEST_CASE("a kernel whose blocks wait for each other keeps their slots, and spills", "[nvrtc]") {
  if (without_nvrtc()) return;
  const int all = greedy(1).kernels[0].min_blocks_per_sm;
  const runtime::Cubin cubin = runtime::compile_to_cubin(greedy(all), 90);
  CHECK(cubin.kernels[0].spills());
  CHECK(cubin.kernels[0].min_blocks_per_sm == all);
}

TEST_CASE("a kernel's text aims at other blocks, and no other one's does", "[nvrtc]") {
  codegen::Source source;
  source.body =
      "// a_b\nFUSE_KERNEL(64, 16) a_b(global<float> x) {\n}\nFUSE_KERNEL(64, 16) a(global<float> b) {\n}\n";
  source.kernels = {{.name = "a_b", .block_threads = 64, .min_blocks_per_sm = 16},
                    {.name = "a", .block_threads = 64, .min_blocks_per_sm = 16}};
  codegen::aim_at(source.body, source.kernels[1], 8);
  CHECK(
      source.body ==
      "// a_b\nFUSE_KERNEL(64, 16) a_b(global<float> x) {\n}\nFUSE_KERNEL(64, 8) a(global<float> b) {\n}\n");
  codegen::aim_at(source.body, source.kernels[0], 1);
  CHECK(source.body ==
        "// a_b\nFUSE_KERNEL(64, 1) a_b(global<float> x) {\n}\nFUSE_KERNEL(64, 8) a(global<float> b) {\n}\n");
  CHECK_THROWS_AS(codegen::aim_at(source.body, source.kernels[0] = {.name = "c", .block_threads = 64}, 2),
                  Error);
}
#endif
