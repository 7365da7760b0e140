// The rows of a run: printed as a table, written as JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/bench_json.hpp"

namespace fuse::bench {

/// What a figure should be.
struct Goal {
  enum class Kind : std::uint8_t { none, at_least, at_most, below };
  Kind kind = Kind::none;
  double limit = 0;

  bool met_by(double figure) const;
  std::string to_string() const;  ///< ">= 0.5", empty for none
};

/// One figure: the median of n samples by the wall clock, and the same from the CPU time that this process
/// and its children used, which other work on the machine disturbs less.
struct Row {
  std::string name{}, unit{};
  double figure = 0, min = 0, max = 0;
  std::optional<double> cpu{};
  int n = 1;
  Goal goal{};
  std::string how{};

  /// "yes", "no", "cpu" (only the figure from CPU time meets it), empty without a goal.
  std::string met() const;
};

class Report {
 public:
  /// From here on the file has what is known so far, each time that something is added: a kill at a time
  /// limit loses what was being measured and nothing else. With `append` the file keeps what it has of other
  /// names. Throws std::runtime_error when the file cannot be read or written.
  void write_to(const std::string& path, const Json& device, bool append);

  /// Rows and failures from here on are of this group: its name goes before theirs.
  void begin(std::string group) {
    save();
    group_ = std::move(group);
  }
  Row& add(Row row);  ///< valid until the next one, which is when it is written
  void add_case(Json row);
  void fail(const std::string& why) { failures_.push_back({group_, why}); }
  void fail(const std::string& what, const std::string& why) {
    failures_.push_back({group_ + '.' + what, why});
  }
  void skip(const std::string& what, const std::string& why) {
    skipped_.push_back({group_ + '.' + what, why});
  }

  const std::vector<Row>& rows() const { return rows_; }
  bool failed() const { return !failures_.empty(); }
  void print_table() const;
  /// Writes the file of write_to, where there is one; the last row is in it only then.
  void save() const;

 private:
  void print_failures() const;

  std::string group_;
  std::vector<Row> rows_;
  std::vector<Json> cases_;
  std::vector<std::pair<std::string, std::string>> failures_, skipped_;  // what, why
  std::string path_;                                                     // of the file; empty: none
  std::string load_before_;
  Json device_, kept_;  // kept_: what the file had
};

/// "0.52 1.10 1.31": the averages of /proc/loadavg, empty where there is none.
std::string load_average();

}  // namespace fuse::bench
