// A case that is loaded and waits for requests to run. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <fuse/device.hpp>
#include <fuse/session.hpp>
#include <string>
#include <vector>

#include "cases/cases.hpp"
#include "report/bench_json.hpp"

namespace fuse::bench {

/// The case that a request names by builder, dtype and dims.
Case case_of(const Json& request);

/// An executable with buffers for the dims of one call. An output with a donor shares its buffer.
class ServedCase {
 public:
  ServedCase(const Executable& executable, const DimValues& dims);

  void run();  ///< and waits
  /// "NAME", dtype, shape and file of each output, which is written to PREFIX.NAME.bin.
  Json write_outputs(const std::string& prefix) const;
  double prepare_seconds() const {
    return prepare_seconds_;
  }                                                      ///< for these dims, with memory for temporaries
  double pack_seconds() const { return pack_seconds_; }  ///< of the parameters, which is done once
  const Prepared& prepared() const { return prepared_; }
  const Executable& executable() const { return executable_; }

 private:
  Slot sized(std::size_t slot) const;

  const Executable executable_;
  const std::chrono::steady_clock::time_point start_;
  const Prepared prepared_;
  Stream stream_;
  Workspace workspace_;
  const double prepare_seconds_;
  std::vector<Buffer> buffers_;
  std::vector<BufferView> views_;
  Buffer packed_;
  double pack_seconds_ = 0;
};

/// Name, dtype and shape of each input of the case; the values go to DIR/NAME.bin.
Json write_inputs(const Case& c, const std::string& dir);

}  // namespace fuse::bench
