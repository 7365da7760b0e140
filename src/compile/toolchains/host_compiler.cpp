// SPDX-License-Identifier: Apache-2.0
#include "compile/toolchains/host_compiler.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <fuse/error.hpp>
#include <sstream>
#include <string_view>
#include <system_error>

extern char** environ;

#include "os/environment.hpp"
#include "runtime/saved/container.hpp"

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

constexpr const char* trivial_text = "extern \"C\" int one() { return 1; }";

std::string file(const TemporaryFolder& folder, std::string_view name, std::size_t i) {
  return fmt::format("{}/{}{}", folder.path(), name, i);
}

// No contraction and no fast math: a rounding stays where the text has it.
constexpr std::array options = {"-std=c++17",
                                "-fPIC",
                                "-shared",
                                "-ffp-contract=off",
                                "-fwrapv",
                                "-fno-math-errno",
                                "-fno-builtin-pow",
                                "-fno-builtin-powf",
                                "-fno-exceptions",
                                "-fno-asynchronous-unwind-tables",
                                "-fvisibility=hidden",
                                "-w",
                                "-x",
                                "c++"};

// Kernels use nothing of the C++ library. Linking it takes a sixth of the time of a small kernel.
constexpr std::array libraries = {"-nostdlib", "-lm", "-lc", "-lgcc"};

struct Child {
  pid_t id = 0;
  int error = 0;  // why it did not start
};

// Both outputs go to the log.
Child start(std::vector<std::string> words, const std::string& log) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  Child child;
  child.error = posix_spawn(&child.id, words.front().c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return child;
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

HostCompiler::HostCompiler(int optimization, std::vector<std::string> machine, std::string device)
    : device_(std::move(device)), level_(fmt::format("-O{}", optimization)), machine_(std::move(machine)) {
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

void HostCompiler::require() const {
  if (!path_.empty()) return;
  throw Error({.kind = ErrorKind::runtime,
               .code = ErrorCode::missing_compiler,
               .message = device_ + " needs a C++ compiler; " + report_,
               .hint = "install g++ or clang++, or set FUSE_CXX to a compiler"});
}

std::string HostCompiler::build_key() const {
  // The file that it is stands for its version, which takes a process to ask.
  struct stat info {};
  std::error_code none;
  const std::string file = fs::weakly_canonical(path_, none).string();
  if (::stat(path_.c_str(), &info) != 0) info = {};
  std::string key = fmt::format("{} {} {} {}.{:09} {}", path_, file, info.st_size, info.st_mtim.tv_sec,
                                info.st_mtim.tv_nsec, level_);
  for (const char* option : options) key += std::string(" ") + option;
  for (const std::string& option : machine_) key += " " + option;
  for (const char* option : libraries) key += std::string(" ") + option;
  return key;
}

std::string HostCompiler::version() const {
  if (path_.empty()) return {};
  const TemporaryFolder folder;
  const std::string log = folder.path() + "/log";
  const Child child = start({path_, "--version"}, log);
  if (child.error || !finish(child.id, log)) return {};
  const std::string text = read_file(log);
  return text.substr(0, text.find('\n'));
}

std::vector<std::string> HostCompiler::command(const TemporaryFolder& folder, std::size_t i,
                                               bool debug_info) const {
  std::vector<std::string> words = {path_, level_};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), machine_.begin(), machine_.end());
  if (debug_info) words.emplace_back("-g");
  words.insert(words.end(), {file(folder, "source", i), "-o", file(folder, "library", i)});
  words.insert(words.end(), libraries.begin(), libraries.end());
  return words;
}

// What the compiler said about those that it rejected; empty where all went well.
std::string HostCompiler::compile(const std::vector<std::string>& texts, const TemporaryFolder& folder,
                                  bool debug_info) const {
  std::vector<Child> children;
  std::string complaint;
  int not_started = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    children.push_back(start(command(folder, i, debug_info), file(folder, "log", i)));
  }
  for (std::size_t i = 0; i < children.size(); ++i) {  // all of them: none is left unreaped
    if (children[i].error) not_started = children[i].error;
    if (children[i].error) continue;
    if (finish(children[i].id, file(folder, "library", i))) {
      std::error_code none;
      if (!fs::exists(file(folder, "library", i), none)) complaint += "it built nothing and said nothing\n";
      continue;
    }
    const std::string said = read_file(file(folder, "log", i));
    complaint += said.empty() ? "it failed and said nothing\n" : said;
  }
  if (not_started) {
    folder.blame(path_ + " did not start");
    throw Error(
        {.kind = ErrorKind::runtime,
         .code = ErrorCode::io,
         .message = fmt::format("cannot start {}: {}", path_, std::generic_category().message(not_started)),
         .hint = "leave it more processes and memory"});
  }
  constexpr std::size_t most = 4000;
  if (complaint.size() > most) complaint.replace(most, std::string::npos, "...");
  return complaint;
}

// A complaint is the text's fault only where the compiler builds another one, in a directory with room.
void HostCompiler::fail(const std::string& complaint, const TemporaryFolder& folder) const {
  folder.blame(fmt::format("{} failed:\n{}", path_, complaint));
  const TemporaryFolder other;
  other.write("source0", trivial_text);
  if (const std::string again = compile({trivial_text}, other, false); !again.empty()) {
    throw Error({.kind = ErrorKind::runtime,
                 .code = ErrorCode::broken_install,
                 .message = fmt::format("the C++ compiler {} does not work: it cannot build '{}':\n{}", path_,
                                        trivial_text, again),
                 .hint = "reinstall it, or set FUSE_CXX to another one"});
  }
  throw Error({.kind = ErrorKind::internal,
               .code = ErrorCode::internal,
               .message = fmt::format("{} rejected the kernels:\n{}", path_, complaint),
               .hint = "set FUSE_CXX to g++ 12 or clang++ 16, or newer; where it is one, report this"});
}

std::vector<std::vector<char>> HostCompiler::build(const std::vector<std::string>& texts,
                                                   bool debug_info) const {
  require();
  const TemporaryFolder folder;
  for (std::size_t i = 0; i < texts.size(); ++i) folder.write(fmt::format("source{}", i), texts[i]);
  if (const std::string complaint = compile(texts, folder, debug_info); !complaint.empty())
    fail(complaint, folder);
  std::vector<std::vector<char>> built;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string bytes = read_whole(file(folder, "library", i), std::uint64_t{1} << 40);
    built.emplace_back(bytes.begin(), bytes.end());
  }
  return built;
}

}  // namespace fuse::runtime::emulated
