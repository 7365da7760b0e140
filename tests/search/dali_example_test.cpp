// Dali's printed example (2.3): softmax and sparse cross entropy, 14 loops of 4 assignments, of which 7 are
// coupled, so that 4 million designs become 512; the search looks at 155 or fewer of them.
//
// The paper's Figure 2, which shows the loops, cannot be read any more, and the shapes that it prints have
// 11 loops. These 14 are made up so that the printed counts come out: each assignment has the two batch
// loops, and what walks the classes, once for each value that it reads in its own way. The paper prints no
// cost either: the one here is of memory that is busy where enough threads are, and where neighbouring
// threads read neighbours. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "schedule/search/best_first.hpp"
#include "schedule/search/couple.hpp"
#include "support/catch.hpp"

using namespace fuse;            // NOLINT
using namespace fuse::schedule;  // NOLINT

namespace {

enum class Binding : std::uint8_t { serial, threads, blocks, blocks_of_threads };

constexpr double batch = 32, steps = 16, classes = 1000;

Dim symbol_of(const char* name) { return Dim::symbol(name, {.min = 1, .max = 4096}); }

/// The loops of one assignment; each descends from the loop of that number, if any.
struct Described {
  const char* name = "";
  const char* extent = "";
  bool may_be_blocks = true;
  int parent = -1;
};

constexpr std::array<Described, 14> printed_loops = {{
    {"max.b", "B", true, -1},
    {"max.t", "T", true, -1},
    {"max.c", "C", false, -1},  // reduced
    {"exp.b", "B", true, 0},
    {"exp.t", "T", true, 1},
    {"exp.c", "C", false, -1},          // of the logits, which lie beside the maximum that it reads
    {"exp.broadcast", "C", false, -1},  // of the maximum, out of order
    {"sum.b", "B", true, 3},
    {"sum.t", "T", true, 4},
    {"sum.c", "C", false, 5},  // what exp.c has made, in order: it is coupled
    {"out.b", "B", true, 7},
    {"out.t", "T", true, 8},
    {"out.broadcast", "C", false, -1},  // of the sum, out of order
    {"out.gather", "C", false, -1},     // by the labels, out of order
}};

std::vector<Loop> example_loops() {
  std::vector<Loop> loops;
  for (const Described& each : printed_loops) {
    Loop loop{.name = each.name, .extent = symbol_of(each.extent), .may_be_blocks = each.may_be_blocks};
    if (each.parent >= 0) loop.descends_from.push_back(static_cast<std::size_t>(each.parent));
    loops.push_back(std::move(loop));
  }
  return loops;
}

double extent_of(const Loop& loop) {
  const std::string name = loop.extent.to_string();
  return name == "B" ? batch : name == "T" ? steps : classes;
}

/// The designs of the classes of coupled loops.
class Example {
 public:
  Example() : loops_(example_loops()), coupled_(schedule::coupled(loops_)) {}
  const std::vector<Loop>& loops() const { return loops_; }
  const CoupledLoops& classes_of_loops() const { return coupled_; }

  std::size_t variables() const { return coupled_.classes.size(); }
  std::size_t options(const Prefix& prefix) const {
    return static_cast<std::size_t>(options_of(loops_[coupled_.classes[prefix.size()].front()]));
  }
  std::optional<double> cost(const Prefix& design, double below) const {
    const double seconds = bound(design);
    return seconds < below ? std::optional(seconds) : std::nullopt;
  }
  /// Loops without a binding are taken to fill the device, and to read side by side.
  double bound(const Prefix& prefix) const {
    double sum = 0;
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      if (!loops_[i].may_be_blocks) sum += seconds_of(i, prefix);
    }
    return sum;
  }
  Binding binding(const Prefix& design, std::size_t loop) const {
    return static_cast<Binding>(design[coupled_.class_of[loop]]);
  }

