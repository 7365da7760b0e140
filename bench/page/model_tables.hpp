// The part of docs/performance.md that model_table counted. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "page/results.hpp"

namespace fuse::bench {

std::string models_part(const Results&);

}  // namespace fuse::bench
