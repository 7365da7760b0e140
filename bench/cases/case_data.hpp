// Data for a case: of each input a pattern that depends on its name and dtype alone, repeated. So the first
// rows of a large input are those of a small one, and a few rows of a result can be checked against a small
// reference. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/device.hpp>
#include <fuse/executable.hpp>
#include <vector>

#include "cases/cases.hpp"
#include "tensors/host_tensor.hpp"

namespace fuse::bench {

Extents shape_of(const Slot& slot);  ///< of a graph without symbols
runtime::HostTensor data_of(const Slot& slot);

/// Buffers of an executable without symbols, in sets: every set holds the same data.
class BufferSets {
 public:
  BufferSets(const Executable& executable, const Prepared& prepared, std::int64_t sets);

  Status run(const Prepared& prepared, Stream& stream, std::int64_t set) noexcept;
  runtime::HostTensor output(const Executable& executable, const Prepared& prepared) const;  ///< y of set 0

 private:
  struct Set {
    std::vector<Buffer> buffers;
    std::vector<BufferView> views;
    Buffer packed;
  };
  std::vector<Set> sets_;
  Workspace workspace_;  // of all: they run one behind the other, and the device has slots for one at a time
};

}  // namespace fuse::bench
