// SPDX-License-Identifier: Apache-2.0
#include "schedule/decisions/version_decisions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <utility>

#include "base/key_values.hpp"
#include "base/quoting.hpp"
#include "ir/dims/dim_parser.hpp"
#include "ir/dims/lexer.hpp"
#include "plan/decision_line.hpp"
#include "schedule/decisions/decision_entries.hpp"

namespace fuse::schedule {
namespace {

using Branch = VersionTable::Branch;

constexpr const char* a_table =
    "{M, N; M <= 64 ? 1 : v0; N <= 8 ? v1 : v2; v0 M = 99, N = 9; v1; v2 for all}: the symbols, the tests, "
    "to what each "
    "leads (a test, or v and a version), and the hints of each version";
constexpr std::uint32_t most_recorded_versions = 16;

std::string shown(std::string_view text) { return printable(text.substr(0, 40)); }

std::string branch_text(const Branch& branch) {
  return fmt::format("{}{}", branch.ends ? "v" : "", branch.to);
}

class BodyReader {
 public:
  explicit BodyReader(int line) : line_(line) {}

  VersionsDecision run(std::string_view body) {
    VersionsDecision result{.line = line_};
    const std::vector<std::string_view> parts = split(body, ';');
    for (const std::string_view name : split(parts[0], ',')) result.symbols.emplace_back(name);
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const std::size_t asks = parts[i].find('?');
      if (asks == parts[i].npos) {
        add_hints(parts[i], result);
      } else {
        add_test(without_blanks(parts[i].substr(0, asks)), parts[i].substr(asks + 1), result);
      }
    }
    check(result);
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error({.code = ErrorCode::parse,
                 .message = fmt::format("{}: {}", line_of_decisions(line_), what),
                 .hint = a_table});
  }

  static std::vector<std::string_view> split(std::string_view text, char at) {
    std::vector<std::string_view> parts;
    for (;;) {
      const std::size_t end = text.find(at);
      parts.push_back(without_blanks(text.substr(0, end)));
      if (end == text.npos) return parts;
      text.remove_prefix(end + 1);
    }
  }

  template <class Number>
  Number number(std::string_view text) const {
    Number value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      fail(fmt::format("'{}' is no number", shown(text)));
    return value;
  }

  std::uint32_t version(std::string_view text) const {
    if (!text.starts_with('v')) fail(fmt::format("'{}' is no version", shown(text)));
    const auto found = number<std::uint32_t>(text.substr(1));
    if (found >= most_recorded_versions)
      fail(fmt::format("there is a version {}, and a kernel has at most {}", found, most_recorded_versions));
    return found;
  }

  Branch branch(std::string_view text) const {
    if (text.starts_with('v')) return {.ends = true, .to = version(text)};
    return {.ends = false, .to = number<std::uint32_t>(text)};
  }

  void add_test(std::string_view relation, std::string_view branches, VersionsDecision& result) const {
    const std::vector<std::string_view> both = split(branches, ':');
    if (both.size() != 2) fail(fmt::format("the test '{}' does not lead to two places", shown(relation)));
    result.tests.push_back({std::string(relation), branch(both[0]), branch(both[1])});
  }

  void add_hints(std::string_view part, VersionsDecision& result) const {
    const std::size_t end = part.find(' ');
    const std::uint32_t which = version(part.substr(0, end));
    if (which != result.each.size())
      fail(fmt::format("version {} stands where version {} has to", which, result.each.size()));
    VersionsDecision::Version& made = result.each.emplace_back();
    if (end == part.npos) return;
    std::string_view hints = without_blanks(part.substr(end));
    constexpr std::string_view of_all = "for all";
    made.for_all = hints.starts_with(of_all);
    if (made.for_all) hints = without_blanks(hints.substr(of_all.size()));
    if (hints.empty()) return;
    for (const std::string_view each : split(hints, ',')) {
      const std::size_t sign = each.find('=');
      if (sign == each.npos) fail(fmt::format("'{}' is no hint", shown(each)));
      made.hints.emplace_back(without_blanks(each.substr(0, sign)),
                              number<std::int64_t>(without_blanks(each.substr(sign + 1))));
    }
  }

