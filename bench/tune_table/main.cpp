// tune_table: what an exploration finds on the CPU, and what it costs: beside the default, beside the best of
// all configurations, and again and again (docs/exploration.md).
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <fuse/fuse.hpp>
#include <string>
#include <vector>

#include "base/access.hpp"
#include "bench_arguments.hpp"
#include "cases/case_data.hpp"
#include "cases/cases.hpp"
#include "compile/compile.hpp"
#include "fusec/progress.hpp"
#include "measure.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/explore/space.hpp"
#include "schedule/decisions/decisions.hpp"
#include "tune_table/contest.hpp"

namespace fuse::bench {
namespace {

constexpr std::size_t most_configurations = 500;
constexpr int explorations = 5;
constexpr double sample_seconds = 0.002;

struct TuneCase {
  std::string name;
  Graph graph;
};

std::vector<TuneCase> tune_cases() {
  struct Named {
    const char* builder;
    Extents dims;
  };
  const Named all[] = {
      {"softmax", {2048, 1024}},   {"layer_norm", {2048, 1024}},    {"gelu", {2048, 1024}},
      {"nll", {4096, 1024}},       {"norm_backward", {1368, 1024}}, {"column_sum", {4096, 1024}},
      {"transpose", {2048, 1024}}, {"lstm", {4, 16, 256}},          {"transformer", {2, 64, 256, 4, 1}}};
  std::vector<TuneCase> result;
  for (const auto& [builder, dims] : all)
    result.push_back(
        {fmt::format("{} {}", builder, fmt::join(dims, " x ")), builder_of(builder).build(f32, dims)});
  return result;
}

/// Buffers of the slots, each with the data of its name.
struct SlotBuffers {
  SlotBuffers(const Prepared& prepared, const std::vector<Slot>& slots, const Device& device)
      : own(slots.size()) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].donor) continue;
      own[i] = device.allocate(prepared.bytes(i));
      if (slots[i].kind != Slot::Kind::output) own[i].upload(data_of(slots[i]).data);
    }
    for (std::size_t i = 0; i < slots.size(); ++i) views.push_back(own[slots[i].donor.value_or(i)].view());
  }
  std::vector<Buffer> own;
  std::vector<BufferView> views;
};

std::shared_ptr<runtime::Variant> variant_of(const Graph& graph, const Device& device,
                                             const std::string& text, bool skip_unfit = false) {
  CompileOptions how;
  how.decisions = text;
  how.skip_unfit_decisions = skip_unfit;
  return std::make_shared<runtime::Variant>(runtime::compile_candidate(graph, device, how), DimValues());
}

/// Every configuration of the space; none where they are too many.
std::vector<explore::Configuration> configurations_of(const runtime::Space& space) {
  std::vector<explore::Configuration> result;
  for (std::size_t cut = 0; cut < space.cuts.size(); ++cut) {
    const runtime::CutContext& context = space.cuts[cut];
    std::vector<explore::Configuration> own = {{{runtime::cut_name, static_cast<int>(cut)}}};
    const auto add = [&](const std::string& name, std::size_t options) {
      std::vector<explore::Configuration> all;
      for (const explore::Configuration& each : own) {
        for (std::size_t option = 0; option < options && all.size() <= most_configurations; ++option) {
          all.push_back(each);
          all.back()[name] = static_cast<int>(option);
        }
      }
      own = std::move(all);
    };
    for (const runtime::ExploredMerge& merge : context.merges)
      add(runtime::merge_name(merge.key), merge.options.size());
    for (const runtime::ExploredKernel& kernel : context.kernels)
      add(runtime::kernel_name(kernel.key), kernel.options.size());
    result.insert(result.end(), own.begin(), own.end());
    if (result.size() > most_configurations) return {};
  }
  return result;
}

/// One exploration, as a program would make it: it waits for nothing, and each of its runs is timed. Behind
/// each stands a run of the default, which a slow moment of the machine meets, too.
struct Explored {
  std::string tuning{};
  std::int64_t calls = 0, announced = 0;
  double seconds = 0, usual_seconds = 0;  ///< of all calls, and of as many runs of the default
  std::string stopped{};
};

