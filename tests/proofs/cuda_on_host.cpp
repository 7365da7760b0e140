// SPDX-License-Identifier: Apache-2.0
#include "proofs/cuda_on_host.hpp"

#include <dlfcn.h>

#include <fstream>
#include <stdexcept>

#include "codegen_cuda/primitives/primitives.hpp"
#include "compile/toolchains/host_compiler.hpp"
#include "os/temporary_folder.hpp"

namespace fuse::test {
namespace {

// What CUDA has and C++ has not, of what the bodies under proof call.
constexpr const char* shims = R"(
#pragma GCC target("fma")
#define __device__
#define __global__
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __forceinline__ inline
#define __CUDA_ARCH__ 900
typedef unsigned long long u64;
static inline unsigned __float_as_uint(float v) { return __builtin_bit_cast(unsigned, v); }
static inline int __float_as_int(float v) { return __builtin_bit_cast(int, v); }
static inline float __uint_as_float(unsigned v) { return __builtin_bit_cast(float, v); }
static inline float __int_as_float(int v) { return __builtin_bit_cast(float, v); }
static inline float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline float fabsf(float v) { return __builtin_fabsf(v); }
static inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
static inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
#define PROOF extern "C" __attribute__((visibility("default")))
)";

}  // namespace

bool runs_cuda_bodies(std::string& why) {
  if (runtime::emulated::HostCompiler().path().empty()) {
    why = "no C++ compiler was found";
    return false;
  }
#if defined(__x86_64__)
  if (__builtin_cpu_supports("fma")) return true;
#endif
  why = "this processor does not fuse multiplications and additions";
  return false;
}

CudaOnHost::CudaOnHost(const std::vector<std::string>& primitives,
                       const std::vector<std::pair<std::string, std::string>>& in_place_of,
                       const std::string& proof) {
  std::string text = shims;
  for (const auto& [name, own] : in_place_of) text += own;
  std::string prelude = codegen::cuda_prelude(primitives);
  for (const auto& [name, own] : in_place_of) {
    const std::string_view body = codegen::find_primitive(name)->cuda;
    if (const std::size_t at = prelude.find(body); at != std::string::npos) prelude.erase(at, body.size());
  }
  text += prelude + proof;
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/proof.so";
  const std::vector<char> bytes = runtime::emulated::HostCompiler(2).build({text}).at(0);
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  library_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) throw std::runtime_error(::dlerror());
}

CudaOnHost::~CudaOnHost() { ::dlclose(library_); }

void* CudaOnHost::find(const char* name) const {
  void* const found = ::dlsym(library_, name);
  if (!found) throw std::runtime_error(std::string("the proof has no function ") + name);
  return found;
}

}  // namespace fuse::test
