// fuse_fuzz: generated programs, reference against emulated. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "fuzz/corpus.hpp"
#include "fuzz/explored.hpp"
#include "fuzz/fingerprint.hpp"
#include "fuzz/grow/generator.hpp"
#include "fuzz/grow/random.hpp"
#include "fuzz/judge/execute.hpp"
#include "fuzz/judge/generated_answers.hpp"
#include "fuzz/judge/judge.hpp"
#include "fuzz/minimise.hpp"
#include "fuzz/nest_campaign.hpp"
#include "fuzz/shape_campaign.hpp"
#include "fuzz/told.hpp"
#include "fuzz/worker.hpp"

namespace fuse::fuzz {
namespace {

constexpr std::string_view usage = R"(usage: fuse_fuzz [OPTION...]
Runs generated programs on the emulated device and compares them with the reference. Failures are made small and
written to the corpus, which every run begins with.
  --count N             programs (default 1000)
  --minutes M           stop after so many minutes
  --seed S              of the run (default 1): program I of seed S is always the same
  --jobs J              worker processes at once (default: one a core)
  --batch K             programs compiled together (default 32)
  --device cpu          runs them on the cpu device, with its own choices; 'cpu x86-64-v3': as a machine of that level
  --dynamic             programs whose extents are symbols, each for five shapes, with versions (docs/versions.md)
  --coverage FILE       writes the table op x dtype
  --require-coverage    fails where a legal cell of it is empty
  --corpus DIR          where failures are kept
  --no-minimise         leaves failures as they were found
A table says how many programs had each form that a campaign must reach; the run fails where one is below its floor.
Instead, with --seed S and from --index I on, generated f64 programs that
  --right N             `fusec run --check` must not accuse
  --searched N          `fusec bisect` must not accuse, every value kept
  --planted N           have a wrong op planted, which bisect must name
Instead, kernels by loops that no usual nest has (docs/nests.md), each on one profile and in three orders of threads
  --nests N             drawn from the nests that a few phases can have
  --lists N             random lists of splits: those that the rules take are run
Instead, from --index I on, generated programs that
  --told N              are compiled again by the decisions that were written of them, for a device of other speeds
  --explored N          are run 20 times by an explorer each, and every run is judged
Instead, graphs with symbols, each through one executable whose kernels have versions
  --shapes N FILE..     for N random shapes each; with --profile NAME and --checked
Alone:
  --replay FILE         one file of the corpus
  --seed S --index I    one program of a run; with --print, its text instead; with --compiled, what is made of it
                        (with --right, --searched or --planted besides, the text is that of their programs)
  --answers FIRST       runs --count programs from there on, and writes what went in and came out (answers.hpp)
)";

struct Options {
  RunSettings run;
  std::string coverage, corpus = FUSE_FUZZ_CORPUS, replay;
  bool require_coverage = false, minimise = true, print = false, compiled = false, help = false;
  std::int64_t index = -1, worker = -1, answers = -1, told = 0, explored = 0;
  JudgeSettings judge;
  NestSettings nests;
  ShapeSettings shapes;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= argc) throw std::runtime_error(word + " needs a value");
      return argv[++i];
    };
    const auto number = [&] {
      const std::string text = value();
      std::size_t used = 0;
      double parsed = -1;
      try {
        parsed = std::stod(text, &used);
      } catch (const std::exception&) {}
      if (used != text.size() || !(parsed >= 0) || parsed > 1e15) {
        throw std::runtime_error(word + " needs a number, not '" + text + "'");
      }
      return parsed;
    };
    const auto integer = [&] { return static_cast<std::int64_t>(number()); };
    if (word == "--count") {
      options.run.count = integer();
    } else if (word == "--minutes") {
      options.run.minutes = number();
    } else if (word == "--seed") {
      options.run.seed = static_cast<std::uint64_t>(integer());
    } else if (word == "--jobs") {
      options.run.jobs = static_cast<int>(integer());
    } else if (word == "--batch") {
      options.run.batch = std::max<std::int64_t>(1, integer());
    } else if (word == "--coverage") {
      options.coverage = value();
    } else if (word == "--require-coverage") {
      options.require_coverage = true;
    } else if (word == "--corpus") {
      options.corpus = value();
    } else if (word == "--no-minimise") {
      options.minimise = false;
    } else if (word == "--replay") {
      options.replay = value();
    } else if (word == "--index") {
      options.index = integer();
    } else if (word == "--print") {
      options.print = true;
    } else if (word == "--compiled") {
      options.compiled = true;
    } else if (word == "--right") {
      options.judge.right = integer();
    } else if (word == "--searched") {
      options.judge.searched = integer();
    } else if (word == "--planted") {
      options.judge.named = integer();
    } else if (word == "--nests") {
      options.nests.count = integer();
    } else if (word == "--shapes") {
      options.shapes.shapes = integer();
    } else if (word == "--profile") {
      options.shapes.profile = value();
    } else if (word == "--checked") {
      options.shapes.checked = true;
    } else if (!word.starts_with("-")) {
      options.shapes.files.push_back(word);
    } else if (word == "--lists") {
      options.nests.lists = integer();
    } else if (word == "--dynamic") {
      options.run.dynamic = true;
    } else if (word == "--told") {
      options.told = integer();
    } else if (word == "--explored") {
      options.explored = integer();
    } else if (word == "--device") {
      const std::string name = value();
      if (!name.starts_with("cpu") && name != "emulated")
        throw std::runtime_error("--device: emulated, cpu or 'cpu x86-64-v3', not " + name);
      options.run.cpu = name == "emulated" ? "" : name;
    } else if (word == "--worker") {
      options.worker = integer();
    } else if (word == "--answers") {
      options.answers = integer();
    } else if (word == "--help" || word == "-h") {
      options.help = true;
    } else {
      throw std::runtime_error("unknown option '" + word + "'; see fuse_fuzz --help");
    }
  }
  return options;
}

