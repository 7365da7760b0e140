// A GEMM of the cuda device runs with the algorithm that is asked for, or not at all.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <fmt/format.h>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "cuda/fake_device.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "schedule/decisions/gemm_decisions.hpp"

namespace fuse::test {
namespace {

/// The algorithms of the products so far.
std::vector<std::string> algorithms_run(const Fakes& fakes) {
  std::vector<std::string> result;
  for (int i = 0; i < fakes.blas_call_count(); ++i) {
    const std::string call = fakes.blas_call(i);
    if (call.starts_with("cublasLtMatmul ")) result.push_back(call.substr(call.find("algorithm")));
  }
  return result;
}

/// Decisions that one GEMM of the graph runs with an algorithm, in line 3.
CompileOptions with_algorithm(const Graph& g, const Device& device, int algorithm) {
  const Executable usual = compile(g, device);
  const Compiled& stages = stages_of(usual);
  const auto entry = schedule::all_gemm_decisions_of(stages.graph, stages.partition).at(0);
  CompileOptions options;
  options.decisions = fmt::format("fuse decisions 4\ntarget {{{}}}\ngemm {:016x} {{algorithm = {}}}\n",
                                  schedule::target_text(backend_of(device)->target()), entry.key, algorithm);
  return options;
}

TEST_CASE("a rank of the list that cuBLASLt proposes is another algorithm", "[cuda][gemm][decisions]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    Graph g("one");
    g.output("y", matmul(g.input("x", f32, {4, 8}), g.input("w", f32, {8, 4})));
    const Device device = Device::cuda();
    for (const int rank : {0, 1, 2}) {
      WholeRun run(compile(g, device, with_algorithm(g, device, rank)));
      REQUIRE(run.run());
      CHECK(algorithms_run(fakes).back() == fmt::format("algorithm {}", rank));
      CHECK(contains(run.prepared.explain(), fmt::format("cuBLASLt algorithm {}", 16 + 100 * rank)));
    }
    const Executable third = compile(g, device, with_algorithm(g, device, 3));
    const ErrorInfo error = error_info([&] { static_cast<void>(third.prepare()); });
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(
        error.message ==
        "decisions: line 3: there is no algorithm 3 for 4 x 4 matrices of f32 to f32 by k = 8, batch 1: the "
        "library proposes 3");
    CHECK(error.hint == "algorithms 0 to 2");
    CHECK(error.op == "matmul");
    CHECK(error.shapes == std::vector<std::string>{"f32[4, 4]"});
    // What else goes wrong is not the line's fault.
    constexpr int alloc_failed = 3;
    const Executable second = compile(g, device, with_algorithm(g, device, 1));
    fakes.blas_fail_at("cublasLtMatmulAlgoGetHeuristic", 1, alloc_failed);
    const ErrorInfo failed = error_info([&] { static_cast<void>(second.prepare()); });
    CHECK(failed.code != ErrorCode::invalid_argument);
    CHECK_FALSE(contains(failed.message, "decisions"));
  }
  fakes.require_clean();
}

TEST_CASE("operands that are aligned to less have the list of their alignment", "[cuda][gemm][decisions]") {
  const Fakes fakes;
  const auto backend = fakes.backend();
  // Matrices of a batch 9 floats apart.
  const auto odd = [](std::uint32_t algorithm) {
    return runtime::GemmDesc{.batch = 2,
                             .m = 3,
                             .n = 3,
                             .k = 3,
                             .stride_a = 9,
                             .stride_b = 9,
                             .stride_c = 9,
                             .algorithm = algorithm};
  };
  CHECK(contains(backend->prepare_gemm(odd(1))->algorithm(), "cuBLASLt algorithm 104"));
  CHECK(contains(error_info([&] { backend->prepare_gemm(odd(2)); }).message, "the library proposes 2"));
  // Memory that is not aligned as the recorded algorithm needs it is an error, and no other algorithm runs.
  const auto gemm = backend->prepare_gemm({.m = 4, .n = 4, .k = 4, .algorithm = 2});
  const auto queue = backend->create_queue();
  void* const memory = backend->allocate(1024);
  CHECK(gemm->run(*queue, memory, memory, memory, nullptr));
  char* const odd_address = static_cast<char*>(memory) + 4;
  CHECK(gemm->run(*queue, odd_address, memory, memory, nullptr).code() == ErrorCode::misaligned);
  backend->free(memory);
}

TEST_CASE("a recorded algorithm is taken where it can multiply other extents, without a list",
          "[cuda][gemm][versions]") {
  const Fakes fakes;
  const auto backend = fakes.backend();
  const std::string third = backend->prepare_gemm({.m = 8, .n = 8, .k = 8, .algorithm = 2})->recorded();
  CHECK(third.starts_with("16:"));
  const auto calls_of = [&](const runtime::GemmDesc& desc, std::string& algorithm) {
    const int before = fakes.blas_call_count();
    algorithm = backend->prepare_gemm(desc)->algorithm();
    std::vector<std::string> calls;
    for (int i = before; i < fakes.blas_call_count(); ++i) {
      const std::string call = fakes.blas_call(i);
      for (const std::string name : {"cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmulAlgoCheck"})
        if (call.starts_with(name + ' ')) calls.push_back(name + call.substr(call.rfind(' ')));
    }
    return calls;
  };
  std::string algorithm;
  // For operands of its alignment it is checked; for others there is a list, as always.
  CHECK(calls_of({.m = 100, .n = 8, .k = 8, .recorded = &third}, algorithm) ==
        std::vector<std::string>{"cublasLtMatmulAlgoCheck 2", "cublasLtMatmulAlgoGetHeuristic 4"});
  CHECK(contains(algorithm, "cuBLASLt algorithm 216"));
  // The fake's third algorithm refuses fewer than four rows: the proposal is taken.
  CHECK(calls_of({.m = 3, .n = 8, .k = 8, .recorded = &third}, algorithm) ==
        std::vector<std::string>{"cublasLtMatmulAlgoCheck 2", "cublasLtMatmulAlgoGetHeuristic 16",
                                 "cublasLtMatmulAlgoGetHeuristic 4"});
  CHECK(contains(algorithm, "cuBLASLt algorithm 16"));
  // Matrices that lie closer than it needs are not even checked.
  CHECK(calls_of({.batch = 2,
                  .m = 3,
                  .n = 3,
                  .k = 3,
                  .stride_a = 9,
                  .stride_b = 9,
                  .stride_c = 9,
                  .recorded = &third},
                 algorithm) == std::vector<std::string>{"cublasLtMatmulAlgoGetHeuristic 4"});
  for (const std::string& bad :
       {std::string("x"), std::string("16:"), third.substr(0, third.size() - 1), third + "0",
        "z" + third.substr(1), third.substr(0, 5) + "-" + third.substr(6)}) {
    CAPTURE(bad);
    const runtime::GemmDesc desc{.m = 8, .n = 8, .k = 8, .recorded = &bad};
    CHECK(error_info([&] { backend->prepare_gemm(desc); }).code == ErrorCode::file_format);
  }
}

TEST_CASE("algorithms of another version of cuBLASLt are not taken, and explain says so",
          "[cuda][gemm][versions]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  Graph g("one");
  const Dim s = g.dim("S", {.min = 1, .max = 256});
  g.output("y", matmul(g.input("x", f32, {s, 8}), g.input("w", f32, {8, 8})));
  const Executable usual = compile(g, Device::cuda());
  const Executable::Impl& impl = *impl_of(usual);
  const std::string third =
      backend_of(impl.device)->prepare_gemm({.m = 8, .n = 8, .k = 8, .algorithm = 2})->recorded();
  const auto with = [&](const std::string& library) {
    auto program = std::make_shared<runtime::Program>(*impl.builds[0].program);
    program->plan.algorithms = {{.table = {}, .recorded = {third}, .library = library}};
    for (schedule::Step& step : program->plan.steps)
      if (auto* const gemm = std::get_if<schedule::GemmStep>(&step.work)) gemm->algorithms = 0;
    std::vector<runtime::Build> builds;
    builds.push_back({.program = std::move(program), .module = impl.builds[0].module});
    return runtime::make_executable(impl.device, impl.origin, std::move(builds));
  };
  const std::string here = backend_of(impl.device)->gemm_library();
  const Executable same = with(here), other = with("cuBLASLt 1");
  CHECK(contains(same.prepare({{"S", 8}}).explain(), "cuBLASLt algorithm 216"));
  CHECK_FALSE(contains(same.explain(), "does not know them"));
  CHECK(contains(other.prepare({{"S", 8}}).explain(), "cuBLASLt algorithm 16"));
  CHECK(contains(other.explain(), "the library here is " + here + ", which does not know them"));
}

TEST_CASE("time_gemms times what cuBLASLt proposes and gives everything back", "[cuda][gemm][versions]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    Graph g("one");
    const Dim s = g.dim("S", {.min = 1, .max = 256});
    g.output("y", matmul(g.input("x", f32, {s, 8}), g.input("w", f32, {8, 8})));
    const Executable usual = compile(g, Device::cuda());
    const TimedGemms timed = time_gemms(usual, {.dims = {{{"S", 3}}, {{"S", 4}}, {{"S", 200}}}, .runs = 2});
    REQUIRE(timed.timings.size() == 2);  // 3 and 4 are one bucket
    for (const GemmTiming& each : timed.timings) CHECK(each.algorithms == 3);
    // A failure on the way leaves nothing behind.
    constexpr int execution_failed = 13;
    fakes.blas_fail_at("cublasLtMatmul", 3, execution_failed);
    CHECK(error_info([&] {
            static_cast<void>(time_gemms(usual, {.dims = {{{"S", 3}}}}));
          }).code == ErrorCode::driver);
  }
  fakes.require_clean();
}

}  // namespace
}  // namespace fuse::test
#endif
