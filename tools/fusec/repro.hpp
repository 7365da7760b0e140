// Repros: what a failed run leaves where FUSE_REPRO names a directory (docs/debugging.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "commands.hpp"

namespace fuse::fusec {

/// Whether the path is a folder with a repro.
bool is_repro(const std::string& path);

/// What makes the run fail again, on the checked emulated device unless --device names another one: the
/// graph, its dims and options, the planted fault, the values that were kept; others are random. What failed,
/// for a person. Throws parse, io.
std::string replay(RunOptions& options);

}  // namespace fuse::fusec
