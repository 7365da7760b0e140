// SPDX-License-Identifier: Apache-2.0
#include "runtime/explore/exploration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/access.hpp"
#include "compile/compile.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/device_graph.hpp"
#include "schedule/decisions/gemm_decisions.hpp"

namespace fuse::runtime {
namespace {

using explore::Configuration;

/// Runs of the default that tell how long it takes, and how much that varies; the first is dropped.
constexpr std::size_t pilot_runs = 11;
/// A run whose constant part took so much longer or shorter than it usually does says nothing.
constexpr double drift = 0.25;
/// The last runs that say what is usual: a machine that stays slower is not disturbed for ever.
constexpr std::size_t usual_runs = 15, fewest_usual_runs = 3;
/// The constant part says something from this share of the run on.
constexpr double least_share = 0.05;

/// After these nothing can be explored any more: there is no memory for variants, or the device has failed.
bool ends_exploration(ErrorCode code) {
  return code == ErrorCode::out_of_memory || code == ErrorCode::driver || code == ErrorCode::kernel_fault ||
         code == ErrorCode::missing_compiler || code == ErrorCode::missing_library;
}

/// After these it is the device that failed.
bool is_fault(ErrorCode code) { return code == ErrorCode::driver || code == ErrorCode::kernel_fault; }

/// The mode in a line `run`: what is wanted, or what the caller's decisions have.
ExecutionMode told_mode(const CompileOptions& compile, const CandidateBuilder::Wanted& wanted) {
  if (wanted.mode != ExecutionMode::streams) return wanted.mode;
  const auto decisions = pipeline_options(compile).decisions;
  return decisions && decisions->run ? decisions->run->mode : ExecutionMode::automatic;
}

DeviceOptions device_options(Backend& backend) {
  return {.gemm_algorithms = backend.gemm_algorithms(),
          .gemm_library = backend.gemm_library(),
          .has_graphs = backend.create_graph() != nullptr};
}

bool have_memory(const Prepared& prepared, std::span<const BufferView> buffers, std::size_t slots) {
  if (buffers.size() != slots) return false;
  for (std::size_t i = 0; i < slots; ++i) {
    if (prepared.bytes(i) > 0 && (!buffers[i].address || buffers[i].bytes < prepared.bytes(i))) return false;
  }
  return true;
}

}  // namespace

Exploration::Exploration(ExploredGraph explored, std::shared_ptr<Variant> usual, double compile_seconds)
    : explored_(std::move(explored)),
      usual_(std::move(usual)),
      compile_seconds_(compile_seconds),
      exact_clock_(backend_of(explored_.device)->repeats_times()),
      rehearsal_(explored_.graph, explored_.device, explored_.dims,
                 explored_.options.max_emulated_operations),
      space_(space_of(ir_of(explored_.graph), backend_of(explored_.device)->target(), explored_.compile,
                      explored_.options, device_options(*backend_of(explored_.device)))),
      usual_wanted_(wanted({})),
      best_(space_.decisions({})),
      builder_([this](const CandidateBuilder::Wanted& wanted) { return make(wanted); }) {}

/// On the builder's thread. A candidate that does not do what the default does is none.
std::shared_ptr<Variant> Exploration::make(const CandidateBuilder::Wanted& wanted) {
  CompileOptions how = explored_.compile;
  how.decisions = wanted.decisions;
  how.skip_unfit_decisions |= wanted.skip_unfit;
  auto variant = std::make_shared<Variant>(
      compile_candidate(explored_.graph, explored_.device, how,
                        [&](PipelineOptions& options) {
                          options.place =
                              placing(wanted.streams, wanted.order, told_mode(explored_.compile, wanted));
                        }),
      explored_.dims, wanted.mode);
  variant->make_measurable(EpochTimes(space_.cuts[wanted.cut].placing));
  if (variant->is_split() && !usual_->is_split()) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "its blocks wait for each other, and the default holds their slots: it cannot be "
                            "measured beside it"});
  }
  const std::shared_ptr<Snapshot> inputs = snapshot();
  std::string wrong = inputs ? rehearsal_.fault_of(how, *inputs) : "the exploration is over";
  if (wrong.empty()) wrong = inputs->check(*variant, explored_.options.bits);
  if (wrong.empty()) return variant;
  throw Error({.kind = ErrorKind::runtime, .code = ErrorCode::invalid_argument, .message = wrong});
}

