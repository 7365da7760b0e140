// Steps on streams: dependencies are kept whatever the device does, branches overlap where there is room, and
// kernels that wait for their own blocks are never beside each other without slots for all.
// SPDX-License-Identifier: Apache-2.0
#include "plan/stream_plan.hpp"

#include <algorithm>
#include <limits>
#include <random>

#include "schedule/schedule_support.hpp"

using namespace fuse;            // NOLINT
using namespace fuse::test;      // NOLINT
using namespace fuse::schedule;  // NOLINT

namespace {

const Target h200 = target_profile("h200");
const Target tiny2 = target_profile("tiny2");

constexpr double us = 1e-6;

StreamPlan planned(const std::vector<Task>& tasks, const StreamChoices& choices = {},
                   const Target& target = h200) {
  const StreamPlan plan = plan_streams(tasks, choices, target);
  verify(tasks, plan, target);
  return plan;
}

/// All orders in which tasks may end, one drawn: a task may start once its stream and its waits let it.
std::vector<TaskId> random_execution(const StreamPlan& plan, std::mt19937& random) {
  std::vector<std::vector<TaskId>> queues(static_cast<std::size_t>(plan.streams));
  for (const TaskId task : plan.order) queues[plan.stream[task]].push_back(task);
  std::vector<bool> ended(plan.order.size());
  std::vector<std::size_t> next(queues.size(), 0);
  std::vector<TaskId> order;
  while (order.size() < plan.order.size()) {
    std::vector<std::size_t> able;
    for (std::size_t s = 0; s < queues.size(); ++s) {
      if (next[s] == queues[s].size()) continue;
      const TaskId task = queues[s][next[s]];
      const auto holds = [&](const StreamWait& w) { return w.task != task || ended[w.on]; };
      if (std::all_of(plan.waits.begin(), plan.waits.end(), holds)) able.push_back(s);
    }
    REQUIRE(!able.empty());  // streams never wait for each other in a circle
    const std::size_t s = able[random() % able.size()];
    ended[queues[s][next[s]]] = true;
    order.push_back(queues[s][next[s]++]);
  }
  return order;
}

std::vector<Task> random_tasks(std::mt19937& random) {
  std::vector<Task> tasks(1 + random() % 40);
  for (TaskId t = 0; t < tasks.size(); ++t) {
    for (TaskId b = 0; b < t; ++b) {
      if (random() % 6 == 0) tasks[t].after.push_back(b);
    }
    tasks[t].seconds = (1 + random() % 20) * us;
    tasks[t].share = 1.0 / (1 + random() % 6);
  }
  return tasks;
}

Task cooperative(std::int64_t blocks, std::vector<TaskId> after = {}) {
  return {.after = std::move(after),
          .seconds = 5 * us,
          .share = 0.1,
          .cooperative = true,
          .residency = {.blocks = blocks, .threads = 128, .registers = 32, .shared_bytes = 0}};
}

}  // namespace

TEST_CASE("streams: every execution keeps every dependency", "[streams]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  int several = 0;
  for (int round = 0; round < 200; ++round) {
    const std::vector<Task> tasks = random_tasks(random);
    const StreamPlan plan = planned(tasks, {.max_streams = static_cast<int>(1 + random() % 5)});
    several += plan.streams > 1;
    for (int run = 0; run < 3; ++run) {
      const std::vector<TaskId> order = random_execution(plan, random);
      std::vector<std::size_t> position(order.size());
      for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
      for (TaskId t = 0; t < tasks.size(); ++t) {
        for (const TaskId b : tasks[t].after) REQUIRE(position[b] < position[t]);
      }
    }
  }
  CHECK(several > 50);
}

TEST_CASE("streams: no wait is for what others keep already", "[streams]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 100; ++round) {
    const std::vector<Task> tasks = random_tasks(random);
    const StreamPlan plan = planned(tasks);
    for (std::size_t i = 0; i < plan.waits.size(); ++i) {
      StreamPlan without = plan;
      without.waits.erase(without.waits.begin() + static_cast<std::ptrdiff_t>(i));
      CHECK_THROWS_AS(verify(tasks, without, h200), Error);
    }
    for (std::size_t i = 0; i < plan.final_waits.size(); ++i) {
      StreamPlan without = plan;
      without.final_waits.erase(without.final_waits.begin() + static_cast<std::ptrdiff_t>(i));
      CHECK_THROWS_WITH(verify(tasks, without, h200), Catch::Contains("the run may end before stream"));
    }
  }
}

