// Several files of decisions made into one, so that all machines or ranks that measured one graph decide
// alike. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "schedule/decisions/decisions.hpp"

namespace fuse::schedule {

/// The order of the files changes nothing. The merged file takes the cut (options, answers and run) that most
/// files have, and of several such the one whose best file gained most. For each kernel and GEMM of this cut
/// it takes the choice that most of the files with this entry have, and of several such that of the file that
/// gained most, then the first in the order of texts. Algorithms come from the files that were measured with
/// the library that most files of this cut have. What any file avoids is avoided, and not taken.
/// The graph is not checked. Throws Error with code invalid_argument for no file, and for files of different
/// targets.
Decisions merged(const std::vector<Decisions>&);

}  // namespace fuse::schedule
