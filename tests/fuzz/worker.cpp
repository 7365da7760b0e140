// SPDX-License-Identifier: Apache-2.0
#include "fuzz/worker.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <deque>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "fuzz/grow/generator.hpp"
#include "fuzz/grow/random.hpp"

extern char** environ;

namespace fuse::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

/// On a crowded machine a worker waits for others, not for itself: more processes than cores that want to
/// run.
double crowding() {
  double load = 0;
  if (getloadavg(&load, 1) != 1) return 1;
  return std::max(1.0, load / std::max(1U, std::thread::hardware_concurrency()));
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', '\x1f');
  return text;
}
std::string lines(std::string text) {
  std::replace(text.begin(), text.end(), '\x1f', '\n');
  return text;
}

struct Span {
  std::uint64_t first = 0;
  std::int64_t count = 0;
};

/// A worker process and what it said so far.
class Child {
 public:
  Child(const RunSettings& settings, Span span) : span_(span), next_(span.first) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
    std::vector<std::string> words = {
        "/proc/self/exe",           "--worker", std::to_string(span.first),   "--count",
        std::to_string(span.count), "--seed",   std::to_string(settings.seed)};
    if (!settings.cpu.empty()) words.insert(words.end(), {"--device", settings.cpu});
    if (settings.dynamic) words.emplace_back("--dynamic");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // to end its compilers with it
    const int failed = posix_spawn(&pid_, words[0].c_str(), &actions, &attributes, argv.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    pipe_ = ends[0];
    if (failed) throw std::runtime_error("cannot start a worker process");
    heard_ = Clock::now();
  }
  ~Child() {
    if (pid_ > 0) end();
    if (pipe_ >= 0) close(pipe_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int pipe() const { return pipe_; }
  double silence() const { return seconds_since(heard_); }

  /// False at the end of the worker's output.
  bool listen(RunTotals& totals) {
    char buffer[4096];
    const ssize_t got = read(pipe_, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) return true;
    if (got <= 0) return false;
    heard_ = Clock::now();
    text_.append(buffer, static_cast<std::size_t>(got));
    for (std::size_t end; (end = text_.find('\n')) != std::string::npos; text_.erase(0, end + 1)) {
      hear(text_.substr(0, end), totals);
    }
    return true;
  }

  void end() {
    kill(-pid_, SIGKILL);
    waitpid(pid_, &status_, 0);
    pid_ = 0;
  }
  /// What died with the worker, after its output has ended (or it was ended for its silence): what is left to
  /// run goes back to the queue.
  void bury(bool hung, std::deque<Span>& queue, RunTotals& totals) {
    if (hung) {
      end();
    } else {
      waitpid(pid_, &status_, 0);
      pid_ = 0;
    }
    const std::uint64_t stop = span_.first + static_cast<std::uint64_t>(span_.count);
    if (next_ >= stop) return;
    const Verdict verdict = hung ? Verdict::hang : Verdict::crash;
    const std::string how = hung                   ? "no progress"
                            : WIFSIGNALED(status_) ? "signal " + std::to_string(WTERMSIG(status_))
                                                   : "exit status " + std::to_string(WEXITSTATUS(status_));
    if (running_ || span_.count == 1) {
      totals.failures.push_back({next_, verdict, how});
      ++totals.programs;
      if (++next_ < stop) queue.push_front({next_, static_cast<std::int64_t>(stop - next_)});
      return;
    }
    // It died while it generated or compiled: each alone, to know whose fault it was.
    for (std::uint64_t i = next_; i < stop; ++i) queue.push_back({i, 1});
  }

 private:
  void hear(const std::string& line, RunTotals& totals) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "begin") {
      words >> next_;
      running_ = true;
    } else if (what == "done") {
      std::uint64_t index = 0;
      int verdict = 0, checked = 0;
      Shares shares;
      Forms forms = 0;
      words >> index >> verdict >> shares.elements >> shares.exact >> shares.undecided >> checked >> forms;
      std::string text;
      std::getline(words >> std::ws, text);
      ++totals.programs;
      totals.checked += checked;
      totals.forms.add(forms, checked != 0);
      totals.shares += shares;
      const auto outcome = static_cast<Verdict>(verdict);
      totals.wasted += outcome == Verdict::wasted;
      if (is_failure(outcome)) totals.failures.push_back({index, outcome, lines(text)});
      next_ = index + 1;
      running_ = false;
    } else if (what == "cover") {
      int op = 0, dtype = 0;
      std::int64_t count = 0;
      words >> op >> dtype >> count;
      totals.coverage.add(static_cast<ir::Op>(op), static_cast<DType>(dtype), count);
    }
  }

