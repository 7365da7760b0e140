// cut_table: Astra's models, forward and training, by the cost model alone: a run as it is cut by default,
// with no GEMMs merged, and with all that can be, for batches of 8 to 256 and three GPUs. Nothing is
// compiled. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <fuse/fuse.hpp>
#include <string>
#include <vector>

#include "bench_arguments.hpp"
#include "compile/compile.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "fusec/progress.hpp"
#include "models/gnmt.hpp"
#include "models/mi_lstm.hpp"
#include "models/scrn.hpp"
#include "models/stacked_lstm.hpp"
#include "models/sub_lstm.hpp"

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
  std::int64_t gemms = 0;
};

Predicted predicted(const Graph& graph, const Device& device, const ir::Decide& answer) {
  PipelineOptions options;
  options.answer = answer;
  Compiled compiled = run_pipeline(graph.ir(), device.backend()->target(), options);
  const Executable executable =
      runtime::make_executable(graph.ir(), std::move(compiled), device, std::make_unique<NotCompiled>());
  const Prepared prepared = executable.prepare();
  return {prepared.predicted().seconds, prepared.gemms()};
}

ir::Decide merges(bool yes) {
  return
      [yes](const ir::Asked& asked) { return asked.question == ir::Question::merge ? yes : asked.by_cost; };
}

void help() {
  fmt::print(
      "cut_table: Astra's models as they are cut by default, with no GEMMs merged, and with all that can "
      "be:\n"
      "microseconds of a run by the cost model\n\n"
      "  --filter NAME[,NAME]  these models alone\n"
      "  --help                this text\n\n"
      "exit status: 0, 1 (something failed, or a default is 1% slower than another way), 2 (the command "
      "line)\n");
}

int run(const std::string& filter) {
  int worse = 0;
  fmt::print("{:22} {:6} {:>5} {:>12} {:>12} {:>12} {:>15} {:>8}\n", "model", "GPU", "batch", "default",
             "apart", "merged", "GEMMs", "of best");
  for (const Model& model : models()) {
    if (!filter.empty() && ("," + filter + ",").find("," + model.name + ",") == std::string::npos) continue;
    for (const char* profile : {"h200", "a100", "v100"}) {
      const Device device = Device::emulated({.profile = profile, .threads = 1});
      for (const std::int64_t batch : {8, 16, 32, 64, 128, 256}) {
        fusec::Progress progress(fmt::format("{} for {} with batches of {}", model.name, profile, batch));
        const Graph graph = model.build(batch);
        const Predicted usual = predicted(graph, device, {}), apart = predicted(graph, device, merges(false)),
                        merged = predicted(graph, device, merges(true));
        const double best = std::min(apart.seconds, merged.seconds);
        worse += usual.seconds > 1.01 * best;
        progress.print(fmt::format(
            "{:22} {:6} {:5} {:12.1f} {:12.1f} {:12.1f} {:>15} {:8.3f}", model.name, profile, batch,
            usual.seconds * 1e6, apart.seconds * 1e6, merged.seconds * 1e6,
            fmt::format("{}/{}/{}", usual.gemms, apart.gemms, merged.gemms), usual.seconds / best));
      }
    }
  }
  fmt::print("{} defaults are more than 1% slower than the better of apart and merged\n", worse);
  return worse == 0 ? 0 : 1;
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
