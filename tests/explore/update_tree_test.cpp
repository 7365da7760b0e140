// The update tree: in how many runs it explores what, and that it finds what was planted (Astra, 4.5).
// SPDX-License-Identifier: Apache-2.0
#include "explore/update_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "support/catch.hpp"

using namespace fuse::explore;

namespace {

/// Seconds of a region under a configuration.
using Cost = std::function<std::optional<double>(const std::string& region, const Configuration&)>;

/// Runs the tree to its end; the number of runs.
std::int64_t explore_all(UpdateTree& tree, const Cost& cost) {
  while (!tree.done()) {
    const Configuration now = tree.configuration();
    tree.report([&](const std::string& region) { return cost(region, now); });
  }
  return tree.runs();
}

/// Five groups, each with three chunk sizes and two kernels for each GEMM (4.5.1).
std::vector<Node> five_groups() {
  std::vector<Node> groups;
  for (int group = 0; group < 5; ++group) {
    groups.push_back(exhaustive(
        fmt::format("group{}", group),
        {variable(fmt::format("chunk{}", group), 3), variable(fmt::format("kernel{}", group), 2)}));
  }
  return groups;
}

double of_group(int group, const Configuration& configuration, int chunk, int kernel) {
  const int own_chunk = configuration.at(fmt::format("chunk{}", group));
  const int own_kernel = configuration.at(fmt::format("kernel{}", group));
  return own_chunk == chunk && own_kernel == kernel ? 1 : 2;
}

/// In each group the combination `chunk`, `kernel` is the fastest.
Cost planted(int chunk, int kernel) {
  return [=](const std::string& region, const Configuration& configuration) -> std::optional<double> {
    double sum = 0;
    for (int group = 0; group < 5; ++group) {
      const double own = of_group(group, configuration, chunk, kernel);
      if (region == fmt::format("group{}", group)) return own;
      sum += own;
    }
    return sum;
  };
}

void check_found(const Configuration& best, int chunk, int kernel) {
  for (int group = 0; group < 5; ++group) CHECK(of_group(group, best, chunk, kernel) == 1);
}

}  // namespace

TEST_CASE("five groups of three chunk sizes and two kernels take 6 runs in parallel mode", "[explore]") {
  for (const int chunk : {0, 1, 2}) {
    for (const int kernel : {0, 1}) {
      UpdateTree tree(parallel(five_groups()), {});
      CHECK(tree.announced() == 6);
      CHECK(explore_all(tree, planted(chunk, kernel)) == 6);
      check_found(tree.configuration(), chunk, kernel);
    }
  }
}

TEST_CASE("the same groups take 30 runs in prefix mode", "[explore]") {
  UpdateTree tree(prefix(five_groups()), {});
  CHECK(tree.announced() == 30);
  CHECK(explore_all(tree, planted(1, 1)) == 30);
  check_found(tree.configuration(), 1, 1);
}

TEST_CASE("the same groups take 7776 runs in exhaustive mode", "[explore]") {
  UpdateTree tree(exhaustive("run", five_groups()), {});
  CHECK(tree.announced() == 7776);
  CHECK(explore_all(tree, planted(2, 0)) == 7776);
  check_found(tree.configuration(), 2, 0);
}

TEST_CASE("a group that has fewer options stays at its best while others go on", "[explore]") {
  UpdateTree tree(parallel({variable("short", 2), variable("long", 5)}), {});
  const Cost cost = [](const std::string& region, const Configuration& now) -> std::optional<double> {
    return region == "short" ? 2 - now.at("short") : 9 - now.at("long");
  };
  int run = 0;
  for (; !tree.done(); ++run) {
    const Configuration now = tree.configuration();
    CHECK(now.at("short") == (run < 2 ? run : 1));
    CHECK(now.at("long") == run);
    tree.report([&](const std::string& region) { return cost(region, now); });
  }
  CHECK(run == 5);
  CHECK(tree.configuration() == Configuration{{"short", 1}, {"long", 4}});
}

TEST_CASE("the default stays where nothing is faster", "[explore]") {
  UpdateTree tree(parallel({variable("a", 4), exhaustive("b", {variable("x", 2), variable("y", 3)})}), {});
  explore_all(tree, [](const std::string&, const Configuration&) { return 1.0; });
  CHECK(tree.configuration() == Configuration{{"a", 0}, {"x", 0}, {"y", 0}});
}

