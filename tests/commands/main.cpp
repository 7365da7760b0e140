// Runs the commands of .t files and of pages, and compares what they print with what the files expect
// (CONTRIBUTING.md). SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "command_file.hpp"

namespace fs = std::filesystem;
using namespace fuse::test;  // NOLINT

namespace {

const std::string end_of_command = "\x01 end of command ";
constexpr std::size_t shown_lines = 60;
constexpr int skip_status = 80;  // of a command: the rest of its file is skipped

std::atomic<bool> stopped = false;  // by a signal: what was started is ended

struct Options {
  bool update = false;
  unsigned jobs = std::max(1U, std::thread::hardware_concurrency());
  int seconds = 600;  // of one file
  std::set<std::string> without;
  std::vector<fs::path> files;
};

struct Result {
  int passed = 0, failed = 0, renewed = 0;
  std::string told = {};
};

bool is_executable(const std::string& program) {
  std::istringstream path(std::getenv("PATH"));
  for (std::string folder; std::getline(path, folder, ':');) {
    if (::access((folder + '/' + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

/// Why a command cannot run here; empty: it can.
std::string missing_for(const std::string& needs) {
  std::istringstream words(needs == "not run" ? "" : needs);
  for (std::string program; words >> program;) {
    if (!is_executable(program)) return "there is no program '" + program + "'";
  }
  return "";
}

/// Runs a script of bash in a folder, with what it prints in a file; false: it took too long and was ended.
bool run_script(const fs::path& script, const fs::path& folder, const fs::path& output, int seconds) {
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no process can be started");
  if (child == 0) {
    ::setpgid(0, 0);
    const int in = ::open("/dev/null", O_RDONLY);
    const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (::dup2(in, 0) == 0 && ::dup2(out, 1) == 1 && ::dup2(out, 2) == 2 && ::chdir(folder.c_str()) == 0) {
      ::execlp("bash", "bash", "--noprofile", "--norc", script.c_str(), nullptr);
    }
    ::_exit(127);
  }
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  bool ended = false;
  while (!(ended = ::waitpid(child, nullptr, WNOHANG) == child) && Clock::now() < end && !stopped) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(-child, SIGKILL);  // what still stands in its background too
  if (!ended) ::waitpid(child, nullptr, 0);
  return ended;
}

struct Outcome {
  std::string output;
  int status = -1;  // -1: it did not come to its end
  std::string why;  // it did not
};

/// What each command printed. They share one bash; each stands in a file of its own, so that a mistake in its
/// syntax ends it alone.
std::vector<Outcome> run_commands(const CommandFile& file, const fs::path& folder, int seconds) {
  const fs::path scratch = folder / "scratch", script = folder / "script", output = folder / "output";
  fs::create_directories(scratch);
  for (const char* name : {"bench", "docs", "examples", "tests", "tools"}) {
    fs::create_directory_symlink(fs::path(FUSE_TEST_SOURCE_DIR) / name, scratch / name);
  }
  std::ofstream out(script);
  out << "set -o pipefail\nSCRATCH=$PWD\nskip() { echo \"$*\"; return 80; }\n"
      << (file.page ? "unset FUSE_CACHE\nexport FUSE_CACHE_DIR=$PWD/cache\n" : "");
  for (std::size_t k = 0; k < file.commands.size(); ++k) {
    const std::string part = script.string() + std::to_string(k);
    std::ofstream(part) << file.commands[k].text << '\n';
    out << ". '" << part << "'\nprintf '" << end_of_command << "%d\\n' $?\n";
  }
  out.close();
  const bool in_time = run_script(script, scratch, output, seconds);
  std::ostringstream all;
  all << std::ifstream(output).rdbuf();
  std::string rest = all.str();
  for (const auto& [variable, value] : {std::pair<std::string, std::string>{"SCRATCH", scratch},
                                        {"BIN", std::getenv("BIN")},
                                        {"ROOT", FUSE_TEST_SOURCE_DIR}}) {
    for (std::size_t at = 0; (at = rest.find(value, at)) != std::string::npos;) {
      rest.replace(at, value.size(), '$' + variable);
    }
  }
  const std::string why = in_time ? "did not end: bash ended before it"
                                  : "did not end: the file has " + std::to_string(seconds) + " seconds";
  std::vector<Outcome> outcomes(file.commands.size(), Outcome{.output = "", .why = why});
  for (Outcome& outcome : outcomes) {
    const std::size_t end = rest.find(end_of_command);
    outcome.output = rest.substr(0, end);
    if (end == std::string::npos) break;
    rest = rest.substr(end + end_of_command.size());
    outcome.status = std::stoi(rest);
    rest = rest.substr(rest.find('\n') + 1);
  }
  return outcomes;
}

/// What differs, as lines below the name of a command.
std::string told_of(const Command& command, const Outcome& outcome, const Comparison& comparison) {
  Lines lines = comparison.same || outcome.status < 0 ? lines_of(outcome.output) : comparison.difference;
  if (lines.size() > shown_lines) {
    const std::string more = "and " + std::to_string(lines.size() - shown_lines) + " more lines";
    lines.resize(shown_lines);
    lines.push_back(more);
  }
  if (outcome.status < 0) {
    lines.insert(lines.begin(), outcome.why);
  } else if (outcome.status != command.status) {
    lines.insert(lines.begin(),
                 "exit status " + std::to_string(outcome.status) + ", not " + std::to_string(command.status));
  }
  std::string text;
  for (const std::string& line : lines) text += "          " + line + '\n';
  return text;
}

Result run_file(const fs::path& path, const fs::path& folder, const Options& options) {
  const auto started = std::chrono::steady_clock::now();
  const fs::path name = fs::proximate(path);
  CommandFile file = read_command_file(path);
  std::ostringstream told;
  std::set<std::string> missing;
  const auto left_out = std::erase_if(file.commands, [&](const Command& command) {
    const std::string why = missing_for(command.needs);
    if (!why.empty() && missing.insert(why).second) {
      told << "skipped " << name.string() << ": " << why << '\n';
    }
    return !why.empty() || command.needs == "not run";
  });
  if (file.commands.empty()) {
    if (left_out == 0) return {.failed = 1, .told = "FAILED  " + name.string() + ": it has no commands\n"};
    return {.told = told.str()};
  }
  const std::vector<Outcome> outcomes = run_commands(file, folder, options.seconds);
  Result result;
  std::vector<Lines> renewed;
  std::vector<int> statuses;
  for (std::size_t k = 0; k < outcomes.size(); ++k) {
    const Command& command = file.commands[k];
    const Outcome& outcome = outcomes[k];
    if (outcome.status == skip_status && command.status != skip_status) {
      told << "skipped " << name.string() << " from line " << command.line << " on: " << outcome.output;
      if (!outcome.output.ends_with('\n')) told << '\n';
      break;
    }
    const Lines actual = lines_of(outcome.output);
    Comparison comparison{.same = true, .difference = {}, .renewed = command.expected};
    if (!file.page) comparison = compare(command.expected, actual);
    if (file.page && !command.expected.empty()) comparison = compare_excerpt(command.expected, actual);
    if (comparison.same && outcome.status == command.status) {
      ++result.passed;
    } else {
      const bool renews = options.update && !file.page && outcome.status >= 0;
      ++(renews ? result.renewed : result.failed);
      told << (renews ? "renewed " : "FAILED  ") << name.string() << ':' << command.line << ": $ "
           << command.text.substr(0, command.text.find('\n')) << '\n';
      told << told_of(command, outcome, comparison);
    }
    renewed.push_back(outcome.status < 0 ? command.expected : comparison.renewed);
    statuses.push_back(outcome.status < 0 ? command.status : outcome.status);
  }
  for (std::size_t k = renewed.size(); k < file.commands.size(); ++k) {
    renewed.push_back(file.commands[k].expected);
    statuses.push_back(file.commands[k].status);
  }
  if (result.renewed > 0) rewrite(file, renewed, statuses);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
  char line[64];
  std::snprintf(line, sizeof line, " (%d passed, %.1f s)\n", result.passed, seconds.count());
  if (result.failed + result.renewed == 0) told << "ok      " << name.string() << line;
  result.told = told.str();
  return result;
}

/// All .t files, and the pages that show commands.
std::vector<fs::path> all_files() {
  const fs::path root = FUSE_TEST_SOURCE_DIR;
  std::set<fs::path> found;
  for (const auto& entry : fs::directory_iterator(root / "tests/commands")) {
    if (entry.path().extension() == ".t") found.insert(entry.path());
  }
  for (const char* folder : {".", "docs"}) {
    for (const auto& entry : fs::directory_iterator(root / folder)) {
      if (entry.path().extension() != ".md") continue;
      if (!read_command_file(entry.path()).commands.empty()) found.insert(entry.path().lexically_normal());
    }
  }
  return {found.begin(), found.end()};
}

[[noreturn]] void usage(const std::string& error) {
  if (!error.empty()) std::fprintf(stderr, "error: %s\n", error.c_str());
  std::fputs(
      "Usage: command_tests [--update] [--jobs N] [--seconds N] [--without NAME]... [FILE...]\n"
      "Runs the commands of .t files and pages (.md), and compares what they print. Without files, it runs\n"
      "all of tests/commands and of the pages.\n"
      "  --update         write what the commands print into the .t files\n"
      "  --jobs N         so many files at a time (the number of cores)\n"
      "  --seconds N      so long for one file (600)\n"
      "  --without NAME   leave out NAME.t\n",
      error.empty() ? stdout : stderr);
  std::exit(error.empty() ? 0 : 2);
}

Options options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 == argc) usage(std::string(argument) + " needs a value");
      return argv[++i];
    };
    const auto number = [&]() -> int {
      const std::string text = value();
      if (text.empty() || text.size() > 6 || text.find_first_not_of("0123456789") != std::string::npos ||
          std::stoi(text) == 0) {
        usage(std::string(argument) + ": '" + text + "' is not a number from 1 on");
      }
      return std::stoi(text);
    };
    if (argument == "--help" || argument == "-h") usage("");
    if (argument == "--update") {
      options.update = true;
    } else if (argument == "--jobs") {
      options.jobs = static_cast<unsigned>(number());
    } else if (argument == "--seconds") {
      options.seconds = number();
    } else if (argument == "--without") {
      options.without.insert(value());
    } else if (argument.starts_with("-")) {
      usage("unknown option " + std::string(argument));
    } else {
      if (!fs::is_regular_file(argv[i])) usage("there is no file '" + std::string(argument) + "'");
      options.files.push_back(fs::absolute(argv[i]));
    }
  }
  if (options.files.empty()) options.files = all_files();
  std::erase_if(options.files,
                [&](const fs::path& path) { return options.without.contains(path.stem().string()); });
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = options_of(argc, argv);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, [](int) { stopped = true; });
  const fs::path programs = fs::read_symlink("/proc/self/exe").parent_path();
  ::setenv("ROOT", FUSE_TEST_SOURCE_DIR, 1);
  ::setenv("BIN", programs.c_str(), 1);
  ::setenv("PATH", (programs.string() + ':' + std::getenv("PATH")).c_str(), 1);
  ::setenv("FUSE_CACHE", "0", 1);
  ::setenv("LC_ALL", "C", 1);
  std::string scratch = (fs::canonical(fs::temp_directory_path()) / "fuse-commands.XXXXXX").string();
  if (::mkdtemp(scratch.data()) == nullptr) usage("no directory can be made as " + scratch);

  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  Result all;
  const auto work = [&] {
    for (std::size_t k = 0; (k = next++) < options.files.size() && !stopped;) {
      Result result;
      try {
        result = run_file(options.files[k], fs::path(scratch) / std::to_string(k), options);
      } catch (const std::exception& error) {
        result = {.failed = 1, .told = "FAILED  " + options.files[k].string() + ": " + error.what() + '\n'};
      }
      const std::lock_guard lock(mutex);
      std::fputs(result.told.c_str(), stdout);
      std::fflush(stdout);
      all.passed += result.passed + result.renewed, all.failed += result.failed,
          all.renewed += result.renewed;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned k = 0; k < options.jobs; ++k) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  std::error_code ignored;
  fs::remove_all(scratch, ignored);
  if (options.update) std::printf("%d renewed\n", all.renewed);
  std::printf("%d passed, %d failed\n", all.passed, all.failed);
  return !stopped && all.failed == 0 && all.passed > 0 ? 0 : 1;
}
