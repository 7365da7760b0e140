// The cases of bench/cases.json, and the graphs they name. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/dtype.hpp>
#include <fuse/graph.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace fuse::bench {

using Extents = std::vector<std::int64_t>;

struct Case {
  std::string name;  ///< "softmax.f32.512x256"
  std::string builder;
  DType dtype = f32;
  Extents dims;
  std::vector<std::string> tags;

  bool tagged(std::string_view tag) const;
};

/// Throws std::runtime_error for a list that does not fit the builders, and for a selection of what is no
/// case.
std::vector<Case> all_cases();

/// The cases of the cpu device beside its peers, which bench/compare runs; none of them is in all_cases.
std::vector<Case> cpu_cases();

/// The cases that every part of the filter fits, by comma: a part is a case's whole name, which no other case
/// fits then, or a tag, or a part of names. What fits and is `smoke` or not, as `smoke` says.
std::vector<Case> cases_that_fit(const std::string& filter, bool smoke);

/// A graph by name. Inputs are x, a, r0, r1, ...; what a model would learn is a parameter; the output is y.
struct Builder {
  std::string_view name;
  std::size_t axes = 0;
  bool rows_are_independent = false;  ///< the first n rows of the result need the first n rows of the inputs
  Graph (*build)(DType, const Extents&) = nullptr;
};
/// Throws std::runtime_error for an unknown name.
const Builder& builder_of(std::string_view name);

}  // namespace fuse::bench
