// The inputs and parameters of a run: from .npy files, or random. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/executable.hpp>
#include <string>
#include <vector>

#include "eval/evaluate.hpp"
#include "ir/graph/ir_graph.hpp"

namespace fuse::fusec {

struct Inputs {
  DimValues dims;
  runtime::Values values;  ///< of every input and parameter
};

/// `files`: "x=x.npy". A symbol that `dims` leaves open takes its value from the shapes of the files where it
/// can. The rest is random: floats are normal with deviation 1, bools fair, integers in [0, 8), or in the
/// range of the gathered axis where a gather uses them. Where an op needs positive values (wished_positive),
/// floats are made so, and integers lie in [1, 8). `before`: random values of this graph and seed for other
/// dims; floats of the same shape are taken from there, as they would be the same.
Inputs make_inputs(const ir::Graph& graph, const std::vector<std::string>& files,
                   const std::vector<std::string>& dims, std::uint64_t seed, runtime::Values before = {});

}  // namespace fuse::fusec
