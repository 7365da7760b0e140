// A cuda device of which every library is a fake: kernels are launched and not run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "cuda/fakes.hpp"
#include "support/branches.hpp"
#include "support/variable.hpp"

namespace fuse::test {

inline std::string fake_nvrtc_path() { return fake_directory() / "libfake_nvrtc.so"; }

/// The environment that makes Device::cuda the fake one.
struct FakeEnvironment {
  Variable cuda{"FUSE_LIBCUDA", fake_cuda_path().c_str()};
  Variable nvrtc{"FUSE_LIBNVRTC", fake_nvrtc_path().c_str()};
  Variable cublaslt{"FUSE_LIBCUBLASLT", fake_cublaslt_path().c_str()};
};

inline constexpr WorkspaceOptions by_graph{ExecutionMode::graph};

/// Without what FUSE_CONTRACT adds behind a run: the mark of its end.
inline std::vector<std::string> of_run(std::vector<std::string> calls) {
  if (!runtime::contract::checked()) return calls;
  const std::vector<std::string> mark{"cuCtxPushCurrent", "cuEventRecord", "cuCtxPopCurrent"};
  REQUIRE(calls.size() >= mark.size());
  REQUIRE(std::equal(mark.begin(), mark.end(), calls.end() - 3));
  calls.resize(calls.size() - mark.size());
  return calls;
}

}  // namespace fuse::test
