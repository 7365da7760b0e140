// A `c++` for tests: it runs the next c++ on PATH, and remembers what that made of a kernel's text. Many
// tests compile the same kernels, and the tests under sanitizers compile all of them once more
// (CONTRIBUTING.md, "Tests"). SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace fs = std::filesystem;

namespace {

fs::path own_folder() {
  std::error_code none;
  return fs::read_symlink("/proc/self/exe", none).parent_path();
}

/// The first c++ on PATH behind this one's folder, or of all where PATH does not have that; empty: there is
/// none. Two of these on PATH would call each other without an end if they looked before themselves.
std::string next_compiler() {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  std::string next;
  bool behind = false;
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::error_code none;
    const std::string candidate = folder + "/c++";
    if (fs::equivalent(folder, own_folder(), none)) {
      if (!behind) next.clear();
      behind = true;
    } else if (next.empty() && ::access(candidate.c_str(), X_OK) == 0) {
      next = candidate;
    }
  }
  return next;
}

std::optional<std::string> contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

/// One text that becomes one shared library without debug information, which would name the text's folder.
struct Job {
  std::string text, library, key;
};

std::optional<Job> job_of(int argc, char** argv, const std::string& compiler) {
  std::string input, output, options;
  bool shared = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "-g" || word == "-c" || word == "-E" || word == "-S" || word.starts_with("@")) return {};
    if (word == "-o" && i + 1 < argc) {
      output = argv[++i];
    } else if (word == "-x" && i + 1 < argc) {
      options += std::string("-x ") + argv[++i] + '\n';
    } else if (word.starts_with("-")) {
      shared = shared || word == "-shared";
      options += std::string(word) + '\n';
    } else if (input.empty()) {
      input = word;
    } else {
      return {};
    }
  }
  struct stat info {};
  if (!shared || input.empty() || output.empty() || ::stat(compiler.c_str(), &info) != 0) return {};
  std::optional<std::string> text = contents(input);
  if (!text) return {};
  std::ostringstream key;
  key << compiler << ' ' << info.st_size << ' ' << info.st_mtim.tv_sec << '\n' << options << *text;
  return Job{.text = std::move(*text), .library = std::move(output), .key = std::move(key).str()};
}

/// An entry is the key's length, the key and the library: a file that another key has given the name of is a
/// miss.
fs::path entry_of(const Job& job) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : job.key) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  char name[32];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(hash));
  return own_folder() / "libraries" / name;
}

bool write_whole(const fs::path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  return !out.fail();
}

std::string head_of(const Job& job) { return std::to_string(job.key.size()) + '\n' + job.key; }

bool recall(const Job& job) {
  const fs::path entry = entry_of(job);
  const std::optional<std::string> kept = contents(entry);
  const std::string head = head_of(job);
  if (!kept || !kept->starts_with(head)) return false;
  std::error_code none;
  fs::last_write_time(entry, fs::file_time_type::clock::now(), none);  // ./dev removes what is not used
  return write_whole(job.library, std::string_view(*kept).substr(head.size())) &&
         ::chmod(job.library.c_str(), 0700) == 0;
}

/// Other processes may keep the same at the same time: an entry appears whole or not at all.
void keep(const Job& job) {
  const std::optional<std::string> library = contents(job.library);
  const fs::path entry = entry_of(job), part = entry.string() + '.' + std::to_string(::getpid());
  std::error_code none;
  fs::create_directories(entry.parent_path(), none);
  if (!library || !write_whole(part, head_of(job) + *library)) {
    fs::remove(part, none);
  } else {
    fs::rename(part, entry, none);
  }
}

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGCHLD, SIG_DFL);  // an application that ignores it has its children ignore it too
  const std::string compiler = next_compiler();
  if (compiler.empty()) {
    std::fputs("c++: there is no other c++ on PATH\n", stderr);
    return 127;
  }
  const std::optional<Job> job = job_of(argc, argv, compiler);
  if (job && recall(*job)) return 0;
  const pid_t child = job ? ::fork() : 0;
  if (child == 0) {
    argv[0] = const_cast<char*>(compiler.c_str());  // NOLINT
    ::execv(compiler.c_str(), argv);
    std::perror(compiler.c_str());
    ::_exit(127);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 1;
  if (WEXITSTATUS(status) == 0) keep(*job);
  return WEXITSTATUS(status);
}
