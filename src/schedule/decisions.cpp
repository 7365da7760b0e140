// SPDX-License-Identifier: Apache-2.0
#include "schedule/decisions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fuse/error.hpp>
#include <set>

#include "ir/words.hpp"
#include "schedule/choices_text.hpp"
#include "schedule/schedule.hpp"
#include "schedule/staged.hpp"

namespace fuse::schedule {
namespace {

constexpr std::string_view header = "fuse decisions 1";

std::string where(int line) { return fmt::format("decisions: line {}", line); }

[[noreturn]] void fail(ErrorCode code, int line, const std::string& what, const std::string& hint) {
  throw Error({.code = code, .message = fmt::format("{}: {}", where(line), what), .hint = hint});
}

std::string key_text(std::uint64_t key) { return fmt::format("{:016x}", key); }

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Decisions run() {
    if (next() != header)
      fail(ErrorCode::parse, number_, fmt::format("'{}' does not begin a file of decisions", shown(line_)),
           fmt::format("it begins with '{}', as fusec plan --decisions writes it", header));
    Decisions result;
    bool has_target = false;
    while (text_.data() != nullptr) {
      const std::string_view line = next();
      if (line.empty() || line.front() == '#') continue;
      const auto [word, rest] = split(line);
      if (word == "target" && !has_target) {
        result.target = braced(rest);
        has_target = true;
      } else if (word == "kernel" && has_target) {
        result.kernels.push_back(kernel(rest));
      } else if (word == "kernel") {
        fail(ErrorCode::parse, number_, "the target is missing", "'target {...}' stands before the kernels");
      } else {
        fail(ErrorCode::parse, number_, fmt::format("'{}' is no entry", shown(word)),
             "entries begin with kernel; a comment begins with #");
      }
    }
    if (!has_target)
      fail(ErrorCode::parse, number_, "the target is missing", "the file may have been cut off");
    return result;
  }

 private:
  /// The next line, without what blanks are around it.
  std::string_view next() {
    ++number_;
    const std::size_t end = text_.find('\n');
    line_ = text_.substr(0, end);
    text_ = end == std::string_view::npos ? std::string_view() : text_.substr(end + 1);
    if (text_.empty()) text_ = {};
    while (!line_.empty() && is_blank(line_.front())) line_.remove_prefix(1);
    while (!line_.empty() && is_blank(line_.back())) line_.remove_suffix(1);
    return line_;
  }

  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
  static std::string shown(std::string_view text) { return ir::printable(text.substr(0, 40)); }

  static std::pair<std::string_view, std::string_view> split(std::string_view line) {
    const std::size_t end = line.find_first_of(" \t");
    if (end == std::string_view::npos) return {line, {}};
    std::string_view rest = line.substr(end + 1);
    while (!rest.empty() && is_blank(rest.front())) rest.remove_prefix(1);
    return {line.substr(0, end), rest};
  }

  std::string braced(std::string_view text) const {
    if (text.size() < 2 || text.front() != '{' || text.back() != '}')
      fail(ErrorCode::parse, number_, fmt::format("'{}' does not stand in braces", shown(text)),
           "the file may have been cut off");
    return std::string(text.substr(1, text.size() - 2));
  }

  KernelDecision kernel(std::string_view text) const {
    KernelDecision result{.line = number_};
    const auto [key, rest] = split(text);
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), result.key, 16);
    if (error != std::errc() || end != key.data() + key.size() || key.size() != 16)
      fail(ErrorCode::parse, number_, fmt::format("'{}' is no key of a kernel", shown(key)),
           "a key has 16 hexadecimal digits");
    std::string_view body = rest;
    if (!rest.starts_with('{')) {
      const auto [count, choices] = split(rest);
      std::uint32_t occurrence = 0;
      const auto [last, wrong] = std::from_chars(count.data(), count.data() + count.size(), occurrence);
      if (wrong != std::errc() || last != count.data() + count.size())
        fail(ErrorCode::parse, number_, fmt::format("'{}' is no number of a kernel", shown(count)),
             "kernel KEY {choices}, or kernel KEY NUMBER {choices}");
      result.occurrence = occurrence;
      body = choices;
    }
    result.choices = parse_choices(braced(body), where(number_));
    return result;
  }

  std::string_view text_, line_;
  int number_ = 0;
};

/// "softmax: %7 div"
std::string note_of(const ir::Graph& graph, const Piece& piece) {
  const std::string scope = graph.scope_path(graph[piece.root].scope);
  std::string note = fmt::format("{}{}{} {}", scope, scope.empty() ? "" : ": ", graph.value_name(piece.root),
                                 to_string(graph[piece.root].op));
  std::replace_if(
      note.begin(), note.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, '?');
  return note;
}

/// Whether a kernel that runs so has grid barriers.
bool waits(const ir::Graph& graph, const Piece& piece, const KernelChoices& choices) {
  const Choices& first = choices.phases[0];
  const bool parts =
      (splits_rows(first) && !first.cluster) || has_columns(staged(graph, piece.phases[0], first));
  return choices.phases.size() > 1 || (parts && first.blocks > 0);
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

std::string print(const Decisions& decisions) {
  std::string text = fmt::format("{}\ntarget {{{}}}\n", header, decisions.target);
  for (const KernelDecision& kernel : decisions.kernels) {
    if (!kernel.note.empty()) text += "# " + kernel.note + '\n';
    const std::string number = kernel.occurrence ? fmt::format(" {}", *kernel.occurrence) : std::string();
    text += fmt::format("kernel {}{} {{{}}}\n", key_text(kernel.key), number, kernel.choices.to_string());
  }
  return text;
}

Decisions parse_decisions(std::string_view text) { return Reader(text).run(); }

Decisions decisions_of(const ir::Graph& graph, const Partition& partition, const EqualPieces& pieces,
                       const Target& target) {
  Decisions result{.target = target_text(target)};
  std::vector<std::pair<std::uint32_t, KernelDecision>> entries;  // by the first piece that each is of
  for (const auto& [key, all] : by_key(graph, pieces)) {
    const KernelChoices& usual = partition.pieces[all[0]].chosen.value().choices;
    entries.emplace_back(
        all[0],
        KernelDecision{.key = key, .choices = usual, .note = note_of(graph, partition.pieces[all[0]])});
    for (std::uint32_t i = 1; i < all.size(); ++i) {
      const Piece& piece = partition.pieces[all[i]];
      if (piece.chosen.value().choices == usual) continue;
      entries.emplace_back(
          all[i],
          KernelDecision{
              .key = key, .occurrence = i, .choices = piece.chosen->choices, .note = note_of(graph, piece)});
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
  if (decisions.target != target_text(target))
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("decisions: they are for another target, {{{}}}", decisions.target),
                 .hint = fmt::format("this one is {{{}}}", target_text(target))});
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
        unfit(entry, fmt::format("graph '{}' has no kernel {}", graph.name, key_text(entry.key)),
              fmt::format("it has {} kernels; fusec plan --decisions writes their keys", known.size()));
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
      std::string defect = misfit(graph, piece_of_key, entry.choices, target);
      if (defect.empty() && !options.grid_barriers && waits(graph, piece_of_key, entry.choices))
        defect = "its blocks wait for each other, and grid barriers are off";
      if (!defect.empty()) {
        unfit(entry, fmt::format("kernel {} cannot run so: {}", key_text(entry.key), defect),
              fmt::format("it reads {{{}}}", entry.choices.to_string()));
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

}  // namespace fuse::schedule
