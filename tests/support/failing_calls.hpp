// Calls of the C library that building and keeping kernels makes, counted, and one of them failing. The
// functions stand in this program, so that the library's and the C++ library's calls come here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace fuse::test {

/// While one lives, the `nth` call from now on (of any thread, 1-based; 0: none) fails as its function does.
/// One at a time.
class FailingCalls {
 public:
  explicit FailingCalls(int nth = 0);
  /// Instead of the nth call, the process dies as by kill -9.
  static void die_at(int nth);
  ~FailingCalls();
  FailingCalls(const FailingCalls&) = delete;
  FailingCalls& operator=(const FailingCalls&) = delete;
  /// Names of the functions that were called, in order.
  std::vector<std::string> calls() const;
};

}  // namespace fuse::test