Explored explored(const Graph& graph, const Device& device, const ExploreOptions& options,
                  runtime::Variant& usual) {
  Explorer explorer(graph, device, {}, options);
  const SlotBuffers buffers(explorer.prepared(), explorer.slots(), device);
  Stream stream = device.stream();
  Explored result;
  while (!explorer.done()) {
    result.seconds += time_once([&] {
                        explorer.run(stream, buffers.views).throw_if_failed();
                        stream.synchronize().throw_if_failed();
                      }).wall;
    result.usual_seconds += time_once([&] {
                              usual.run(stream, buffers.views, 1).throw_if_failed();
                              stream.synchronize().throw_if_failed();
                            }).wall;
    ++result.calls;
  }
  const ExploreProgress progress = explorer.progress();
  result.announced = progress.announced;
  result.stopped = progress.stopped;
  result.tuning = explorer.tuning().text();
  return result;
}

/// How many times as long a compilation with decisions takes as one without, kernels and all.
double compile_ratio(const Graph& graph, const Device& device, const std::string& decisions) {
  std::vector<double> ratios;
  for (int i = 0; i < 3; ++i) {
    const auto seconds = [&](const std::string& text) {
      return time_once([&] { compile(graph, device, {.decisions = text, .cache = false}); }).wall;
    };
    const double usual = seconds("");
    ratios.push_back(seconds(decisions) / usual);
  }
  return median(ratios);
}

/// The seconds of a mark between steps.
double seconds_of_mark(const Device& device) {
  constexpr int marks = 100'000;
  Stream stream = device.stream();
  const auto event = backend_of(device)->create_event();
  return time_once([&] {
           for (int i = 0; i < marks; ++i)
             backend_of(device)->record(queue_of(stream), *event).throw_if_failed();
         }).wall /
         marks;
}

/// The best of all configurations, found by two contests, and how well the model ranks them.
struct Exhaustive {
  std::size_t configurations = 0;
  std::shared_ptr<runtime::Variant> best{};
  double correlation = 0;
};

Exhaustive exhaustive(const TuneCase& each, const Device& device, const runtime::Space& space, Stream& stream,
                      std::span<const BufferView> buffers, fusec::Progress& progress) {
  Exhaustive result;
  const std::vector<explore::Configuration> all = configurations_of(space);
  result.configurations = all.size();
  Variants variants;
  std::vector<double> predicted, measured;
  for (const explore::Configuration& configuration : all) {
    progress.at(
        fmt::format("{}: compiling configuration {} of {}", each.name, variants.size() + 1, all.size()));
    variants.push_back(variant_of(each.graph, device, schedule::print(space.decisions(configuration)),
                                  space.is_partial(configuration)));
    predicted.push_back(variants.back()->prepared().predicted().seconds);
  }
  if (variants.empty()) return result;
  progress.at(each.name + ": measuring all configurations");
  const Contest contest(variants, stream, buffers, 15, sample_seconds);
  for (std::size_t i = 0; i < variants.size(); ++i) measured.push_back(contest.seconds(i));
  result.correlation = rank_correlation(predicted, measured);
  std::vector<std::size_t> order(variants.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return measured[a] < measured[b]; });
  Variants finalists;
  for (std::size_t i = 0; i < std::min<std::size_t>(5, order.size()); ++i)
    finalists.push_back(variants[order[i]]);
  const Contest last(finalists, stream, buffers, 41, sample_seconds);
  std::size_t best = 0;
  for (std::size_t i = 1; i < finalists.size(); ++i)
    if (last.seconds(i) < last.seconds(best)) best = i;
  result.best = finalists[best];
  return result;
}

/// The median; -1 stands for never.
std::string earned_text(std::vector<double> times_the_calls) {
  std::sort(times_the_calls.begin(), times_the_calls.end());
  const double middle = median(times_the_calls);
  return times_the_calls.front() < 0 ? "never, of some" : fmt::format("{:.2f} x", middle);
}

