// SPDX-License-Identifier: Apache-2.0
#include "explore/update_tree.hpp"

#include <algorithm>

namespace fuse::explore {

Node variable(std::string name, int options) { return {.name = std::move(name), .options = options}; }
Node parallel(std::vector<Node> children) {
  return {.mode = Mode::parallel, .children = std::move(children)};
}
Node exhaustive(std::string name, std::vector<Node> children) {
  return {.mode = Mode::exhaustive, .name = std::move(name), .children = std::move(children)};
}
Node prefix(std::vector<Node> children) { return {.mode = Mode::prefix, .children = std::move(children)}; }
Node fork(std::string name, std::vector<Node> children) {
  const auto options = static_cast<int>(children.size());
  return {.mode = Mode::fork, .name = std::move(name), .options = options, .children = std::move(children)};
}

Node in_context(Node node) {
  node.by_context = true;
  for (Node& child : node.children) child = in_context(std::move(child));
  return node;
}

/// How far a node has come. What is tried at a node is numbered: the options of a variable, the combinations
/// of an exhaustive node, the bests of a fork's children.
struct UpdateTree::State {
  const Node* node = nullptr;
  std::vector<State> children{};
  std::size_t current = 0;           ///< of prefix and fork: the child that is explored
  std::optional<Samples> samples{};  ///< of what is tried at the node itself
  int best = 0;
  bool done = false;
  /// Of a fork: how long runs took with its first child, and with the one that is explored; and the children
  /// that were much slower. Their runs are of the first child, too.
  std::vector<double> usual{}, own{};
  std::set<std::size_t> lost{};
};

namespace {

/// The variables below an exhaustive node, in order.
void variables_of(const Node& node, std::vector<const Node*>& found) {
  if (node.mode == Mode::variable) found.push_back(&node);
  for (const Node& child : node.children) variables_of(child, found);
}

int tries_of(const Node& node) {
  if (node.mode != Mode::exhaustive) return node.options;
  std::vector<const Node*> variables;
  variables_of(node, variables);
  int product = 1;
  for (const Node* each : variables) product *= each->options;
  return product;
}

/// The combination with this number; the last variable changes fastest.
void set_combination(const Node& node, int number, Configuration& configuration) {
  std::vector<const Node*> variables;
  variables_of(node, variables);
  for (auto each = variables.rbegin(); each != variables.rend(); ++each) {
    configuration[(*each)->name] = number % (*each)->options;
    number /= (*each)->options;
  }
}

}  // namespace

/// One step of the machine, over the tree.
struct UpdateTree::Run {
  const Rounds& rounds;
  ProfileIndex& index;
  const std::set<std::pair<std::string, int>>& rejected;

  void start(State& state, const Node& node, const std::string& context) const {
    state = State{.node = &node};
    state.children.resize(node.children.size());
    switch (node.mode) {
      case Mode::variable:
      case Mode::exhaustive:
        return start_trying(state, context);
      case Mode::parallel:
        for (std::size_t i = 0; i < node.children.size(); ++i)
          start(state.children[i], node.children[i], context);
        return finish_parallel(state);
      case Mode::prefix:
      case Mode::fork:
        return start_child(state, context);
    }
  }

  void advance(State& state, const Times& times, bool disturbed, const std::string& context) const {
    if (state.done) return;
    if (state.samples) return add_sample(state, times, disturbed, context);
    if (state.node->mode == Mode::parallel) {
      for (State& child : state.children) advance(child, times, disturbed, context);
      return finish_parallel(state);
    }
    if (state.node->mode == Mode::fork && !disturbed) watch(state, times);
    advance(state.children[state.current], times, disturbed || state.lost.contains(state.current),
            below(state, context));
    if (!state.children[state.current].done) return;
    ++state.current;
    state.own.clear();
    start_child(state, context);
  }

  /// Ends what was begun, by the samples that there are.
  void end(State& state) const {
    if (state.done || !state.node) return;
    if (state.samples) {
      reject_options(state);
      state.best = state.samples->best();
    }
    for (State& child : state.children) end(child);
    state.done = true;
  }

  void hurry(State& root) const {
    if (root.done || root.samples || root.node->mode != Mode::fork) return end(root);
    for (; root.current < root.node->children.size(); ++root.current) {
      State& child = root.children[root.current];
      if (!child.node) start(child, root.node->children[root.current], "");
      end(child);
    }
    start_trying(root, "");
  }
  /// The runs that the root's own comparison still takes.
  std::int64_t left(const State& root) const {
    return root.done || !root.samples
               ? 0
               : std::int64_t{tries_of(*root.node)} * rounds.all() - root.samples->taken();
  }

  /// What the tree tries now, or its best where it is done.
  static void set(const State& state, Configuration& configuration) {
    const Node& node = *state.node;
    const int number = state.samples && !state.done ? state.samples->next() : state.best;
    switch (node.mode) {
      case Mode::variable:
        configuration[node.name] = number;
        return;
      case Mode::exhaustive:
        return set_combination(node, number, configuration);
      case Mode::fork: {
        const bool exploring = !state.done && !state.samples;
        std::size_t child = exploring ? state.current : static_cast<std::size_t>(number);
        if (exploring && state.lost.contains(child)) child = 0;
        configuration[node.name] = static_cast<int>(child);
        return set(state.children[child], configuration);
      }
      case Mode::parallel:
      case Mode::prefix:
        for (const State& child : state.children) {
          if (child.node)
            set(child, configuration);  // else it has not begun: its variables are at their defaults
        }
    }
  }

