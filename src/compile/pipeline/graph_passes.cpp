// SPDX-License-Identifier: Apache-2.0
#include "compile/pipeline/graph_passes.hpp"

#include <fmt/format.h>

#include <variant>

#include "ir/graph/verify.hpp"
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

namespace fuse {
namespace {

struct GraphPass {
  const char* name;
  ir::Graph (*run)(const ir::Graph&, const PipelineOptions&, const ir::Decide&);
  bool PipelineOptions::*wanted = nullptr;  ///< left out where the option is false
};

/// A pass that has no options.
template <ir::Graph (*pass)(const ir::Graph&)>
ir::Graph plain(const ir::Graph& graph, const PipelineOptions&, const ir::Decide&) {
  return pass(graph);
}

ir::Graph simplify(const ir::Graph& graph, const PipelineOptions& options, const ir::Decide&) {
  return ir::simplify(graph, {.relaxed_rounding = options.relaxed_rounding});
}

ir::Graph merge_gemms(const ir::Graph& graph, const PipelineOptions&, const ir::Decide& decide) {
  return ir::merge_gemms(graph, decide);
}

// The passes in this order; only run_graph_passes times, verifies and dumps them.
constexpr GraphPass graph_passes[] = {
    {"dead_code", plain<ir::dead_code>},
    {"canonical_dims", plain<ir::canonical_dims>},
    {"drop_broadcasts", plain<ir::drop_broadcasts>},
    {"open_contractions", plain<ir::open_contractions>},
    {"fold_constants", plain<ir::fold_constants>},
    {"common_subexpressions", plain<ir::common_subexpressions>},
    {"narrow_slices", plain<ir::narrow_slices>},
    {"simplify", simplify},
    {"align_layouts", plain<ir::align_layouts>},
    {"sink_reshapes", plain<ir::sink_reshapes>},
    {"common_subexpressions", plain<ir::common_subexpressions>},
    {"dead_code", plain<ir::dead_code>},
    {"merge_gemms", merge_gemms, &PipelineOptions::merge_gemms},
    {"split_concats", plain<ir::split_concats>},
};

}  // namespace

ir::Graph run_graph_passes(ir::Graph graph, const PipelineOptions& options, const ir::Decide& decide,
                           Stopwatch& watch) {
  const auto* const wrong = options.fault ? std::get_if<ir::WrongRewrite>(&*options.fault) : nullptr;
  bool planted = !wrong;
  for (const GraphPass& pass : first_of(graph_passes, options.graph_passes)) {
    if (pass.wanted && !(options.*pass.wanted)) continue;
    graph = pass.run(graph, options, decide);
    if (!planted && pass.name == wrong->pass) {
      planted = true;
      if (!ir::plant_rewrite(graph, wrong->site)) {
        throw Error({.code = ErrorCode::invalid_argument,
                     .message = fmt::format("after {} there is no site {} for a wrong rewrite", pass.name,
                                            wrong->site),
                     .hint = "sites are the element-wise ops of two different operands, from 0"});
      }
    }
    if (options.verify) ir::verify(graph);
    watch.lap(pass.name);
  }
  return graph;
}

std::vector<std::string_view> graph_pass_names() {
  std::vector<std::string_view> names;
  for (const GraphPass& pass : graph_passes) names.emplace_back(pass.name);
  return names;
}

}  // namespace fuse
