// A cuda device of which every library is a fake: kernels are launched and not run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace fuse::test
