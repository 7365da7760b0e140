// Several files of decisions made into one, so that all machines or ranks that measured one graph decide
// alike. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "schedule/decisions/decisions.hpp"

namespace fuse::schedule {

/// The same whatever the order of the files. How the graph is cut (options and answers) and run is what most
/// files have; of several such, what gained most, and then the lesser text. For each kernel and GEMM of that
/// cut, the choice that most files have which know it, else the lesser text. Algorithms are of one version of
/// the library: that of most files with this cut. What any file avoids is avoided.
/// Throws Error with code invalid_argument for no file, and for files of different targets.
Decisions merged(std::vector<Decisions>);

}  // namespace fuse::schedule
