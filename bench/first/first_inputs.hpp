// What dist/first left in its folder of results, read back. A part that did not run left no file: that is an
// empty value and no error. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/bench_json.hpp"

namespace fuse::bench {

/// One line of parts.tsv: name, outcome, seconds and text, with tabs between them.
struct Part {
  std::string name, outcome, seconds, text;
};

/// Metrics of the first kernel of each case, by ncu's names for them.
using Profiles = std::map<std::string, std::map<std::string, std::string>>;

struct FirstInputs {
  std::vector<Part> parts;
  Json fuse, other, torch;  ///< by bench/schema.json; null where there is no file
  Profiles profiles;
  Json counts;  ///< by bench/sass_table/schema.json; null where there is no file
};

/// Throws std::runtime_error for a file that is there and cannot be read.
FirstInputs read_first(const std::string& folder, const std::string& counts_file);

/// Lines `case NAME`, each with what `ncu --csv` printed for it. Lines that are not of the table are skipped.
Profiles parse_profiles(const std::string& text);

/// The share of a copy's rate that the counts predict for a case on the GPU that the device's name has in it
/// ("NVIDIA H100 80GB HBM3": h100). Empty where there are no counts, of that case or of that GPU.
std::optional<double> predicted_share(const Json& counts, const std::string& name, const std::string& device);

}  // namespace fuse::bench