TEST_CASE("a fork explores each of its contexts, and compares their bests end to end", "[explore]") {
  // The best of the worse context by itself is the best of all: 9 + 1, against 1 + 10 for option 0.
  const auto below = [] { return in_context(variable("fused", 3)); };
  UpdateTree tree(fork("allocation", {below(), below()}), {});
  CHECK(tree.announced() == 3 + 3 + 2);
  const Cost cost = [](const std::string& region, const Configuration& now) -> std::optional<double> {
    const int allocation = now.at("allocation"), fused = now.at("fused");
    const double own = allocation == 0 ? 12 - fused : fused == 1 ? 1 : 7;
    return region == "fused" ? own : own + (allocation == 0 ? 1 : 9);
  };
  CHECK(explore_all(tree, cost) == 8);
  CHECK(tree.configuration() == Configuration{{"allocation", 1}, {"fused", 1}});
}

TEST_CASE("what depends on a context misses the index of another one, and the rest does not", "[explore]") {
  const auto below = [] { return parallel({variable("kernel", 4), in_context(variable("copies", 3))}); };
  UpdateTree tree(fork("allocation", {below(), below()}), {});
  // Four runs in the first context; in the other only the copies are measured again.
  CHECK(tree.announced() == 4 + 3 + 2);
  const Cost cost = [](const std::string& region, const Configuration& now) -> std::optional<double> {
    const double kernel = now.at("kernel") == 2 ? 1 : 3;
    const double copies = now.at("copies") == 1 + now.at("allocation") ? 1 : 2;
    if (region == "kernel") return kernel;
    return region == "copies" ? copies : kernel + copies - 0.5 * now.at("allocation");
  };
  CHECK(explore_all(tree, cost) == 9);
  CHECK(tree.configuration() == Configuration{{"allocation", 1}, {"copies", 2}, {"kernel", 2}});
  CHECK(tree.index().find("kernel", "")->best == 2);
  CHECK(tree.index().find("copies", "allocation = 0; ")->best == 1);
  CHECK(tree.index().find("copies", "allocation = 1; ")->best == 2);
}

TEST_CASE("super-epochs are explored beside each other, and epochs of each one after the other",
          "[explore]") {
  const auto super_epoch = [](int number, int epochs) {
    std::vector<Node> children;
    for (int epoch = 0; epoch < epochs; ++epoch)
      children.push_back(variable(fmt::format("epoch{}.{}", number, epoch), 4));
    return prefix(std::move(children));
  };
  const auto announced = [&](std::vector<Node> super_epochs) {
    return UpdateTree(parallel(std::move(super_epochs)), {}).announced();
  };
  CHECK(announced({super_epoch(0, 3)}) == 12);
  CHECK(announced({super_epoch(0, 3), super_epoch(1, 3)}) == 12);  // one more super-epoch takes no more runs
  CHECK(announced({super_epoch(0, 3), super_epoch(1, 4)}) == 16);
}

TEST_CASE("a tree that has to hurry goes by the samples that it has, and compares them with the default",
          "[explore]") {
  // Six options are explored in three rounds; after nine runs the first four have two samples each.
  UpdateTree tree(fork("tuned", {parallel({}), prefix({variable("a", 4), variable("b", 3)})}),
                  {.samples = 3});
  CHECK(tree.announced() == 3 * (4 + 3 + 2));
  const auto cost = [](const std::string& region, const Configuration& now) -> std::optional<double> {
    const auto option = now.find("a");
    const double own = option == now.end() ? 9.0 : 9.0 - (option->second == 2 ? 3 : 0);
    return region == "b" ? 1.0 : own;
  };
  const auto run = [&] {
    const Configuration now = tree.configuration();
    tree.report([&](const std::string& region) { return cost(region, now); });
  };
  for (int i = 0; i < 9; ++i) run();
  tree.hurry();
  CHECK(tree.announced() == 9 + 3 * 2);
  while (!tree.done()) run();
  CHECK(tree.runs() == tree.announced());
  CHECK(tree.configuration() == Configuration{{"a", 2}, {"tuned", 1}});
  tree.hurry();
  CHECK(tree.done());
}

