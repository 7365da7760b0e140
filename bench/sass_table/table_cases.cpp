// SPDX-License-Identifier: Apache-2.0
#include "table_cases.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

#include "cases/cases.hpp"
#include "graphs.hpp"

namespace fuse::bench::sass {
namespace {

using Extents = std::vector<std::int64_t>;

constexpr std::int64_t elements = std::int64_t{1} << 26;  // of a sweep's case, nearly
constexpr std::int64_t row_lengths[] = {256, 1024, 4096, 16384, 65536, 262144};

/// Builders of bench/cases.json that the sweep takes too, with the links behind rows and columns.
struct Swept {
  const char* builder;
  Extents rest;
};
const Swept swept[] = {{"softmax", {}}, {"log_softmax", {}}, {"layer_norm", {}},          {"rms_norm", {}},
                       {"row_sum", {}}, {"bias_gelu", {}},   {"residual_layer_norm", {1}}};

class List {
 public:
  void add(const std::string& builder, DType dtype, const Extents& dims, std::function<Graph()> build) {
    TableCase made{.name = fmt::format("{}.{}.{}", builder, to_string(dtype), fmt::join(dims, "x")),
                   .builder = builder,
                   .dtype = std::string(to_string(dtype)),
                   .dims = dims,
                   .row_length = dims.size() > 1 && builder != "elementwise" ? dims[1] : 0,
                   .build = std::move(build)};
    if (names_.insert(made.name).second) cases.push_back(std::move(made));
  }

  void add_bench(const std::string& builder, DType dtype, const Extents& dims) {
    const auto make = builder_of(builder).build;
    add(builder, dtype, dims, [make, dtype, dims] { return make(dtype, dims); });
  }

  std::vector<TableCase> cases;

 private:
  std::set<std::string> names_;
};

void add_examples(List& list) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(FUSE_BENCH_GRAPHS))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    list.cases.push_back({.name = "example." + file.stem().string(), .builder = "example", .build = [file] {
                            std::ifstream in(file);
                            const std::string text{std::istreambuf_iterator<char>(in), {}};
                            if (!in) throw std::runtime_error("cannot read " + file.string());
                            return Graph::parse(text);
                          }});
  }
}

}  // namespace

std::vector<TableCase> table_cases() {
  List list;
  for (const DType dtype : {f32, f16, bf16}) {
    for (const std::int64_t columns : row_lengths) {
      const std::int64_t rows = elements / columns;
      for (const Swept& each : swept) {
        Extents dims = {rows, columns};
        dims.insert(dims.end(), each.rest.begin(), each.rest.end());
        list.add_bench(each.builder, dtype, dims);
      }
      for (const RowGraph& graph : row_graphs()) {
        list.add(std::string(graph.name), dtype, {rows, columns},
                 [build = graph.build, dtype, rows, columns] { return build(dtype, rows, columns); });
      }
    }
    list.add_bench("elementwise", dtype, {elements, 4});
  }
  for (const Case& each : all_cases()) {
    if (each.tagged("memory") && !each.tagged("smoke")) list.add_bench(each.builder, each.dtype, each.dims);
  }
  std::stable_sort(list.cases.begin(), list.cases.end(),
                   [](const TableCase& a, const TableCase& b) { return a.builder < b.builder; });
  add_examples(list);
  return std::move(list.cases);
}

}  // namespace fuse::bench::sass
