// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/prepared_shapes.hpp"

#include <algorithm>
#include <utility>

namespace fuse::runtime {

std::shared_ptr<const Prepared::Impl> PreparedShapes::find(const DimValues& dims) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.dims == dims; });
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return found->made;
}

void PreparedShapes::keep(const DimValues& dims, std::shared_ptr<const Prepared::Impl> made) {
  Entry entry{dims, std::move(made)};
  std::shared_ptr<const Prepared::Impl> dropped;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  entries_.push_front(std::move(entry));
  if (entries_.size() <= most) return;
  dropped = std::move(entries_.back().made);
  entries_.pop_back();
}

std::unique_ptr<Reusable> PreparedShapes::take(const schedule::Plan& plan) {
  const std::lock_guard lock(mutex_);
  const auto found = reusable_.find(&plan);
  return found == reusable_.end() ? nullptr : std::move(found->second);
}

void PreparedShapes::keep(const schedule::Plan& plan, std::unique_ptr<Reusable> made) {
  const std::lock_guard lock(mutex_);
  reusable_[&plan].swap(made);
}

const Reusable& PreparedShapes::of_all_dims(const schedule::Plan& plan,
                                            const std::function<std::unique_ptr<Reusable>()>& make) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Reusable>& known = of_all_dims_[&plan];
  if (!known) known = make();
  return *known;
}

}  // namespace fuse::runtime
