// How fast the device copies: the yardstick of a memory-bound kernel. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "plan/source.hpp"
#include "timing.hpp"

namespace fuse::bench {

/// Bytes a second, read and written together.
struct CopyRate {
  std::optional<double> kernel;  ///< ours, 16 bytes an access, `read` and `written` as asked
  double memcpy = 0;             ///< the driver's, half of the bytes each way
  double best() const { return std::max(kernel.value_or(0), memcpy); }
};

/// reads `reads` words of 16 bytes and writes `writes`, in the device dialect.
codegen::Source copy_source();

class CopyYardstick {
 public:
  CopyYardstick(const Device& device, DeviceTimer& timer);
  /// Measured now; buffers rotate past the L2 cache as the case's do.
  CopyRate measure(std::int64_t read, std::int64_t written);

 private:
  const Device& device_;
  DeviceTimer& timer_;
  std::unique_ptr<runtime::Module> module_;
};

}  // namespace fuse::bench
