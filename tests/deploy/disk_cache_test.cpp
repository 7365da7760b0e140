// The cache on disk: what one process compiled another one takes; whatever is wrong with an entry, it is a
// miss. SPDX-License-Identifier: Apache-2.0
#include "compile/cache/disk_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/access.hpp"
#include "compile/cache/cache_key.hpp"
#include "compile/pipeline/experiments.hpp"
#include "deploy/deploy_support.hpp"
#include "runtime/runtime_support.hpp"
#include "runtime/saved/container.hpp"
#include "runtime/saved/fields.hpp"
#include "support/examples.hpp"
#include "support/failing_calls.hpp"
#include "support/sanitized.hpp"
#include "support/variable.hpp"

namespace fuse::test {
namespace {

using runtime::DiskCache;
using runtime::SavedTarget;

/// The environment of a process whose cache is a folder of the test.
struct CacheIn {
  explicit CacheIn(const std::string& directory) : dir("FUSE_CACHE_DIR", directory.c_str()) {}
  Variable on{"FUSE_CACHE", "1"};
  Variable dir;
};

/// A new device remembers nothing: as in another process.
Device fresh(const std::string& profile = "tiny3", bool checked = false) {
  return Device::emulated({.profile = profile, .checked = checked, .optimization = 0});
}

bool found_on_disk(const Graph& graph, const Device& device, const CompileOptions& options = {}) {
  static_cast<void>(compile(graph, device, options));
  const std::string report = device.report();
  INFO(report);
  REQUIRE(report.find("compiled graphs on disk: 1 looked up") != std::string::npos);
  return report.find("on disk: 1 looked up, 1 found") != std::string::npos;
}

Graph scaled(float by, bool other_line = false) {
  Graph g("scaled");
  const Tensor x = g.input("x", f32, {64});
  if (other_line) {
    g.output("y", x * by);
  } else {
    g.output("y", x * by);
  }
  return g;
}

/// An entry without kernels, whose every byte can be tried.
SavedTarget small_target(const std::string& mark) {
  const Folder folder;
  compile(scaled(2), Device::emulated({.profile = "tiny3", .optimization = 0})).save(folder / "plan");
  SavedTarget target = runtime::parse_plan_file(contents_of(folder / "plan"), "plan").at(0);
  target.builds.at(0).images.at(0).bytes.assign(64, 'x');
  target.provenance = {.explanation = mark, .source = {}, .graph = {}, .options = {}};
  return target;
}

void change(const std::string& path, std::size_t at, char value) {
  const int file = ::open(path.c_str(), O_WRONLY);
  REQUIRE(file >= 0);
  REQUIRE(::pwrite(file, &value, 1, static_cast<off_t>(at)) == 1);
  ::close(file);
}

}  // namespace

TEST_CASE("disk cache: a second process compiles nothing", "[deploy][emulated]") {
  const Folder folder;
  const CacheIn environment(folder / "cache");
  const Graph graph = example("layernorm");
  const Executable first = compile(graph, fresh());
  CHECK(std::filesystem::status(folder / "cache").permissions() == std::filesystem::perms::owner_all);
  CHECK(Folder::names_in(folder / "cache").size() == 1);

  const Device second = fresh();
  const Executable again = compile(graph, second);
  CHECK(second.report().find("compiled graphs on disk: 1 looked up, 1 found") != std::string::npos);
  CHECK(again.explain() == first.explain());
  CHECK(again.source() == first.source());
  CHECK(stages_of(again).partition.segments.size() == stages_of(first).partition.segments.size());
  CHECK(run_on_drawn(again, {{"B", 3}}) == run_on_drawn(first, {{"B", 3}}));
  CHECK(Folder::names_in(folder / "cache").size() == 1);
}

TEST_CASE("disk cache: a hit starts no compiler", "[deploy][emulated]") {
  const Folder folder;
  const CacheIn environment(folder / "cache");
  static_cast<void>(compile(example("softmax"), fresh()));
  const FailingCalls watched;
  static_cast<void>(compile(example("softmax"), fresh()));
  const std::vector<std::string> calls = watched.calls();
  CHECK(std::count(calls.begin(), calls.end(), "posix_spawn") == 0);
}

TEST_CASE("disk cache: whatever decides what is made is in the key", "[deploy][emulated]") {
  const Folder folder;
  const CacheIn environment(folder / "cache");
  REQUIRE_FALSE(found_on_disk(scaled(2), fresh()));
  CHECK(found_on_disk(scaled(2), fresh()));
  CHECK(found_on_disk(scaled(2), fresh(), {.threads = 1}));  // changes nothing
  CHECK_FALSE(found_on_disk(scaled(3), fresh()));
  CHECK_FALSE(found_on_disk(scaled(2, true), fresh()));  // another line
  CHECK_FALSE(found_on_disk(scaled(2), fresh("v100")));
  CHECK_FALSE(found_on_disk(scaled(2), fresh("tiny3", true)));
  CHECK_FALSE(found_on_disk(scaled(2), Device::emulated({.profile = "tiny3", .optimization = 1})));
  for (const CompileOptions& options :
       {CompileOptions{.relaxed_rounding = true}, CompileOptions{.merge_gemms = false},
        CompileOptions{.experiments = experiments({.cut = Cut::xla})},
        CompileOptions{.experiments = experiments({.layers = 1})},
        CompileOptions{.experiments = experiments({.stitch = Stitch::mapping})},
        CompileOptions{.experiments = experiments({.schemes = Schemes::astitch})},
        CompileOptions{.grid_barriers = false}, CompileOptions{.max_inputs = 9},
        CompileOptions{.skip_unfit_decisions = true}, CompileOptions{.streams = 1}}) {
    CHECK_FALSE(found_on_disk(scaled(2), fresh(), options));
    CHECK(found_on_disk(scaled(2), fresh(), options));
  }
  {
    const Folder tools;  // the same compiler by another path
    std::filesystem::create_symlink("/usr/bin/g++", tools / "g++");
    const Variable chosen("FUSE_CXX", (tools / "g++").c_str());
    CHECK_FALSE(found_on_disk(scaled(2), fresh()));
  }
  const std::size_t entries = Folder::names_in(folder / "cache").size();
  static_cast<void>(compile(scaled(5), fresh(), {.cache = false}));
  CHECK(Folder::names_in(folder / "cache").size() == entries);
}

TEST_CASE("disk cache: every byte of an entry flipped, every length: a miss", "[deploy][emulated]") {
  const Folder folder;
  const DiskCache cache(folder.path());
  REQUIRE(cache.insert("key", "title", small_target("mark")) == "");
  const std::string path = folder / folder.names().at(0);
  const std::string bytes = contents_of(path);
  REQUIRE(cache.find("key")->provenance.explanation == "mark");
  const std::size_t stride = sanitized() ? 13 : 1;
  for (std::size_t at = 0; at < bytes.size(); at += stride) {
    change(path, at, static_cast<char>(bytes[at] ^ (1 << (at % 8))));
    const bool found = cache.find("key").has_value();
    change(path, at, bytes[at]);
    if (!found) continue;
    INFO("byte " << at);
    FAIL("a flipped byte was not seen");
  }
  REQUIRE(cache.find("key").has_value());
  for (std::size_t length = bytes.size(); length-- > 0; length -= std::min(length, stride - 1)) {
    REQUIRE(::truncate(path.c_str(), static_cast<off_t>(length)) == 0);
    if (!cache.find("key").has_value()) continue;
    INFO("length " << length);
    FAIL("a shortened entry was not seen");
  }
  // A damaged entry gives way to a new one.
  REQUIRE(::truncate(path.c_str(), 0) == 0);
  CHECK(cache.entries(true).at(0).damage.find("is no fusecach of fuse") != std::string::npos);
  CHECK(cache.insert("key", "title", small_target("new")) == "");
  CHECK(cache.find("key")->provenance.explanation == "new");
  CHECK(cache.entries(true).at(0).damage == "");
}

TEST_CASE("disk cache: what another version of the format wrote is a miss, and is replaced",
          "[deploy][emulated]") {
  const Folder folder;
  const DiskCache cache(folder.path());
  REQUIRE(cache.insert("key", "title", small_target("old")) == "");
  const std::string file = folder / folder.names().at(0);
  const std::string content = contents_of(file).substr(runtime::container_header_bytes);
  for (const std::uint32_t format : {runtime::plan_format - 1, runtime::plan_format + 1}) {
    write_contents(file, runtime::seal("fusecach", format, content));
    CHECK_FALSE(cache.find("key").has_value());
    REQUIRE(cache.entries(true).size() == 1);
    CHECK(cache.entries(true)[0].damage.find("this version of fuse reads ") != std::string::npos);
  }
  REQUIRE(cache.insert("key", "title", small_target("new")) == "");
  CHECK(cache.find("key")->provenance.explanation == "new");
  CHECK(folder.names().size() == 1);
}

TEST_CASE("disk cache: an entry whose kernels cannot be loaded is compiled anew", "[deploy][emulated]") {
  const Folder folder;
  const CacheIn environment(folder / "cache");
  const Graph graph = scaled(2);
  const Results right = run_on_drawn(compile(graph, fresh()));
  const DiskCache cache(folder / "cache");
  const std::string key = runtime::cache_key(ir_of(graph), *backend_of(fresh()), {});
  std::optional<SavedTarget> target = cache.find(key);
  REQUIRE(target.has_value());
  target->builds.at(0).images.at(0).bytes.assign(100, 'x');
  REQUIRE(cache.insert(key, "", *target) == "");
  const Device device = fresh();
  CHECK(run_on_drawn(compile(graph, device)) == right);
  CHECK(device.report().find("1 looked up, 0 found") != std::string::npos);
  CHECK(found_on_disk(graph, fresh()));  // and is whole again
}

TEST_CASE("disk cache: bounded by entries and by bytes, least recently used first out",
          "[deploy][emulated]") {
  const Folder folder;
  const SavedTarget target = small_target("mark");
  const DiskCache few(folder.path(), {.entries = 3, .bytes = 1 << 30});
  const auto age = [&](int seconds) {  // of the entry that was used just now
    for (const std::string& name : folder.names()) {
      struct stat info {};
      REQUIRE(::stat((folder / name).c_str(), &info) == 0);
      if (std::time(nullptr) - info.st_mtime > 30) continue;
      const timespec old{std::time(nullptr) - seconds, 0}, times[2] = {old, old};
      REQUIRE(::utimensat(AT_FDCWD, (folder / name).c_str(), times, 0) == 0);
    }
  };
  for (int i = 0; i < 3; ++i) {
    REQUIRE(few.insert("key " + std::to_string(i), "", target) == "");
    age(1000 - 100 * i);
  }
  REQUIRE(few.find("key 0").has_value());  // the oldest, and now the newest
  REQUIRE(few.insert("key 3", "", target) == "");
  CHECK(few.find("key 0").has_value());
  CHECK_FALSE(few.find("key 1").has_value());
  CHECK(few.find("key 2").has_value());
  CHECK(few.find("key 3").has_value());
  const DiskCache small(folder.path(),
                        {.entries = 100, .bytes = 2 * contents_of(folder / folder.names()[0]).size()});
  REQUIRE(small.insert("key 4", "", target) == "");
  CHECK(folder.names().size() == 2);
  CHECK(small.find("key 4").has_value());
}

TEST_CASE("disk cache: directories that others may write to are refused", "[deploy][emulated]") {
  const Folder folder;
  std::filesystem::create_directory(folder / "open");
  REQUIRE(::chmod((folder / "open").c_str(), 0777) == 0);
  {
    const CacheIn environment(folder / "open");
    const std::string refused = error_of([&] { compile(scaled(2), fresh()); });
    CHECK(refused.starts_with("io: the cache directory " + (folder / "open") +
                              " (from FUSE_CACHE_DIR) cannot be trusted: "
                              "others may write to it (mode 777)"));
  }
  // The usual one is not used, and the report says why.
  const Variable on("FUSE_CACHE", "1"), none("FUSE_CACHE_DIR", nullptr), home("HOME", folder.path().c_str());
  const Variable xdg("XDG_CACHE_HOME", (folder / "xdg").c_str());
  std::filesystem::create_directories(folder / "xdg/fuse-compiler");
  REQUIRE(::chmod((folder / "xdg/fuse-compiler").c_str(), 0770) == 0);
  const Device device = fresh();
  static_cast<void>(compile(scaled(2), device));
  CHECK(Folder::names_in(folder / "xdg/fuse-compiler").empty());
  CHECK(device.report().find("cache: not used: " + (folder / "xdg/fuse-compiler") + " cannot be trusted") !=
        std::string::npos);
  if (::geteuid() != 0) {
    WARN("skipped: only root can give a directory away");
    return;
  }
  REQUIRE(::chmod((folder / "open").c_str(), 0700) == 0);
  REQUIRE(::chown((folder / "open").c_str(), 1234, 1234) == 0);
  CHECK(runtime::distrust(folder / "open") == "it belongs to user 1234, not to 0");
}

TEST_CASE("disk cache: FUSE_CACHE_DIR, else XDG_CACHE_HOME, else HOME, else none", "[deploy][emulated]") {
  const Folder folder;
  const Variable on("FUSE_CACHE", nullptr);
  const Variable dir("FUSE_CACHE_DIR", nullptr), xdg("XDG_CACHE_HOME", nullptr), home("HOME", nullptr);
  CHECK(DiskCache::open().directory() == "");
  CHECK(DiskCache::open().unused() == "none of FUSE_CACHE_DIR, XDG_CACHE_HOME and HOME names a directory");
  static_cast<void>(compile(scaled(2), fresh()));
  ::setenv("HOME", folder.path().c_str(), 1);
  CHECK(DiskCache::open().directory() == folder / ".cache/fuse-compiler");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  CHECK(DiskCache::open().directory() == folder / ".cache/fuse-compiler");
  ::setenv("XDG_CACHE_HOME", (folder / "xdg").c_str(), 1);
  CHECK(DiskCache::open().directory() == folder / "xdg/fuse-compiler");
  ::setenv("FUSE_CACHE_DIR", (folder / "own").c_str(), 1);
  CHECK(DiskCache::open().directory() == folder / "own");
  ::setenv("FUSE_CACHE", "0", 1);
  CHECK(DiskCache::open().unused() == "FUSE_CACHE is 0");
}

TEST_CASE("disk cache: what cannot be kept is compiled all the same, and told", "[deploy][emulated]") {
  const Folder folder;
  const SavedTarget target = small_target("mark");
  {
    const CacheIn environment("/proc/no/such/place");
    const Device device = fresh();
    static_cast<void>(compile(scaled(2), device));
    CHECK(device.report().find("the last one was not kept: cannot make /proc/no/such/place") !=
          std::string::npos);
  }
  // Each write of an entry fails once, as on a full disk: nothing of it is left.
  const DiskCache cache(folder.path());
  std::vector<std::string> calls;
  {
    const FailingCalls none;
    REQUIRE(cache.insert("key", "", target) == "");
    calls = none.calls();
  }
  REQUIRE(calls.size() >= 3);
  REQUIRE(cache.clear() == 1);
  for (std::size_t n = 0; n < calls.size(); ++n) {
    std::string why;
    {
      const FailingCalls failing(static_cast<int>(n) + 1);
      why = cache.insert("key", "", target);
    }
    INFO(calls[n] << ": " << why);
    CHECK(why.find("cannot write") != std::string::npos);
    CHECK(folder.names().empty());
    CHECK_FALSE(cache.find("key").has_value());
  }
}

TEST_CASE("disk cache: a directory that is read only serves, and keeps nothing", "[deploy][emulated]") {
  const Folder folder;
  const SavedTarget target = small_target("mark");
  REQUIRE(DiskCache(folder.path()).insert("key", "", target) == "");
  const std::string file = folder / folder.names().at(0);
  // Root may write everywhere: another user looks.
  constexpr uid_t other = 1234;
  const bool root = ::geteuid() == 0;
  if (root) {
    REQUIRE(::chown(file.c_str(), other, other) == 0);
    REQUIRE(::chown(folder.path().c_str(), other, other) == 0);
  }
  REQUIRE(::chmod(folder.path().c_str(), 0500) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (root && (::setgid(other) != 0 || ::setuid(other) != 0)) ::_exit(1);
    const DiskCache cache(folder.path());
    const std::optional<SavedTarget> found = cache.find("key");
    if (!found || found->provenance.explanation != "mark") ::_exit(2);
    if (cache.insert("other", "", target).find("cannot write") == std::string::npos) ::_exit(3);
    ::_exit(cache.find("other") ? 4 : 0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(folder.names().size() == 1);
}

TEST_CASE("disk cache: four processes, each killed while it writes, 200 rounds", "[deploy][emulated]") {
  const Folder folder;
  const DiskCache cache(folder.path(), {.entries = 6, .bytes = 1 << 30});
  constexpr int keys = 8, processes = 4;
  const int rounds = fewer(200, 10);  // a sanitized process takes long to fork
  std::vector<SavedTarget> targets;
  for (int key = 0; key < keys; ++key) {
    targets.push_back(small_target("value " + std::to_string(key)));
    // Long enough to take several writes of the disk's blocks.
    targets.back().provenance.source.assign(static_cast<std::size_t>(1000 + 9000 * key),
                                            static_cast<char>('a' + key));
  }
  const auto right = [&](int key) {
    const std::optional<SavedTarget> found = cache.find("key " + std::to_string(key));
    return !found ||
           (found->provenance.explanation == targets[static_cast<std::size_t>(key)].provenance.explanation &&
            found->provenance.source == targets[static_cast<std::size_t>(key)].provenance.source);
  };
  int killed = 0, ended = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<pid_t> children;
    for (int process = 0; process < processes; ++process) {
      const pid_t child = ::fork();
      REQUIRE(child >= 0);
      if (child == 0) {
        // Each step of each of the writes is the last one of some process of some round.
        FailingCalls::die_at(1 + (round + 5 * process) % 26);
        for (int i = 0; i < keys; ++i) {
          const int key = (i + round + process) % keys;
          if (!right(key)) ::_exit(3);
          (void)cache.insert("key " + std::to_string(key), "", targets[static_cast<std::size_t>(key)]);
        }
        ::_exit(0);
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = 0;
      REQUIRE(::waitpid(child, &status, 0) == child);
      killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
      ended += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    REQUIRE(killed + ended == processes * (round + 1));
    for (int key = 0; key < keys; ++key) REQUIRE(right(key));
    for (const DiskCache::Entry& entry : cache.entries(true)) {
      INFO(entry.name << ": " << entry.damage);
      REQUIRE(entry.damage == "");
    }
  }
  CHECK(killed > rounds);
  CHECK(ended > 0);
  cache.clear();
  CHECK(folder.names().empty());  // and what the dead left
}

}  // namespace fuse::test
