// The parts of docs/performance.md that come from results. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "page/results.hpp"

namespace fuse::bench {

/// File names under docs/plots and their SVG text.
using Plots = std::map<std::string, std::string>;

/// `kind`: of device; empty for any.
std::string rows_table(const Results&, const std::string& group, const std::string& kind);
std::string counts_table(const Results&);
/// Of `fuse` on a kind of device, with plots.
std::string cases_part(const Results&, const std::string& kind, Plots&);
/// fuse beside the peers on a GPU.
std::string peers_part(const Results&);

}  // namespace fuse::bench
