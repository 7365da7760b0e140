// Names that C++, the dialect or the lowering use themselves.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace fuse::test {

/// Keywords, functions of the dialect and of CUDA, what lowering calls its own values, and no identifiers.
inline const std::vector<std::string>& hostile_names() {
  static const std::vector<std::string> names = {
      // keywords
      "float", "int", "double", "bool", "void", "return", "class", "template", "this", "operator", "new",
      "typeid", "alignas", "alignof", "wchar_t", "char8_t", "char16_t", "char32_t", "co_await", "co_return",
      "co_yield", "consteval", "constinit", "constexpr", "const_cast", "static_cast", "dynamic_cast",
      "reinterpret_cast", "static_assert", "thread_local", "and_eq", "or_eq", "xor_eq", "not_eq", "not",
      "xor", "export", "import", "module", "signed", "nullptr", "requires",
      // the dialect, its macros and primitives; CUDA's built-ins
      "load", "store", "expf", "exp", "floorf", "maximum", "shuffle_xor", "warp_sum", "block_barrier",
      "grid_barrier", "cluster_barrier", "cluster_shared_barrier", "cluster_arrive", "cluster_wait",
      "cluster_load", "global", "FUSE_KERNEL", "FUSE_CLUSTER", "FUSE_SHARED", "to_f32", "f16", "bf16",
      "infinity_f32", "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "float4", "dim3", "half",
      "min", "max", "printf", "assert", "clock",
      // macros of the compilers
      "NULL", "INT_MAX", "INFINITY", "NAN", "linux", "unix", "__LINE__", "__CUDA_ARCH__", "CUDART_VERSION",
      // what lowering names
      "row", "lane", "warp", "b", "t", "i", "c", "w", "d", "column", "acc", "acc_index", "total", "part",
      "part_index", "shared_acc", "shared_index", "other0", "other1", "left", "right", "combined", "v0", "v1",
      "v3", "t1", "t2", "g2", "i_div_40", "call_", "fuse_device", "main",
      // what the cpu device's text calls its own
      "call", "stream", "block", "run", "vec", "all", "any", "full", "select", "lanes", "prefetch", "mask0",
      "mask1", "as_mask", "as_value", "store_one", "store_result", "index_value", "compared_index",
      "clamped_index", "divisor_reciprocal", "running_maximum", "running_minimum", "running0", "take",
      "value_of", "transpose_tile", "random_each_f32", "row_next", "b_next", "walk",
      // no identifiers, and several that become the same one
      "a b", "a_b", "a-b", "a.b", "a__b", "\xc3\xa9", "\xe5\x90\x8d", "7", "7up", "_", "__", "_x", " ", "+",
      "%x", "a\"b", "a\\b", "back\\", "a\nb", "a\tb", "*/", "/*", "//", "?\?/", "\x01",
      std::string(500, 'n')};
  return names;
}

}  // namespace fuse::test
