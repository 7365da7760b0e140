// Exploration: which configuration the next run of an Explorer has, and what is concluded from its times. The
// explorer locks it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <fuse/explore.hpp>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "explore/update_tree.hpp"
#include "runtime/explore/candidate_builder.hpp"
#include "runtime/explore/rehearsal.hpp"
#include "runtime/explore/snapshot.hpp"
#include "runtime/explore/space.hpp"
#include "runtime/explore/variant.hpp"

namespace fuse::runtime {

/// What an exploration works on.
struct ExploredGraph {
  Graph graph;
  Device device;
  DimValues dims;
  ExploreOptions options;
  CompileOptions compile;
};

class Exploration {
 public:
  /// `compile_seconds`: what the default took to compile.
  Exploration(ExploredGraph explored, std::shared_ptr<Variant> usual, double compile_seconds);
  Exploration(const Exploration&) = delete;
  Exploration& operator=(const Exploration&) = delete;

  /// The variant that the next run is measured with; null: run what is current. Takes a snapshot before the
  /// first. Throws what ends the exploration.
  std::shared_ptr<Variant> next(Stream&, std::span<const BufferView>);
  /// The run of that variant was enqueued; its times are asked for at the next call. Or it failed.
  void enqueued();
  void refused(const Status& why);
  /// It has ended, and what was kept for it is given back. `why` is empty where it has come to its end.
  void stop(const std::string& why);
  bool over() const { return over_; }
  /// What runs from now on, where that has changed; once.
  std::shared_ptr<Variant> take_winner() { return std::exchange(winner_, nullptr); }
  void wait_for_compiler() { builder_.wait(); }

  void describe(ExploreProgress&) const;
  std::string tuning() const;

 private:
  using Seconds = std::map<std::string, double>;

  std::shared_ptr<Variant> make(const CandidateBuilder::Wanted& wanted);
  CandidateBuilder::Wanted wanted(const explore::Configuration& configuration) const;
  bool harvest();
  void take(const Seconds& seconds);
  void plan();
  explore::Rounds rounds_of_pilot();
  double seconds_of(const explore::UpdateTree& tree, const explore::Rounds& rounds) const;
  double noise_of_pilot() const;
  bool is_disturbed(const Seconds& seconds);
  explore::Configuration allowed(explore::Configuration configuration) const;
  std::shared_ptr<Variant> ready(const explore::Configuration& configuration);
  bool ask(const CandidateBuilder::Wanted& wanted, CandidateBuilder::Built& built);
  void blame(const explore::Configuration& configuration, const std::string& reason);
  bool look_at_suspects();
  bool is_late();
  void finish();
  schedule::Decisions decisions_of(const explore::Configuration& configuration, const Variant& variant) const;
  void avoid(const explore::Configuration& configuration);

  const ExploredGraph explored_;
  const std::shared_ptr<Variant> usual_;
  const double compile_seconds_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const bool exact_clock_;
  Rehearsal rehearsal_;
  Space space_;
  const CandidateBuilder::Wanted usual_wanted_;
  std::shared_ptr<Snapshot> snapshot() const;

  mutable std::mutex snapshot_mutex_;  // the builder's thread asks for the snapshot, too
  std::shared_ptr<Snapshot> snapshot_;
  std::vector<Seconds> pilot_;
  std::optional<explore::UpdateTree> tree_;

  /// The run that is measured, until its times are there.
  struct Pending {
    std::shared_ptr<Variant> variant{};
    explore::Configuration configuration{};
    bool is_enqueued = false;
  };
  std::optional<Pending> pending_;
  std::list<std::pair<CandidateBuilder::Wanted, std::shared_ptr<Variant>>> variants_;  // the last used first
  /// A change of a configuration that failed, to be tried without its others.
  struct Suspect {
    explore::Configuration alone{};
    std::string name{};
    int option = 0;
  };
  void reject(const Suspect& suspect, const std::string& reason);
  std::vector<Suspect> suspects_;   // the last one is tried
  std::vector<Suspect> innocents_;  // that did not fail alone
  std::string suspicion_;           // why the configuration failed
  bool found_culprit_ = false;
  std::set<std::pair<std::string, int>> rejected_;
  /// For each configuration that is tried now, the last seconds of its regions at their defaults, and how
  /// much was decided when they were taken.
  std::map<explore::Configuration, std::vector<double>> steady_;
  std::size_t steady_for_ = 0;
  std::vector<std::string> dropped_;
  schedule::Decisions best_;
  std::shared_ptr<Variant> winner_;
  bool over_ = false, hurries_ = false;
  int refusals_ = 0;  // of runs, one after another
  std::string stopped_;
  std::int64_t built_ = 0;
  double default_seconds_ = 0, tuned_seconds_ = 0;
  double last_seconds_ = 0;  // of the last measured run
  bool last_is_default_ = true;

  CandidateBuilder builder_;  // last: its thread uses the rest
};

}  // namespace fuse::runtime
