// The random shapes of dynamic_shapes, and what is made of ratios over them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/dim_values.hpp>
#include <random>
#include <string>
#include <vector>

#include "ir/graph/ir_graph.hpp"

namespace fuse::bench {

struct Settings {
  int versions = 8, builds = 4, shapes = 200;
  std::uint64_t seed = 34;
  bool each_shape = false;  ///< of the count of instructions: a line for each shape
  std::string keep{};       ///< a folder for the texts and disassemblies that are counted; empty: none
};

constexpr double most_bytes = 8e9;  // of all values of a graph at a shape

std::int64_t value_of(const Dim&, const DimValues&);

/// The graph with numbers in place of its symbols.
ir::Graph fixed(const ir::Graph&, const DimValues&);

/// Log-uniform, half of them multiples of 64.
DimValues drawn(const ir::Graph&, std::mt19937_64& random, double most = most_bytes);

/// "M=842 N=62"
std::string text_of(const DimValues&);

/// Ratios of one executable to a build for each shape.
struct Ratios {
  std::vector<double> all{};
  double worst = 0;
  DimValues worst_at{};
  void add(double ratio, const DimValues& dims) {
    all.push_back(ratio);
    if (ratio > worst) worst = ratio, worst_at = dims;
  }
  double mean() const;  ///< geometric
};

}  // namespace fuse::bench
