// GemmPlaces: where a GEMM puts its matrices when its result is wanted with the dims in another order, as
// attention wants its heads side by side. A call of the library takes one stride between rows and one between
// the matrices of its batch; a batch of two strides takes several calls, or a step that transposes.
//
// Before:  piece gemm {%5} batch H, m S, n D      piece kernel {%6} transpose of %5 to [S, H, D]
// After:   piece gemm {%5} writes into %6: rows H * D apart, H matrices D apart
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "analysis/facts.hpp"
#include "ir/graph.hpp"

namespace fuse::schedule {

/// Of the result, in elements. Element (i, j) of matrix q of call p is at p * outer_stride + q * inner_stride
/// + i * row + j.
struct GemmPlaces {
  Dim row{};
  Dim inner = 1, inner_stride = 0;  ///< matrices of a call
  Dim outer = 1, outer_stride = 0;  ///< calls
  bool operator==(const GemmPlaces&) const = default;
};

/// "rows 768 apart, 12 matrices 64 apart, 2 calls 98304 apart"
std::string to_string(const GemmPlaces&);

struct PlacesChoice {
  std::optional<GemmPlaces> places{};
  std::string refused{};  ///< why a step transposes; beside places: since it costs less
};

/// For a transpose of a matmul's result. Several calls are taken where they are expected to cost less than
/// the step that transposes: a read and a write of the result, and one launch, which is worth `launch_bytes`
/// of traffic.
PlacesChoice places_behind(const ir::Graph&, ir::NodeId transpose, const analysis::Facts&,
                           double launch_bytes);

}  // namespace fuse::schedule
