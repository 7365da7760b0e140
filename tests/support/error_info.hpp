// What an Error says. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/error.hpp>

#include "support/catch.hpp"

namespace fuse::test {

/// The Error that `body` throws; a failed requirement if it throws none.
template <class F>
ErrorInfo error_info(F&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.info();
  }
  FAIL("no fuse::Error was thrown");
  return {};
}

}  // namespace fuse::test
