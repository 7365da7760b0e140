// SPDX-License-Identifier: Apache-2.0
#include "compile/pipeline/experiments.hpp"

#include "base/access.hpp"

namespace fuse {
namespace {

const Experiments& contents(const ExperimentsHandle& handle) {
  static const Experiments none;
  const Experiments* const made = impl_of(handle);
  return made ? *made : none;
}

}  // namespace

ExperimentsHandle experiments(Experiments made) {
  return made_of<ExperimentsHandle>(std::make_shared<Experiments>(std::move(made)));
}

const Experiments& experiments_of(const CompileOptions& options) { return contents(options.experiments); }

Experiments& change_experiments(CompileOptions& options) {
  if (impl_of(options.experiments) && detail::Access::owners(options.experiments) == 1)
    return *impl_of(options.experiments);
  const auto own = std::make_shared<Experiments>(experiments_of(options));
  options.experiments = made_of<ExperimentsHandle>(own);
  return *own;
}

inline namespace v0 {

bool ExperimentsHandle::operator==(const ExperimentsHandle& other) const {
  return contents(*this) == contents(other);
}

}  // namespace v0
}  // namespace fuse