TEST_CASE("streams: branches that leave room run beside each other", "[streams]") {
  const auto diamond = [](double share) {
    return std::vector<Task>{{.seconds = 10 * us, .share = share},
                             {.after = {0}, .seconds = 30 * us, .share = share},
                             {.after = {0}, .seconds = 30 * us, .share = share},
                             {.after = {1, 2}, .seconds = 10 * us, .share = share}};
  };
  const StreamPlan half = planned(diamond(0.5));
  CHECK(half.streams == 2);
  CHECK(half.stream[1] != half.stream[2]);
  CHECK(half.waits.size() == 2);
  CHECK(half.final_waits.size() <= 1);  // the last step waits for both; it may stand on either stream
  CHECK(half.seconds < 60 * us);
  // What fills the device gains nothing from company.
  const StreamPlan whole = planned(diamond(1));
  CHECK(whole.streams == 1);
  CHECK(whole.waits.empty());
  CHECK(planned(diamond(0.5), {.max_streams = 1}).streams == 1);
}

TEST_CASE("streams: a branch shorter than a wait stays where it is", "[streams]") {
  const std::vector<Task> tasks = {{.seconds = 1 * us, .share = 0.1}, {.seconds = 1 * us, .share = 0.1}};
  CHECK(planned(tasks).streams == 1);
}

TEST_CASE("streams: the longest path goes first where that shortens the run", "[streams]") {
  std::vector<Task> tasks;
  for (int i = 0; i < 6; ++i) tasks.push_back({.seconds = 10 * us, .share = 0.5});
  tasks.push_back({.seconds = 60 * us, .share = 0.5});
  const StreamPlan plan = planned(tasks, {.max_streams = 2});
  CHECK(plan.order.front() == 6);
  CHECK(plan.seconds < 70 * us);
  CHECK(plan.final_waits.size() == 1);
  CHECK(print(plan, std::vector<std::string>{"a", "b", "c", "d", "e", "f", "long"})
            .starts_with("stream 0 6 long\n"));
}

TEST_CASE("streams: choices are taken as they are, or refused", "[streams]") {
  const std::vector<Task> tasks = {{.seconds = us}, {.seconds = us}, {.after = {0}, .seconds = us}};
  const StreamChoices choices{.max_streams = 2, .order = {1, 0, 2}, .stream = {1, 0, 0}};
  const StreamPlan plan = planned(tasks, choices);
  CHECK(plan.order == choices.order);
  CHECK(plan.stream == choices.stream);
  CHECK(plan.waits == std::vector<StreamWait>{{2, 0}});
  const std::vector<std::string> names = {"a", "b", "c"};
  CHECK(print(plan, names) == "stream 0 1 b\nstream 1 0 a\nstream 0 2 c waits for 0\n");
  CHECK(choices.to_string() == "max_streams = 2, order = [1 0 2], stream = [1 0 0]");
  const auto text = [&](StreamChoices c) { return thrown_by([&] { plan_streams(tasks, c, h200); }); };
  CHECK(text({.max_streams = 0}) == "internal error: streams: max_streams is 0, 1 to 16 are allowed");
  CHECK(text({.max_streams = 17}) == "internal error: streams: max_streams is 17, 1 to 16 are allowed");
  CHECK(text({.max_streams = 16}) == "no error");
  CHECK(text({.order = {2, 0, 1}}) ==
        "internal error: streams: the order has task 2 before 0, on which it depends");
  CHECK(text({.order = {0, 0, 1}}) == "internal error: streams: the order is no permutation of the tasks");
  CHECK(text({.order = {0}}) == "internal error: streams: the order is no permutation of the tasks");
  CHECK(text({.max_streams = 1, .stream = {1, 0, 0}}) == "internal error: streams: stream 1 of 1");
}

TEST_CASE("streams: a task has some of the device, takes time, and waits for what is before it",
          "[streams]") {
  const auto text = [&](const Task& last) {
    return thrown_by([&] { plan_streams(std::vector<Task>{{.seconds = us}, last}, {}, h200); });
  };
  CHECK(text({.after = {0}, .seconds = 0, .share = 1}) == "no error");
  const std::string no_cost = "internal error: streams: task 1 has no cost";
  CHECK(text({.seconds = us, .share = 0}) == no_cost);
  CHECK(text({.seconds = us, .share = 1.5}) == no_cost);
  CHECK(text({.seconds = us, .share = std::numeric_limits<double>::quiet_NaN()}) == no_cost);
  CHECK(text({.seconds = -us}) == no_cost);
  CHECK(text({.after = {1}, .seconds = us}) ==
        "internal error: streams: task 1 depends on 1, which is not before it");
}

TEST_CASE("streams: the same tasks give the same plan", "[streams]") {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    const std::vector<Task> tasks = random_tasks(random);
    const std::vector<std::string> names(tasks.size(), "t");
    CHECK(print(planned(tasks), names) == print(planned(tasks), names));
  }
}