  Span span_;
  std::uint64_t next_;
  bool running_ = false;
  pid_t pid_ = 0;
  int pipe_ = -1, status_ = 0;
  std::string text_;
  Clock::time_point heard_;
};

}  // namespace

Case drawn(const RunSettings& settings, std::uint64_t index) {
  const std::uint64_t seed = seed_of(settings.seed, index);
  Case made = settings.dynamic ? generate_dynamic(seed) : generate(seed);
  return settings.cpu.empty() ? made : on_cpu(std::move(made), settings.cpu);
}

int work(const RunSettings& settings, std::uint64_t first) {
  const auto say = [](const std::string& line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
    std::fflush(stdout);
  };
  Coverage coverage;
  std::vector<Case> cases;
  for (std::int64_t i = 0; i < settings.count; ++i) {
    cases.push_back(drawn(settings, first + static_cast<std::uint64_t>(i)));
    coverage.count(cases.back().program.graph);
    say("made");
  }
  std::vector<bool> checked;
  for (const Case& c : cases) checked.push_back(c.options.checked);
  Batch batch(std::move(cases));
  for (std::size_t i = 0; i < batch.size(); ++i) {
    say("begin " + std::to_string(first + i));
    const Outcome outcome = batch.run(i);
    say("done " + std::to_string(first + i) + ' ' + std::to_string(static_cast<int>(outcome.verdict)) + ' ' +
        std::to_string(outcome.shares.elements) + ' ' + std::to_string(outcome.shares.exact) + ' ' +
        std::to_string(outcome.shares.undecided) + ' ' + (checked[i] ? "1 " : "0 ") +
        std::to_string(batch.forms(i)) + ' ' + one_line(outcome.text));
  }
  for (const auto& [cell, times] : coverage.cells()) {
    say("cover " + std::to_string(static_cast<int>(cell.first)) + ' ' +
        std::to_string(static_cast<int>(cell.second)) + ' ' + std::to_string(times));
  }
  return 0;
}

RunTotals run_workers(const RunSettings& settings, const std::function<void(const RunTotals&)>& progress) {
  RunTotals totals;
  const Clock::time_point start = Clock::now();
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const auto jobs = static_cast<std::size_t>(settings.jobs > 0 ? settings.jobs : cores);
  std::deque<Span> queue;
  std::int64_t planned = 0;
  std::vector<std::unique_ptr<Child>> children;
  const auto more = [&] {
    if (static_cast<std::int64_t>(totals.failures.size()) >= settings.most_failures) return false;
    if (!queue.empty()) return true;
    if (settings.minutes > 0 && seconds_since(start) > settings.minutes * 60) return false;
    return planned < settings.count;
  };
  for (;;) {
    while (children.size() < jobs && more()) {
      if (queue.empty()) {
        const std::int64_t count = std::min(settings.batch, settings.count - planned);
        queue.push_back({static_cast<std::uint64_t>(planned), count});
        planned += count;
      }
      children.push_back(std::make_unique<Child>(settings, queue.front()));
      queue.pop_front();
    }
    if (children.empty()) break;
    std::vector<pollfd> pipes;
    for (const auto& child : children) pipes.push_back({child->pipe(), POLLIN, 0});
    poll(pipes.data(), pipes.size(), 200);
    for (std::size_t i = children.size(); i-- > 0;) {
      const bool ended = pipes[i].revents != 0 && !children[i]->listen(totals);
      const bool hung = !ended && children[i]->silence() > settings.patience * crowding();
      if (!ended && !hung) continue;
      children[i]->bury(hung, queue, totals);
      children.erase(children.begin() + static_cast<std::ptrdiff_t>(i));
    }
    totals.seconds = seconds_since(start);
    progress(totals);
  }
  return totals;
}

}  // namespace fuse::fuzz
