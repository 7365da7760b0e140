// SPDX-License-Identifier: Apache-2.0
#include "compile/cache/cache_key.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_reader.hpp"
#include "compile/cache/source_id.hpp"
#include "compile/pipeline/experiments.hpp"
#include "compile/pipeline/fault.hpp"
#include "ir/text/print.hpp"
#include "runtime/device/toolchain.hpp"
#include "runtime/saved/fields.hpp"

namespace fuse::runtime {
namespace {

std::string text_of(const CompileOptions& options) {
  // A new option does not compile here until it is counted in.
  const auto& [relaxed_rounding, experiments, merge_gemms, search, grid_barriers, max_inputs, versions,
               builds, decisions, skip_unfit_decisions, threads, streams, cache] = options;
  const auto& [cut, layers, stitch, schemes, fault] = experiments_of(options);
  static_cast<void>(experiments);
  static_cast<void>(fault);    // below, with FUSE_FAULT's
  static_cast<void>(threads);  // changes nothing in what is made
  static_cast<void>(cache);
  return fmt::format("options {} {} {} {} {} {} {} {} {} {} {} {} {} {}\n", relaxed_rounding, merge_gemms,
                     static_cast<int>(cut), layers, static_cast<int>(stitch), static_cast<int>(schemes),
                     search, grid_barriers, max_inputs, versions, builds, streams, skip_unfit_decisions,
                     json_string(decisions));
}

/// The version of the library of products, where the graph has some: no other graph opens it.
std::string library_of(const ir::Graph& graph, const Backend& backend) {
  const auto is_product = [](const ir::Node& node) {
    return ir::info(node.op).relation == ir::Relation::contraction;
  };
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), is_product) ? backend.gemm_library()
                                                                         : std::string();
}

}  // namespace

std::string cache_key(const ir::Graph& graph, const Backend& backend, const CompileOptions& options) {
  std::string key = fmt::format("sources {}\nformat {}\n", source_id(), plan_format);
  for (const Fit& fit : backend.fits()) key += fmt::format("{} = {}\n", fit.field, fit.value);
  // What the cost model reckons with decides plans too.
  const Target& target = backend.target();
  key += fmt::format("model {} {} {} {} {} {} {} {} {}\n", target.name, target.l2_bytes, target.bandwidth,
                     target.flops_f32, target.launch_seconds, target.node_seconds, target.cluster_seconds,
                     target.barrier_seconds, backend.toolchain()->key());
  key += fmt::format("products '{}'\n", library_of(graph, backend));
  key += text_of(options);
  key += fmt::format("fault '{}'\n", fault_text(options));
  return key + ir::print(graph);
}

}  // namespace fuse::runtime