std::shared_ptr<Variant> Exploration::next(Stream& stream, std::span<const BufferView> buffers) {
  if (over_ || !harvest()) return nullptr;
  // The run says what is wrong with them.
  const std::size_t slots = usual_->executable().slots().size();
  if (!have_memory(usual_->prepared(), buffers, slots)) return nullptr;
  if (!snapshot()) {
    usual_->make_measurable(EpochTimes(space_.cuts[0].placing));
    auto made = std::make_shared<Snapshot>(*usual_, ir_of(explored_.graph), explored_.dims, stream, buffers);
    const std::lock_guard lock(snapshot_mutex_);
    snapshot_ = std::move(made);
  }
  if (!tree_) {
    const bool pilots = !exact_clock_ && explored_.options.samples == 0;
    if (pilots && pilot_.size() < pilot_runs) {
      pending_ = Pending{.variant = usual_};
      return usual_;
    }
    plan();
    if (over_) return nullptr;
  }
  if (is_late()) {
    suspects_.clear();
    tree_->hurry();
  }
  if (!look_at_suspects()) return nullptr;
  if (tree_->done()) {
    finish();
    return nullptr;
  }
  const Configuration configuration = allowed(tree_->configuration());
  std::shared_ptr<Variant> variant = ready(configuration);
  if (variant) pending_ = Pending{.variant = variant, .configuration = configuration};
  return variant;
}

void Exploration::enqueued() {
  pending_->is_enqueued = true;
  refusals_ = 0;
}

/// The caller's buffers may be wrong, now and then; a configuration that never runs ends the exploration.
void Exploration::refused(const Status& why) {
  constexpr int most = 5;
  if (is_fault(why.code()) && pending_->variant != usual_) {
    avoid(pending_->configuration);
    return stop(std::string(why.message()));
  }
  if (++refusals_ >= most && pending_->variant != usual_) stop(std::string(why.message()));
}

std::shared_ptr<Snapshot> Exploration::snapshot() const {
  const std::lock_guard lock(snapshot_mutex_);
  return snapshot_;
}

/// What was kept for the exploration is given back.
void Exploration::stop(const std::string& why) {
  over_ = true;
  stopped_ = why;
  pending_.reset();
  variants_.clear();
  rehearsal_.forget();
  const std::lock_guard lock(snapshot_mutex_);
  snapshot_ = nullptr;
}

/// Whether no run is measured any more, and its times are taken.
bool Exploration::harvest() {
  if (!pending_) return true;
  if (!pending_->is_enqueued) {  // the run was refused
    pending_.reset();
    return true;
  }
  std::optional<Seconds> seconds;
  try {
    seconds = pending_->variant->measured();
  } catch (const Error& failed) {
    if (is_fault(failed.code())) avoid(pending_->configuration);
    throw;
  }
  if (!seconds) return false;
  take(*seconds);
  pending_.reset();
  return true;
}

void Exploration::take(const Seconds& seconds) {
  last_seconds_ = seconds.at("");
  last_is_default_ = pending_->variant == usual_;
  if (!tree_) {
    pilot_.push_back(seconds);
    return;
  }
  const bool disturbed = is_disturbed(seconds);
  tree_->report([&](const std::string& name) { return judging_seconds(seconds, name); }, disturbed);
}

