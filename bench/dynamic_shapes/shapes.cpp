// SPDX-License-Identifier: Apache-2.0
#include "dynamic_shapes/shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/graph/rewrite_dims.hpp"

namespace fuse::bench {

std::int64_t value_of(const Dim& dim, const DimValues& dims) {
  if (dim.is_constant()) return dim.constant();
  return dim.evaluate([&](std::string_view name) { return dims.find(name)->second; });
}

ir::Graph fixed(const ir::Graph& graph, const DimValues& dims) {
  return ir::with_values(graph, [&](std::string_view name) { return dims.at(std::string(name)); });
}

DimValues drawn(const ir::Graph& graph, std::mt19937_64& random, double most) {
  for (;;) {
    DimValues dims;
    for (const ir::Symbol& symbol : graph.symbols) {
      const double low = std::log(static_cast<double>(std::max<std::int64_t>(1, symbol.range.min)));
      const double high = std::log(static_cast<double>(symbol.range.max));
      const double part = static_cast<double>(random() >> 11) * 0x1p-53;
      auto value = static_cast<std::int64_t>(std::exp(low + (high - low) * part));
      if (random() % 2 == 0 && value >= 64) value = value / 64 * 64;  // half of them are round
      dims[symbol.name] = std::clamp(value, symbol.range.min, symbol.range.max);
    }
    double bytes = 0;
    for (const ir::Node& node : graph.nodes)
      bytes += static_cast<double>(value_of(product(node.type.dims), dims)) *
               static_cast<double>(size_of(node.type.dtype));
    if (bytes <= most) return dims;
  }
}

std::string text_of(const DimValues& dims) {
  std::string text;
  for (const auto& [name, value] : dims) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

double Ratios::mean() const {
  double sum = 0;
  for (const double ratio : all) sum += std::log(ratio);
  return std::exp(sum / static_cast<double>(all.size()));
}

}  // namespace fuse::bench
