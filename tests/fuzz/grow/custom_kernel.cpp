// SPDX-License-Identifier: Apache-2.0
#include "fuzz/grow/custom_kernel.hpp"

#include <fmt/format.h>

#include <cstring>
#include <fuse/custom.hpp>
#include <memory>

namespace fuse::fuzz {
namespace {

constexpr int threads = 64;

std::string_view cuda_name(DType dtype) {
  switch (dtype) {
#define FUSE_DTYPE(name, text, bytes, kind, cuda) \
  case DType::name:                               \
    return cuda;
#include <fuse/dtypes.def>
  }
  return "?";
}

void turn(std::span<const HostView> operands, HostView result) {
  std::int64_t count = 1;
  for (const std::int64_t extent : result.dims) count *= extent;
  const std::size_t size = size_of(result.dtype);
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(static_cast<char*>(result.data) + static_cast<std::size_t>(i) * size,
                static_cast<const char*>(operands[0].data) + static_cast<std::size_t>(count - 1 - i) * size,
                size);
  }
}

}  // namespace

ir::CustomAttr turning_kernel(DType dtype, const Dim& elements, std::uint64_t number) {
  const std::string name = fmt::format("turn_{:016x}", number);
  return {.name = name,
          .source = fmt::format("FUSE_KERNEL({0}) {1}(global<const {2}> x, global<{2}> y, long long n) {{\n"
                                "  const long long i = {0}LL * blockIdx.x + threadIdx.x;\n"
                                "  if (i < n) store(y, i, load(x, n - 1 - i));\n}}\n",
                                threads, name, cuda_name(dtype)),
          .threads = threads,
          .shared_bytes = 0,
          .grid = ceil_div(elements, threads),
          .extents = {elements},
          .reference = std::make_shared<const CustomReference>(turn)};
}

void attach_references(ir::Graph& graph) {
  for (ir::Node& node : graph.nodes) {
    auto* custom = std::get_if<ir::CustomAttr>(&node.attr);
    if (custom && custom->name.starts_with("turn_"))
      custom->reference = std::make_shared<const CustomReference>(turn);
  }
}

}  // namespace fuse::fuzz
