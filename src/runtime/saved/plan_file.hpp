// Saved plans: programs with their binaries, each for a target, in one file (docs/deploy.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/binary.hpp"
#include "plan/program.hpp"
#include "runtime/device/build.hpp"
#include "target/compatibility.hpp"

namespace fuse::runtime {

/// What an executable was made from, as text. Runs need none of it.
struct Provenance {
  std::string explanation, source;  ///< as Executable's
  std::string graph, options;       ///< as Origin's: for a repro
};

/// The program is kept as bytes until it is known to fit.
struct SavedBuild {
  std::string program;  ///< archived
  std::string maker;    ///< the maker of its kernels' images
  std::vector<Binary::Image> images;
};

/// A plan for one target.
struct SavedTarget {
  std::vector<Fit> fits;
  std::vector<SavedBuild> builds;
  Provenance provenance{};  ///< empty in the cache, whose users have the graph
};

/// A program and its binary.
struct RunnableBuild {
  Program program;
  Binary binary;
};

/// As Executable::save writes it.
std::string plan_file(const std::vector<SavedTarget>&);
/// Throws file_format and incompatible_version; `name` is the file's.
std::vector<SavedTarget> parse_plan_file(std::string_view file, const std::string& name);

SavedBuild saved_build(const Program&, const Binary&);
SavedTarget saved_target(std::vector<Fit> fits, const std::vector<Build>&, Provenance = {});
/// Checks all that a run relies on. Throws file_format.
std::vector<RunnableBuild> runnable(SavedTarget, const std::string& name);
/// With their kernels on the device.
std::vector<Build> loaded_builds(std::vector<RunnableBuild>, Backend&);

}  // namespace fuse::runtime
