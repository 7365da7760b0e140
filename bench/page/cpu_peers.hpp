// The cpu device beside its peers, on the page. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "page/tables.hpp"

namespace fuse::bench {

/// Of the newest results of bench/compare: on which CPU, with which versions, by which command; a plot of the
/// ratios; the table, losses included.
std::string cpu_peers_part(const Results&, Plots&);

}  // namespace fuse::bench