/// By the regions that run as by default: what the machine does beside changes their times, too. They are
/// compared with other runs of the same configuration, among the same others: what runs before a kernel, and
/// how often it is launched, changes its time as well.
bool Exploration::is_disturbed(const Seconds& seconds) {
  if (exact_clock_) return false;
  if (const std::size_t decided = tree_->index().size(); decided != steady_for_) {
    steady_.clear();
    steady_for_ = decided;
  }
  const Configuration& tried = pending_->configuration;
  const auto at_default = [&](const std::string& name) {
    const auto option = tried.find(name);
    return option == tried.end() || option->second == 0;
  };
  double now = 0;
  for (const auto& [name, own] : seconds) {
    if (is_of_steps(name) && at_default(name) && at_default(streams_name)) now += own;
  }
  std::vector<double>& known = steady_[tried];
  const double usually = explore::median(known);
  const bool says = known.size() >= fewest_usual_runs && usually > least_share * seconds.at("");
  known.push_back(now);
  if (known.size() > usual_runs) known.erase(known.begin());
  return says && (now > (1 + drift) * usually || now < (1 - drift) * usually);
}

Configuration Exploration::allowed(Configuration configuration) const {
  for (const auto& [name, option] : rejected_) {
    const auto found = configuration.find(name);
    if (found != configuration.end() && found->second == option) found->second = 0;
  }
  return configuration;
}

CandidateBuilder::Wanted Exploration::wanted(const Configuration& configuration) const {
  return {.decisions = schedule::print(space_.decisions(configuration)),
          .streams = space_.streams_of(configuration),
          .order = space_.order_of(configuration),
          .mode = space_.mode_of(configuration),
          .cut = space_.cut_of(configuration),
          .skip_unfit = space_.is_partial(configuration)};
}

/// Whether it was built or has failed; else it was asked for.
bool Exploration::ask(const CandidateBuilder::Wanted& wanted, CandidateBuilder::Built& built) {
  const std::unique_ptr<CandidateBuilder::Built> found = builder_.take(wanted);
  if (!found) {
    builder_.ask(wanted);
    return false;
  }
  built = *found;
  built_ += built.variant != nullptr;
  if (!built.variant && ends_exploration(built.code)) stop(built.failed);
  return true;
}

/// The variant of a configuration; null: it is not there yet, or cannot be.
std::shared_ptr<Variant> Exploration::ready(const Configuration& configuration) {
  const CandidateBuilder::Wanted own = wanted(configuration);
  if (own == usual_wanted_) return usual_;
  const auto known =
      std::find_if(variants_.begin(), variants_.end(), [&](const auto& each) { return each.first == own; });
  if (known != variants_.end()) {
    variants_.splice(variants_.begin(), variants_, known);
    return known->second;
  }
  CandidateBuilder::Built built;
  const bool is_built = ask(own, built);
  if (is_built && is_fault(built.code)) avoid(configuration);
  if (!is_built || over_) return nullptr;
  if (!built.variant) {
    blame(configuration, built.failed);
    return nullptr;
  }
  variants_.emplace_front(own, built.variant);
  if (std::cmp_greater(variants_.size(), explored_.options.max_executables)) variants_.pop_back();
  return built.variant;
}

/// The device failed: another exploration does not try these loops. Nothing else is decided, so that it tries
/// all the rest.
void Exploration::avoid(const Configuration& configuration) {
  const schedule::Decisions tried = space_.decisions(configuration);
  best_ = pipeline_options(explored_.compile).decisions.value_or(schedule::Decisions{.target = tried.target});
  for (const schedule::KernelDecision& each : tried.kernels) {
    const auto option = configuration.find(kernel_name(each.key));
    if (option != configuration.end() && option->second > 0 && !each.occurrence)
      best_.avoided.push_back(each);
  }
}

void Exploration::reject(const Suspect& suspect, const std::string& reason) {
  rejected_.emplace(suspect.name, suspect.option);
  tree_->reject(suspect.name, suspect.option);
  dropped_.push_back(fmt::format("{}: {}", space_.text_of(suspect.alone, suspect.name), reason));
}

