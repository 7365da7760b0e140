// PreparedShapes: what was prepared for the last dims of an executable, so that a shape that comes again
// costs a lookup. Its members may be called by several threads at a time. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <fuse/executable.hpp>
#include <list>
#include <memory>
#include <mutex>

namespace fuse::runtime {

class PreparedShapes {
 public:
  static constexpr std::size_t most = 32;

  /// Null where these dims are not kept.
  std::shared_ptr<const Prepared::Impl> find(const DimValues& dims);
  /// Keeps it in place of the one that was asked for longest ago.
  void keep(const DimValues& dims, std::shared_ptr<const Prepared::Impl> made);

 private:
  struct Entry {
    DimValues dims;
    std::shared_ptr<const Prepared::Impl> made;
  };
  std::mutex mutex_;
  std::list<Entry> entries_;  // the one that was asked for last comes first
};

}  // namespace fuse::runtime
