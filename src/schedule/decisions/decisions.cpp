// SPDX-License-Identifier: Apache-2.0
#include "schedule/decisions/decisions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fuse/error.hpp>

#include "schedule/decisions/decision_entries.hpp"
#include "schedule/decisions/gemm_decisions.hpp"
#include "schedule/decisions/version_decisions.hpp"
#include "schedule/mapping/schedule.hpp"
#include "schedule/segments/staged.hpp"

namespace fuse::schedule {
namespace {

/// As much of a text as a message has room for.
std::string shortened(const std::string& text) {
  constexpr std::size_t longest = 2000;
  return text.size() <= longest ? text : text.substr(0, longest) + "...";
}

/// Whether a kernel that runs so has grid barriers.
bool waits(const ir::Graph& graph, const Segment& segment, const KernelChoices& choices) {
  if (segment.horizontal()) return false;
  const Choices& first = choices.phases[0];
  const bool parts =
      (splits_rows(first) && first.cluster() == 1) || has_columns(staged(graph, segment.phases[0], first));
  return choices.phases.size() > 1 || (parts && first.blocks > 0);
}

/// Why the segment cannot run in this way; empty if it can.
std::string defect_of(const ir::Graph& graph, const Segment& segment, const KernelChoices& choices,
                      const DecisionOptions& options, const Target& target) {
  std::string defect = misfit(graph, segment, choices, target);
  if (defect.empty() && !options.grid_barriers && waits(graph, segment, choices))
    defect = "its blocks wait for each other, and grid barriers are off";
  return defect;
}

/// The content key of each form.
std::vector<std::uint64_t> keys_of(const ir::Graph& graph, const EqualSegments& segments) {
  std::vector<std::uint64_t> keys;
  for (const std::uint32_t first : segments.first) keys.push_back(content_key(graph, segments.forms[first]));
  return keys;
}

/// The kernel segments by their keys, in order.
SegmentsByKey by_key(const ir::Graph& graph, const EqualSegments& segments) {
  const std::vector<std::uint64_t> keys = keys_of(graph, segments);
  SegmentsByKey result;
  for (std::uint32_t i = 0; i < segments.form_of.size(); ++i) {
    if (segments.form_of[i] != EqualSegments::none) result[keys[segments.form_of[i]]].push_back(i);
  }
  return result;
}

}  // namespace

Decisions decisions_of(const ir::Graph& graph, const Partition& partition, const EqualSegments& segments,
                       const VersionsOfSegments& versions, const Target& target) {
  Decisions result{.target = target_text(target)};
  const auto choices = [&](std::uint32_t segment) -> const KernelChoices* {
    return versions.contains(segment) ? nullptr : &partition.segments[segment].chosen.value().choices;
  };
  summarise_entries(by_key(graph, segments), choices,
                    [&](std::uint32_t segment, std::uint64_t key, std::optional<std::uint32_t> number) {
                      result.kernels.push_back(
                          {key, number, *choices(segment), note_of(graph, partition.segments[segment].root)});
                    });
  std::map<std::uint32_t, VersionsDecision> tables;
  for (const auto& [segment, each] : versions) tables.emplace(segment, versions_decision(graph, *each));
  for (const auto& [key, alike] : by_key(graph, segments)) {
    const VersionsDecision* first = nullptr;  // the entry for all, where all have versions
    const bool all = std::all_of(alike.begin(), alike.end(),
                                 [&](std::uint32_t segment) { return tables.contains(segment); });
    for (std::uint32_t i = 0; i < alike.size(); ++i) {
      const auto table = tables.find(alike[i]);
      if (table == tables.end() || (first && table->second.says_the_same(*first))) continue;
      VersionsDecision& entry = result.versions.emplace_back(table->second);
      entry.key = key;
      entry.note = note_of(graph, partition.segments[alike[i]].root);
      if (!all || i > 0) entry.occurrence = i;
      if (all && i == 0) first = &table->second;
    }
  }
  result.gemms = gemm_decisions_of(graph, partition);
  return result;
}

RecordedChoices::RecordedChoices(const Decisions& decisions, const DecisionOptions& options,
                                 const ir::Graph& graph, const Partition& partition,
                                 const EqualSegments& segments, const Target& target) {
  const SegmentsByKey known = by_key(graph, segments);
  const auto unfit = [&](const KernelDecision& entry, const std::string& what, const std::string& hint) {
    ++unfit_;
    if (!options.skip_unfit) refuse_entry(entry.line, what, hint);
  };
  const auto take = [&](const KernelDecision& entry, const std::vector<std::uint32_t>& all) {
    const std::string defect = defect_of(graph, partition.segments[all[0]], entry.choices, options, target);
    if (defect.empty()) {
      for (const std::uint32_t segment : all) of_segment_.emplace(segment, entry.choices);
      return true;
    }
    unfit(entry, fmt::format("{} cannot run so: {}", entry_name("kernel", entry.key, std::nullopt), defect),
          fmt::format("the entry means {{{}}}; fusec nests lists nests of the kernel, docs/decisions.md what "
                      "may stand beside them",
                      shortened(entry.choices.to_string())));
    return false;
  };
  match_entries(
      "kernel", graph.name, decisions.kernels, known,
      fmt::format("it has {} kernels. By other answers, or by the cost of this entry, the graph may "
                  "be cut otherwise: keep the lines stitch, cooperative, regional and horizontal",
                  known.size()),
      take, unfit);
  take_versions(decisions, options, graph, partition, known, target);
}

void RecordedChoices::take_versions(const Decisions& decisions, const DecisionOptions& options,
                                    const ir::Graph& graph, const Partition& partition,
                                    const SegmentsByKey& known, const Target& target) {
  const auto unfit = [&](const VersionsDecision& entry, const std::string& what, const std::string& hint) {
    ++unfit_;
    if (!options.skip_unfit) refuse_entry(entry.line, what, hint);
  };
  const auto take = [&](const VersionsDecision& entry, const std::vector<std::uint32_t>& all) {
    try {
      const Versions versions = versions_from(entry, graph);
      for (std::size_t i = 0; i < versions.each.size(); ++i) {
        const std::string defect = defect_of(graph_of(graph, versions.each[i]), partition.segments[all[0]],
                                             entry.each[i].choices, options, target);
        if (defect.empty()) continue;
        refuse_entry(entry.each[i].line,
                     fmt::format("version {} of {} cannot run so: {}", i,
                                 entry_name("kernel", entry.key, std::nullopt), defect),
                     fmt::format("the entry means {{{}}}", shortened(entry.each[i].choices.to_string())));
      }
      for (const std::uint32_t segment : all) versions_.emplace(segment, versions);
      return true;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::user) throw;
      const bool has_line = error.code() == ErrorCode::invalid_argument;
      if (has_line && !options.skip_unfit) throw;
      unfit(entry, "no dims can take one of its versions: " + error.info().message, error.info().hint);
      return false;
    }
  };
  match_entries(
      "kernel", graph.name, decisions.versions, known,
      fmt::format("it has {} kernels. By other answers the graph may be cut otherwise: keep the lines "
                  "stitch, cooperative, regional and horizontal",
                  known.size()),
      take, unfit);
}