/// One of several changes is at fault: each is tried alone, and first the cut that they have in common.
void Exploration::blame(const Configuration& configuration, const std::string& reason) {
  suspicion_ = reason;
  found_culprit_ = false;
  Configuration cut;
  if (configuration.contains(cut_name)) cut[cut_name] = configuration.at(cut_name);
  for (const auto& [name, option] : configuration) {
    if (option == 0 || name == tuned_name || name == cut_name) continue;
    Suspect suspect{cut, name, option};
    suspect.alone[name] = option;
    suspects_.push_back(std::move(suspect));
  }
  if (!cut.empty() && cut[cut_name] != 0) suspects_.push_back({cut, cut_name, cut[cut_name]});
}

/// Whether there are none any more.
bool Exploration::look_at_suspects() {
  if (suspects_.empty()) return true;
  while (!suspects_.empty()) {
    const Suspect suspect = suspects_.back();
    CandidateBuilder::Built built;
    if (!ask(wanted(suspect.alone), built) || over_) return false;
    suspects_.pop_back();
    if (built.variant) {
      innocents_.push_back(suspect);
      continue;
    }
    found_culprit_ = true;
    reject(suspect, built.failed);
    if (suspect.name == cut_name) suspects_.clear();  // the others were tried on top of it
  }
  if (!found_culprit_) {
    for (const Suspect& each : innocents_) reject(each, "with others: " + suspicion_);
  }
  innocents_.clear();
  return true;
}

explore::Rounds Exploration::rounds_of_pilot() {
  if (exact_clock_) return {};
  explore::Rounds rounds{
      .samples = explored_.options.samples, .warm_up = true, .least_gain = explored_.options.least_gain};
  if (rounds.samples > 0) return rounds;
  constexpr int fewest = 5, most = 200;
  const int wanted = explore::samples_for(noise_of_pilot(), explored_.options.least_gain);
  rounds.samples = std::clamp(wanted, fewest, most);
  return rounds;
}

/// The standard deviation of the times of regions, as a share of them, weighted by them.
double Exploration::noise_of_pilot() const {
  std::map<std::string, std::vector<double>> of_region;
  for (std::size_t i = 1; i < pilot_.size(); ++i) {
    for (const auto& [name, seconds] : pilot_[i]) {
      if (name.empty() || is_of_steps(name)) of_region[name].push_back(seconds);
    }
  }
  const bool parts = of_region.size() > 1;
  double deviation = 0, all = 0;
  for (const auto& [name, seconds] : of_region) {
    if (parts && name.empty()) continue;
    deviation += explore::deviation(seconds);
    all += explore::median(seconds);
  }
  return all > 0 ? deviation / all : 0;
}

/// An estimate of what the exploration takes: its runs, and what it compiles.
double Exploration::seconds_of(const explore::UpdateTree& tree, const explore::Rounds& rounds) const {
  std::vector<double> whole;
  for (const Seconds& each : pilot_) whole.push_back(each.at(""));
  const double run = explore::median(whole);
  const auto runs = static_cast<double>(tree.announced());
  return runs * run + runs / rounds.all() * compile_seconds_;
}

/// Fixes what is tried and how often; fewer options where there is no time for more.
void Exploration::plan() {
  explore::Rounds rounds = rounds_of_pilot();
  SpaceLimits limits{.cuts = explored_.options.max_cuts,
                     .groups = explored_.options.max_groups,
                     .epochs = explored_.options.max_epochs,
                     .options = std::min(explored_.options.max_options, explored_.options.max_executables)};
  while (true) {
    space_.keep(limits);
    tree_.emplace(space_.tree(), rounds);
    const bool few = tree_->announced() <= explored_.options.max_runs;
    const double most = explored_.options.max_seconds;
    if (few && (most == 0 || seconds_of(*tree_, rounds) <= most)) return;
    if (limits.options > 2) {
      limits.options = (limits.options + 1) / 2;
    } else if (limits.epochs > 0) {
      limits.epochs = 0;
    } else if (limits.groups > 0) {
      limits.groups = 0;
    } else if (limits.cuts > 1) {
      --limits.cuts;
    } else if (rounds.warm_up && rounds.samples > 5) {
      rounds.samples = std::max(5, rounds.samples / 2);
    } else {
      const std::int64_t needed = tree_->announced();
      tree_.reset();
      return stop(
          few ? fmt::format("no exploration fits into the time: two options of each decision need {} runs",
                            needed)
              : fmt::format("no exploration fits into so few runs: two options of each decision need {}",
                            needed));
    }
  }
}

