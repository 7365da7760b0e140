// The groups of rows, one source file each; main.cpp has the table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report.hpp"

namespace fuse::bench {

struct Settings {
  std::string graphs;  ///< the folder of .fuse files
};

void bench_elementwise(Report&, const Settings&);
void bench_softmax(Report&, const Settings&);
void bench_graph(Report&, const Settings&);
void bench_compile(Report&, const Settings&);
void bench_counts(Report&, const Settings&);

}  // namespace fuse::bench
