// The results on file. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/bench_json.hpp"

namespace fuse::bench {

struct ResultFile {
  std::string name;  ///< "2026-11-21-epyc-2-cores.json"
  Json json;

  /// "2026-11-21, AMD EPYC, 2 cores, load 0.89 before and 1.29 after: [file](...)"
  std::string origin() const;
};

/// A case's row and the file it is of.
struct CaseRow {
  const ResultFile* file = nullptr;
  Json row;

  const Json& at(const char* key) const { return row.at(key); }
  std::string text(const char* key) const { return row.at(key).get<std::string>(); }
  bool measured() const { return row.contains("device_us"); }
  double device_us() const { return row.at("device_us").at("median").get<double>(); }
  double floor() const;  ///< bytes
};

class Results {
 public:
  /// Reads and checks every .json of the folder; throws std::runtime_error naming what does not fit its
  /// schema.
  explicit Results(const std::string& folder);

  /// The newest file with rows of the group, of that kind of device where one is named; or null.
  const ResultFile* newest_with(const std::string& group, const std::string& kind = "") const;
  /// The newest file of bench/compare, the cpu device beside its peers; or null.
  const ResultFile* newest_compared() const;
  /// The newest row of each case and program (`by`) on a kind of device, in the order of bench/cases.json.
  std::vector<CaseRow> cases(const std::string& kind) const;
  /// What sass_table counted; null where it is not on file.
  const Json* sass() const { return sass_ ? &*sass_ : nullptr; }

 private:
  std::vector<ResultFile> files_;  // oldest first
  std::optional<Json> sass_;
};

}  // namespace fuse::bench
