// What each pass alone makes of many graphs is what tests/golden/fingerprints/passes.txt says: within the
// pipeline a pass meets only what those before it leave. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <fuse/fuse.hpp>
#include <set>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "fuzz/fingerprint.hpp"
#include "fuzz/grow/generator.hpp"
#include "fuzz/grow/random.hpp"
#include "ir/graph/verify.hpp"
#include "ir/text/print.hpp"
#include "passes/align_layouts.hpp"
#include "passes/canonical_dims.hpp"
#include "passes/common_subexpressions.hpp"
#include "passes/dead_code.hpp"
#include "passes/drop_broadcasts.hpp"
#include "passes/fold_constants.hpp"
#include "passes/merge_gemms.hpp"
#include "passes/narrow_slices.hpp"
#include "passes/open_contractions.hpp"
#include "passes/rewrite/simplify.hpp"
#include "passes/sink_reshapes.hpp"
#include "passes/split_concats.hpp"
#include "support/catch.hpp"
#include "support/examples.hpp"
#include "support/golden.hpp"
#include "support/sanitized.hpp"

using namespace fuse;  // NOLINT

namespace {

struct Pass {
  const char* name;
  std::function<ir::Graph(const ir::Graph&)> run;
};

const Pass passes[] = {
    {"align_layouts", ir::align_layouts},
    {"canonical_dims", ir::canonical_dims},
    {"common_subexpressions", ir::common_subexpressions},
    {"drop_broadcasts", ir::drop_broadcasts},
    {"fold_constants", ir::fold_constants},
    {"merge_gemms", [](const ir::Graph& graph) { return ir::merge_gemms(graph); }},
    {"narrow_slices", ir::narrow_slices},
    {"open_contractions", ir::open_contractions},
    {"simplify", [](const ir::Graph& graph) { return ir::simplify(graph, {}); }},
    {"sink_reshapes", ir::sink_reshapes},
    {"split_concats", ir::split_concats},
};

/// Hashes of what each pass makes of the graph; a pass that changes nothing is left out.
std::string fingerprint(const ir::Graph& graph) {
  const std::string before = ir::print(ir::dead_code(graph));
  std::string line;
  for (const Pass& pass : passes) {
    const ir::Graph made = ir::dead_code(pass.run(graph));
    ir::verify(made);
    const std::string text = ir::print(made);
    if (text != before) line += fmt::format(" {} {:08x}", pass.name, fuzz::hash_of(text));
  }
  return line;
}

}  // namespace

TEST_CASE("each pass of the pipeline is run alone", "[passes]") {
  std::set<std::string_view> mine = {"dead_code"};
  for (const Pass& pass : passes) mine.insert(pass.name);
  const std::vector<std::string_view> names = graph_pass_names();
  CHECK(mine == std::set<std::string_view>(names.begin(), names.end()));
}

TEST_CASE("fingerprints of what each pass makes of many graphs are as committed",
          "[passes][golden][not-sanitized]") {
  std::vector<std::string> lines;
  for (const std::filesystem::path& path : test::case_files()) {
    std::string line = path.filename().string();
    try {
      line += fingerprint(ir_of(Graph::load(path)));
    } catch (const Error& error) {
      line += fmt::format(" {}", to_string(error.code()));
    }
    lines.push_back(line);
  }
  for (std::uint64_t index = 0; index < test::fewer<std::uint64_t>(1200, 20); ++index)
    lines.push_back(fmt::format("--seed 4 --index {}:{}", index,
                                fingerprint(fuzz::generate(fuzz::seed_of(4, index)).program.graph)));
  test::check_golden_lines("fingerprints/passes.txt", lines);
}
