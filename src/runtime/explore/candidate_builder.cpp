// SPDX-License-Identifier: Apache-2.0
#include "runtime/explore/candidate_builder.hpp"

#include <exception>
#include <fuse/error.hpp>

namespace fuse::runtime {

BuiltVariant built_by(const std::function<std::shared_ptr<Variant>()>& make) {
  BuiltVariant built;
  try {
    built.variant = make();
  } catch (const Error& failed) {
    built.failed = failed.what();
    built.code = failed.code();
  } catch (const std::exception& failed) {
    built.failed = failed.what();
    built.code = ErrorCode::internal;
  }
  return built;
}

}  // namespace fuse::runtime
