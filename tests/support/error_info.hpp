// What an Error says, and what a text has. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/error.hpp>
#include <string_view>

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

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace fuse::test
