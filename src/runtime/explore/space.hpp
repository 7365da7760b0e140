// Space: what an exploration can try of a graph: ways to cut it, and for each, the loops of kernels, the
// algorithms of GEMMs and the number of streams. Astra's enumerator (4.4): no cost decides, but for the order
// in which options are kept. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/explore.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compile/pipeline/pipeline.hpp"
#include "explore/update_tree.hpp"
#include "ir/graph/ir_graph.hpp"
#include "runtime/explore/dispatch_order.hpp"
#include "runtime/explore/stream_options.hpp"
#include "schedule/decisions/decisions.hpp"
#include "target/target.hpp"

namespace fuse::runtime {

/// A kernel that several loops can make; all segments that compute it run alike.
struct ExploredKernel {
  std::uint64_t key = 0;
  std::vector<schedule::KernelChoices> options{};  ///< the first is the default
};

struct ExploredGemm {
  std::uint64_t key = 0;
  int algorithms = 1;
};

/// A group of GEMMs that can be merged in several ways.
struct ExploredMerge {
  std::uint64_t key = 0;
  std::vector<std::vector<schedule::Answer>> options{};  ///< what each answers; the first is the default
  std::vector<std::string> texts{};                      ///< of each, for a reader
};

/// A way to cut the graph, or the one in which each group of GEMMs is merged in a way of its own.
struct CutContext {
  std::string name{};     ///< "as by cost", "merge: none", "horizontal: all", "merge: each group"
  bool by_group = false;  ///< the last of these: each group of GEMMs is merged in a way of its own
  /// With the answers of all questions; where groups are merged in ways of their own, the cost answers what
  /// follows from that.
  schedule::Decisions decisions{};
  std::vector<ExploredMerge> merges{};
  std::vector<ExploredKernel> kernels{};
  std::vector<ExploredGemm> gemms{};
  std::vector<int> streams{};                                 ///< options; the first is the default
  std::vector<DispatchOrder> orders{DispatchOrder::by_cost};  ///< options; the first is the default
  std::vector<ExecutionMode> modes{};                         ///< options; the first is the default
  StreamOptions placing{};  ///< how its kernels and GEMMs can be spread over streams
};

/// How much an exploration tries at most.
struct SpaceLimits {
  int cuts = 1, groups = 0, epochs = 0, options = 1;
};

struct Space {
  std::vector<CutContext> cuts{};                   ///< the first is the default
  std::vector<schedule::KernelDecision> avoided{};  ///< that no kernel has as an option but by default

  void keep(const SpaceLimits&);
  /// Its last runs compare the default with the best of what is below, end to end.
  explore::Node tree() const;
  /// The decisions of a configuration. What it does not name is at its default.
  schedule::Decisions decisions(const explore::Configuration& configuration) const;
  /// What they do not say: which kernels and GEMMs are on which streams, and how steps are dispatched.
  StreamOf streams_of(const explore::Configuration& configuration) const;
  DispatchOrder order_of(const explore::Configuration& configuration) const;
  ExecutionMode mode_of(const explore::Configuration& configuration) const;
  std::size_t cut_of(const explore::Configuration& configuration) const;
  /// The option that a configuration has of a variable or fork, for a reader: "kernel 01cc..: {nest = ..}".
  std::string text_of(const explore::Configuration& configuration, const std::string& name) const;
  /// Whether they leave something to the cost. Then entries may fit nothing, and are skipped.
  bool is_partial(const explore::Configuration& configuration) const;

 private:
  const CutContext& context_of(const explore::Configuration& configuration) const;
};

/// The names of variables and regions.
std::string kernel_name(std::uint64_t key);
std::string gemm_name(std::uint64_t key);
std::string merge_name(std::uint64_t key);
/// The time that judges a variable or fork of this name, of what a run took: of the whole by the name "", and
/// of the steps of each kernel, GEMM and epoch by theirs. How groups are merged is judged by the sum of all
/// steps (Astra, 4.7: the total time of all GEMM nodes), since a group gains nothing alone beside another one
/// on another stream.
std::optional<double> judging_seconds(const std::map<std::string, double>& run, const std::string& name);
/// Whether it is the region of a kernel or a GEMM: those of epochs lie over them.
bool is_of_steps(const std::string& region);
inline const std::string cut_name = "cut", tuned_name = "tuned", streams_name = "streams",
                         order_name = "order", mode_name = "mode";

/// What a device has to choose from.
struct DeviceOptions {
  int gemm_algorithms = 1;
  std::string gemm_library{};  ///< Backend::gemm_library; algorithms of other libraries are no default
  bool has_graphs = false;
};
Space space_of(const ir::Graph&, const Target&, const CompileOptions&, const ExploreOptions&,
               const DeviceOptions& = {});

}  // namespace fuse::runtime