int report(const Outcome& outcome) {
  fmt::print("{}{}{}\n{} elements, {} compared bit for bit, {} undecided\n", to_string(outcome.verdict),
             outcome.text.empty() ? "" : ": ", outcome.text, outcome.shares.elements, outcome.shares.exact,
             outcome.shares.undecided);
  return is_failure(outcome.verdict) ? 1 : 0;
}

/// A line that is written over on a terminal, and every ten seconds elsewhere.
class Progress {
 public:
  explicit Progress(const RunSettings& settings) : settings_(settings), terminal_(isatty(2) != 0) {}

  void show(const RunTotals& totals) {
    for (; shown_ < totals.failures.size(); ++shown_) {
      const Failure& failure = totals.failures[shown_];
      clear();
      fmt::print("FAILED {}: --seed {} --index {}\n  {}\n", to_string(failure.verdict), settings_.seed,
                 failure.index, failure.text);
      std::fflush(stdout);
    }
    if (totals.seconds < next_) return;
    next_ = totals.seconds + (terminal_ ? 0.5 : 10);
    const double rate = totals.seconds > 0 ? static_cast<double>(totals.programs) / totals.seconds : 0;
    const double left = rate > 0 ? static_cast<double>(settings_.count - totals.programs) / rate : 0;
    const double limit = settings_.minutes > 0 ? settings_.minutes * 60 - totals.seconds : left;
    fmt::print(stderr, "{}{} of {} programs, {} checked, {} failed, {:.1f}/s, {:.0f} s left{}",
               terminal_ ? "\r" : "", totals.programs, settings_.count, totals.checked,
               totals.failures.size(), rate, std::max(0.0, std::min(left, limit)), terminal_ ? "   " : "\n");
    std::fflush(stderr);
  }
  void clear() const {
    if (terminal_) fmt::print(stderr, "\r{:78}\r", "");
  }

 private:
  const RunSettings settings_;
  const bool terminal_;
  double next_ = 0;
  std::size_t shown_ = 0;  ///< failures
};

void make_small(const Options& options, const Failure& failure) {
  const Case found = drawn(options.run, failure.index);
  const Minimised small = minimise(found);
  if (small.verdict == Verdict::ok) {
    fmt::print("--index {}: alone it does not fail, so it depends on what ran before it\n", failure.index);
    return;
  }
  const std::string name = fmt::format("{}_{}_{}", to_string(small.verdict), options.run.seed, failure.index);
  const std::string path = write_corpus(options.corpus, name, small.smallest,
                                        fmt::format("{}: {}", to_string(small.verdict), small.text));
  fmt::print("--index {}: {} ops after {} tries, {}\n", failure.index, small.ops, small.tries, path);
  std::fflush(stdout);
}

