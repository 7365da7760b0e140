// UpdateTree: which configuration the next run has (Astra, 4.4.2 and 4.5). The leaves are adaptive variables,
// each a decision with a list of options; inner nodes say how those below them are explored.
//
//   fork "GEMMs": apart, merged          each option with what is below it; then their bests, end to end
//     prefix                             one child after the other, each frozen at its best
//       parallel                         all children in the same runs, each by a region of its own
//         kernel 01cc..: 8 options       8 runs explore all three
//         kernel 77aa..: 5 options
//         gemm 91b0..: 3 options
//       streams: 4 options               4 more
//
// A pull machine: configuration() is what to run next, report() says how long its regions took. It knows no
// graph and no device. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "explore/profile_index.hpp"
#include "explore/samples.hpp"

namespace fuse::explore {

enum class Mode : std::uint8_t {
  variable,    ///< a leaf
  parallel,    ///< children are explored in the same runs: as many as the longest of them needs (4.5.1)
  exhaustive,  ///< all combinations of the variables below, judged by the region of this node
  prefix,      ///< children one after the other (4.5.4): as many runs as all of them need
  /// A decision on which all below it depends (4.5.2): a child for each option. One that turns out to be much
  /// slower than the first is not run on; its place has the first one.
  fork,
};

struct Node {
  Mode mode = Mode::variable;
  /// The decision's name: its key in the profile index, and the region that is timed for it. Variables of one
  /// name are one decision.
  std::string name{};
  int options = 1;  ///< of a variable; option 0 is the default
  std::vector<Node> children{};
  bool by_context = false;  ///< what is measured holds for the options of the forks above it alone
};

Node variable(std::string name, int options);
Node parallel(std::vector<Node> children);
Node exhaustive(std::string name, std::vector<Node> children);
Node prefix(std::vector<Node> children);
Node fork(std::string name, std::vector<Node> children);
/// The node, with all below it measured anew in each context.
Node in_context(Node node);

/// The options of variables by their names. A variable that is not there is at its default, or belongs to
/// another option of a fork.
using Configuration = std::map<std::string, int>;

/// The seconds of a region in a run; none where nothing measured them.
using Times = std::function<std::optional<double>(const std::string& region)>;

class UpdateTree {
 public:
  UpdateTree(Node root, const Rounds& rounds);
  UpdateTree(UpdateTree&&) noexcept;
  UpdateTree& operator=(UpdateTree&&) noexcept;
  ~UpdateTree();

  bool done() const;
  /// What to run next; when done, the best that was found.
  Configuration configuration() const;
  /// What the run of this configuration took. A disturbed one counts as a run and says nothing.
  void report(const Times& times, bool disturbed = false);
  /// There is no time for the rest: what was not explored to its end is judged by the samples that there are,
  /// and what was not begun keeps its default. Only the last comparison of a fork at the root is still run.
  void hurry();
  /// An option that cannot be: it was refused, or its result was wrong. It never wins.
  void reject(const std::string& variable, int option);

  /// The runs until it is done, known from the start: what was explored before is not run again. Fewer, where
  /// it had to hurry.
  std::int64_t announced() const { return announced_; }
  std::int64_t runs() const { return runs_; }
  const ProfileIndex& index() const { return index_; }

 private:
  struct State;
  struct Run;

  std::unique_ptr<const Node> root_;  // states point into it
  Rounds rounds_;
  ProfileIndex index_{};
  std::set<std::pair<std::string, int>> rejected_{};
  std::unique_ptr<State> state_;
  std::int64_t announced_ = 0, runs_ = 0;
};

}  // namespace fuse::explore
