// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fuse/error.hpp>
#include <iterator>
#include <utility>

#include "base/key_values.hpp"
#include "base/quoting.hpp"
#include "schedule/decisions/decisions.hpp"
#include "schedule/decisions/version_decisions.hpp"
#include "schedule/nest/choices_text.hpp"

namespace fuse::schedule {
namespace {

constexpr std::string_view header = "fuse decisions 4";
constexpr const char* a_gemm = "a GEMM has the number of its algorithm, from 0: {algorithm = 2}";

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Decisions run() {
    if (next() != header && line_.starts_with("fuse decisions "))
      fail(fmt::format("'{}' is of another version", shown(line_)),
           fmt::format("this is '{}': write them again with fusec plan --decisions", header));
    if (line_ != header)
      fail(fmt::format("'{}' does not begin a file of decisions", shown(line_)),
           fmt::format("it begins with '{}', as fusec plan --decisions writes it", header));
    Decisions result;
    bool has_target = false;
    while (text_.data() != nullptr) {
      const std::string_view line = next();
      if (line.starts_with("# ")) note_ = line.substr(2);
      if (line.empty() || line.front() == '#') continue;
      const std::string note(std::exchange(note_, {}));
      const auto [word, rest] = split(line);
      const ir::Question* const question =
          std::find_if(std::begin(ir::all_questions), std::end(ir::all_questions),
                       [&, word = word](ir::Question each) { return to_string(each) == word; });
      const bool asks = question != std::end(ir::all_questions);
      if (word == "target") {
        if (has_target) fail("there is a target already", "a file is for one GPU");
        result.target = parse_target(braced(rest), number_);
        has_target = true;
      } else if (!is_entry(word) && !asks) {
        fail(fmt::format("'{}' is no entry", shown(word)), entry_names());
      } else if (!has_target) {
        fail("the target is missing", "'target {...}' stands before all entries");
      } else if (word == "options") {
        if (result.options)
          fail("there are options already", fmt::format("they stand in line {}", result.options->line));
        result.options = PlanOptionsText{braced(rest), number_};
      } else if (asks) {
        result.answers.push_back(answer(*question, rest));
        result.answers.back().note = note;
      } else if (word == "versions") {
        const Keyed entry = keyed("kernel", rest);
        VersionsDecision made = parse_versions_body(braced(entry.rest), number_);
        made.key = entry.key;
        made.occurrence = entry.occurrence;
        made.note = note;
        result.versions.push_back(std::move(made));
      } else if (word == "gemm") {
        result.gemms.push_back(gemm(rest));
        result.gemms.back().note = note;
      } else if (word == "measured") {
        if (result.measured)
          fail("it is said already with what was measured",
               fmt::format("it stands in line {}", result.measured->line));
        result.measured = parse_measured(braced(rest), number_);
      } else if (word == "avoid") {
        result.avoided.push_back(kernel(rest));
        if (result.avoided.back().occurrence)
          fail("avoid has a number", "it is about all kernels of the key: 'avoid KEY {...}'");
        result.avoided.back().note = note;
      } else if (word == "run") {
        if (result.run) fail("there is a run already", fmt::format("it stands in line {}", result.run->line));
        result.run = parse_run(braced(rest), number_);
      } else {
        std::optional<std::uint32_t> version;
        KernelDecision made = kernel(rest, &version);
        made.note = note;
        if (version) {
          add_version(result, std::move(made), *version);
        } else {
          result.kernels.push_back(std::move(made));
        }
      }
    }
    for (const VersionsDecision& entry : result.versions)
      for (std::size_t i = 0; i < entry.each.size(); ++i)
        if (entry.each[i].line == 0)
          fail(fmt::format("version {} of kernel {:016x} has no line", i, entry.key),
               fmt::format("'kernel KEY v{} {{nest = ..}}' stands below line {}", i, entry.line));
    if (!has_target) fail("the target is missing", "the file may have been cut off");
    return result;
  }

 private:
  /// The next line, without the blanks around it.
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
  static std::string shown(std::string_view text) { return printable(text.substr(0, 40)); }

