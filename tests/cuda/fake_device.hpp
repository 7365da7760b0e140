// A cuda device of which every library is a fake: kernels are launched and not run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/fuse.hpp>
#include <vector>

#include "cuda/fakes.hpp"
#include "support/variable.hpp"

namespace fuse::test {

inline std::string fake_nvrtc_path() { return fake_directory() / "libfake_nvrtc.so"; }

/// The environment that makes Device::cuda the fake one.
struct FakeEnvironment {
  Variable cuda{"FUSE_LIBCUDA", fake_cuda_path().c_str()};
  Variable nvrtc{"FUSE_LIBNVRTC", fake_nvrtc_path().c_str()};
  Variable cublaslt{"FUSE_LIBCUBLASLT", fake_cublaslt_path().c_str()};
};

/// Branches of small kernels, two in a row, joined at the end: worth several streams.
inline Graph branches(int count = 3) {
  Graph g("branches");
  const Tensor x = g.input("x", f32, {64, 64});
  Tensor total = x;
  for (int i = 0; i < count; ++i) {
    const Tensor e = exp(x * (i + 2));
    total = total + sum(e / sum(e, {1}, true), {0});
  }
  g.output("y", total);
  return g;
}

/// A run's buffers, on the fake device.
struct FakeRun {
  explicit FakeRun(const Executable& executable)
      : prepared(executable.prepare()),
        workspace(prepared.workspace()),
        stream(executable.device().stream()) {
    for (std::size_t i = 0; i < executable.slots().size(); ++i) {
      buffers.push_back(executable.device().allocate(prepared.bytes(i)));
      views.push_back(buffers.back().view());
    }
  }
  Status run() noexcept { return prepared.run(stream, views, workspace); }

  Prepared prepared;
  Workspace workspace;
  Stream stream;
  std::vector<Buffer> buffers;
  std::vector<BufferView> views;
};

}  // namespace fuse::test
