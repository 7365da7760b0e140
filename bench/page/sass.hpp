// The part of docs/performance.md that shows the counts of sass_table. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "page/tables.hpp"

namespace fuse::bench {

std::string sass_part(const Results&, Plots&);

}  // namespace fuse::bench
