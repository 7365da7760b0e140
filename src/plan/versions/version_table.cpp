// SPDX-License-Identifier: Apache-2.0
#include "plan/versions/version_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fuse/error.hpp>
#include <optional>

namespace fuse::schedule {
namespace {

using Branch = VersionTable::Branch;
using Test = VersionTable::Test;

std::string branch_text(const Branch& branch, std::string_view noun = "version") {
  return fmt::format("{} {}", branch.ends ? noun : "test", branch.to);
}

/// What holds where the relation does not. Extents are integers.
std::optional<DimRelation> opposite_of(const DimRelation& relation) {
  if (relation.kind != DimRelation::Kind::at_most) return std::nullopt;
  return at_least(relation.left, relation.right + 1);
}

/// Copies what is reached from a branch, with other names.
class Renaming {
 public:
  Renaming(const VersionTable& table, const std::vector<std::uint32_t>& name) : table_(table), name_(name) {}

  VersionTable run() {
    for (const std::uint32_t name : name_) result_.versions = std::max(result_.versions, name + 1);
    copy({.ends = table_.tests.empty(), .to = 0});
    return std::move(result_);
  }

 private:
  /// The only version behind the branch; none: there are several.
  std::optional<std::uint32_t> only(const Branch& branch) const {
    if (branch.ends) return name_.at(branch.to);
    const Test& test = table_.tests[branch.to];
    const std::optional<std::uint32_t> yes = only(test.yes), no = only(test.no);
    return yes == no ? yes : std::nullopt;
  }

  Branch copy(const Branch& branch) {
    if (const std::optional<std::uint32_t> version = only(branch)) return {.ends = true, .to = *version};
    const auto at = static_cast<std::uint32_t>(result_.tests.size());
    const Test& test = table_.tests[branch.to];
    result_.tests.push_back({.relation = test.relation});
    const Branch yes = copy(test.yes), no = copy(test.no);
    result_.tests[at].yes = yes;
    result_.tests[at].no = no;
    return {.ends = false, .to = at};
  }

  const VersionTable& table_;
  const std::vector<std::uint32_t>& name_;
  VersionTable result_{};
};

[[noreturn]] void refuse_table(const std::string& message) {
  throw Error({.kind = ErrorKind::internal,
               .code = ErrorCode::internal,
               .message = "a table of versions: " + message});
}

/// Whether the first is true wherever the second is: a bound that is further away.
bool is_implied(const DimRelation& a, const DimRelation& by) {
  if (a.kind != DimRelation::Kind::at_most || by.kind != a.kind) return false;
  if (a.left == by.left && a.right.is_constant() && by.right.is_constant())
    return by.right.constant() <= a.right.constant();
  return a.right == by.right && a.left.is_constant() && by.left.is_constant() &&
         a.left.constant() <= by.left.constant();
}

std::vector<DimRelation> closest(const std::vector<DimRelation>& relations) {
  std::vector<DimRelation> result;
  for (std::size_t i = 0; i < relations.size(); ++i) {
    bool needed = true;
    for (std::size_t j = 0; j < relations.size(); ++j) {
      const bool implied = j != i && is_implied(relations[i], relations[j]);
      needed = needed && !(implied && (j < i || relations[i] != relations[j]));
    }
    if (needed) result.push_back(relations[i]);
  }
  return result;
}

/// Walks all ways, and notes for each version what holds on all that lead to it.
class TableWalks {
 public:
  explicit TableWalks(const VersionTable& table) : table_(table), common_(table.versions) {}

  std::vector<std::vector<DimRelation>> run() {
    walk({.ends = table_.tests.empty(), .to = 0});
    std::vector<std::vector<DimRelation>> result;
    for (const auto& common : common_) result.push_back(closest(common.value_or(std::vector<DimRelation>())));
    return result;
  }

 private:
  void walk(const Branch& branch) {
    if (branch.ends) return end(branch.to);
    const Test& test = table_.tests[branch.to];
    path_.push_back(test.relation);
    walk(test.yes);
    path_.pop_back();
    const std::optional<DimRelation> turned = opposite_of(test.relation);
    if (turned) path_.push_back(*turned);
    walk(test.no);
    if (turned) path_.pop_back();
  }

  void end(std::uint32_t version) {
    std::optional<std::vector<DimRelation>>& common = common_[version];
    if (!common) {
      common = path_;
      return;
    }
    std::erase_if(*common, [&](const DimRelation& each) {
      return std::find(path_.begin(), path_.end(), each) == path_.end();
    });
  }

  const VersionTable& table_;
  std::vector<DimRelation> path_;
  std::vector<std::optional<std::vector<DimRelation>>> common_;
};

}  // namespace

VersionTable renamed(const VersionTable& table, const std::vector<std::uint32_t>& name) {
  return Renaming(table, name).run();
}

std::uint32_t version_for(const VersionTable& table, const std::function<std::int64_t(const Dim&)>& value) {
  Branch at{.ends = table.tests.empty(), .to = 0};
  while (!at.ends) {
    const Test& test = table.tests[at.to];
    at = test.relation.holds(value(test.relation.left), value(test.relation.right)) ? test.yes : test.no;
  }
  return at.to;
}

std::vector<std::vector<DimRelation>> conditions_of(const VersionTable& table) {
  return TableWalks(table).run();
}

std::string to_string(const VersionTable& table, const std::string& indent, std::string_view noun) {
  std::string text;
  for (std::size_t i = 0; i < table.tests.size(); ++i) {
    const Test& test = table.tests[i];
    text += fmt::format("{}test {}: {}  yes: {}  no: {}\n", indent, i, test.relation.to_string(),
                        branch_text(test.yes, noun), branch_text(test.no, noun));
  }
  return text;
}

void verify(const VersionTable& table) {
  if (table.versions == 0) refuse_table("it has no version");
  std::vector<int> tests(table.tests.size()), versions(table.versions);
  if (table.tests.empty()) ++versions[0];
  for (std::size_t i = 0; i < table.tests.size(); ++i) {
    for (const Branch& branch : {table.tests[i].yes, table.tests[i].no}) {
      std::vector<int>& reached = branch.ends ? versions : tests;
      if (branch.to >= reached.size())
        refuse_table(fmt::format("test {} leads to {}, which does not exist", i, branch_text(branch)));
      if (!branch.ends && branch.to <= i)
        refuse_table(fmt::format("test {} leads back to {}", i, branch_text(branch)));
      ++reached[branch.to];
    }
  }
  for (std::size_t i = 1; i < tests.size(); ++i) {
    if (tests[i] != 1) refuse_table(fmt::format("{} branches lead to test {}", tests[i], i));
  }
  for (std::size_t i = 0; i < versions.size(); ++i) {
    if (versions[i] == 0) refuse_table(fmt::format("no branch leads to version {}", i));
  }
}

}  // namespace fuse::schedule