  static std::pair<std::string_view, std::string_view> split(std::string_view line) {
    const std::size_t end = line.find_first_of(" \t");
    if (end == std::string_view::npos) return {line, {}};
    std::string_view rest = line.substr(end + 1);
    while (!rest.empty() && is_blank(rest.front())) rest.remove_prefix(1);
    return {line.substr(0, end), rest};
  }

  std::string braced(std::string_view text) const {
    if (!text.starts_with('{'))
      fail(fmt::format("'{}' does not stand in braces", shown(text)),
           "what an entry says stands between { and }");
    std::size_t end = 0;
    for (int depth = 0; end < text.size(); ++end) {
      depth += text[end] == '{' ? 1 : text[end] == '}' ? -1 : 0;
      if (depth == 0) break;
    }
    if (end == text.size())
      fail(fmt::format("the brace of '{}' is not closed", shown(text)), "the file may have been cut off");
    if (const std::string_view behind = without_blanks(text.substr(end + 1)); !behind.empty())
      fail(fmt::format("'{}' stands after the closing brace", shown(behind)),
           "the brace ends the entry; a comment has a line of its own");
    return std::string(text.substr(1, end - 1));
  }

  static bool is_entry(std::string_view word) {
    return word == "options" || word == "measured" || word == "kernel" || word == "gemm" || word == "avoid" ||
           word == "run" || word == "versions";
  }

  static std::string entry_names() {
    std::string names = "entries begin with options, measured, kernel, versions, gemm, avoid, run";
    for (const ir::Question each : ir::all_questions) names += fmt::format(", {}", to_string(each));
    return names + "; a comment begins with #";
  }

  /// "KEY rest", or "KEY NUMBER rest".
  struct Keyed {
    std::uint64_t key = 0;
    std::optional<std::uint32_t> occurrence{};
    std::string_view rest{};
  };
  Keyed keyed(std::string_view what, std::string_view text,
              std::optional<std::uint32_t>* version = nullptr) const {
    Keyed result;
    const auto [key, rest] = split(text);
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), result.key, 16);
    if (error != std::errc() || end != key.data() + key.size() || key.size() != 16)
      fail(fmt::format("'{}' is no key of a {}", shown(key), what), "a key has 16 hexadecimal digits");
    result.rest = rest;
    if (take_version(result, version)) return result;
    const auto [count, behind] = split(rest);
    if (rest.starts_with('{') || behind.empty()) return result;
    std::uint32_t occurrence = 0;
    const auto [last, wrong] = std::from_chars(count.data(), count.data() + count.size(), occurrence);
    if (wrong != std::errc() || last != count.data() + count.size())
      fail(fmt::format("'{}' is no number of a {}", shown(count), what),
           "the number of one of those that are alike, from 0, stands after the key");
    result.occurrence = occurrence;
    result.rest = behind;
    take_version(result, version);
    return result;
  }
  /// Whether "v3" comes next, which is taken then.
  static bool take_version(Keyed& entry, std::optional<std::uint32_t>* version) {
    const auto [word, behind] = split(entry.rest);
    std::uint32_t found = 0;
    if (!version || !word.starts_with('v')) return false;
    const auto [end, error] = std::from_chars(word.data() + 1, word.data() + word.size(), found);
    if (error != std::errc() || end != word.data() + word.size()) return false;
    *version = found;
    entry.rest = behind;
    return true;
  }

  GemmDecision gemm(std::string_view text) const {
    const Keyed entry = keyed("gemm", text);
    const std::string where = line_of_decisions(number_), body = braced(entry.rest);
    const std::vector<KeyValue> items = key_values(body, where);
    check_once(items, where);
    GemmDecision result{.key = entry.key, .occurrence = entry.occurrence, .line = number_};
    for (const KeyValue& item : items) {
      if (item.key != "algorithm") fail(fmt::format("there is no key {}", in_quotes(item.key)), a_gemm);
      const std::string_view digits = item.value.value_or("");
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), result.algorithm);
      if (error != std::errc() || end != digits.data() + digits.size())
        fail(fmt::format("algorithm is '{}'", shown(digits)), a_gemm);
    }
    if (items.empty()) fail("there is no algorithm", a_gemm);
    return result;
  }

  /// Below the line `versions` that it belongs to.
  void add_version(Decisions& result, KernelDecision kernel, std::uint32_t version) const {
    for (VersionsDecision& each : result.versions) {
      if (each.key != kernel.key || each.occurrence != kernel.occurrence || version >= each.each.size())
        continue;
      VersionsDecision::Version& own = each.each[version];
      if (own.line != 0)
        fail(fmt::format("version {} of kernel {:016x} has a line already", version, kernel.key),
             fmt::format("it is line {}", own.line));
      own.choices = std::move(kernel.choices);
      own.line = number_;
      return;
    }
    fail(fmt::format("no line has a version {} of kernel {:016x}", version, kernel.key),
         "a line 'versions KEY {..}' stands above");
  }

  /// `version`: of what follows the key, "v3"; null where none may stand there.
  KernelDecision kernel(std::string_view text, std::optional<std::uint32_t>* version = nullptr) const {
    Keyed entry = keyed("kernel", text, version);
    return {.key = entry.key,
            .occurrence = entry.occurrence,
            .choices = parse_choices(braced(entry.rest), line_of_decisions(number_)),
            .line = number_};
  }

  Answer answer(ir::Question question, std::string_view text) const {
    const Keyed entry = keyed(to_string(question), text);
    if (entry.rest != "yes" && entry.rest != "no")
      fail(fmt::format("the answer to {} is '{}'", to_string(question), shown(entry.rest)), "yes or no");
    return {.question = question,
            .key = entry.key,
            .occurrence = entry.occurrence,
            .yes = entry.rest == "yes",
            .line = number_};
  }

  [[noreturn]] void fail(const std::string& what, const std::string& hint) const {
    throw Error({.code = ErrorCode::parse,
                 .message = fmt::format("{}: {}", line_of_decisions(number_), what),
                 .hint = hint});
  }

  std::string_view text_, line_;
  std::string_view note_;  // the comment above the next entry
  int number_ = 0;
};

