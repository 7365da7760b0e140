// The models of the table, those of AStitch's paper and of Astra's, and what AStitch's says of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/graph.hpp>
#include <string>
#include <vector>

namespace fuse::bench {

struct TableModel {
  std::string name;
  Graph (*paper)() = nullptr;
  Graph (*small)() = nullptr;    ///< null: another row has it
  Graph (*counted)() = nullptr;  ///< what is run to count bytes: the papers' sizes where a CPU can; or null
  std::string counted_size{};
  /// Memory-bound kernels of AStitch's Table 3; 0 where it has no such model.
  int astitch_xla = 0, astitch = 0;
  bool held_to_bound = true;  ///< whether there is the goal of at most 1.1 times the bound
};

const std::vector<TableModel>& table_models();

}  // namespace fuse::bench
