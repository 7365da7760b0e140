// SPDX-License-Identifier: Apache-2.0
#include "schedule/decisions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fuse/error.hpp>
#include <set>

#include "schedule/schedule.hpp"
#include "schedule/staged.hpp"

namespace fuse::schedule {
namespace {

[[noreturn]] void fail(ErrorCode code, int line, const std::string& what, const std::string& hint) {
  throw Error({.code = code, .message = fmt::format("{}: {}", line_of_decisions(line), what), .hint = hint});
}

std::string key_text(std::uint64_t key) { return fmt::format("{:016x}", key); }

/// "softmax: %7 div"
std::string note_of(const ir::Graph& graph, ir::NodeId root) {
  const std::string scope = graph.scope_path(graph[root].scope);
  std::string note = fmt::format("{}{}{} {}", scope, scope.empty() ? "" : ": ", graph.value_name(root),
                                 to_string(graph[root].op));
  std::replace_if(
      note.begin(), note.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, '?');
  return note;
}

/// Whether a kernel that runs so has grid barriers.
bool waits(const ir::Graph& graph, const Piece& piece, const KernelChoices& choices) {
  const Choices& first = choices.phases[0];
  const bool parts =
      (splits_rows(first) && first.cluster() == 1) || has_columns(staged(graph, piece.phases[0], first));
  return choices.phases.size() > 1 || (parts && first.blocks > 0);
}

/// Why the piece cannot run so; empty: it can.
std::string defect_of(const ir::Graph& graph, const Piece& piece, const KernelChoices& choices,
                      const DecisionOptions& options, const Target& target) {
  std::string defect = misfit(graph, piece, choices, target);
  if (defect.empty() && !options.grid_barriers && waits(graph, piece, choices))
    defect = "its blocks wait for each other, and grid barriers are off";
  return defect;
}

/// Of each form.
std::vector<std::uint64_t> keys_of(const ir::Graph& graph, const EqualPieces& pieces) {
  std::vector<std::uint64_t> keys;
  for (const std::uint32_t first : pieces.first) keys.push_back(content_key(graph, pieces.forms[first]));
  return keys;
}

/// The kernel pieces by their keys, in order.
std::map<std::uint64_t, std::vector<std::uint32_t>> by_key(const ir::Graph& graph,
                                                           const EqualPieces& pieces) {
  const std::vector<std::uint64_t> keys = keys_of(graph, pieces);
  std::map<std::uint64_t, std::vector<std::uint32_t>> result;
  for (std::uint32_t i = 0; i < pieces.form_of.size(); ++i) {
    if (pieces.form_of[i] != EqualPieces::none) result[keys[pieces.form_of[i]]].push_back(i);
  }
  return result;
}

}  // namespace

std::string target_text(const Target& target) {
  return fmt::format(
      "arch = {}, sms = {}, threads_per_block = {}, threads_per_sm = {}, blocks_per_sm = {}, "
      "registers_per_sm = {}, shared_per_block = {}, shared_per_sm = {}, cluster = {}",
      target.arch, target.sms, target.max_threads_per_block, target.max_threads_per_sm,
      target.max_blocks_per_sm, target.registers_per_sm, target.shared_per_block, target.shared_per_sm,
      target.max_cluster);
}

std::string line_of_decisions(int line) { return fmt::format("decisions: line {}", line); }

namespace {

/// "sms = 132, cluster = 8" as parts.
std::vector<std::string> fields_of(const std::string& text) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.size(), text.find(", ", begin));
    fields.push_back(text.substr(begin, end - begin));
    begin = end + 2;
  }
  return fields;
}

/// The fields of the one that the other has not.
std::string differing(const std::string& one, const std::string& other) {
  const std::vector<std::string> others = fields_of(other);
  std::string text;
  for (const std::string& field : fields_of(one)) {
    if (std::find(others.begin(), others.end(), field) != others.end()) continue;
    text += (text.empty() ? "" : ", ") + field;
  }
  return text;
}

}  // namespace

void check_target(const Decisions& decisions, const Target& target) {
  const std::string own = target_text(target);
  if (decisions.target == own) return;
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format(
                   "decisions: the file is for another GPU: it has {{{}}}, and {} has {{{}}}",
                   differing(decisions.target, own), target.name, differing(own, decisions.target)),
               .hint = "fusec plan --decisions writes a file for this one; what was measured on another GPU "
                       "is not taken, "
                       "even where unfit entries are left out"});
}

