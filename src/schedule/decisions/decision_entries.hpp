// What entries of decisions have in common: a key, a number among those with that key, and how they are
// refused. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <fuse/error.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph/ir_graph.hpp"

namespace fuse::schedule {

/// Throws Error with code invalid_argument: the line, what is wrong, and what would be right.
[[noreturn]] void refuse_entry(int line, const std::string& what, const std::string& hint);
/// "kernel 6f1c2a9be0d31455", "number 2 of kernel 6f1c2a9be0d31455"
std::string entry_name(std::string_view noun, std::uint64_t key, std::optional<std::uint32_t> number);
/// The hint where there are two equal entries.
std::string two_entries_hint(int first_line);
/// The text of the comment above an entry, "softmax: %7 div".
std::string note_of(const ir::Graph&, ir::NodeId root);

/// The segments of each key, in the order of the plan.
using SegmentsByKey = std::map<std::uint64_t, std::vector<std::uint32_t>>;

/// Finds the segments of each entry; entries of one segment come before those of all with the key.
/// `take(entry, segments)` reports an entry that does not fit its segments, and returns false. `unfit(entry,
/// what, hint)` is called for entries that have no segment, or are there twice. `others`: the hint for an
/// unknown key.
template <class Entry, class Take, class Unfit>
void match_entries(std::string_view noun, const std::string& graph, const std::vector<Entry>& entries,
                   const SegmentsByKey& known, const std::string& others, const Take& take,
                   const Unfit& unfit) {
  std::map<std::pair<std::uint64_t, std::optional<std::uint32_t>>, int> lines;
  for (const bool of_one : {true, false}) {
    for (const Entry& entry : entries) {
      if (entry.occurrence.has_value() != of_one) continue;
      const auto found = known.find(entry.key);
      if (found == known.end()) {
        unfit(entry, fmt::format("graph '{}' has no {}", graph, entry_name(noun, entry.key, std::nullopt)),
              others);
        continue;
      }
      std::vector<std::uint32_t> segments = found->second;
      const std::string name = entry_name(noun, entry.key, entry.occurrence);
      if (of_one && *entry.occurrence >= segments.size()) {
        unfit(entry, "there is no " + name, fmt::format("numbers are 0 to {}", segments.size() - 1));
        continue;
      }
      if (of_one) segments = {segments[*entry.occurrence]};
      if (!take(entry, segments)) continue;
      const auto [first, added] = lines.emplace(std::pair(entry.key, entry.occurrence), entry.line);
      if (!added) unfit(entry, name + " has two entries", two_entries_hint(first->second));
    }
  }
}

/// Adds one entry per key, with its usual value, and one for each segment that differs, for the segments that
/// have a value, in their order. `value(segment)` is null for a segment that has none.
template <class Value, class Add>
void summarise_entries(const SegmentsByKey& known, const Value& value, const Add& add) {
  std::map<std::uint32_t, std::pair<std::uint64_t, std::optional<std::uint32_t>>> entries;  // by segment
  for (const auto& [key, segments] : known) {
    bool all = true;
    for (const std::uint32_t segment : segments) all = all && value(segment);
    for (std::uint32_t i = 0; i < segments.size(); ++i) {
      if (!value(segments[i])) continue;
      if (all && i > 0 && *value(segments[i]) == *value(segments[0])) continue;
      entries.emplace(segments[i], std::pair(key, all && i == 0 ? std::nullopt : std::optional(i)));
    }
  }
  for (const auto& [segment, entry] : entries) add(segment, entry.first, entry.second);
}

}  // namespace fuse::schedule
