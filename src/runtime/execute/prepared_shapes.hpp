// PreparedShapes: what was prepared for the last dims of an executable, so that a shape that comes again
// costs a lookup. Its members may be called by several threads at a time. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <fuse/executable.hpp>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "plan/plan.hpp"

namespace fuse::runtime {

/// What prepare found for some dims, and may use again for others. It alone knows what that is.
struct Reusable {
  virtual ~Reusable() = default;
};

class PreparedShapes {
 public:
  static constexpr std::size_t most = 32;

  /// Null where these dims are not kept.
  std::shared_ptr<const Prepared::Impl> find(const DimValues& dims);
  /// Keeps it in place of the one that was asked for longest ago.
  void keep(const DimValues& dims, std::shared_ptr<const Prepared::Impl> made);
  /// What was last kept for a plan of the executable, or null. It is given away, so that one thread has it.
  std::unique_ptr<Reusable> take(const schedule::Plan& plan);
  void keep(const schedule::Plan& plan, std::unique_ptr<Reusable> made);
  /// What is the same for all dims of a plan: made by the first call, which others wait for.
  const Reusable& of_all_dims(const schedule::Plan& plan,
                              const std::function<std::unique_ptr<Reusable>()>& make);

 private:
  struct Entry {
    DimValues dims;
    std::shared_ptr<const Prepared::Impl> made;
  };
  std::mutex mutex_;
  std::list<Entry> entries_;  // the one that was asked for last comes first
  std::map<const schedule::Plan*, std::unique_ptr<Reusable>> reusable_, of_all_dims_;
};

}  // namespace fuse::runtime
