// Experiments: what the tests of fuse and its comparisons with other compilers change in a compilation, and
// no application does. CompileOptions has a handle of them, and the public headers do not say what is inside.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/executable.hpp>
#include <string>

namespace fuse {

/// Whose rules cut a graph into kernels (docs/partition.md).
enum class Cut : std::uint8_t {
  fuse,    ///< fuse's own
  apollo,  ///< APOLLO's as printed
  xla,     ///< XLA's
  tvm,     ///< TVM's
  one_op   ///< each op is a kernel of its own
};

/// What becomes of a part of the graph that one kernel could compute (docs/stitching.md).
enum class Stitch : std::uint8_t {
  mapping,   ///< a kernel for each value that a reduction makes or that is needed more than once
  no_merge,  ///< those values one after the other in one kernel, through memory and grid barriers
  full,      ///< values pass inside a kernel where its threads hold what they need (AStitch, 3.2)
};

/// Whose rules say how a kernel's values reach its threads, and how its loops are mapped to them.
enum class Schemes : std::uint8_t {
  fuse,     ///< by the cost model
  astitch,  ///< AStitch's as printed (3.3, 4.3): one kernel wherever that is possible
};

struct Experiments {
  Cut cut = Cut::fuse;
  int layers = 3;  ///< layers of APOLLO's fusion, 1 to 3: aggregation, stitching, independent branches
  Stitch stitch = Stitch::full;
  Schemes schemes = Schemes::fuse;
  /// Plants a fault, to see that a check finds it: "barrier.0" leaves out the first barrier of the kernels.
  /// Empty: what FUSE_FAULT says. docs/emulated-device.md lists them. compile throws invalid_argument where
  /// nothing in the graph can have it.
  std::string fault{};
  bool operator==(const Experiments&) const = default;
};

/// As in `compile(graph, device, {.experiments = experiments({.cut = Cut::xla})})`.
ExperimentsHandle experiments(Experiments);
const Experiments& experiments_of(const CompileOptions&);
/// Those of these options alone, to change them; valid as long as the options.
Experiments& change_experiments(CompileOptions&);

}  // namespace fuse