/// Whether the time is up, but for comparing what was found with the default; once.
bool Exploration::is_late() {
  const double most = explored_.options.max_seconds;
  if (most == 0 || hurries_) return false;
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
  hurries_ = passed.count() > most;
  return hurries_;
}

/// What runs, with the answers that were left to the cost.
schedule::Decisions Exploration::decisions_of(const Configuration& configuration,
                                              const Variant& variant) const {
  schedule::Decisions asked = space_.decisions(configuration);
  const Compiled& stages = stages_of(variant.executable());
  const bool placed =
      !space_.streams_of(configuration).empty() || space_.order_of(configuration) != DispatchOrder::by_cost;
  if (placed) asked.run = stages.run;
  if (!space_.is_partial(configuration)) return asked;
  schedule::Decisions all = fuse::decisions_of(stages, backend_of(explored_.device)->target());
  all.gemms = schedule::all_gemm_decisions_of(stages.graph, stages.partition);
  all.run = asked.run;
  return all;
}

/// The best goes into force once it is compiled.
void Exploration::finish() {
  const Configuration configuration = allowed(tree_->configuration());
  const std::shared_ptr<Variant> variant = ready(configuration);
  if (!variant) return;
  std::vector<schedule::KernelDecision> avoided = std::move(best_.avoided);
  best_ = decisions_of(configuration, *variant);
  if (space_.cuts[space_.cut_of(configuration)].modes.size() > 1) {
    if (!best_.run) best_.run.emplace();
    best_.run->mode = space_.mode_of(configuration);
  }
  best_.avoided = std::move(avoided);
  for (schedule::KernelDecision& kernel : best_.kernels) {
    const explore::Known* const known = tree_->index().find(kernel_name(kernel.key), "");
    if (!known || kernel.occurrence) continue;
    const auto option = configuration.find(kernel_name(kernel.key));
    const std::size_t chosen = option == configuration.end() ? 0 : static_cast<std::size_t>(option->second);
    if (known->seconds[chosen] == 0) continue;  // it ran in a slow cut alone, which was left
    kernel.note += fmt::format(": {:.2f} us", known->seconds[chosen] * 1e6);
    if (chosen > 0) kernel.note += fmt::format(", by default {:.2f} us", known->seconds[0] * 1e6);
  }
  if (const explore::Known* const ends = tree_->index().find(tuned_name, "")) {
    default_seconds_ = ends->seconds[0];
    tuned_seconds_ = ends->seconds[static_cast<std::size_t>(ends->best)];
    // Everything may be at its default: then both were the same.
    if (variant == usual_) tuned_seconds_ = default_seconds_;
  }
  const Backend& backend = *backend_of(explored_.device);
  best_.measured =
      schedule::Measured{.device = fmt::format("{} by {}", explored_.device.name(), backend.clock()),
                         .gemms = best_.gemms.empty() ? "" : backend.gemm_library(),
                         .default_us = default_seconds_ * 1e6,
                         .tuned_us = tuned_seconds_ * 1e6};
  winner_ = variant;
  stop("");
}

void Exploration::describe(ExploreProgress& progress) const {
  progress.explored = tree_ ? tree_->runs() : 0;
  progress.announced = tree_ ? tree_->announced() : 0;
  progress.built = built_;
  progress.last_seconds = last_seconds_;
  progress.last_is_default = last_is_default_;
  progress.default_seconds = default_seconds_;
  progress.tuned_seconds = tuned_seconds_;
  progress.cut_short = hurries_;
  progress.done = over_;
  progress.emulated = rehearsal_.runs();
  progress.not_emulated = rehearsal_.missing_why();
  progress.stopped = stopped_;
  progress.dropped = dropped_;
}

std::string Exploration::tuning() const { return schedule::print(best_); }

}  // namespace fuse::runtime
