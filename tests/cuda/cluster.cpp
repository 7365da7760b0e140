// Kernels of clusters on the cuda device, against the fake driver.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include "cuda/fakes.hpp"

namespace fuse::test {
namespace {

codegen::Source source_of_clusters(int blocks) {
  codegen::Source source = scale_source();
  source.kernels[0].cluster = blocks;
  return source;
}
runtime::Cubin cubin_of_clusters(int blocks) {
  return fake_cubin("scale 1024 0 8 4 8 cluster " + std::to_string(blocks) + "\n");
}

constexpr const char* any_size = "cuFuncSetAttribute scale 14 = 1";

TEST_CASE("a cluster that not every GPU has is allowed when its kernel is loaded", "[cuda][cluster]") {
  CHECK(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED == 14);
  for (const int blocks : {2, 8, 9, 16}) {
    const Fakes fakes;
    {
      const auto backend = fakes.backend();
      const auto queue = backend->create_queue();
      const auto module = load_cubin(*backend, source_of_clusters(blocks), cubin_of_clusters(blocks));
      CHECK(fakes.find_call("cuFuncSetAttribute") == (blocks > 8 ? any_size : ""));
      const runtime::Argument arguments[3] = {};
      CHECK(backend->launch(*queue, module->function("scale"), {3 * blocks, 1, 1}, arguments, 3));
      CHECK(fakes.count("cuLaunchKernel") == 1);
    }
    fakes.require_clean();
  }
}

TEST_CASE("a grid that is no whole number of clusters is refused", "[cuda][cluster]") {
  const Fakes fakes;
  {
    const auto backend = fakes.backend();
    const auto queue = backend->create_queue();
    const auto module = load_cubin(*backend, source_of_clusters(4), cubin_of_clusters(4));
    const runtime::Argument arguments[3] = {};
    const Status status = backend->launch(*queue, module->function("scale"), {6, 1, 1}, arguments, 3);
    CHECK(status.code() == ErrorCode::internal);
    CHECK(std::string(status.message()) ==
          "kernel scale: a grid of 6 blocks in x is no whole number of clusters of 4");
    CHECK(fakes.count("cuLaunchKernel") == 0);
  }
  fakes.require_clean();
}

TEST_CASE("the fake driver refuses clusters as a driver does", "[cuda][cluster]") {
  for (const int blocks : {4, 16}) {
    const Fakes fakes;
    const auto backend = fakes.backend();
    const auto queue = backend->create_queue();
    // The cubin has clusters of which the source says nothing.
    const auto module = load_cubin(*backend, scale_source(), cubin_of_clusters(blocks));
    const runtime::Argument arguments[3] = {};
    const Status status =
        backend->launch(*queue, module->function("scale"), {blocks + 1, 1, 1}, arguments, 3);
    CHECK(std::string(status.message()) ==
          "cuLaunchKernel: CUDA_ERROR_INVALID_CLUSTER_SIZE (912): cluster misconfiguration: kernel scale");
    CHECK(bool(backend->launch(*queue, module->function("scale"), {blocks, 1, 1}, arguments, 3)) ==
          (blocks <= 8));
  }
}

TEST_CASE("a GPU without clusters, or with smaller ones, refuses them", "[cuda][cluster]") {
  const Fakes fakes;
  for (const int arch : {80, 120}) {
    fakes.set_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, arch / 10);
    fakes.set_attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, arch >= 90);
    const auto backend = fakes.backend();
    const ErrorInfo error =
        error_info([&] { load_cubin(*backend, source_of_clusters(16), cubin_of_clusters(16)); });
    CHECK(error.code == ErrorCode::unsupported);
    CHECK(contains(error.message, arch == 80 ? "kernel scale: cluster of 16 exceeds the limit of 1 ("
                                             : "kernel scale: cluster of 16 exceeds the limit of 8 ("));
  }
}

}  // namespace
}  // namespace fuse::test
#endif
