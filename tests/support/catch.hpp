// Catch2 by one name: version 2 (Debian 12) has one header, version 3 another.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
namespace Catch {  // as version 2 names it
inline auto Contains(const std::string& part) { return Matchers::ContainsSubstring(part); }
}  // namespace Catch
#else
#include <catch2/catch.hpp>
#endif