  /// That each walk ends at a version, and each version and test is met.
  void check(const VersionsDecision& entry) const {
    if (entry.each.size() < 2) fail("there are fewer than two versions");
    VersionTable table{.tests = {}, .versions = static_cast<std::uint32_t>(entry.each.size())};
    for (const VersionsDecision::Test& test : entry.tests)
      table.tests.push_back({.relation = {}, .yes = test.yes, .no = test.no});
    try {
      verify(table);
    } catch (const Error& error) {
      fail(error.info().message);
    }
    for (const VersionsDecision::Version& version : entry.each)
      for (const auto& [symbol, value] : version.hints)
        if (std::find(entry.symbols.begin(), entry.symbols.end(), symbol) == entry.symbols.end())
          fail(fmt::format("there is no symbol '{}'", shown(symbol)));
  }

  const int line_;
};

}  // namespace

std::string versions_body(const VersionsDecision& entry) {
  std::string text = fmt::format("{}", fmt::join(entry.symbols, ", "));
  for (const VersionsDecision::Test& test : entry.tests)
    text += fmt::format("; {} ? {} : {}", test.relation, branch_text(test.yes), branch_text(test.no));
  for (std::size_t i = 0; i < entry.each.size(); ++i) {
    text += fmt::format("; v{}{}", i, entry.each[i].for_all ? " for all" : "");
    for (std::size_t j = 0; j < entry.each[i].hints.size(); ++j)
      text += fmt::format("{} {} = {}", j ? "," : "", entry.each[i].hints[j].first,
                          entry.each[i].hints[j].second);
  }
  return text;
}

VersionsDecision parse_versions_body(std::string_view body, int line) { return BodyReader(line).run(body); }

VersionsDecision versions_decision(const ir::Graph& graph, const Versions& versions) {
  VersionsDecision entry;
  for (const ir::Symbol& symbol : graph.symbols) entry.symbols.push_back(symbol.name);
  for (const VersionTable::Test& test : versions.table.tests)
    entry.tests.push_back({test.relation.to_string(), test.yes, test.no});
  for (const Version& version : versions.each) {
    VersionsDecision::Version& made = entry.each.emplace_back();
    made.choices = version.chosen.choices;
    made.for_all = version.conditions.empty();
    for (const ir::Symbol& symbol : graph.symbols)
      if (const auto hint = version.hints.find(symbol.name); hint != version.hints.end())
        made.hints.emplace_back(hint->first, hint->second);
  }
  return entry;
}

Versions versions_from(const VersionsDecision& entry, const ir::Graph& graph) {
  if (entry.symbols.size() != graph.symbols.size())
    refuse_entry(entry.line,
                 fmt::format("versions of {} symbols, and the graph has {}", entry.symbols.size(),
                             graph.symbols.size()),
                 "fusec plan --decisions writes those of this graph");
  ir::SymbolTable symbols;
  std::map<std::string, std::string> name;
  for (std::size_t i = 0; i < entry.symbols.size(); ++i) {
    const ir::Symbol& own = graph.symbols[i];
    symbols.emplace(entry.symbols[i], Dim::symbol(own.name, own.range));
    name.emplace(entry.symbols[i], own.name);
  }
  Versions result{.table = {.tests = {}, .versions = static_cast<std::uint32_t>(entry.each.size())}};
  for (const VersionsDecision::Test& test : entry.tests) {
    try {
      ir::Lexer lexer(test.relation, "");
      const Dim left = parse_dim(lexer, symbols);
      lexer.expect("<", "in a test");
      lexer.expect("=", "after '<'");
      const Dim right = parse_dim(lexer, symbols);
      if (lexer.peek().kind != ir::Token::Kind::end) lexer.fail("something stands behind the test");
      result.table.tests.push_back({at_most(left, right), test.yes, test.no});
    } catch (const Error& error) {
      refuse_entry(entry.line, fmt::format("the test '{}': {}", shown(test.relation), error.info().message),
                   "a test is EXTENT <= EXTENT, of the symbols that the entry names");
    }
  }
  const std::vector<std::vector<DimRelation>> conditions = conditions_of(result.table);
  for (std::size_t i = 0; i < entry.each.size(); ++i) {
    Version& version = result.each.emplace_back();
    if (!entry.each[i].for_all) version.conditions = conditions[i];
    for (const auto& [symbol, value] : entry.each[i].hints) version.hints[name.at(symbol)] = value;
    version.chosen.choices = entry.each[i].choices;
    version.share = 0;  // nobody looked at the range
  }
  return result;
}

}  // namespace fuse::schedule
