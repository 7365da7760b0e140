// Graphs of sass_table that bench/cases.json does not have. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/graph.hpp>
#include <string_view>
#include <vector>

namespace fuse::bench::sass {

struct RowGraph {
  std::string_view name;
  /// Of [rows, columns]; inputs and outputs of the type, what is between in f32.
  Graph (*build)(DType, std::int64_t rows, std::int64_t columns) = nullptr;
};
const std::vector<RowGraph>& row_graphs();

}  // namespace fuse::bench::sass
