// The fake driver and the fake cuBLASLt, as tests reach them: the same files that the cuda device opens.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <fuse/error.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "compile/toolchains/cuda/nvrtc.hpp"
#include "fake_cublaslt/fake_cublaslt.hpp"
#include "fake_cuda/fake_cuda.hpp"
#include "runtime/cuda/cuda.hpp"
#include "runtime/device/hot_path_check.hpp"
#include "support/catch.hpp"
#include "support/error_info.hpp"
#include "support/paths.hpp"

namespace fuse::test {

inline std::string fake_cuda_path() { return fake_directory() / "libfake_cuda.so"; }
inline std::string fake_cublaslt_path() { return fake_directory() / "libfake_cublaslt.so"; }

template <class F>
F fake_function(const std::string& path, const char* name) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(::dlerror());
  void* address = ::dlsym(library, name);
  if (!address) throw std::runtime_error(path + " has no " + name);
  return reinterpret_cast<F>(address);
}

/// Resets both fakes, and names their functions.
struct Fakes {
#define FUSE_TEST_CUDA(name) decltype(&fake_cuda_##name) name
  FUSE_TEST_CUDA(reset) = fake_function<decltype(reset)>(fake_cuda_path(), "fake_cuda_reset");
  FUSE_TEST_CUDA(fail_at) = fake_function<decltype(fail_at)>(fake_cuda_path(), "fake_cuda_fail_at");
  FUSE_TEST_CUDA(set_attribute) = fake_function<decltype(set_attribute)>(fake_cuda_path(),
                                                                         "fake_cuda_set_attribute");
  FUSE_TEST_CUDA(set_device_count) = fake_function<decltype(set_device_count)>(fake_cuda_path(),
                                                                               "fake_cuda_set_device_count");
  FUSE_TEST_CUDA(set_most_blocks) = fake_function<decltype(set_most_blocks)>(fake_cuda_path(),
                                                                             "fake_cuda_set_most_blocks");
  FUSE_TEST_CUDA(set_largest_cluster) =
      fake_function<decltype(set_largest_cluster)>(fake_cuda_path(), "fake_cuda_set_largest_cluster");
  FUSE_TEST_CUDA(call_count) = fake_function<decltype(call_count)>(fake_cuda_path(), "fake_cuda_call_count");
  FUSE_TEST_CUDA(call) = fake_function<decltype(call)>(fake_cuda_path(), "fake_cuda_call");
  FUSE_TEST_CUDA(live) = fake_function<decltype(live)>(fake_cuda_path(), "fake_cuda_live");
  FUSE_TEST_CUDA(depth) = fake_function<decltype(depth)>(fake_cuda_path(), "fake_cuda_depth");
  FUSE_TEST_CUDA(misuse) = fake_function<decltype(misuse)>(fake_cuda_path(), "fake_cuda_misuse");
  FUSE_TEST_CUDA(on_record) = fake_function<decltype(on_record)>(fake_cuda_path(), "fake_cuda_on_record");
  FUSE_TEST_CUDA(only_count) = fake_function<decltype(only_count)>(fake_cuda_path(), "fake_cuda_only_count");
  FUSE_TEST_CUDA(counted) = fake_function<decltype(counted)>(fake_cuda_path(), "fake_cuda_counted");
  FUSE_TEST_CUDA(foreign_stream) = fake_function<decltype(foreign_stream)>(fake_cuda_path(),
                                                                           "fake_cuda_foreign_stream");
  FUSE_TEST_CUDA(graph_nodes) = fake_function<decltype(graph_nodes)>(fake_cuda_path(),
                                                                     "fake_cuda_graph_nodes");
  FUSE_TEST_CUDA(graph_node) = fake_function<decltype(graph_node)>(fake_cuda_path(), "fake_cuda_graph_node");
  FUSE_TEST_CUDA(hold) = fake_function<decltype(hold)>(fake_cuda_path(), "fake_cuda_hold");
  FUSE_TEST_CUDA(in_flight) = fake_function<decltype(in_flight)>(fake_cuda_path(), "fake_cuda_in_flight");
#undef FUSE_TEST_CUDA
#define FUSE_TEST_BLAS(name) decltype(&fake_cublaslt_##name) blas_##name
  FUSE_TEST_BLAS(reset) = fake_function<decltype(blas_reset)>(fake_cublaslt_path(), "fake_cublaslt_reset");
  FUSE_TEST_BLAS(fail_at) = fake_function<decltype(blas_fail_at)>(fake_cublaslt_path(),
                                                                  "fake_cublaslt_fail_at");
  FUSE_TEST_BLAS(set_workspace) = fake_function<decltype(blas_set_workspace)>(fake_cublaslt_path(),
                                                                              "fake_cublaslt_set_workspace");
  FUSE_TEST_BLAS(call_count) = fake_function<decltype(blas_call_count)>(fake_cublaslt_path(),
                                                                        "fake_cublaslt_call_count");
  FUSE_TEST_BLAS(call) = fake_function<decltype(blas_call)>(fake_cublaslt_path(), "fake_cublaslt_call");
  FUSE_TEST_BLAS(live) = fake_function<decltype(blas_live)>(fake_cublaslt_path(), "fake_cublaslt_live");
  FUSE_TEST_BLAS(misuse) = fake_function<decltype(blas_misuse)>(fake_cublaslt_path(), "fake_cublaslt_misuse");
#undef FUSE_TEST_BLAS

