// Groups: disjoint sets of ops that the rules put together, each meant for one kernel (APOLLO's fused
// micro-graphs; section 3.3, 4.1, 4.2, Algorithms 1 and 2; Layer III is parallel_stitch.hpp).
//
// Before:  softmax opened into max, broadcast, sub, exp, sum, broadcast, div
// After:   layer 1: {max} {broadcast sub exp sum} {broadcast div}   layers 1,2: one group
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "ir/graph/question.hpp"
#include "plan/group_id.hpp"
#include "schedule/groups/group_rules.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

struct GroupOptions {
  RuleSet rules = RuleSet::fuse;
  std::uint8_t layers = all_layers;
  int max_inputs = 48;  ///< Dali's F_max: the most values that a kernel reads
  bool operator==(const GroupOptions&) const = default;
};

/// The loops that a group runs over, flattened (APOLLO, 4.1).
struct Loops {
  enum class Form : std::uint8_t { none, all, x, y };  ///< the reduced loops; x: the outer one, y: the inner
  Form form = Form::none;
  std::vector<Dim> dims{};  ///< dims of its widest value
  Dim kept = 1, reduced = 1;
  ir::NodeId reduction = 0;  ///< the reduction that gave the form
};
std::string_view to_string(Loops::Form);

struct Group {
  std::vector<ir::NodeId> nodes{};  ///< sorted
  GroupClass type = GroupClass::element_wise;
  Loops loops{};
  std::vector<ir::NodeId>
      inputs{};  ///< values it reads, sorted; constants and what is made from them alone do not count
  std::vector<ir::NodeId> outputs{};  ///< its values that others read or that the graph returns, sorted
};

/// Why two groups stay apart. Each code has a line in docs/partition.md and a test.
enum class Reason : std::uint8_t {
  no_rule,             ///< no row of the table for their classes
  layer_off,           ///< the row's layer was not selected
  loop_dims,           ///< their loops differ (Algorithm 2)
  parameters,          ///< their loops are mapped to threads differently (Algorithm 2)
  canonical_form,      ///< they reduce in different forms (Algorithm 2)
  coverage,            ///< the consumer does not meet every element that must be stored
  epilogue,            ///< the GEMM library does not take it as an epilogue
  prologue,            ///< the GEMM library reads stored operands only
  boundary,            ///< a user's kernel
  input_cap,           ///< the merged group would read more than max_inputs values
  argument_limit,      ///< its kernel would have more argument bytes than a launch takes
  cycle,               ///< something between them would wait for both
  chain,               ///< what waits for the producer would wait for the consumer's GEMMs, too
  no_gain,             ///< side by side they would take as long as one after the other (Layer III)
  scheme_unavailable,  ///< one group, but code generation cannot carry the value inside a kernel yet
  order,               ///< the rules, in their order, merged others first; these may be merged now
  baseline,            ///< the rules of the baseline end a kernel there
};
inline constexpr int reason_count = 17;
std::string_view to_string(Reason);

/// The judgement on a pair of groups, producer and consumer. Without a reason they may be merged.
struct Verdict {
  const Rule* rule = nullptr;
  bool refused = false;
  Reason reason = Reason::no_rule;
  std::vector<std::pair<std::string, std::string>> numbers{};  ///< name, value
  std::string assume{};  ///< "g.assume(equal(S, T));": what the user could say that would change it
};

struct Grouping {
  std::vector<Group> groups{};  ///< in an order that respects dependencies
  std::vector<GroupId> of{};    ///< group per node; no_group for inputs, parameters and free nodes
  std::vector<bool> free{};  ///< per node: a constant, or only moves one; it is computed wherever it is used
};

/// Applies layers I and II. It is near linear in nodes and edges, and deterministic.
Grouping group(const ir::Graph&, const GroupOptions&, const Target&, const ir::Decide& decide = {});

std::string print(const ir::Graph&, const Grouping&);
/// Throws an internal Error unless the groups are disjoint, cover what is computed, respect the limits, can
/// run one after the other, and keep user kernels alone.
void verify(const ir::Graph&, const Grouping&, const GroupOptions&, const Target&);

}  // namespace fuse::schedule
