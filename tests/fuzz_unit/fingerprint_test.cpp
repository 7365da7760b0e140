// The committed hashes say what the compiler decides about many graphs. A change that should change nothing
// leaves them as they are; of any other change, they show what it reached. FUSE_UPDATE_GOLDENS=1 rewrites the
// files. SPDX-License-Identifier: Apache-2.0
#include "fuzz/fingerprint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/access.hpp"
#include "compile/pipeline/experiments.hpp"
#include "fuzz/grow/generator.hpp"
#include "fuzz/grow/random.hpp"
#include "fuzz/judge/execute.hpp"
#include "ir/text/print.hpp"
#include "schedule/fusion/fusion_report.hpp"
#include "support/catch.hpp"
#include "support/examples.hpp"
#include "support/golden.hpp"
#include "support/sanitized.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::fuzz;  // NOLINT

namespace {

using Lines = std::vector<std::string>;

struct Named {
  std::string name;
  CompileOptions options{};
};

std::vector<Named> option_sets() {
  std::vector<Named> sets = {{"default"}};
  const auto add = [&](const char* name, const auto& set) {
    sets.push_back({name});
    set(sets.back().options);
  };
  add("--schemes astitch", [](CompileOptions& o) { change_experiments(o).schemes = Schemes::astitch; });
  add("--partition apollo", [](CompileOptions& o) { change_experiments(o).cut = Cut::apollo; });
  add("--baseline xla", [](CompileOptions& o) { change_experiments(o).cut = Cut::xla; });
  add("--stitch mapping", [](CompileOptions& o) { change_experiments(o).stitch = Stitch::mapping; });
  add("--stitch no-merge", [](CompileOptions& o) { change_experiments(o).stitch = Stitch::no_merge; });
  add("--no-grid-barriers", [](CompileOptions& o) { o.grid_barriers = false; });
  add("--max-inputs 5", [](CompileOptions& o) { o.max_inputs = 5; });
  add("--relaxed-rounding", [](CompileOptions& o) { o.relaxed_rounding = true; });
  return sets;
}

}  // namespace

TEST_CASE("fingerprints of generated programs are as committed", "[golden][fuzz][not-sanitized]") {
  const auto count = test::fewer<std::uint64_t>(1000, 50);
  Lines lines;
  for (std::uint64_t index = 0; index < count; ++index) {
    const Case c = generate(seed_of(1, index));
    std::string prints;  // of each build
    for (const Compiled& build : compiled(c, "p").each)
      prints += (prints.empty() ? "" : " ") + fmt::format("{}", fingerprint(build));
    lines.push_back(fmt::format("--seed 1 --index {}: {}", index, prints));
  }
  test::check_golden_lines("fingerprints/programs.txt", lines);
}

TEST_CASE("fingerprints of the example graphs are as committed", "[golden][not-sanitized]") {
  Lines lines;
  for (const char* name :
       {"softmax", "layernorm", "layer_norm_backward", "transformer_block", "bert_layer"}) {
    const Graph graph = test::example(name);
    for (const char* profile : {"h200", "a100", "v100", "tiny3", "tiny2", "x86-64-v3"}) {
      for (const auto& [set, options] : option_sets()) {
        const PipelineOptions pipeline = pipeline_options(options);
        const Target target = target_profile(profile);
        const Compiled made = run_pipeline(ir_of(graph), target, pipeline);
        const auto edges = schedule::unfused_edges(made.graph, made.partition, pipeline.partition, target);
        lines.push_back(fmt::format("{}, {}, {}: {} reasons {:08x}", name, profile, set, fingerprint(made),
                                    hash_of(schedule::print(made.graph, edges))));
      }
    }
  }
  test::check_golden_lines("fingerprints/graphs.txt", lines);
}

TEST_CASE("fingerprints of the cases' graphs are as committed", "[golden][not-sanitized]") {
  Lines lines;
  for (const std::filesystem::path& path : test::case_files()) {
    for (const char* profile : {"h200", "tiny3", "x86-64-v4"}) {
      std::string line = fmt::format("{}, {}: ", path.filename().string(), profile);
      try {
        line += fingerprint(run_pipeline(ir_of(Graph::load(path)), target_profile(profile)));
      } catch (const Error& error) {
        line += to_string(error.code());
      }
      lines.push_back(line);
    }
  }
  test::check_golden_lines("fingerprints/cases.txt", lines);
}

TEST_CASE("a fingerprint tells stages apart", "[fuzz]") {
  const Graph graph = test::example("softmax");
  const Compiled a = run_pipeline(ir_of(graph), target_profile("h200"));
  Compiled b = a;
  CHECK(fingerprint(a) == fingerprint(b));
  b.source.kernels.front().lines.front().op += "?";
  const std::string one = fingerprint(a), other = fingerprint(b);
  const std::size_t kernels = one.find("kernels");
  CHECK(one.substr(0, kernels) == other.substr(0, kernels));
  CHECK(one.substr(kernels) != other.substr(kernels));
}
