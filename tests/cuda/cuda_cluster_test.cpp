// Kernels of clusters on the cuda device, against the fake driver.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <cuda.h>

#include <algorithm>

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
      const int before = fakes.call_count();
      const auto module = load_cubin(*backend, source_of_clusters(blocks), cubin_of_clusters(blocks));
      CHECK(fakes.find_call("cuFuncSetAttribute", before) == (blocks > 8 ? any_size : ""));
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
    fakes.set_largest_cluster(8);
    const auto backend = fakes.backend();
    const ErrorInfo error =
        error_info([&] { load_cubin(*backend, source_of_clusters(16), cubin_of_clusters(16)); });
    CHECK(error.code == ErrorCode::unsupported);
    CHECK(contains(error.message, arch == 80 ? "kernel scale: cluster of 16 exceeds the limit of 1 ("
                                             : "kernel scale: cluster of 16 exceeds the limit of 8 ("));
    CHECK(contains(error.hint, "compile for the device"));
  }
}

TEST_CASE("the largest cluster is the one that the GPU holds", "[cuda][cluster]") {
  const Fakes fakes;
  // By an empty kernel whose blocks take a multiprocessor each.
  CHECK(fakes.backend()->target().max_cluster == 16);
  CHECK(fakes.find_call("cuOccupancyMaxPotentialClusterSize") ==
        "cuOccupancyMaxPotentialClusterSize fuse_empty shared 232448");
  fakes.require_clean();
  for (const int blocks : {8, 4, 0}) {  // no opt-in, a small instance of MIG, none at all
    fakes.set_largest_cluster(blocks);
    const auto backend = fakes.backend();
    CHECK(backend->target().max_cluster == std::max(1, blocks));
    CHECK(contains(backend->report(), "clusters of " + std::to_string(std::max(1, blocks)) + "\n"));
  }
  const int before = fakes.call_count();
  fakes.set_attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0);
  CHECK(fakes.backend()->target().max_cluster == 1);
  CHECK(fakes.find_call("cuModuleLoadData", before) == "");
}

TEST_CASE("a driver without a compiler does not say how large clusters are", "[cuda][cluster]") {
  const int code = GENERATE(209, 221, 222, 223);
  const Fakes fakes;
  fakes.fail_at("cuModuleLoadData", 1, code);
  {
    const auto backend = fakes.backend();
    CHECK(backend->target().max_cluster == 8);
    CHECK(contains(backend->report(), "as the driver did not say: cuModuleLoadData: "));
    CHECK(contains(backend->report(), "(" + std::to_string(code) + ")"));
  }
  fakes.require_clean();
}

TEST_CASE("a kernel whose cluster the GPU cannot hold is not loaded", "[cuda][cluster]") {
  const Fakes fakes;
  {
    const auto backend = fakes.backend();
    fakes.set_largest_cluster(4);  // of blocks that take as much as this kernel's
    const ErrorInfo error =
        error_info([&] { load_cubin(*backend, source_of_clusters(8), cubin_of_clusters(8)); });
    CHECK(error.code == ErrorCode::unsupported);
    CHECK(error.message ==
          "kernel scale: Fake H200 cannot hold a cluster of 8 blocks of 128 threads, 32 registers each");
    CHECK(contains(error.hint, "compile for the device"));
    CHECK(load_cubin(*backend, source_of_clusters(4), cubin_of_clusters(4)));
  }
  fakes.require_clean();
}

}  // namespace
}  // namespace fuse::test
#endif
