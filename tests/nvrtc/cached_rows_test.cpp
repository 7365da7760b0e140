// Rows of lengths that no block divides, whose elements threads hold: no kernel spills.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "compile/toolchains/cuda/nvrtc.hpp"
#include "support/catch.hpp"

using namespace fuse;  // NOLINT

namespace {

using Fill = void (*)(Graph&, DType, const Dim& rows, std::int64_t columns);

Tensor computed(const Tensor& x) { return is_half(x.dtype()) ? convert(x, f32) : x; }

/// Three divisions, each by another value of the row.
void three_divisions(Graph& g, DType dtype, const Dim& rows, std::int64_t columns) {
  const Tensor x = computed(g.input("x", dtype, {rows, columns}));
  const Tensor total = sum(abs(x), {1}, {.keep_dims = true}), part = x / total;
  const Tensor again = part / sum(part * part, {1}, {.keep_dims = true});
  g.output("y", convert(again - x / (-total), dtype));
}

void plain_softmax(Graph& g, DType dtype, const Dim& rows, std::int64_t columns) {
  g.output("y", convert(softmax(computed(g.input("x", dtype, {rows, columns}))), dtype));
}

void plain_norm(Graph& g, DType dtype, const Dim& rows, std::int64_t columns) {
  const Tensor gamma = computed(g.parameter("gamma", dtype, {columns}));
  const Tensor beta = computed(g.parameter("beta", dtype, {columns}));
  g.output("y", convert(layer_norm(computed(g.input("x", dtype, {rows, columns})), gamma, beta), dtype));
}

void norm_backward(Graph& g, DType dtype, const Dim& rows, std::int64_t columns) {
  const Tensor x = computed(g.input("x", dtype, {rows, columns}));
  const Tensor dy = computed(g.input("dy", dtype, {rows, columns}));
  const Tensor gamma = computed(g.parameter("gamma", dtype, {columns}));
  const Tensor centred = x - mean(x, {1}, {.keep_dims = true});
  const Tensor scale = rsqrt(mean(centred * centred, {1}, {.keep_dims = true}) + 1e-5);
  const Tensor xhat = centred * scale, dxhat = dy * gamma;
  const Tensor along = xhat * mean(dxhat * xhat, {1}, {.keep_dims = true});
  g.output("dx", convert(scale * (dxhat - mean(dxhat, {1}, {.keep_dims = true}) - along), dtype));
  g.output("dgamma", convert(sum(dy * xhat, {0}), dtype));
  g.output("dbeta", convert(sum(dy, {0}), dtype));
}

void check_spills(const char* what, Fill fill, const std::vector<DType>& dtypes,
                  const std::vector<std::int64_t>& lengths) {
  if (!runtime::nvrtc_available()) {
    std::cout << "skipped: NVRTC not found\n" << runtime::nvrtc_report();
    return;
  }
  for (const DType dtype : dtypes) {
    for (const std::int64_t columns : lengths) {
      for (const char* profile : {"h200", "a100"}) {
        Graph g(what);
        fill(g, dtype, g.dim("B", {.min = 1, .max = 20000, .hint = 16384}), columns);
        const Target target = target_profile(profile);
        const Compiled made = run_pipeline(ir_of(g), target, {});
        std::string choices;
        for (const schedule::Schedule& each : made.schedules) choices += each.choices.to_string() + '\n';
        for (const runtime::CompiledKernel& kernel :
             runtime::compile_to_cubin(made.source, target.arch).kernels) {
          INFO(what << " " << to_string(dtype) << " of " << columns << " for " << profile << ": "
                    << kernel.spill_store_bytes << " and " << kernel.spill_load_bytes << " bytes\n"
                    << choices);
          CHECK_FALSE(kernel.spills());
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("nvrtc: three divisions of a cached row keep it in registers", "[nvrtc]") {
  check_spills("three_divisions", three_divisions, {bf16, f32}, {12000, 12288, 16000});
}

TEST_CASE("nvrtc: rows of f64 are cached as far as registers suffice", "[nvrtc]") {
  check_spills("softmax", plain_softmax, {f64}, {12000, 16000});
  check_spills("norm", plain_norm, {f64}, {12000, 16000});
}

TEST_CASE("nvrtc: long rows that the widest block does not divide", "[nvrtc]") {
  check_spills("softmax", plain_softmax, {f32, bf16}, {20000, 32000});
  check_spills("norm", plain_norm, {f32, bf16}, {20000, 32000});
}

TEST_CASE("nvrtc: blocks that keep columns hold no more of a row than registers suffice for", "[nvrtc]") {
  check_spills("norm_backward", norm_backward, {f64}, {1024, 3000, 4096});
  check_spills("norm_backward", norm_backward, {f32, bf16}, {4000, 5000, 8000, 8192});
}
#endif
