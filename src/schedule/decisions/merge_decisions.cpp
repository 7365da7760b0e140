// SPDX-License-Identifier: Apache-2.0
#include "schedule/decisions/merge_decisions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fuse/error.hpp>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace fuse::schedule {
namespace {

/// The text that most have; of several the least.
std::string most_common(const std::vector<std::string>& texts) {
  std::map<std::string, int> counts;
  for (const std::string& text : texts) ++counts[text];
  const auto most = std::max_element(counts.begin(), counts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? "" : most->first;
}

/// What a file says of how the graph is cut and run.
std::string cut_of(const Decisions& file) {
  Decisions cut;
  cut.options = file.options;
  cut.answers = file.answers;
  cut.run = file.run;
  for (Answer& answer : cut.answers) answer.note.clear();
  return print(cut);
}

/// The share of a run's time that a file saved.
double gain_of(const Decisions& file) {
  const bool known = file.measured && file.measured->default_us > 0 && file.measured->tuned_us > 0;
  return known ? 1 - file.measured->tuned_us / file.measured->default_us : 0;
}

/// The files of the cut that is taken, best first.
std::vector<const Decisions*> of_best_cut(const std::vector<Decisions>& files) {
  std::map<std::string, std::vector<const Decisions*>> by_cut;
  for (const Decisions& file : files) by_cut[cut_of(file)].push_back(&file);
  const auto before = [](const Decisions* a, const Decisions* b) {
    return std::pair(-gain_of(*a), print(*a)) < std::pair(-gain_of(*b), print(*b));
  };
  for (auto& [cut, own] : by_cut) std::sort(own.begin(), own.end(), before);
  const auto worse = [](const auto& a, const auto& b) {
    const auto rank = [](const auto& each) {
      return std::pair(each.second.size(), gain_of(*each.second.front()));
    };
    return rank(a) < rank(b);
  };
  return std::max_element(by_cut.begin(), by_cut.end(), worse)->second;
}

/// The text of what the entry decides, by the entry's key; `of_file` says which files count.
template <class Entry, class Text, class Counts>
std::map<std::pair<std::uint64_t, std::optional<std::uint32_t>>, std::string> votes(
    const std::vector<Decisions>& files, std::vector<Entry> Decisions::*entries, const Text& text,
    const Counts& counts) {
  std::map<std::pair<std::uint64_t, std::optional<std::uint32_t>>, std::vector<std::string>> all;
  for (const Decisions& file : files) {
    if (!counts(file)) continue;
    for (const Entry& entry : file.*entries) all[{entry.key, entry.occurrence}].push_back(text(entry));
  }
  std::map<std::pair<std::uint64_t, std::optional<std::uint32_t>>, std::string> result;
  for (const auto& [key, texts] : all) result.emplace(key, most_common(texts));
  return result;
}

std::string gemms_of(const Decisions& file) { return file.measured ? file.measured->gemms : ""; }

void check_targets(const std::vector<Decisions>& files) {
  for (const Decisions& file : files) {
    if (file.target == files.front().target) continue;
    const auto& [less, more] = std::minmax(file.target, files.front().target);
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("decisions for different targets: {{{}}} and {{{}}}", less, more),
                 .hint = "only files for equal devices can be merged"});
  }
}

}  // namespace

Decisions merged(std::vector<Decisions> files) {
  if (files.empty()) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "there are no decisions to merge",
                 .hint = "name the files of each machine"});
  }
  check_targets(files);
  const std::vector<const Decisions*> best = of_best_cut(files);
  Decisions result = *best.front();
  std::vector<std::string> libraries;
  for (const Decisions* file : best) libraries.push_back(gemms_of(*file));
  const std::string library = most_common(libraries);

  const auto kernels = votes(
      files, &Decisions::kernels, [](const KernelDecision& each) { return each.choices.to_string(); },
      [](const Decisions&) { return true; });
  std::map<std::string, KernelChoices> choices;
  for (const Decisions& file : files) {
    for (const KernelDecision& each : file.kernels) choices.emplace(each.choices.to_string(), each.choices);
  }
  for (KernelDecision& each : result.kernels) {
    each.choices = choices.at(kernels.at({each.key, each.occurrence}));
    each.note = each.note.substr(0, each.note.find(": ", each.note.find('%')));  // not the times of one file
  }
  const auto gemms = votes(
      files, &Decisions::gemms, [](const GemmDecision& each) { return std::to_string(each.algorithm); },
      [&](const Decisions& file) { return gemms_of(file) == library; });
  for (GemmDecision& each : result.gemms) {
    const auto vote = gemms.find({each.key, each.occurrence});
    each.algorithm = vote == gemms.end() ? 0 : static_cast<std::uint32_t>(std::stoul(vote->second));
  }

  std::map<std::string, KernelDecision> avoided;
  std::vector<std::string> devices;
  for (const Decisions& file : files) {
    for (const KernelDecision& each : file.avoided)
      avoided.emplace(fmt::format("{:016x} {}", each.key, each.choices.to_string()), each);
    if (file.measured) devices.push_back(file.measured->device);
  }
  result.avoided.clear();
  for (auto& [text, each] : avoided) result.avoided.push_back(std::move(each));
  result.measured.reset();
  if (!devices.empty()) result.measured = Measured{.device = most_common(devices), .gemms = library};
  return result;
}

}  // namespace fuse::schedule