  Fakes() {
    reset();
    blas_reset();
    on_record([](int on) { runtime::contract::pause(on != 0); });
  }

  std::unique_ptr<runtime::Backend> backend() const {
    return runtime::make_cuda_backend(0, {.cuda = fake_cuda_path(), .cublaslt = fake_cublaslt_path()});
  }
  std::string last_call() const { return call(call_count() - 1); }
  /// The calls since there were `before`.
  std::vector<std::string> calls_since(int before) const {
    std::vector<std::string> calls;
    for (int i = before; i < call_count(); ++i) calls.emplace_back(call(i));
    return calls;
  }
  /// Calls of `function` so far.
  int count(const std::string& function) const {
    int n = 0;
    for (int i = 0; i < call_count(); ++i) {
      const std::string text = call(i);
      n += text.substr(0, text.find(' ')) == function;
    }
    return n;
  }
  /// The first call of `function` since there were `before`.
  std::string find_call(const std::string& function, int before = 0) const {
    for (int i = before; i < call_count(); ++i) {
      const std::string text = call(i);
      if (text.substr(0, text.find(' ')) == function) return text;
    }
    return {};
  }
  /// Everything was given back, and nothing was done that a driver would refuse.
  void require_clean() const {
    CHECK(live("context") == 0);
    CHECK(live("module") == 0);
    CHECK(live("stream") == 0);
    CHECK(live("event") == 0);
    CHECK(live("graph") == 0);
    CHECK(live("memory") == 0);
    CHECK(depth() == 0);
    CHECK(misuse() == 0);
    CHECK(blas_live() == 0);
    CHECK(blas_misuse() == 0);
  }
};

/// True, with a warning, where this machine has no NVRTC: the rest of such a test is skipped.
inline bool no_nvrtc() {
  if (runtime::nvrtc_available()) return false;
  WARN("skipped: no NVRTC on this machine\n" << runtime::nvrtc_report());
  return true;
}

/// A Source of one kernel, scale(float* y, int n, long long m), and a cubin of it that the fake reads.
inline codegen::Source scale_source(int block_threads = 128) {
  using codegen::KernelParam;
  codegen::Source source;
  source.name = "scale";
  codegen::KernelInfo kernel;
  kernel.name = "scale";
  kernel.params = {{.kind = KernelParam::Kind::buffer, .name = "y", .dtype = f32, .written = true},
                   {.kind = KernelParam::Kind::extent, .name = "n", .dtype = i32},
                   {.kind = KernelParam::Kind::extent, .name = "m", .dtype = i64}};
  kernel.block_threads = block_threads;
  source.kernels = {kernel};
  return source;
}
inline runtime::Cubin fake_cubin(const std::string& kernels) {
  const std::string text = "fake\n" + kernels;
  runtime::Cubin cubin;
  cubin.image.assign(text.begin(), text.end());
  cubin.image.push_back('\0');
  return cubin;
}
inline std::unique_ptr<runtime::Module> load_cubins(runtime::Backend& backend, const codegen::Source& source,
                                                    const std::vector<runtime::Cubin>& cubins) {
  return backend.load_binary(std::make_shared<runtime::Binary>(runtime::binary_of(source, cubins)));
}
inline std::unique_ptr<runtime::Module> load_cubin(runtime::Backend& backend, const codegen::Source& source,
                                                   const runtime::Cubin& cubin) {
  return load_cubins(backend, source, {cubin});
}

inline runtime::Cubin scale_cubin() { return fake_cubin("scale 1024 4096 8 4 8\n"); }

}  // namespace fuse::test
