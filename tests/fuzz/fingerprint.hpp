// What the compiler decided of a graph, in a few words: a difference between two builds shows where they
// differ. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compile/pipeline/pipeline.hpp"

namespace fuse::fuzz {

/// A hash of a text, the same on every machine.
std::uint32_t hash_of(const std::string& text);

/// The stages of a compilation and the text of each: the graph after its passes, the partition, its costs,
/// the plan, the kernels with the ops of their lines.
std::vector<std::pair<std::string, std::string>> stage_texts(const Compiled&);

/// "graph 1f0c83a2 partition 77ab0e15 costs 5ad3c201 plan 0b9d41f6 kernels c3a05d27": a hash of each stage's
/// text, the same on every machine.
std::string fingerprint(const Compiled&);

}  // namespace fuse::fuzz
