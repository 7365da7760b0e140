// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/compiler.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <fuse/error.hpp>
#include <sstream>
#include <string_view>

extern char** environ;

#include "runtime/environment.hpp"

namespace fuse::runtime::emulated {
namespace {

namespace fs = std::filesystem;

bool executable(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

// The first executable of that name on PATH; a name with a slash is a path already.
std::string search(const std::string& name) {
  if (name.find('/') != std::string::npos) return executable(name) ? name : "";
  std::istringstream folders(value_of(Variable::path));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (executable(candidate)) return candidate;
  }
  return "";
}

// A private folder that goes away with its contents.
class Folder {
 public:
  Folder() {
    std::error_code failed;
    std::string pattern = (fs::temp_directory_path(failed) / "fuse-XXXXXX").string();
    if (failed || !mkdtemp(pattern.data())) {
      throw Error({.kind = ErrorKind::runtime,
                   .code = ErrorCode::io,
                   .message = "cannot make a temporary folder for the emulated device's kernels",
                   .hint = "set TMPDIR to a folder that can be written"});
    }
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(std::string_view name, std::size_t i) const {
    return fmt::format("{}/{}{}", path_, name, i);
  }

 private:
  std::string path_;
};

// No contraction and no fast math: a rounding stays where the text has it. Returns 0 if it cannot start.
pid_t start(const std::string& compiler, const std::string& source, const std::string& output,
            const std::string& log) {
  std::vector<std::string> words = {compiler,
                                    "-std=c++17",
                                    "-O2",
                                    "-fPIC",
                                    "-shared",
                                    "-ffp-contract=off",
                                    "-fwrapv",
                                    "-fno-math-errno",
                                    "-fno-exceptions",
                                    "-fno-asynchronous-unwind-tables",
                                    "-fvisibility=hidden",
                                    "-w",
                                    "-x",
                                    "c++",
                                    source,
                                    "-o",
                                    output};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int failed = posix_spawn(&child, compiler.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return failed ? 0 : child;
}

// True if the compiler ended well. An application that ignores SIGCHLD leaves no exit status: then the
// output file decides.
bool finish(pid_t child, const std::string& output) {
  int status = 0;
  pid_t ended = 0;
  do {
    ended = waitpid(child, &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (ended < 0) return fs::exists(output);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

Compiler::Compiler() {
  std::vector<std::string> names = {"c++", "g++", "clang++"};
  if (const std::string chosen = value_of(Variable::cxx); !chosen.empty()) {
    names = {chosen};
    report_ = fmt::format("compiler: FUSE_CXX={}", chosen);
  } else {
    report_ = "compiler: FUSE_CXX is not set; c++, g++, clang++ on PATH";
  }
  for (const std::string& name : names) {
    path_ = search(name);
    if (!path_.empty()) break;
  }
  report_ += path_.empty() ? ": not found" : ": " + path_;
}

std::vector<void*> Compiler::build(const std::vector<std::string>& texts) const {
  if (path_.empty()) {
    throw Error({.kind = ErrorKind::runtime,
                 .code = ErrorCode::missing_compiler,
                 .message = "the emulated device needs a C++ compiler; " + report_,
                 .hint = "install g++ or clang++, or set FUSE_CXX to a compiler"});
  }
  const Folder folder;
  std::vector<pid_t> children;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::ofstream(folder.file("source", i)) << texts[i];
    children.push_back(
        start(path_, folder.file("source", i), folder.file("library", i), folder.file("log", i)));
  }
  std::string complaint;
  for (std::size_t i = 0; i < children.size(); ++i) {  // all of them: none is left unreaped
    if (children[i] && finish(children[i], folder.file("library", i))) continue;
    complaint += children[i] ? read_file(folder.file("log", i)) : "it could not be started\n";
  }
  if (!complaint.empty()) {
    constexpr std::size_t most = 4000;
    if (complaint.size() > most) complaint = complaint.substr(0, most) + "...";
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::internal,
                 .message = fmt::format("{} rejected the emitted kernels:\n{}", path_, complaint)});
  }
  std::vector<void*> handles;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    void* handle = dlopen(folder.file("library", i).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* why = dlerror();
      const std::string text = why ? why : "unknown reason";
      for (void* loaded : handles) dlclose(loaded);
      throw Error({.kind = ErrorKind::internal,
                   .code = ErrorCode::internal,
                   .message = "cannot load the compiled kernels: " + text});
    }
    handles.push_back(handle);
  }
  return handles;
}

}  // namespace fuse::runtime::emulated
