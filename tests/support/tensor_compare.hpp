// runtime::compare with its text in the failure of a test.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/catch.hpp"
#include "tensors/compare.hpp"

namespace fuse::test {

using runtime::compare;
using runtime::CompareResult;

inline void require_match(const CompareResult& result) {
  INFO(result.text);
  REQUIRE(result.mismatches == 0);
}

/// |got - exact| <= abs + rel * |exact| everywhere.
inline void require_close(const runtime::HostTensor& got, const runtime::HostTensor& exact, double abs,
                          double rel) {
  require_match(compare(got, exact, abs, rel));
}

inline void require_close(const runtime::HostTensor& got, const runtime::HostTensor& exact,
                          const runtime::Bound& bound) {
  require_match(compare(got, exact, bound));
}

/// The same dtype, shape and bytes: stricter than a bound of 0, which lets -0 and every NaN through.
inline void require_identical(const runtime::HostTensor& got, const runtime::HostTensor& expected) {
  INFO(compare(got, expected, 0, 0).text);
  REQUIRE(to_string(got.dtype) == to_string(expected.dtype));
  REQUIRE(got.shape == expected.shape);
  REQUIRE((got.data == expected.data));
}

}  // namespace fuse::test
