// Every distinct kernel that graphs of all ops and functions become, compiled for one of two GPU generations:
// it must be accepted, and keep its values in registers.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <chrono>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>

#include "base/access.hpp"
#include "codegen/hostile_names.hpp"
#include "compile/toolchains/cuda/nvrtc.hpp"
#include "nvrtc/kernel_set.hpp"
#include "nvrtc/sweep_graphs.hpp"
#include "support/paths.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

bool skipped() {
  if (runtime::nvrtc_available()) return false;
  std::cout << "skipped: NVRTC not found\n" << runtime::nvrtc_report();
  return true;
}

/// The lines of ptxas's report that tell of spilled bytes, whatever function they belong to.
std::string spill_lines(const std::string& log) {
  std::istringstream lines(log);
  std::string found, function;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("Function properties for") != std::string::npos) function = line;
    const std::size_t at = line.find(" bytes spill stores");
    if (at != std::string::npos &&
        line.find(", 0 bytes spill stores, 0 bytes spill loads") == std::string::npos) {
      found += function + '\n' + line + '\n';
    }
  }
  return found;
}

/// Compiles each kernel of the set; one that spills fails with its text.
void check_kernels(const std::string& what, const KernelSet& set) {
  const auto start = std::chrono::steady_clock::now();
  int most_registers = 0, relaxed = 0;
  std::size_t compiled = 0;
  for (const int arch : {80, 90}) {
    for (const codegen::Source& source : set.programs(200, arch)) {
      runtime::Cubin cubin;
      try {
        cubin = runtime::compile_to_cubin(source, arch);
      } catch (const Error& error) {
        FAIL_CHECK("sm_" << arch << ": " << error.what());
        continue;
      }
      CHECK(spill_lines(cubin.log) == "");
      for (std::size_t i = 0; i < cubin.kernels.size(); ++i) {
        const runtime::CompiledKernel& kernel = cubin.kernels[i];
        ++compiled;
        relaxed += kernel.min_blocks_per_sm < source.kernels[i].min_blocks_per_sm;
        most_registers = std::max(most_registers, kernel.registers);
        if (!kernel.spills()) continue;
        FAIL_CHECK("sm_" << arch << ": " << kernel.name << " stores " << kernel.spill_store_bytes
                         << " and loads " << kernel.spill_load_bytes << " spilled bytes\n"
                         << text_of_kernel(source, kernel.name));
      }
    }
  }
  CHECK(compiled == set.size());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::cout << "nvrtc sweep: " << what << ": " << set.size() << " distinct of " << set.seen()
            << " kernels for sm_80 or sm_90, at most " << most_registers << " registers, " << relaxed
            << " compiled again, " << static_cast<int>(10 * seconds.count()) / 10.0 << " s\n";
}

}  // namespace

TEST_CASE("nvrtc: element-wise ops, converts and sources in every type", "[nvrtc]") {
  if (skipped()) return;
  KernelSet set;
  set.add(elementwise_graph(), target_profile("h200"));
  REQUIRE(set.size() > 150);
  check_kernels("element-wise", set);
}

TEST_CASE("nvrtc: reductions in every type and by each usual nest", "[nvrtc]") {
  if (skipped()) return;
  KernelSet set;
  set.add(reduction_graph(false), target_profile("h200"));
  REQUIRE(set.size() >= 6 * 4 * 5);
  check_kernels("reductions", set);
}

TEST_CASE("nvrtc: reductions with 64-bit indices", "[nvrtc]") {
  if (skipped()) return;
  KernelSet set;
  set.add(reduction_graph(true), target_profile("h200"));
  check_kernels("large reductions", set);
}

TEST_CASE("nvrtc: movement in every type, static and symbolic", "[nvrtc]") {
  if (skipped()) return;
  KernelSet set;
  for (const bool symbolic : {false, true}) set.add(movement_graph(symbolic), target_profile("h200"));
  REQUIRE(set.size() > 70);
  check_kernels("movement", set);
}

TEST_CASE("nvrtc: dynamic slices, pads, scans and random numbers", "[nvrtc]") {
  if (skipped()) return;
  KernelSet set;
  set.add(dynamic_graph(false), target_profile("h200"));
  set.add(dynamic_graph(true), target_profile("h200"));
  check_kernels("dynamic", set);
}

TEST_CASE("nvrtc: compound functions in f32, f16 and bf16", "[nvrtc]") {
  if (skipped()) return;
  KernelSet set;
  for (const DType dtype : {f32, f16, bf16}) {
    for (const bool symbolic : {false, true})
      set.add(function_graph(dtype, symbolic), target_profile("h200"));
  }
  REQUIRE(set.size() > 60);
  check_kernels("functions", set);
}

TEST_CASE("nvrtc: the graphs of examples/graphs", "[nvrtc]") {
  if (skipped()) return;
  KernelSet set;
  int graphs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_directory() / "examples/graphs")) {
    if (entry.path().extension() != ".fuse") continue;
    if (entry.path().stem() == "bert_large") continue;  // 24 times the kernels of bert_layer
    for (const char* profile : {"h200", "tiny2"})
      set.add(Graph::load(entry.path().string()), target_profile(profile));
    ++graphs;
  }
  REQUIRE(graphs >= 3);
  check_kernels("examples", set);
}

TEST_CASE("nvrtc: regional kernels, and costly values once", "[nvrtc]") {
  if (skipped()) return;
  KernelSet set;
  for (const char* name : {"attention_pool", "fig5_big", "astitch_fig4", "recompute_rev10", "dien"}) {
    const std::string file = (source_directory() / "tests/cases" / name).string() + ".fuse";
    for (const char* profile : {"h200", "v100"})
      set.add(run_pipeline(ir_of(Graph::load(file)), target_profile(profile)));
  }
  check_kernels("regional", set);
}

TEST_CASE("nvrtc: inputs, symbols and scopes of any name", "[nvrtc]") {
  if (skipped()) return;
  KernelSet set;
  for (const std::string& name : hostile_names()) {
    Graph g(name);
    const auto scope = g.scope(name + "\\");
    const Dim B = g.dim(name, {.min = 1, .max = 1000, .hint = 64});
    const Tensor x = g.input(name + " ", f32, {B, 40}), y = exp(x);
    g.output("y", y);
    g.output("positions", argmax(x, 1));
    set.add(g, target_profile("h200"));
  }
  check_kernels("names", set);
}

TEST_CASE("nvrtc: the first and the last kernel of a long chain and of a wide sum", "[nvrtc]") {
  if (skipped()) return;
  KernelSet set;
  Graph chain("chain");
  Tensor x = chain.input("x", f32, {4096});
  for (int i = 0; i < 450; ++i) x = i % 2 ? x * 0.5 : x + 0.25;
  chain.output("y", x);
  set.add(chain, target_profile("h200"));
  Graph wide("wide");
  Tensor total = wide.input("first", f32, {64, 64});
  for (int i = 0; i < 120; ++i)
    total = total + transpose(wide.input("x" + std::to_string(i), f32, {64, 64}), {1, 0});
  wide.output("y", total);
  set.add(wide, target_profile("h200"));
  check_kernels("chain and sum", set);
}
#endif
