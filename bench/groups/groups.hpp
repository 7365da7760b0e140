// The groups of rows, one source file each; main.cpp has the table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/device.hpp>
#include <string>
#include <vector>

#include "report/report.hpp"

namespace fuse::bench {

/// A file of docs/decisions.md, read.
struct DecisionsFile {
  std::string path, text;
};

struct Settings {
  std::string graphs;  ///< the folder of .fuse files
  std::string filter;  ///< group `cases` picks by it: parts of names and tags by comma, all of which fit
  double check_elements = 8e6;             ///< that the reference evaluates of a case at most
  std::vector<DecisionsFile> decisions{};  ///< each case once by each of them, if there are any
  Device device;                           ///< of the groups `cases`, `ladder` and `probe`
};

void bench_elementwise(Report&, const Settings&);
void bench_softmax(Report&, const Settings&);
void bench_graph(Report&, const Settings&);
void bench_compile(Report&, const Settings&);
void bench_deploy(Report&, const Settings&);
void bench_counts(Report&, const Settings&);
void bench_ladder(Report&, const Settings&);
void bench_probe(Report&, const Settings&);
void bench_cases(Report&, const Settings&);
bool any_case(const Settings&);  ///< whether bench_cases has one to run

}  // namespace fuse::bench