 private:
  /// The time of one walk over the classes of all rows.
  double seconds_of(std::size_t walk, const Prefix& prefix) const {
    constexpr double device = 80 * 2048, block = 1024, bandwidth = 1e12, sector_over_element = 8;
    double blocks = 1, threads = 1;
    bool known = true, apart = false;
    const std::size_t first = walk < 3 ? 0 : walk < 7 ? 3 : walk < 10 ? 7 : 10;  // of its assignment
    for (const std::size_t loop : {first, first + 1, walk}) {
      if (coupled_.class_of[loop] >= prefix.size()) {
        known = false;
        continue;
      }
      const Binding bound_to = binding(prefix, loop);
      const double extent = extent_of(loops_[loop]);
      if (bound_to == Binding::threads) threads *= extent;
      if (bound_to == Binding::blocks) blocks *= extent;
      if (bound_to == Binding::blocks_of_threads) {
        threads *= std::min(extent, 32.0);
        blocks *= std::ceil(extent / 32);
      }
      if (loop == walk) apart = bound_to != Binding::threads;
    }
    const double busy = known ? std::min(device, blocks * std::min(block, threads)) / device : 1;
    return batch * steps * classes * 4 / bandwidth / busy * (apart ? sector_over_element : 1);
  }

  std::vector<Loop> loops_;
  CoupledLoops coupled_;
};

}  // namespace

TEST_CASE("Dali's example: 14 loops, 7 coupled, 4 million designs to 512", "[search]") {
  const Example example;
  const CoupledLoops& coupled = example.classes_of_loops();
  CHECK(example.loops().size() == 14);
  CHECK(std::count_if(example.loops().begin(), example.loops().end(),
                      [](const Loop& loop) { return loop.may_be_blocks; }) == 8);
  CHECK(coupled.coupled == 7);
  CHECK(coupled.classes.size() == 7);
  CHECK(coupled.designs_before == 4'194'304);
  CHECK(coupled.designs_after == 512);
  CHECK(coupled.classes[0] == std::vector<std::size_t>{0, 3, 7, 10});
  CHECK(coupled.classes[1] == std::vector<std::size_t>{1, 4, 8, 11});
  CHECK(coupled.class_of[5] == coupled.class_of[9]);
}

TEST_CASE("Dali's example: the best design is batch loops as blocks, and threads elsewhere", "[search]") {
  const Example example;
  const Searched tried = by_trying_all(example), found = best_first(example);
  CHECK(tried.examined == 512);
  CHECK(found.proven);
  CHECK(found.cost == tried.cost);
  INFO(found.examined << " examined, " << found.expanded << " expanded");
  CHECK(found.examined <= 155);
  REQUIRE(found.design);
  for (std::size_t i = 0; i < example.loops().size(); ++i) {
    INFO(example.loops()[i].name);
    CHECK(example.binding(*found.design, i) ==
          (example.loops()[i].may_be_blocks ? Binding::blocks : Binding::threads));
  }
}

TEST_CASE("coupling: loops of other extents, of other access, or of no descent stay apart", "[search]") {
  const auto classes = [](std::vector<Loop> loops) { return coupled(loops).classes.size(); };
  const Dim b = symbol_of("B"), c = symbol_of("C");
  const Loop first{.name = "first", .extent = b};
  CHECK(classes({first, {.name = "second", .extent = b, .descends_from = {0}}}) == 1);
  CHECK(classes({first, {.name = "second", .extent = c, .descends_from = {0}}}) == 2);
  CHECK(classes({first, {.name = "second", .extent = b}}) == 2);
  CHECK(classes({first, {.name = "second", .extent = b, .may_be_blocks = false, .descends_from = {0}}}) == 2);
  CHECK(classes({first, {.name = "second", .extent = b, .may_be_threads = false, .descends_from = {0}}}) ==
        2);
  // Two loops that another one descends from are coupled by it.
  CHECK(classes({first,
                 {.name = "second", .extent = b},
                 {.name = "third", .extent = b, .descends_from = {0, 1}}}) == 1);
  // The counts stop at the largest number.
  const CoupledLoops many = coupled(std::vector<Loop>(40, first));
  CHECK(many.designs_before == std::numeric_limits<std::int64_t>::max());
  CHECK(coupled({}).designs_after == 1);
}
