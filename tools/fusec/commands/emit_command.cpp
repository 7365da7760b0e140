// fusec emit: a graph's CUDA text, and its cubin with what ptxas said. Needs no GPU.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <optional>

#include "base/quoting.hpp"
#include "fusec/commands.hpp"
#include "fusec/compiled_graph.hpp"
#include "fusec/progress.hpp"
#include "tensors/host_tensor.hpp"
#if FUSE_COMPILER_HAS_CUDA
#include "compile/custom_kernels.hpp"
#include "compile/toolchains/cuda/nvrtc.hpp"
#endif

namespace fuse::fusec {
namespace {

int parse_arch(const std::string& text) {
  int arch = 0;
  const std::string_view digits = std::string_view(text).substr(text.starts_with("sm_") ? 3 : 0);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), arch);
  if (error == std::errc() && end == digits.data() + digits.size() && arch > 0) return arch;
  user_error(ErrorCode::unknown_arch, fmt::format("--arch {} is no arch", in_quotes(text)), "as in sm_90");
}

#if FUSE_COMPILER_HAS_CUDA
using runtime::Cubin;
Cubin make_cubin(const Compiled& stages, int arch) {
  try {
    return runtime::compile_to_cubin(stages.source, arch);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) {
      runtime::check_custom_kernels(
          stages, [&](const codegen::Source& kernel) { runtime::compile_to_cubin(kernel, arch); });
    }
    throw;
  }
}
#else
struct Cubin {
  struct Kernel {
    int registers = 0;
    std::int64_t spill_store_bytes = 0, spill_load_bytes = 0, shared_bytes = 0;
    bool spills() const { return false; }
  };
  std::vector<char> image;
  std::vector<Kernel> kernels;
};
Cubin make_cubin(const Compiled&, int) {
  throw Error({.kind = ErrorKind::runtime,
               .code = ErrorCode::missing_library,
               .message = "this build of fuse does not use NVRTC",
               .hint = "configure with -DFUSE_COMPILER_CUDA=ON where the CUDA toolkit's headers are"});
}
#endif

/// Without a cubin, registers and spills are not known.
std::string kernel_table(const codegen::Source& source, const Cubin* cubin) {
  std::vector<std::vector<std::string>> rows = {{"kernel", "threads", "shared bytes", "barriers"}};
  if (cubin) rows[0].insert(rows[0].end(), {"registers", "spill bytes"});
  for (std::size_t i = 0; i < source.kernels.size(); ++i) {
    const codegen::KernelInfo& kernel = source.kernels[i];
    const std::int64_t shared = cubin ? cubin->kernels[i].shared_bytes : kernel.shared_bytes;
    rows.push_back({kernel.name, std::to_string(kernel.block_threads), std::to_string(shared),
                    std::to_string(barrier_count(kernel))});
    if (!cubin) continue;
    const auto& compiled = cubin->kernels[i];
    rows.back().push_back(std::to_string(compiled.registers));
    rows.back().push_back(std::to_string(compiled.spill_store_bytes + compiled.spill_load_bytes));
  }
  return table(rows);
}

}  // namespace

int execute(const EmitOptions& options) {
  try_directory("--output", options.directory);
  const int named = options.arch.empty() ? 0 : parse_arch(options.arch);
  const CompiledGraph compiled = compile_graph(options.graph);
  const int arch = named != 0 ? named : compiled.target.arch;
  const codegen::Source& source = compiled.stages.source;
  if (source.kernels.empty()) {
    user_error(ErrorCode::unsupported,
               fmt::format("graph '{}' needs no kernel: there is nothing to emit", compiled.source.name),
               "fusec plan shows its steps");
  }
  std::optional<Cubin> cubin;
  if (options.cubin) {
    Progress progress(fmt::format("compiling {} for sm_{}", counted(source.kernels.size(), "kernel"), arch));
    cubin = make_cubin(compiled.stages, arch);
  }
  // Both are written once both are there.
  write_file(options.directory, source.name + ".cu", source.text());
  if (cubin) write_file(options.directory, source.name + ".cubin", cubin->image);

  fmt::print("{}{}", build_line(compiled), kernel_table(source, cubin ? &*cubin : nullptr));
  fmt::print("wrote {}/{}.cu", options.directory, source.name);
  if (cubin) fmt::print(" and {}/{}.cubin (sm_{})", options.directory, source.name, arch);
  fmt::print("\n");
  if (!cubin) return 0;
  std::string spilling;
  for (std::size_t i = 0; i < source.kernels.size(); ++i) {
    if (cubin->kernels[i].spills()) spilling += ' ' + source.kernels[i].name;
  }
  if (spilling.empty()) return 0;
  std::fflush(stdout);
  fmt::print(stderr, "error: registers spill to memory in{}\n", spilling);
  return 1;
}

}  // namespace fuse::fusec
