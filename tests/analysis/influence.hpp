// Which elements of an input change which elements of the output y on the reference device: dependency by
// trying. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/element.hpp"
#include "eval/evaluate.hpp"
#include "ir/ir_support.hpp"

namespace fuse::analysis_test {

/// (element of the operand, element of the result), by position in row-major order.
using Pairs = std::set<std::pair<std::int64_t, std::int64_t>>;

inline std::vector<std::int64_t> shape_of(const std::vector<Dim>& dims) {
  std::vector<std::int64_t> shape;
  for (const Dim& dim : dims) shape.push_back(dim.constant());
  return shape;
}

inline std::int64_t count_of(const std::vector<Dim>& dims) { return product(dims).constant(); }

inline std::vector<std::int64_t> coordinates(std::int64_t position, const std::vector<Dim>& dims) {
  std::vector<std::int64_t> at(dims.size());
  for (std::size_t i = dims.size(); i-- > 0;) {
    at[i] = position % dims[i].constant();
    position /= dims[i].constant();
  }
  return at;
}

inline std::int64_t position(const std::vector<std::int64_t>& at, const std::vector<Dim>& dims) {
  std::int64_t result = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) result = result * dims[i].constant() + at[i];
  return result;
}

/// What a map says, by running through it. Every coordinate must lie inside of the operand.
inline Pairs pairs_of(const analysis::IndexMap& map) {
  Pairs pairs;
  std::map<std::string, std::int64_t, std::less<>> values;
  const auto value = [&](const Dim& dim) {
    return dim.evaluate([&](std::string_view name) { return values.find(name)->second; });
  };
  const auto holds = [&](const analysis::Box& box) {
    bool inside = true;
    for (const auto& side : box.sides)
      inside = inside && value(side.low) <= value(side.value) && value(side.value) < value(side.high);
    return inside != box.outside;
  };
  for (std::int64_t result = 0; result < count_of(map.result); ++result) {
    const std::vector<std::int64_t> at = coordinates(result, map.result);
    for (std::size_t i = 0; i < at.size(); ++i) values["i" + std::to_string(i)] = at[i];
    std::vector<std::int64_t> free(map.free.size());
    const auto set = [&](std::size_t k) { values["k" + std::to_string(k)] = free[k]; };
    for (std::size_t k = 0;;) {
      if (k < free.size()) {
        set(k);
        if (free[k] < value(map.free[k].extent)) {
          ++k;
          if (k < free.size()) free[k] = 0;
          continue;
        }
      } else {
        if (!map.where || holds(*map.where)) {
          std::vector<std::int64_t> operand;
          for (std::size_t d = 0; d < map.at.size(); ++d) {
            operand.push_back(value(map.at[d]));
            REQUIRE(operand.back() >= 0);
            REQUIRE(operand.back() < map.operand[d].constant());
          }
          pairs.emplace(position(operand, map.operand), result);
        }
      }
      if (k == 0) break;
      ++free[--k];
    }
  }
  return pairs;
}

inline Pairs pairs_of(const analysis::ElementRelation& relation) {
  return relation.map ? pairs_of(*relation.map) : Pairs();
}

/// Which elements are read depends on values, so that the map says more than is read in one run.
inline bool depends_on_data(const analysis::ElementRelation& relation) {
  const auto chosen = [](const analysis::FreeVariable& free) { return free.chosen; };
  return relation.map &&
         (relation.map->may || std::any_of(relation.map->free.begin(), relation.map->free.end(), chosen));
}

/// What changes when one element of `input` does, in any of `bases` settings of all inputs: zeros, ones, and
/// random ones. An integer input is small, so that it is in and around the range of an index.
inline Pairs influence(const ir::Graph& graph, const std::string& input, int bases, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto result_of = [&](const runtime::Values& values) {
    const auto no_dims = [](std::string_view) -> std::int64_t { return 0; };
    return runtime::evaluate(graph, values, no_dims, runtime::Precision::exact).outputs.at("y");
  };
  Pairs found;
  for (int base = 0; base < bases; ++base) {
    runtime::Values values;
    for (const ir::Node& node : graph.nodes) {
      const auto* named = std::get_if<ir::NameAttr>(&node.attr);
      if (!named) continue;
      auto tensor = runtime::HostTensor::make(node.type.dtype, shape_of(node.type.dims));
      for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
        if (is_floating(node.type.dtype)) {
          tensor.set(i, base < 2 ? base : std::uniform_real_distribution(-2.0, 2.0)(random));
        } else {
          tensor.set_int(i, base < 2 ? base : static_cast<std::int64_t>(random() % 6) - 1);
        }
      }
      values.emplace(named->name, std::move(tensor));
    }
    const auto before = result_of(values);
    runtime::HostTensor& tensor = values.at(input);
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
      const double old = tensor.get(i);
      const double infinity = std::numeric_limits<double>::infinity();
      std::vector<double> tries = {0, 1, 2, 4, 100, -100};
      if (is_floating(tensor.dtype)) tries = {0, 0.75, 1000, -1000, infinity, infinity - infinity};
      for (const double value : tries) {
        tensor.set(i, value);
        const auto after = result_of(values);
        for (std::size_t r = 0; r < after.element_count(); ++r) {
          const double x = before.get(r), y = after.get(r);
          if (x != y && !(std::isnan(x) && std::isnan(y))) found.emplace(i, static_cast<std::int64_t>(r));
        }
      }
      tensor.set(i, old);
    }
  }
  return found;
}

/// What the dims promise holds of `pairs`, the elements that a result reads.
inline void check_promises(const analysis::ElementRelation& relation, const Pairs& pairs) {
  std::set<int> operand_dims, result_dims;
  for (const analysis::AlignedDim& dim : relation.dims) {
    if (dim.operand >= 0) CHECK(operand_dims.insert(dim.operand).second);
    if (dim.result >= 0) CHECK(result_dims.insert(dim.result).second);
    INFO("dim " << dim.operand << " -> " << dim.result << " " << to_string(dim.relation));
    if (dim.relation == analysis::DimMapping::general) continue;
    bool kept = true;
    for (const auto& [from, to] : pairs) {
      std::vector<std::int64_t> at = coordinates(from, relation.map->operand),
                                in = coordinates(to, relation.map->result);
      const std::int64_t a = dim.operand < 0 ? 0 : at[static_cast<std::size_t>(dim.operand)];
      const std::int64_t b = dim.result < 0 ? 0 : in[static_cast<std::size_t>(dim.result)];
      switch (dim.relation) {
        case analysis::DimMapping::bijective:
          kept = kept && a == b;
          break;
        case analysis::DimMapping::injective:
          for (std::int64_t other = 0; other < dim.result_extent.constant(); ++other) {
            in[static_cast<std::size_t>(dim.result)] = other;
            kept = kept && pairs.count({from, position(in, relation.map->result)});
          }
          break;
        case analysis::DimMapping::surjective:
          for (std::int64_t other = 0; other < dim.operand_extent.constant(); ++other) {
            at[static_cast<std::size_t>(dim.operand)] = other;
            kept = kept && pairs.count({position(at, relation.map->operand), to});
          }
          break;
        case analysis::DimMapping::general:
          break;
      }
    }
    CHECK(kept);
  }
  CHECK(operand_dims.size() == (relation.map ? relation.map->operand.size() : 0));
  CHECK(result_dims.size() == (relation.map ? relation.map->result.size() : 0));
}

}  // namespace fuse::analysis_test
