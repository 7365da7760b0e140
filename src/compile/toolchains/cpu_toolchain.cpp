// Emitted text of the cpu device as shared libraries: each kernel with an entry that runs some of its blocks.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <fuse/error.hpp>

#include "compile/toolchains/host_compiler.hpp"
#include "compile/toolchains/kept_text.hpp"
#include "os/environment.hpp"
#include "os/parallel.hpp"
#include "runtime/device/toolchain.hpp"

namespace fuse::runtime {
namespace {

// Kernels that are worth a compiler of their own: the prelude takes about as long as five.
constexpr std::size_t kernels_of_a_library = 6;

std::vector<std::string> options_for(const std::string& machine) {
  std::vector<std::string> options = {"-fno-trapping-math", "-march=" + machine};
  if (machine == "x86-64-v4") options.emplace_back("-mprefer-vector-width=512");
  return options;
}

class CpuToolchain final : public Toolchain {
 public:
  explicit CpuToolchain(const std::string& machine) : compiler_(3, options_for(machine), "the cpu device") {}

  std::string key() const override {
    const std::string key = "cpu " + compiler_.build_key();
    return keeps_text() ? key + " kept in " + value_of(Variable::keep) : key;
  }
  bool binds_lines() const override { return keeps_text(); }
  std::string report() const override { return compiler_.report(); }

  Binary build(const codegen::Source& given, int threads) const override {
    const codegen::Source source = with_kept_text(given);
    Binary binary{.name = given.name, .maker = compiler_.path(), .kernels = source.kernels, .images = {}};
    const std::vector<codegen::SourceChunk> chunks = codegen::chunks(
        source, std::min(thread_count(threads),
                         std::max<std::size_t>(1, source.kernels.size() / kernels_of_a_library)));
    std::vector<std::string> texts;
    for (const codegen::SourceChunk& chunk : chunks) {
      // In a namespace of their own, so that no name of a graph is one of an entry.
      std::string text = source.prelude + "namespace kernels {\n";
      text.append(source.body, chunk.begin, chunk.end - chunk.begin);
      text += "}  // namespace kernels\n";
      for (std::size_t i = chunk.first; i < chunk.last; ++i)
        text += fmt::format(
            "extern \"C\" __attribute__((visibility(\"default\"))) void fuse_entry_{}(const fuse_cpu_call* "
            "call) {{ kernels::{}(call); }}\n",
            i, source.kernels[i].name);
      texts.push_back(std::move(text));
    }
    std::vector<std::vector<char>> libraries = compiler_.build(texts, keeps_text());
    for (std::size_t i = 0; i < chunks.size(); ++i)
      binary.images.push_back({std::move(libraries[i]),
                               static_cast<std::uint32_t>(chunks[i].last - chunks[i].first),
                               static_cast<std::uint32_t>(chunks[i].first)});
    return binary;
  }

 private:
  const emulated::HostCompiler compiler_;
};

}  // namespace

std::shared_ptr<const Toolchain> cpu_toolchain(const std::string& machine) {
  return std::make_shared<CpuToolchain>(machine);
}

}  // namespace fuse::runtime