TEST_CASE("residency: a block takes what it needs, and others lose at most that", "[streams]") {
  const Residency small{.blocks = 1, .threads = 64, .registers = 32, .shared_bytes = 0};
  CHECK(blocks_per_sm(small, tiny2) == 2);  // block slots
  const Residency wide{.blocks = 1, .threads = 256, .registers = 32, .shared_bytes = 0};
  CHECK(blocks_per_sm(wide, tiny2) == 1);
  const Residency shared{.blocks = 1, .threads = 64, .registers = 32, .shared_bytes = 8192};
  CHECK(blocks_per_sm(shared, tiny2) == 1);
  const Residency registers{.blocks = 1, .threads = 128, .registers = 128, .shared_bytes = 0};
  CHECK(blocks_per_sm(registers, tiny2) == 1);
  CHECK(blocks_per_sm({.blocks = 1, .threads = 128}, tiny2) ==
        1);  // registers unknown: the most there may be

  const auto both = [&](std::int64_t a, std::int64_t b) {
    Residency first = small, second = small;
    first.blocks = a, second.blocks = b;
    return fit_together(std::vector{first, second}, tiny2);
  };
  CHECK(both(2, 2));
  CHECK(!both(2, 3));
  CHECK(both(4, 0));
  CHECK(!fit_together(std::vector{Residency{.blocks = 5, .threads = 64, .registers = 32}}, tiny2));
  CHECK(fit_together(std::span<const Residency>(), tiny2));
}

TEST_CASE("residency: what fits has a slot in every way of handing slots out", "[streams]") {
  // Blocks of all launches in any order, each on any multiprocessor that has room: the rest always fits.
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const Target target = target_profile("tiny3");
  int fitted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<Residency> launches(2 + random() % 2);
    for (Residency& launch : launches) {
      launch = {.blocks = static_cast<std::int64_t>(1 + random() % 6),
                .threads = static_cast<int>(32 * (1 + random() % 12)),
                .registers = static_cast<int>(16 * (1 + random() % 6)),
                .shared_bytes = static_cast<std::int64_t>(random() % 8 * 1024)};
    }
    if (!fit_together(launches, target)) continue;
    ++fitted;
    struct Room {
      std::int64_t slots, threads, registers, shared;
    };
    std::vector<Room> rooms(
        static_cast<std::size_t>(target.sms),
        {target.max_blocks_per_sm, target.max_threads_per_sm, target.registers_per_sm, target.shared_per_sm});
    std::vector<std::size_t> waiting;
    for (std::size_t i = 0; i < launches.size(); ++i) {
      waiting.insert(waiting.end(), static_cast<std::size_t>(launches[i].blocks), i);
    }
    std::shuffle(waiting.begin(), waiting.end(), random);
    for (const std::size_t i : waiting) {
      const Residency& l = launches[i];
      const std::int64_t warps = (l.threads + 31) / 32, shared = l.shared_bytes ? l.shared_bytes + 1024 : 0;
      std::vector<Room*> able;
      for (Room& room : rooms) {
        if (room.slots >= 1 && room.threads >= warps * 32 && room.registers >= warps * 32 * l.registers &&
            room.shared >= shared) {
          able.push_back(&room);
        }
      }
      REQUIRE(!able.empty());
      Room& room = *able[random() % able.size()];
      room = {room.slots - 1, room.threads - warps * 32, room.registers - warps * 32 * l.registers,
              room.shared - shared};
    }
  }
  CHECK(fitted > 100);
}

TEST_CASE("streams: kernels that spin are serialised where both might not fit", "[streams]") {
  const StreamChoices two{.max_streams = 2, .order = {0, 1}, .stream = {0, 1}};
  const std::vector<Task> large = {cooperative(3), cooperative(3)};
  // Side by side on two streams the verifier refuses them ...
  StreamPlan beside;
  beside.streams = 2;
  beside.order = {0, 1};
  beside.stream = {0, 1};
  beside.final_waits = {1};
  CHECK(thrown_by([&] { verify(large, beside, tiny2); }) ==
        "internal error: streams: tasks 0 and 1 are cooperative, may run at one time, and tiny2 has no room "
        "for all "
        "blocks of "
        "both");
  // ... the planner puts one behind the other, even on two streams ...
  const StreamPlan plan = planned(large, two, tiny2);
  CHECK(plan.waits == std::vector<StreamWait>{{1, 0}});
  CHECK(planned(large, {}, tiny2).streams == 1);
  // ... and leaves them alone where there is room.
  CHECK(planned({cooperative(2), cooperative(2)}, two, tiny2).waits.empty());
  CHECK(thrown_by([&] { planned({cooperative(9)}, {}, tiny2); }) ==
        "internal error: streams: task 0 is cooperative, and not all of its blocks fit tiny2");
}

TEST_CASE("streams: 10,000 steps are planned", "[streams]") {
  std::mt19937 random(3);
  std::vector<Task> tasks(10000);
  for (TaskId t = 1; t < tasks.size(); ++t) {
    tasks[t] = {.after = {t - 1 - static_cast<TaskId>(random() % std::min<TaskId>(t, 8))},
                .seconds = us * 5,
                .share = 0.3};
  }
  CHECK(planned(tasks).streams > 1);
}
