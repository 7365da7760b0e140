// A source in several NVRTC programs. SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <fmt/format.h>

#include <algorithm>
#include <fuse/fuse.hpp>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "cuda/fakes.hpp"
#include "runtime/device/toolchain.hpp"

namespace fuse::test {
namespace {

codegen::Source some_kernels(int count) {
  Graph g("programs");
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    const Tensor x = g.input("x" + n, f32, {10, 16 + i});
    g.output("y" + n, i % 3 == 0 ? sum(exp(x), {1}) : tanh(x) * 0.5);
  }
  PipelineOptions options;
  options.partition.horizontal = false;
  return run_pipeline(ir_of(g), target_profile("h200"), options).source;
}

TEST_CASE("several programs have the kernels of one, in order", "[cuda][nvrtc][programs]") {
  if (no_nvrtc()) return;
  const codegen::Source source = some_kernels(40);
  const runtime::Cubin whole = runtime::compile_to_cubin(source, 90);
  for (const int threads : {1, 2}) {
    const std::vector<runtime::Cubin> cubins = runtime::compile_to_cubins(source, 90, threads);
    CHECK(cubins.size() == static_cast<std::size_t>(threads));
    std::size_t next = 0;
    for (const runtime::Cubin& cubin : cubins) {
      CHECK(std::string(cubin.image.data() + 1, 3) == "ELF");
      for (const runtime::CompiledKernel& kernel : cubin.kernels) {
        REQUIRE(next < whole.kernels.size());
        CHECK(kernel.name == source.kernels[next].name);
        CHECK(kernel.registers == whole.kernels[next].registers);
        CHECK(kernel.shared_bytes == whole.kernels[next].shared_bytes);
        ++next;
      }
    }
    CHECK(next == source.kernels.size());
  }
  const std::vector<runtime::Cubin> few = runtime::compile_to_cubins(some_kernels(2), 90, 8);
  CHECK(few.size() == 1);
}

TEST_CASE("an error in one of several programs shows the line of the whole text", "[cuda][nvrtc][programs]") {
  if (no_nvrtc()) return;
  codegen::Source source = some_kernels(40);
  const std::size_t at = source.body.rfind("store(");
  REQUIRE(at > source.starts.back());
  source.body.replace(at, 5, "wrong");
  const std::string text = source.text();
  const auto line =
      1 +
      std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(source.prelude.size() + at), '\n');
  const ErrorInfo error = error_info([&] { runtime::compile_to_cubins(source, 90, 2); });
  INFO(error.message);
  CHECK(contains(error.message, "programs.cu(" + std::to_string(line) + "): error"));
  CHECK(contains(error.message, fmt::format("\n>{:5} | ", line)));
  CHECK(contains(error.message, "wrong("));
}

TEST_CASE("the cubins of several programs are loaded, and unloaded where one fails", "[cuda][programs]") {
  const Fakes fakes;
  codegen::Source source;
  source.name = "two";
  for (const char* name : {"scale", "shift"}) {
    codegen::KernelInfo kernel = scale_source().kernels[0];
    kernel.name = name;
    source.kernels.push_back(kernel);
  }
  runtime::Cubin first = fake_cubin("scale 1024 4096 8 4 8\n"),
                 second = fake_cubin("shift 1024 4096 8 4 8\n");
  first.kernels.resize(1);
  second.kernels.resize(1);
  {
    const auto backend = fakes.backend();
    const auto module = load_cubins(*backend, source, {first, second});
    static_cast<void>(module->function("scale"));
    static_cast<void>(module->function("shift"));
    CHECK(fakes.live("module") == 2);
    CHECK_THROWS(load_cubins(*backend, source, {second, first}));  // each has the other's kernel
    CHECK_THROWS(load_cubins(*backend, source, {first, fake_cubin("scale 1024 4096 8 4 8\n")}));
    CHECK_THROWS(load_cubins(*backend, source, {first, {}}));
    CHECK(fakes.live("module") == 2);
  }
  fakes.require_clean();
}

TEST_CASE("the key of a cuda build has version, options and arch", "[cuda][nvrtc][programs]") {
  if (no_nvrtc()) return;
  const Fakes fakes;
  {
    const auto backend = fakes.backend();
    CHECK(contains(backend->toolchain()->key(), "nvrtc "));
    CHECK(contains(backend->toolchain()->key(), "--fmad=false"));
    CHECK(contains(backend->toolchain()->key(), "--gpu-architecture=sm_"));
  }
  fakes.require_clean();
}

}  // namespace
}  // namespace fuse::test
#endif