 private:
  static std::string below(const State& state, const std::string& context) {
    if (state.node->mode != Mode::fork) return context;
    return context + state.node->name + " = " + std::to_string(state.current) + "; ";
  }
  static void finish_parallel(State& state) {
    state.done = true;
    for (const State& child : state.children) state.done &= child.done;
  }
  /// Where one run says all, there is nothing to save.
  void watch(State& state, const Times& times) const {
    const std::optional<double> seconds = times(state.node->name);
    if (!seconds || rounds.samples < 2) return;
    if (state.current == 0) return state.usual.push_back(*seconds);
    state.own.push_back(*seconds);
    if (state.own.size() <= runs_of_a_slow_option || state.usual.empty()) return;
    // The first run met cold caches.
    const double least = *std::min_element(state.own.begin() + 1, state.own.end());
    if (least > slow * median(state.usual)) state.lost.insert(state.current);
  }

  static const std::string& key_context(const Node& node, const std::string& context) {
    static const std::string any;
    return node.by_context ? context : any;
  }

  /// The next child that is not known yet; behind the last, a fork compares their bests.
  void start_child(State& state, const std::string& context) const {
    const Node& node = *state.node;
    for (; state.current < node.children.size(); ++state.current) {
      State& child = state.children[state.current];
      start(child, node.children[state.current], below(state, context));
      if (!child.done) return;
    }
    if (node.mode == Mode::fork && !node.children.empty()) return start_trying(state, context);
    state.done = true;
  }

  void start_trying(State& state, const std::string& context) const {
    const Node& node = *state.node;
    const int tries = tries_of(node);
    const Known* const known = index.find(node.name, key_context(node, context));
    if (known) state.best = known->best;
    state.done = known || tries <= 1;
    if (state.done) return;
    state.samples.emplace(tries, rounds);
    for (const std::size_t child : state.lost) state.samples->lose(static_cast<int>(child));
  }

  void add_sample(State& state, const Times& times, bool disturbed, const std::string& context) const {
    const Node& node = *state.node;
    const std::optional<double> seconds = times(node.name);
    state.samples->add(seconds.value_or(0), disturbed || !seconds);
    if (!state.samples->done()) return;
    const int tries = tries_of(node);
    Known known;
    reject_options(state);
    for (int number = 0; number < tries; ++number) {
      known.seconds.push_back(state.samples->median(number));
    }
    known.best = state.best = state.samples->best();
    state.done = true;
    index.insert(node.name, key_context(node, context), std::move(known));
  }

  void reject_options(State& state) const {
    for (int number = 0; number < tries_of(*state.node); ++number) {
      if (is_rejected(state, number)) state.samples->reject(number);
    }
  }

  bool is_rejected(const State& state, int number) const {
    Configuration tried;
    switch (state.node->mode) {
      case Mode::variable:
        tried[state.node->name] = number;
        break;
      case Mode::exhaustive:
        set_combination(*state.node, number, tried);
        break;
      default:
        tried[state.node->name] = number;
        set(state.children[static_cast<std::size_t>(number)], tried);
    }
    for (const auto& each : tried) {
      if (rejected.contains(each)) return true;
    }
    return false;
  }
};

UpdateTree::UpdateTree(Node root, const Rounds& rounds)
    : root_(std::make_unique<const Node>(std::move(root))),
      rounds_(rounds),
      state_(std::make_unique<State>()) {
  // Which runs there are depends on no time, so that a walk through the tree counts them.
  ProfileIndex seen;
  const Run walk{rounds_, seen, rejected_};
  for (walk.start(*state_, *root_, ""); !state_->done; ++announced_)
    walk.advance(
        *state_, [](const std::string&) { return std::optional<double>(0); }, false, "");
  Run{rounds_, index_, rejected_}.start(*state_, *root_, "");
}

UpdateTree::UpdateTree(UpdateTree&&) noexcept = default;
UpdateTree& UpdateTree::operator=(UpdateTree&&) noexcept = default;
UpdateTree::~UpdateTree() = default;

bool UpdateTree::done() const { return state_->done; }

Configuration UpdateTree::configuration() const {
  Configuration result;
  Run::set(*state_, result);
  return result;
}

void UpdateTree::report(const Times& times, bool disturbed) {
  Run{rounds_, index_, rejected_}.advance(*state_, times, disturbed, "");
  ++runs_;
}

void UpdateTree::hurry() {
  const Run run{rounds_, index_, rejected_};
  run.hurry(*state_);
  announced_ = runs_ + run.left(*state_);
}

void UpdateTree::reject(const std::string& variable, int option) { rejected_.emplace(variable, option); }

}  // namespace fuse::explore
