// SPDX-License-Identifier: Apache-2.0
#include "schedule/decisions/decision_entries.hpp"

#include <algorithm>

#include "plan/decision_line.hpp"

namespace fuse::schedule {

void refuse_entry(int line, const std::string& what, const std::string& hint) {
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("{}: {}", line_of_decisions(line), what),
               .hint = hint});
}

std::string entry_name(std::string_view noun, std::uint64_t key, std::optional<std::uint32_t> number) {
  return fmt::format("{}{} {:016x}", number ? fmt::format("number {} of ", *number) : "", noun, key);
}

std::string two_entries_hint(int first_line) {
  return fmt::format("the first stands in line {}: leave out one of them", first_line);
}

std::string note_of(const ir::Graph& graph, ir::NodeId root) {
  const std::string scope = graph.scope_path(graph[root].scope);
  std::string note = fmt::format("{}{}{} {}", scope, scope.empty() ? "" : ": ", graph.value_name(root),
                                 to_string(graph[root].op));
  std::replace_if(
      note.begin(), note.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, '?');
  return note;
}

}  // namespace fuse::schedule
