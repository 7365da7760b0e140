// Catch2 by one name: version 2 (Debian 12) has one header, version 3 another.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
namespace fuse::test {
inline auto has_text(const std::string& part) { return Catch::Matchers::ContainsSubstring(part); }
}  // namespace fuse::test
#else
#include <catch2/catch.hpp>
namespace fuse::test {
inline auto has_text(const std::string& part) { return Catch::Contains(part); }
}  // namespace fuse::test
#endif
