// Whether the program is under a sanitizer, asked when it runs: tests are also linked, as they are, with a
// library that is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

extern "C" {
__attribute__((weak)) void __asan_init();
__attribute__((weak)) void __tsan_init();
}

namespace fuse::test {

inline bool sanitized() { return __asan_init != nullptr || __tsan_init != nullptr; }

/// Rounds of a long test: a fifth, or less, where each takes ten times as long. What they find they find
/// unsanitized.
template <class Count>
Count fewer(Count rounds, Count divisor = 5) {
  return sanitized() ? rounds / divisor : rounds;
}

}  // namespace fuse::test
