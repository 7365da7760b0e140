// cut_table: Astra's models, forward and training, by the cost model alone: a run as it is cut by default,
// with no GEMMs merged, with all that can be, and as an exploration leaves it, for batches of 8 to 256 and
// three GPUs. Nothing is compiled: the cost model is the clock. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <fuse/fuse.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/access.hpp"
#include "bench_arguments.hpp"
#include "compile/compile.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "explore/update_tree.hpp"
#include "fusec/progress.hpp"
#include "models/gnmt.hpp"
#include "models/mi_lstm.hpp"
#include "models/scrn.hpp"
#include "models/stacked_lstm.hpp"
#include "models/sub_lstm.hpp"
#include "runtime/explore/space.hpp"
#include "schedule/decisions/decisions.hpp"

namespace fuse::bench {
namespace {

/// Stands for kernels that nobody compiled: `prepare` needs no more of them than that they are there.
class NotCompiled final : public runtime::Module {
 public:
  NotCompiled() : Module(std::make_shared<const runtime::Binary>()) {}
  const runtime::Function& function(const std::string&) const override { return function_; }

 private:
  struct Nothing final : runtime::Function {};
  const Nothing function_{};
};

struct Model {
  std::string name;
  std::function<Graph(std::int64_t batch)> build;
};

template <class M, class Build>
Model model(std::string name, Build build) {
  return {std::move(name), [build](std::int64_t batch) {
            M of = M::paper();
            of.batch = batch;
            return build(of);
          }};
}

std::vector<Model> models() {
  using namespace example;  // NOLINT
  return {
      model<Scrn>("scrn", [](const Scrn& m) { return build_scrn(m); }),
      model<MiLstm>("mi_lstm", [](const MiLstm& m) { return build_mi_lstm(m); }),
      model<SubLstm>("sub_lstm", [](const SubLstm& m) { return build_sub_lstm(m); }),
      model<StackedLstm>("stacked_lstm", [](const StackedLstm& m) { return build_stacked_lstm(m); }),
      model<Gnmt>("gnmt", [](const Gnmt& m) { return build_gnmt(m); }),
      model<Scrn>("scrn_training", [](const Scrn& m) { return build_scrn_training(m); }),
      model<MiLstm>("mi_lstm_training", [](const MiLstm& m) { return build_mi_lstm_training(m); }),
      model<SubLstm>("sub_lstm_training", [](const SubLstm& m) { return build_sub_lstm_training(m); }),
      model<StackedLstm>("stacked_lstm_training",
                         [](const StackedLstm& m) { return build_stacked_lstm_training(m); }),
      model<Gnmt>("gnmt_training", [](const Gnmt& m) { return build_gnmt_training(m); }),
  };
}

struct Predicted {
  double seconds = 0;
  double busy_seconds = 0;  ///< the sum of all steps
  std::int64_t gemms = 0;
};

Predicted predicted(const Graph& graph, const Device& device, const PipelineOptions& options) {
  Compiled compiled = run_pipeline(ir_of(graph), backend_of(device)->target(), options);
  const Executable executable =
      runtime::make_executable(ir_of(graph), std::move(compiled), device, std::make_unique<NotCompiled>());
  const Prepared prepared = executable.prepare();
  const Profile profile = prepared.predicted();
  Predicted result{.seconds = profile.seconds, .gemms = prepared.gemms()};
  for (const StepTime& step : profile.steps) result.busy_seconds += step.end - step.start;
  return result;
}

PipelineOptions merges(bool yes) {
  PipelineOptions options;
  options.answer = [yes](const ir::Asked& asked) {
    return asked.question == ir::Question::merge ? yes : asked.by_cost;
  };
  return options;
}

struct Tuned {
  Predicted best{};
  std::int64_t configurations = 0;
};

/// What an exploration finds whose clock is the cost model: of ways to cut, and to merge each group of GEMMs.
Tuned tuned(const Graph& graph, const Device& device) {
  const ExploreOptions explore{.bits = Bits::any, .max_options = 1, .max_cuts = 8, .max_epochs = 0};
  const runtime::Space space = runtime::space_of(ir_of(graph), backend_of(device)->target(), {}, explore);
  explore::UpdateTree tree(space.tree(), {});
  std::map<std::string, Predicted> known;
  const auto run = [&] {
    const explore::Configuration configuration = tree.configuration();
    PipelineOptions options;
    options.decisions = space.decisions(configuration);
    options.skip_unfit_decisions = space.is_partial(configuration);
    const auto [entry, added] = known.try_emplace(schedule::print(*options.decisions));
    if (added) entry->second = predicted(graph, device, options);
    return entry->second;
  };
  while (!tree.done()) {
    const Predicted now = run();
    const std::map<std::string, double> measured = {{"", now.seconds}, {"steps", now.busy_seconds}};
    tree.report([&](const std::string& name) { return runtime::judging_seconds(measured, name); });
  }
  return {run(), tree.runs()};
}

void help() {
  fmt::print(
      "cut_table: Astra's models as they are cut by default, with no GEMMs merged, and with all that can "
      "be:\n"
      "microseconds of a run by the cost model, and what an exploration finds by it as its clock\n\n"
      "  --filter NAME[,NAME]  these models alone\n"
      "  --help                this text\n\n"
      "exit status: 0, 1 (something failed, or an exploration left a run slower than apart or merged), 2 "
      "(the "
      "command line)\n");
}

int run(const std::string& filter) {
  int slow_defaults = 0, slow_tunings = 0;
  fmt::print("{:22} {:6} {:>5} {:>12} {:>12} {:>12} {:>12} {:>18} {:>8} {:>8} {:>6}\n", "model", "GPU",
             "batch", "default", "apart", "merged", "tuned", "GEMMs", "of best", "gain", "runs");
  for (const Model& model : models()) {
    if (!filter.empty() && ("," + filter + ",").find("," + model.name + ",") == std::string::npos) continue;
    for (const char* profile : {"h200", "a100", "v100"}) {
      const Device device = Device::emulated({.profile = profile, .threads = 1});
      for (const std::int64_t batch : {8, 16, 32, 64, 128, 256}) {
        fusec::Progress progress(fmt::format("{} for {} with batches of {}", model.name, profile, batch));
        const Graph graph = model.build(batch);
        const Predicted usual = predicted(graph, device, {}), apart = predicted(graph, device, merges(false)),
                        merged = predicted(graph, device, merges(true));
        const Tuned found = tuned(graph, device);
        const double best = std::min(apart.seconds, merged.seconds);
        slow_defaults += usual.seconds > 1.01 * best;
        slow_tunings += found.best.seconds > best * (1 + 1e-9);
        progress.print(
            fmt::format("{:22} {:6} {:5} {:12.1f} {:12.1f} {:12.1f} {:12.1f} {:>18} {:8.3f} {:8.3f} {:6}",
                        model.name, profile, batch, usual.seconds * 1e6, apart.seconds * 1e6,
                        merged.seconds * 1e6, found.best.seconds * 1e6,
                        fmt::format("{}/{}/{}/{}", usual.gemms, apart.gemms, merged.gemms, found.best.gemms),
                        found.best.seconds / best, usual.seconds / found.best.seconds, found.configurations));
      }
    }
  }
  fmt::print(
      "{} defaults are more than 1% slower than the better of apart and merged, and {} of what explorations "
      "found are slower at all\n",
      slow_defaults, slow_tunings);
  return slow_tunings == 0 ? 0 : 1;
}

}  // namespace
}  // namespace fuse::bench

int main(int argc, char** argv) {
  using namespace fuse::bench;  // NOLINT
  std::string filter;
  try {
    read_arguments(argc, argv, {{"--filter", &filter}}, help);
    return run(filter);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
