// Softmax as one kernel, written by hand in the device dialect: a warp a row, and a block a row.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plan/source.hpp"
#include "runtime/device/backend.hpp"

namespace fuse::bench {

/// `copies` kernels softmax_warp_0, softmax_warp_1, ... (128 threads: 4 rows a block).
codegen::Source softmax_warp_source(int copies);
/// softmax_block: 256 threads, a row a block.
codegen::Source softmax_block_source();

/// On the emulated device: a warp a row up to 1024 columns, else a block a row.
class HandwrittenSoftmax {
 public:
  HandwrittenSoftmax(std::int64_t rows, std::int64_t columns, bool checked);
  ~HandwrittenSoftmax();
  HandwrittenSoftmax(const HandwrittenSoftmax&) = delete;
  HandwrittenSoftmax& operator=(const HandwrittenSoftmax&) = delete;

  void run();
  std::vector<float> result();
  std::string about() const;

 private:
  std::int64_t rows_, columns_, bytes_;
  bool by_warp_;
  std::unique_ptr<runtime::Backend> backend_;
  std::unique_ptr<runtime::Queue> queue_;
  std::unique_ptr<runtime::Module> module_;
  void* x_ = nullptr;
  void* y_ = nullptr;
};

}  // namespace fuse::bench
