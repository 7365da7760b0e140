// What the forms and ranges of extents disprove, whatever the symbols are. What they leave open is for
// analysis::Facts, or for a guard at run time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/dim.hpp>
#include <fuse/error.hpp>
#include <fuse/relation.hpp>
#include <string>

namespace fuse::ir {

/// False when the forms and ranges show that two extents differ whatever the symbols are.
bool can_be_equal(const Dim& a, const Dim& b);
/// Why a relation cannot hold whatever the symbols are: "B is in [1, 7]"; empty when it may hold.
std::string disproof(const DimRelation&);

}  // namespace fuse::ir