const Versions* RecordedChoices::versions_of(std::uint32_t segment) const {
  const auto found = versions_.find(segment);
  return found == versions_.end() ? nullptr : &found->second;
}

const KernelChoices* RecordedChoices::of(std::uint32_t segment) const {
  const auto found = of_segment_.find(segment);
  return found == of_segment_.end() ? nullptr : &found->second;
}

bool AnswerBook::operator()(const ir::Asked& asked) {
  const std::uint64_t key = content_hash(asked.graph, asked.nodes);
  const std::uint32_t occurrence = counts_[{asked.question, key}]++;
  bool yes = asked.by_cost;
  const auto told = [&](const std::optional<std::uint32_t>& number) {
    const auto found = recorded_.find({asked.question, key, number});
    if (found == recorded_.end()) return false;
    yes = found->second.yes;
    found->second.used = true;
    return true;
  };
  // A question with an entry of its own does not use the entry for all.
  const bool of_one = told(occurrence);
  if (!of_one) told(std::nullopt);
  return keep(asked, key, occurrence, yes);
}

bool AnswerBook::give(const ir::Asked& asked, bool yes) {
  const std::uint64_t key = content_hash(asked.graph, asked.nodes);
  return keep(asked, key, counts_[{asked.question, key}]++, yes);
}

bool AnswerBook::keep(const ir::Asked& asked, std::uint64_t key, std::uint32_t occurrence, bool yes) {
  given_.push_back({.question = asked.question,
                    .key = key,
                    .occurrence = occurrence,
                    .yes = yes,
                    .note = note_of(asked.graph, asked.about)});
  return yes;
}

AnswerBook::AnswerBook(const std::vector<Answer>& recorded) {
  for (const Answer& answer : recorded) {
    const auto [first, added] = recorded_.emplace(Name{answer.question, answer.key, answer.occurrence},
                                                  Recorded{answer.yes, answer.line});
    if (!added)
      refuse_entry(answer.line,
                   entry_name(to_string(answer.question), answer.key, answer.occurrence) + " has two entries",
                   two_entries_hint(first->second.line));
  }
}

std::size_t AnswerBook::unused(bool skip) const {
  std::size_t count = 0;
  int first = 0;
  Name name;
  for (const auto& [each, answer] : recorded_) {
    const bool of_all = !each.number && counts_.contains({each.question, each.key});
    if (answer.used || of_all) continue;
    if (++count == 1 || answer.line < first) first = answer.line, name = each;
  }
  if (count == 0 || skip) return count;
  const std::string number = name.number ? fmt::format(" {}", *name.number) : "";
  refuse_entry(first,
               fmt::format("the compiler does not ask {}{}",
                           entry_name(to_string(name.question), name.key, std::nullopt), number),
               "fusec plan --decisions writes what is asked; another answer before it may have changed that");
}

std::vector<Answer> AnswerBook::answers() const {
  std::vector<Answer> result;
  std::map<std::pair<ir::Question, std::uint64_t>, bool> usual;
  for (const Answer& each : given_) {
    const auto [found, first] = usual.emplace(std::pair(each.question, each.key), each.yes);
    if (!first && found->second == each.yes) continue;
    result.push_back(each);
    if (first) result.back().occurrence.reset();
  }
  return result;
}

Chooser recorded_first(const ir::Graph& graph, const std::vector<ir::NodeId>& storage,
                       const Decisions& decisions, const DecisionOptions& options, Chooser otherwise) {
  std::map<std::uint64_t, KernelChoices> of_all;
  for (const KernelDecision& entry : decisions.kernels) {
    if (!entry.occurrence) of_all.emplace(entry.key, entry.choices);
  }
  return [form_of = canonical_forms(graph, storage), of_all = std::move(of_all), options,
          otherwise = std::move(otherwise)](const ir::Graph& of, const Segment& segment,
                                            const Target& target) -> std::optional<KernelChoices> {
    const auto found = of_all.find(content_key(of, form_of(segment)));
    const bool fits = found != of_all.end() && defect_of(of, segment, found->second, options, target).empty();
    return fits ? found->second : otherwise(of, segment, target);
  };
}

}  // namespace fuse::schedule
