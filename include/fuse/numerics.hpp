// check_numerics: which ops of a graph make a NaN or an Inf (docs/debugging.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/error.hpp>
#include <fuse/executable.hpp>
#include <fuse/export.hpp>
#include <fuse/graph.hpp>
#include <span>
#include <string>
#include <vector>

namespace fuse {
inline namespace v0 {

/// A value of a graph that has a NaN though nothing that it is computed of has one, or an Inf though nothing
/// that it is computed of has a NaN or an Inf.
struct NotFinite {
  std::string value;          ///< "%8 = log f32[4] in encoder.0"
  SourceLocation location{};  ///< where the program built it
  std::int64_t index = 0;     ///< the position of its first such element, row-major
  double element = 0;         ///< NaN, inf or -inf
};

/// The value as text: "%8 = log f32[4] in encoder.0 at main.cpp:4 has NaN at element 2".
FUSE_COMPILER_API std::string to_string(const NotFinite&);

/// Every such value, in the order in which they were built; empty where all is finite. Inputs and parameters
/// are values too; constants are not reported, since they are what the program says.
///
/// Compiles the graph with every value kept, runs it once on `stream`, after its work so far, and waits.
/// `buffers` are those of Prepared::run, by slot; outputs' are not used and may be left out, and an input
/// that an output takes the buffer of is not written. Takes device memory for every value at once. Values
/// that are kept are not fused as before: what fusing alone makes wrong is found by `fusec bisect`. Throws
/// what compile, prepare and run report.
FUSE_COMPILER_API std::vector<NotFinite> check_numerics(const Graph& graph, const Device& device,
                                                        const DimValues& dims, Stream& stream,
                                                        std::span<const BufferView> buffers,
                                                        const CompileOptions& options = {});

}  // namespace v0
}  // namespace fuse