TEST_CASE("an option that was rejected never wins, however fast it was", "[explore]") {
  UpdateTree tree(exhaustive("both", {variable("x", 2), variable("y", 2)}), {});
  tree.reject("y", 1);
  explore_all(tree,
              [](const std::string&, const Configuration& now) { return 4.0 - now.at("x") - now.at("y"); });
  CHECK(tree.configuration() == Configuration{{"x", 1}, {"y", 0}});

  UpdateTree forks(fork("way", {parallel({}), parallel({}), parallel({})}), {});
  forks.reject("way", 2);
  explore_all(forks, [](const std::string&, const Configuration& now) { return 4.0 - now.at("way"); });
  CHECK(forks.configuration() == Configuration{{"way", 1}});
}

TEST_CASE("a region that nothing measured, and a run that was disturbed, say nothing", "[explore]") {
  UpdateTree tree(parallel({variable("seen", 2), variable("unseen", 2)}), {.samples = 2});
  for (int run = 0; !tree.done(); ++run) {
    const Configuration now = tree.configuration();
    const bool disturbed = run == 3;  // as if option 1 of the second round were very slow
    tree.report(
        [&](const std::string& region) -> std::optional<double> {
          if (region == "unseen") return std::nullopt;
          return disturbed ? 100 : 3.0 - now.at("seen");
        },
        disturbed);
  }
  CHECK(tree.runs() == 4);
  CHECK(tree.configuration() == Configuration{{"seen", 1}, {"unseen", 0}});
}

TEST_CASE("each configuration runs as often as announced, in rounds", "[explore]") {
  UpdateTree tree(variable("a", 3), {.samples = 2, .warm_up = true});
  CHECK(tree.announced() == 9);
  std::vector<int> order;
  explore_all(tree, [&](const std::string&, const Configuration& now) {
    order.push_back(now.at("a"));
    return 1.0;
  });
  CHECK(order == std::vector<int>{0, 1, 2, 1, 2, 0, 2, 0, 1});
}

TEST_CASE("a fork's child that is much slower than the first is left after four runs", "[explore]") {
  const auto runs_of_child = [](double share) {
    UpdateTree tree(fork("cut", {variable("a", 3), variable("b", 3), variable("c", 3)}),
                    {.samples = 6, .warm_up = true});
    const std::int64_t announced = tree.announced();
    std::vector<int> runs(3);
    explore_all(tree, [&](const std::string& region, const Configuration& now) -> std::optional<double> {
      const int cut = now.at("cut");
      if (region == "cut") ++runs[static_cast<std::size_t>(cut)];
      const double best_of_c = now.contains("c") && now.at("c") == 2 ? 0.6 : 1;
      if (region != "cut") return best_of_c;
      return cut == 0 ? 10 : cut == 1 ? 10 * share : 12 * best_of_c;
    });
    CHECK(tree.runs() == announced);
    CHECK(tree.configuration() == Configuration{{"cut", 2}, {"c", 2}});
    return runs[1];
  };
  CHECK(runs_of_child(1.3) == 4);
  CHECK(runs_of_child(1.2) == 21 + 7);  // its variable to the end, then the last comparison
}

TEST_CASE("with 5% noise the choice is within 3% of the optimum, and never slower than the default",
          "[explore]") {
  const int samples = samples_for(0.05, 0.03);
  int close = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    std::normal_distribution<double> noise(1, 0.05);
    std::uniform_real_distribution<double> cost(0.8, 1.3);
    std::map<std::string, std::vector<double>> costs;
    std::vector<Node> variables;
    for (int i = 0; i < 4; ++i) {
      const std::string name = fmt::format("v{}", i);
      for (int option = 0; option < 5; ++option) costs[name].push_back(cost(random));
      variables.push_back(variable(name, 5));
    }
    UpdateTree tree(parallel(std::move(variables)), {.samples = samples, .warm_up = true});
    const auto exact = [&](const std::string& region, const Configuration& now) {
      return costs.at(region)[static_cast<std::size_t>(now.at(region))];
    };
    explore_all(tree, [&](const std::string& region, const Configuration& now) -> std::optional<double> {
      return exact(region, now) * noise(random);
    });
    const Configuration best = tree.configuration();
    double found = 0, optimum = 0, usual = 0;
    for (const auto& [name, of] : costs) {
      found += exact(name, best);
      optimum += *std::min_element(of.begin(), of.end());
      usual += of[0];
    }
    CHECK(found <= 1.01 * usual);
    close += found <= 1.03 * optimum;
  }
  CHECK(close >= 95);
}