int run(const Options& options) {
  std::int64_t failed = 0;
  const std::vector<std::string> files = corpus_files(options.corpus);
  for (const std::string& file : files) {
    const Outcome outcome = in_child(load_corpus(file));
    if (!is_failure(outcome.verdict)) continue;
    ++failed;
    fmt::print("FAILED {}: {}\n  {}\n", to_string(outcome.verdict), file, outcome.text);
  }
  fmt::print("corpus: {} files, {} failed\n", files.size(), failed);
  fmt::print("seed {}: programs 0 to {}\n", options.run.seed, options.run.count - 1);
  std::fflush(stdout);
  Progress progress(options.run);
  const RunTotals totals = run_workers(options.run, [&](const RunTotals& now) { progress.show(now); });
  progress.clear();
  if (options.minimise) {
    for (const Failure& failure : totals.failures) make_small(options, failure);
  }
  const auto share = [&](std::size_t part) {
    return 100.0 * static_cast<double>(part) /
           static_cast<double>(std::max<std::size_t>(1, totals.shares.elements));
  };
  fmt::print("{} programs in {:.0f} s ({:.1f}/s), {} of them checked, {} wasted\n", totals.programs,
             totals.seconds, static_cast<double>(totals.programs) / std::max(totals.seconds, 1e-9),
             totals.checked, totals.wasted);
  fmt::print("{} elements: {:.1f}% compared bit for bit, {:.1f}% within a bound, {:.1f}% undecided\n",
             totals.shares.elements, share(totals.shares.exact),
             share(totals.shares.elements - totals.shares.exact - totals.shares.undecided),
             share(totals.shares.undecided));
  if (!options.coverage.empty()) std::ofstream(options.coverage) << totals.coverage.table();
  const std::vector<std::string> empty = totals.coverage.empty_cells();
  if (!empty.empty()) fmt::print("not covered: {}\n", fmt::join(empty, ", "));
  const bool on_gpu = options.run.cpu.empty();
  fmt::print("{}", totals.forms.table(on_gpu));
  std::vector<std::string> rare;  // the floors are those of all kinds of programs
  if (!options.run.dynamic) rare = totals.forms.below_floor(on_gpu);
  for (const std::string& form : rare) fmt::print("FAILED too few programs of the form {}\n", form);
  failed += static_cast<std::int64_t>(rare.size());
  failed += static_cast<std::int64_t>(totals.failures.size());
  const std::int64_t passed = totals.programs - static_cast<std::int64_t>(totals.failures.size());
  if (options.require_coverage && !empty.empty()) ++failed;
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}

int run_told(std::uint64_t seed, std::int64_t first, std::int64_t count) {
  std::int64_t failed = 0, differ = 0;
  std::size_t decisions = 0;
  for (std::int64_t i = first; i < first + count; ++i) {
    const Told told = told_again(generate(seed_of(seed, static_cast<std::uint64_t>(i))));
    decisions += told.decisions;
    differ += told.model_differs;
    if (told.differs.empty()) continue;
    ++failed;
    fmt::print("FAILED --seed {} --index {}: {}\n", seed, i, told.differs);
  }
  fmt::print("seed {}: {} decisions; without them {} programs would differ\n", seed, decisions, differ);
  fmt::print("{} passed, {} failed\n", count - failed, failed);
  return failed == 0 && count > 0 ? 0 : 1;
}

int run_explored(const ExploreCampaign& campaign) {
  const bool terminal = isatty(2) != 0;
  std::size_t shown = 0;
  std::int64_t next = 0;
  const ExploreTotals totals = explore_programs(campaign, [&](const ExploreTotals& now) {
    for (; shown < now.failures.size(); ++shown) fmt::print("FAILED {}\n", now.failures[shown]);
    std::fflush(stdout);
    if (now.programs < next) return;
    next = now.programs + (terminal ? 1 : 50);
    fmt::print(stderr, "{}{} of {} programs, {} failed{}", terminal ? "\r" : "", now.programs, campaign.count,
               now.failures.size(), terminal ? "   " : "\n");
  });
  fmt::print("seed {}: {} runs of {} configurations, {} options dropped, {} explorations done\n",
             campaign.seed, totals.runs, totals.configurations, totals.dropped, totals.done);
  const auto failed = static_cast<std::int64_t>(totals.failures.size());
  fmt::print("{} passed, {} failed\n", totals.programs - failed, failed);
  return failed == 0 && totals.programs > 0 ? 0 : 1;
}

std::int64_t wanted(const JudgeSettings& settings) {
  return settings.right + settings.searched + settings.named;
}

int run_judge(JudgeSettings settings) {
  const bool terminal = isatty(2) != 0;
  std::size_t shown = 0;
  std::int64_t next = 0;
  const JudgeTotals totals = judge(settings, [&](const JudgeTotals& now) {
    for (; shown < now.failures.size(); ++shown) fmt::print("FAILED {}\n", now.failures[shown]);
    std::fflush(stdout);
    const std::int64_t done = now.right + now.searched + now.named;
    if (done < next) return;
    next = done + (terminal ? 5 : 50);
    fmt::print(stderr, "{}{} of {} programs, {} failed{}", terminal ? "\r" : "", done, wanted(settings),
               now.failures.size(), terminal ? "   " : "\n");
  });
  fmt::print(
      "seed {}: {} programs right by run --check ({} outputs, {} of them all NaN, all infinite or "
      "constant), {} by bisect, {} planted ops named; {} drawn programs had nothing to judge\n",
      settings.seed, totals.right, totals.outputs, totals.bare, totals.searched, totals.named,
      totals.skipped);
  fmt::print("{} passed, {} failed\n", totals.right + totals.searched + totals.named, totals.failures.size());
  return totals.failures.empty() ? 0 : 1;
}