Decisions decisions_of(const ir::Graph& graph, const Partition& partition, const EqualPieces& pieces,
                       const Target& target) {
  Decisions result{.target = target_text(target)};
  std::vector<std::pair<std::uint32_t, KernelDecision>> entries;  // by the first piece that each is of
  for (const auto& [key, all] : by_key(graph, pieces)) {
    const KernelChoices& usual = partition.pieces[all[0]].chosen.value().choices;
    entries.emplace_back(
        all[0],
        KernelDecision{.key = key, .choices = usual, .note = note_of(graph, partition.pieces[all[0]].root)});
    for (std::uint32_t i = 1; i < all.size(); ++i) {
      const Piece& piece = partition.pieces[all[i]];
      if (piece.chosen.value().choices == usual) continue;
      entries.emplace_back(all[i], KernelDecision{.key = key,
                                                  .occurrence = i,
                                                  .choices = piece.chosen->choices,
                                                  .note = note_of(graph, piece.root)});
    }
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [piece, entry] : entries) result.kernels.push_back(std::move(entry));
  return result;
}

RecordedChoices::RecordedChoices(const Decisions& decisions, const DecisionOptions& options,
                                 const ir::Graph& graph, const Partition& partition,
                                 const EqualPieces& pieces, const Target& target) {
  const std::map<std::uint64_t, std::vector<std::uint32_t>> known = by_key(graph, pieces);
  const auto unfit = [&](const KernelDecision& entry, const std::string& what, const std::string& hint) {
    ++unfit_;
    if (!options.skip_unfit) fail(ErrorCode::invalid_argument, entry.line, what, hint);
  };
  std::set<std::uint64_t> of_all;
  // Entries of one piece go before those of all.
  for (const bool of_one : {true, false}) {
    for (const KernelDecision& entry : decisions.kernels) {
      if (entry.occurrence.has_value() != of_one) continue;
      const auto found = known.find(entry.key);
      if (found == known.end()) {
        unfit(
            entry, fmt::format("graph '{}' has no kernel {}", graph.name, key_text(entry.key)),
            fmt::format("it has {} kernels. By other answers, or by the cost of this entry, the graph may be "
                        "cut otherwise: keep the lines stitch and join",
                        known.size()));
        continue;
      }
      std::vector<std::uint32_t> pieces_of_key = found->second;
      if (of_one && *entry.occurrence >= pieces_of_key.size()) {
        unfit(entry,
              fmt::format("there is no number {} of kernel {}", *entry.occurrence, key_text(entry.key)),
              fmt::format("numbers are 0 to {}", pieces_of_key.size() - 1));
        continue;
      }
      const Piece& piece_of_key = partition.pieces[pieces_of_key[0]];
      const std::string defect = defect_of(graph, piece_of_key, entry.choices, options, target);
      if (!defect.empty()) {
        unfit(entry, fmt::format("kernel {} cannot run so: {}", key_text(entry.key), defect),
              fmt::format("the entry means {{{}}}; fusec nests lists what the kernel can have",
                          entry.choices.to_string()));
        continue;
      }
      if (!of_one && !of_all.insert(entry.key).second) {
        unfit(entry, fmt::format("kernel {} has two entries", key_text(entry.key)), "");
        continue;
      }
      if (of_one) pieces_of_key = {pieces_of_key[*entry.occurrence]};
      for (const std::uint32_t piece : pieces_of_key) {
        const bool added = of_piece_.emplace(piece, entry.choices).second;
        if (!added && of_one)
          unfit(entry,
                fmt::format("number {} of kernel {} has two entries", *entry.occurrence, key_text(entry.key)),
                "");
      }
    }
  }
}

const KernelChoices* RecordedChoices::of(std::uint32_t piece) const {
  const auto found = of_piece_.find(piece);
  return found == of_piece_.end() ? nullptr : &found->second;
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
  // One that is told by its number hides nothing of what is told of all.
  const bool of_one = told(occurrence);
  if (!of_one) told(std::nullopt);
  given_.push_back({.question = asked.question,
                    .key = key,
                    .occurrence = occurrence,
                    .yes = yes,
                    .note = note_of(asked.graph, asked.about)});
  return yes;
}

AnswerBook::AnswerBook(const std::vector<Answer>& recorded) {
  for (const Answer& answer : recorded) {
    const bool added =
        recorded_
            .emplace(Name{answer.question, answer.key, answer.occurrence}, Recorded{answer.yes, answer.line})
            .second;
    if (!added)
      fail(ErrorCode::invalid_argument, answer.line,
           fmt::format("{} {} has two entries", to_string(answer.question), key_text(answer.key)), "");
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
  fail(ErrorCode::invalid_argument, first,
       fmt::format("the compiler does not ask {} {}{}", to_string(name.question), key_text(name.key), number),
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
          otherwise = std::move(otherwise)](const ir::Graph& of, const Piece& piece,
                                            const Target& target) -> std::optional<KernelChoices> {
    const auto found = of_all.find(content_key(of, form_of(piece)));
    const bool fits = found != of_all.end() && defect_of(of, piece, found->second, options, target).empty();
    return fits ? found->second : otherwise(of, piece, target);
  };
}

}  // namespace fuse::schedule