/// Key, number and note of an entry.
template <class Entry>
std::string head(std::string_view word, const Entry& entry) {
  const std::string note = entry.note.empty() ? "" : "# " + entry.note + '\n';
  const std::string number = entry.occurrence ? fmt::format(" {}", *entry.occurrence) : "";
  return fmt::format("{}{} {:016x}{}", note, word, entry.key, number);
}

}  // namespace

std::string print(const Decisions& decisions) {
  std::string text = fmt::format("{}\ntarget {{{}}}\n", header, decisions.target);
  if (decisions.options) text += fmt::format("options {{{}}}\n", decisions.options->text);
  if (decisions.measured) text += fmt::format("measured {{{}}}\n", to_string(*decisions.measured));
  for (const Answer& answer : decisions.answers)
    text += fmt::format("{} {}\n", head(to_string(answer.question), answer), answer.yes ? "yes" : "no");
  for (const KernelDecision& kernel : decisions.kernels)
    text += fmt::format("{} {{{}}}\n", head("kernel", kernel), kernel.choices.to_string());
  for (const VersionsDecision& entry : decisions.versions) {
    text += fmt::format("{} {{{}}}\n", head("versions", entry), versions_body(entry));
    for (std::size_t i = 0; i < entry.each.size(); ++i)
      text += fmt::format("kernel {:016x}{} v{} {{{}}}\n", entry.key,
                          entry.occurrence ? fmt::format(" {}", *entry.occurrence) : "", i,
                          entry.each[i].choices.to_string());
  }
  for (const GemmDecision& gemm : decisions.gemms)
    text += fmt::format("{} {{algorithm = {}}}\n", head("gemm", gemm), gemm.algorithm);
  for (const KernelDecision& kernel : decisions.avoided)
    text += fmt::format("{} {{{}}}\n", head("avoid", kernel), kernel.choices.to_string());
  if (decisions.run) text += fmt::format("run {{{}}}\n", to_string(*decisions.run));
  return text;
}

Decisions parse_decisions(std::string_view text) { return Reader(text).run(); }

}  // namespace fuse::schedule
