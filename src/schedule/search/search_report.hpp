// What a search of one kernel found. docs/search.md says how to read it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace fuse::schedule {

struct SearchReport {
  std::size_t loops = 0;            ///< of all assignments (loops.hpp)
  std::size_t classes = 0;          ///< what is left of them after coupling (couple.hpp)
  std::int64_t designs_before = 1;  ///< ways to bind the loops
  std::int64_t designs_after = 1;   ///< ways to bind the classes
  std::int64_t examined = 0;        ///< designs whose cost was asked for
  std::int64_t expanded = 0;        ///< prefixes whose options were listed
  std::int64_t pruned = 0;          ///< prefixes that the bound left out
  /// No design is cheaper. For a kernel of several phases: no design of one phase is, beside the others.
  bool proven = false;
  bool of_phases = false;      ///< the kernel has several phases, which were searched one after another
  double default_seconds = 0;  ///< of the choices that the search began with
  double seconds = 0;          ///< of those that it ends with
};

}  // namespace fuse::schedule
