// The corpus: a `.fuse` file for each failure there ever was, with the options of its run in comments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "fuzz/grow/generated_program.hpp"

namespace fuse::fuzz {

/// Sorted by name.
std::vector<std::string> corpus_files(const std::string& folder);
Case load_corpus(const std::string& path);
/// Returns the path. Throws std::runtime_error where the file cannot be written.
std::string write_corpus(const std::string& folder, const std::string& name, const Case&,
                         const std::string& comment);

}  // namespace fuse::fuzz
