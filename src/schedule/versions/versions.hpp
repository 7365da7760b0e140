// Versions of a segment: ways to run it, each for a region of its dims, and the table that says which one is
// taken (BladeDISC, 5.2.1; docs/versions.md).
//
// Before:  softmax of M rows of N elements, M and N in [1, 16384], one kernel for M = N = 128
// After:   test 0: N <= 1024  yes: version 0  no: test 1
//          test 1: M <= 64    yes: version 1  no: version 2     a warp per row; several blocks; a block
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/access.hpp"
#include "ir/graph/ir_graph.hpp"
#include "plan/versions/version_table.hpp"
#include "schedule/choosers/chooser.hpp"
#include "schedule/segments/segment.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

struct Version {
  /// What its kernels are compiled under: tests that hold wherever it is taken. The last version of a table
  /// that begins with tests of indices has none.
  std::vector<DimRelation> conditions{};
  std::map<std::string, std::int64_t> hints{};  ///< the values of symbols that it was chosen for
  Chosen chosen{};                              ///< the seconds are those at the hints
  double share = 1;  ///< of the cells of the range (axes.hpp), those in whose middle it is taken
};

/// One version without tests where a single way to run serves all dims nearly as well as a static build.
struct Versions {
  VersionTable table{};
  std::vector<Version> each{};
};

/// The graph that a version's kernels are made from.
ir::Graph graph_of(const ir::Graph&, const Version&);
/// What the graph depends on: equal texts, equal graphs.
std::string facts_text(const Version&);

struct VersionOptions {
  int most = 1;  ///< versions of a segment
  /// What a version has to gain in all cells of the range together, in the excess of docs/versions.md: 0.1
  /// are 4% in one cell, or 1.4% in five.
  double price = 0.1;
};

/// Pure: same arguments, same versions. Where there is one, it is that of the declared hints. `each` is empty
/// where the chooser has no choices for the whole range. `sizes`: value_sizes of the graph (axes.hpp).
Versions versions_of(const ir::Graph&, const Segment&, std::span<const Dim> sizes, const Chooser&,
                     const Target&, const VersionOptions& = {});

}  // namespace fuse::schedule