int run_nest_campaign(NestSettings settings) {
  const bool terminal = isatty(2) != 0;
  std::size_t shown = 0;
  std::int64_t next = 0;
  const NestTotals totals = run_nests(settings, [&](const NestTotals& now) {
    for (; shown < now.failures.size(); ++shown) fmt::print("FAILED {}\n", now.failures[shown]);
    std::fflush(stdout);
    if (now.runs < next) return;
    next = now.runs + (terminal ? 5 : 200);
    fmt::print(stderr, "{}{} of {} nests, {} failed{}", terminal ? "\r" : "", now.runs, now.wanted,
               now.failures.size(), terminal ? "   " : "\n");
  });
  for (const auto& [phase, structures] : totals.structures)
    fmt::print("{}: {} structures\n", phase, structures);
  fmt::print("seed {}: {} nests of the enumeration, {} of {} random lists\n", settings.seed, totals.nests,
             totals.taken, totals.drawn);
  const auto failed = static_cast<std::int64_t>(totals.failures.size());
  fmt::print("{} passed, {} failed\n", totals.runs - failed, failed);
  return failed == 0 && totals.runs > 0 ? 0 : 1;
}

int main_of(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (options.help) {
    fmt::print("{}", usage);
    return 0;
  }
  if (options.worker >= 0) {
    return work(options.run, static_cast<std::uint64_t>(options.worker));
  }
  if (options.answers >= 0) {
    return answer(options.run.seed, static_cast<std::uint64_t>(options.answers), options.run.count);
  }
  if (!options.replay.empty()) return report(run_alone(load_corpus(options.replay)));
  if (options.nests.count + options.nests.lists > 0) {
    NestSettings settings = options.nests;
    settings.seed = options.run.seed;
    settings.batch = options.run.batch;
    settings.jobs =
        options.run.jobs > 0 ? options.run.jobs : static_cast<int>(std::thread::hardware_concurrency());
    return run_nest_campaign(settings);
  }
  if (options.shapes.shapes > 0) {
    ShapeSettings settings = options.shapes;
    settings.seed = options.run.seed;
    return run_shape_campaign(settings);
  }
  if (!options.shapes.files.empty())
    throw std::runtime_error(options.shapes.files[0] + ": files are for --shapes N");
  if (options.told > 0)
    return run_told(options.run.seed, std::max<std::int64_t>(0, options.index), options.told);
  if (options.explored > 0) {
    const int jobs =
        options.run.jobs > 0 ? options.run.jobs : static_cast<int>(std::thread::hardware_concurrency());
    return run_explored({.seed = options.run.seed,
                         .first = std::max<std::int64_t>(0, options.index),
                         .count = options.explored,
                         .jobs = jobs});
  }
  if (wanted(options.judge) > 0 && options.print) {
    const Case one = generate(seed_of(options.run.seed, static_cast<std::uint64_t>(options.index)), f64);
    fmt::print("{}", to_text(one, fmt::format("seed {} index {}, in f64", options.run.seed, options.index)));
    return 0;
  }
  if (wanted(options.judge) > 0) {
    JudgeSettings settings = options.judge;
    settings.seed = options.run.seed;
    settings.first = std::max<std::int64_t>(0, options.index);
    return run_judge(settings);
  }
  if (options.index < 0) return run(options);
  const Case one = drawn(options.run, static_cast<std::uint64_t>(options.index));
  if (options.compiled) {
    for (const Compiled& build : compiled(one, "p").each)
      for (const auto& [stage, text] : stage_texts(build)) fmt::print("== {}\n{}", stage, text);
    return 0;
  }
  if (!options.print) return report(run_alone(one));
  fmt::print("{}", to_text(one, fmt::format("seed {} index {}", options.run.seed, options.index)));
  return 0;
}

}  // namespace
}  // namespace fuse::fuzz

int main(int argc, char** argv) {
  // Tensors come and go: fresh pages for each would take as long as what is computed in them.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  try {
    return fuse::fuzz::main_of(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "fuse_fuzz: {}\n", error.what());
    return 2;
  }
}
