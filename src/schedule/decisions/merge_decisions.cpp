// SPDX-License-Identifier: Apache-2.0
#include "schedule/decisions/merge_decisions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fuse/error.hpp>
#include <map>
#include <string>
#include <utility>

namespace fuse::schedule {
namespace {

/// What a file says of how the graph is cut.
std::string cut_of(const Decisions& file) {
  Decisions cut;
  cut.options = file.options;
  cut.answers = file.answers;
  for (Answer& answer : cut.answers) answer.note.clear();
  return print(cut);
}

/// The share of a run's time that a file saved.
double gain_of(const Decisions& file) {
  const bool known = file.measured && file.measured->default_us > 0 && file.measured->tuned_us > 0;
  return known ? 1 - file.measured->tuned_us / file.measured->default_us : 0;
}

/// What files vote for.
class Votes {
 public:
  void add(const std::string& text, double gain) {
    auto& [count, best] = counts_.try_emplace(text, 0, gain).first->second;
    ++count;
    best = std::max(best, gain);
  }
  /// What most files have; of several such, that of the file that gained most, and then the first in the
  /// order of texts. Empty without a vote.
  std::string winner() const {
    const auto most = std::max_element(counts_.begin(), counts_.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == counts_.end() ? "" : most->first;
  }

 private:
  std::map<std::string, std::pair<int, double>> counts_;  // files, and the most that one of them gained
};

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

using Key = std::pair<std::uint64_t, std::optional<std::uint32_t>>;

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

std::vector<KernelDecision> avoided_by(const std::vector<Decisions>& files) {
  std::map<std::string, KernelDecision> by_text;
  for (const Decisions& file : files) {
    for (const KernelDecision& each : file.avoided)
      by_text.emplace(fmt::format("{:016x} {}", each.key, each.choices.to_string()),
                      KernelDecision{.key = each.key, .choices = each.choices});
  }
  std::vector<KernelDecision> result;
  for (auto& [text, each] : by_text) result.push_back(std::move(each));
  return result;
}

/// The choices that have the votes, but for what is avoided. A kernel that has no others has no entry.
void take_kernels(const std::vector<Decisions>& files, Decisions& result) {
  std::map<Key, Votes> votes;
  std::map<std::string, KernelChoices> by_text;
  const auto is_avoided = [&](const KernelDecision& kernel) {
    return std::any_of(result.avoided.begin(), result.avoided.end(), [&](const KernelDecision& each) {
      return each.key == kernel.key && each.choices == kernel.choices;
    });
  };
  for (const Decisions& file : files) {
    for (const KernelDecision& each : file.kernels) {
      if (is_avoided(each)) continue;
      const std::string text = each.choices.to_string();
      by_text.emplace(text, each.choices);
      votes[{each.key, each.occurrence}].add(text, gain_of(file));
    }
  }
  std::erase_if(result.kernels, [&](const KernelDecision& each) {
    return !votes.contains({each.key, each.occurrence});
  });
  for (KernelDecision& each : result.kernels) {
    each.choices = by_text.at(votes.at({each.key, each.occurrence}).winner());
    each.note = each.note.substr(0, each.note.find(": ", each.note.find('%')));  // not the times of one file
  }
}

/// Entries of the best file, then what it lacks and others of its cut have. One with a number after its key
/// is about the best file alone.
template <class Entry>
void take_entries(const std::vector<const Decisions*>& best, std::vector<Entry> Decisions::*entries,
                  Decisions& result) {
  for (const Decisions* file : best) {
    for (const Entry& each : file->*entries) {
      const bool known = std::ranges::any_of(result.*entries, [&](const Entry& other) {
        return other.key == each.key && other.occurrence == each.occurrence;
      });
      if (!known && !each.occurrence) (result.*entries).push_back(each);
    }
  }
}

bool same_kernels(const Decisions& a, const Decisions& b) {
  return std::equal(a.kernels.begin(), a.kernels.end(), b.kernels.begin(), b.kernels.end(),
                    [](const KernelDecision& x, const KernelDecision& y) { return x.choices == y.choices; });
}

std::string run_of(const Decisions& file) {
  Decisions alone;
  alone.run = file.run;
  return print(alone);
}

/// What most of the files say of runs. Steps are those of kernels: where no such file has those of the
/// result, the mode is all that is left.
void take_run(const std::vector<const Decisions*>& best, Decisions& result) {
  Votes votes;
  for (const Decisions* file : best) votes.add(run_of(*file), gain_of(*file));
  const std::string winner = votes.winner();
  bool has_kernels = false;
  for (const Decisions* file : best) {
    if (run_of(*file) != winner) continue;
    result.run = file->run;
    has_kernels = has_kernels || same_kernels(result, *file);
  }
  if (result.run && !has_kernels) result.run->order.clear(), result.run->streams.clear();
}

/// Of the files that were measured with this library.
void take_algorithms(const std::vector<Decisions>& files, const std::string& library, Decisions& result) {
  std::map<Key, Votes> votes;
  std::map<std::string, std::uint32_t> by_text;
  for (const Decisions& file : files) {
    if (gemms_of(file) != library) continue;
    for (const GemmDecision& each : file.gemms) {
      const std::string text = fmt::format("{:10}", each.algorithm);
      by_text.emplace(text, each.algorithm);
      votes[{each.key, each.occurrence}].add(text, gain_of(file));
    }
  }
  for (GemmDecision& each : result.gemms) {
    const auto found = votes.find({each.key, each.occurrence});
    each.algorithm = found == votes.end() ? 0 : by_text.at(found->second.winner());
  }
}

}  // namespace

Decisions merged(const std::vector<Decisions>& files) {
  if (files.empty()) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "there are no decisions to merge",
                 .hint = "name the files of each machine"});
  }
  check_targets(files);
  const std::vector<const Decisions*> best = of_best_cut(files);
  Decisions result = *best.front();
  result.avoided = avoided_by(files);
  take_entries(best, &Decisions::kernels, result);
  take_entries(best, &Decisions::versions, result);
  take_entries(best, &Decisions::gemms, result);
  take_kernels(files, result);
  take_run(best, result);
  Votes libraries, devices;
  for (const Decisions* file : best) {
    if (!gemms_of(*file).empty()) libraries.add(gemms_of(*file), gain_of(*file));
  }
  take_algorithms(files, libraries.winner(), result);
  result.measured.reset();
  for (const Decisions& file : files) {
    if (file.measured) devices.add(file.measured->device, gain_of(file));
  }
  if (!devices.winner().empty())
    result.measured = Measured{.device = devices.winner(), .gemms = libraries.winner()};
  return result;
}

}  // namespace fuse::schedule