void print_case(const TuneCase& each, const Device& device, bool all_configurations) {
  fusec::Progress progress(each.name);
  const ExploreOptions options{.bits = Bits::any, .max_options = 4, .max_cuts = 2, .max_groups = 1};
  const auto usual = std::make_shared<runtime::Variant>(compile(each.graph, device), DimValues());
  const SlotBuffers buffers(usual->prepared(), usual->executable().slots(), device);
  Stream stream = device.stream();

  std::vector<Explored> found;
  Variants contestants = {usual,
                          std::make_shared<runtime::Variant>(compile(each.graph, device), DimValues())};
  for (int i = 0; i < explorations; ++i) {
    progress.at(fmt::format("{}: exploration {} of {}", each.name, i + 1, explorations));
    found.push_back(explored(each.graph, device, options, *usual));
    contestants.push_back(variant_of(each.graph, device, found.back().tuning));
  }
  Exhaustive best;
  if (all_configurations) {
    const runtime::Space space =
        runtime::space_of(ir_of(each.graph), backend_of(device)->target(), {}, options);
    best = exhaustive(each, device, space, stream, buffers.views, progress);
    if (best.best) contestants.push_back(best.best);
  }
  progress.at(each.name + ": measuring what was found");
  const Contest contest(contestants, stream, buffers.views, 61, sample_seconds);

  std::vector<double> gains, times, costs, earned;
  std::int64_t calls = 0, announced = 0;
  for (int i = 0; i < explorations; ++i) {
    const Explored& one = found[static_cast<std::size_t>(i)];
    const std::size_t tuned = static_cast<std::size_t>(i) + 2;
    gains.push_back(contest.ratio(0, tuned));
    times.push_back(contest.seconds(tuned));
    costs.push_back(one.seconds / one.usual_seconds);
    const double lost = one.seconds - one.usual_seconds;
    const double gain = contest.seconds(0) - contest.seconds(tuned);
    earned.push_back(lost <= 0 ? 0 : gain > 0 ? lost / gain / static_cast<double>(one.calls) : -1);
    calls = std::max(calls, one.calls);
    announced = std::max(announced, one.announced);
    if (!one.stopped.empty()) progress.print(fmt::format("{}: stopped: {}", each.name, one.stopped));
  }
  const auto [fastest, slowest] = std::minmax_element(times.begin(), times.end());
  const std::size_t commands = stages_of(usual->executable()).plan.steps.size();
  const double marks = static_cast<double>(2 * commands + 2) * seconds_of_mark(device) / contest.seconds(0);
  const std::string of_best =
      best.best ? fmt::format("{:.3f} | {} | {:.2f}", median(times) / contest.seconds(contestants.size() - 1),
                              best.configurations, best.correlation)
                : "- | - | -";
  progress.print(fmt::format(
      "| {} | {:.1f} | {:.3f} | {:.3f} to {:.3f} | {:.3f} | {} | {} | {} | {:.3f} to {:.3f} | {} | {:.2f}% | "
      "{:.3f} |",
      each.name, contest.seconds(0) * 1e6, 1 + contest.spread(0, 1),
      *std::min_element(gains.begin(), gains.end()), *std::max_element(gains.begin(), gains.end()),
      *slowest / *fastest, of_best, announced, calls, *std::min_element(costs.begin(), costs.end()),
      *std::max_element(costs.begin(), costs.end()), earned_text(earned), marks * 100,
      compile_ratio(each.graph, device, found.front().tuning)));
}

void help() {
  fmt::print(
      "tune_table: what explorations find on this CPU, five for each case, beside the default and the best "
      "of\n"
      "all configurations\n\n"
      "  --filter NAME[,NAME]  the cases whose name has one of these\n"
      "  --threads N           of the device; 1 unless it is given: a compiler works beside it\n"
      "  --no-exhaustive       not all configurations: compiling them takes minutes\n"
      "  --help                this text\n\n"
      "exit status: 0, 1 (something failed), 2 (the command line)\n");
}

int run(const std::string& filter, int threads, bool all_configurations) {
  const Device device = Device::cpu({.threads = threads});
  fmt::print("{}\n\n", device.name());
  fmt::print(
      "| case | default, us | A/A | gain of five tunings | slowest of fastest | tuned of best | "
      "configurations | "
      "rank correlation | announced runs | calls | time of calls, of the default's | earned back after, in "
      "calls | "
      "marks | compile time, of the default's |\n|{}\n",
      " --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
  for (const TuneCase& each : tune_cases()) {
    const std::vector<std::string> parts = parts_of(filter);
    const bool fits = parts.empty() || std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
                        return each.name.find(part) != std::string::npos;
                      });
    if (fits) print_case(each, device, all_configurations);
  }
  return 0;
}

}  // namespace
}  // namespace fuse::bench

int main(int argc, char** argv) {
  using namespace fuse::bench;  // NOLINT
  std::string filter, threads = "1";
  bool no_exhaustive = false;
  try {
    read_arguments(
        argc, argv,
        {{"--filter", &filter}, {"--threads", &threads}, {"--no-exhaustive", nullptr, &no_exhaustive}}, help);
    return run(filter, std::stoi(threads), !no_exhaustive);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
