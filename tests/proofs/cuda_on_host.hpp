// CUDA bodies of primitives, built by the system compiler: proofs run the text that a GPU runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace fuse::test {

/// Whether this machine builds and runs such bodies: it needs a C++ compiler and a processor that fuses
/// multiplications and additions. `why` says what is missing.
bool runs_cuda_bodies(std::string& why);

/// Primitives, what they need, and a proof's own C++ text behind them, as a loaded library. Instructions of a
/// GPU do not run here: primitives that are one have a text of the proof in their place, before all others.
class CudaOnHost {
 public:
  CudaOnHost(const std::vector<std::string>& primitives,
             const std::vector<std::pair<std::string, std::string>>& in_place_of, const std::string& proof);
  ~CudaOnHost();
  CudaOnHost(const CudaOnHost&) = delete;
  CudaOnHost& operator=(const CudaOnHost&) = delete;

  /// An `extern "C"` function of the proof.
  template <class F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(find(name));
  }

 private:
  void* find(const char* name) const;
  void* library_ = nullptr;
};

}  // namespace fuse::test
