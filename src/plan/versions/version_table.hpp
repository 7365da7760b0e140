// VersionTable: which of several ways to run a segment is taken, by the dims alone (BladeDISC, 5.2).
//
//   test 0: M * N <= 2143289344    yes: test 1       no: version 2
//   test 1: N <= 1024              yes: version 0    no: version 1
//
// Whatever the dims are, a test is yes or no, so that each walk ends at one version: docs/versions.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <fuse/relation.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace fuse::schedule {

struct VersionTable {
  /// Where a walk goes on: to another test, or to its end, a version.
  struct Branch {
    bool ends = true;
    std::uint32_t to = 0;  ///< the number of the version, or of the test
    bool operator==(const Branch&) const = default;
  };
  struct Test {
    DimRelation relation{};
    Branch yes{}, no{};
    bool operator==(const Test&) const = default;
  };
  std::vector<Test> tests{};  ///< walks begin at the first; without tests, version 0 is taken
  std::uint32_t versions = 1;
  bool operator==(const VersionTable&) const = default;
};

/// The version for dims of which `value` tells the values.
std::uint32_t version_for(const VersionTable&, const std::function<std::int64_t(const Dim&)>& value);

/// For each version, what holds wherever it is taken: the tests that all walks to it have in common, with
/// "no" turned around where a relation can say it. Of several bounds of one extent, the closest.
std::vector<std::vector<DimRelation>> conditions_of(const VersionTable&);

/// The table whose version i is that one's `name[i]`; several may have one name. Tests that decide nothing
/// are left out. The names are 0, 1, 2 and so on.
VersionTable renamed(const VersionTable&, const std::vector<std::uint32_t>& name);

/// One line per test, as above, each with `indent` before it. `noun`: what a version is called.
std::string to_string(const VersionTable&, const std::string& indent = "", std::string_view noun = "version");

/// Throws an internal Error unless each test and each version can be reached, each test in one way from a
/// test before it, and branches lead to what exists.
void verify(const VersionTable&);

}  // namespace fuse::schedule
