// The cases of sass_table. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <fuse/graph.hpp>
#include <string>
#include <vector>

namespace fuse::bench::sass {

struct TableCase {
  std::string name;     ///< "softmax.bf16.65536x1024", as in bench/cases.json; "example.bert_layer"
  std::string builder;  ///< "softmax"; of examples/graphs: "example"
  std::string dtype{};
  std::vector<std::int64_t> dims{};
  std::int64_t row_length = 0;  ///< 0: not of rows
  std::function<Graph()> build{};
};

/// Every memory-bound case of bench/cases.json, sweeps over row lengths of about 2^26 elements, and every
/// graph of examples/graphs. Throws std::runtime_error where a file of examples/graphs cannot be read.
std::vector<TableCase> table_cases();

}  // namespace fuse::bench::sass
