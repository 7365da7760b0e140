// Coverage: how often each op ran on each dtype, against the cells that are legal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/ir_graph.hpp"

namespace fuse::fuzz {

class Coverage {
 public:
  void count(const ir::Graph& graph);
  void add(ir::Op op, DType dtype, std::int64_t count) { cells_[{op, dtype}] += count; }
  const std::map<std::pair<ir::Op, DType>, std::int64_t>& cells() const { return cells_; }
  /// "exp f64": legal, and never run.
  std::vector<std::string> empty_cells() const;
  /// A table in Markdown: a row an op, a column a dtype; "-" where the op is not defined.
  std::string table() const;

 private:
  std::map<std::pair<ir::Op, DType>, std::int64_t> cells_;
};

}  // namespace fuse::fuzz
