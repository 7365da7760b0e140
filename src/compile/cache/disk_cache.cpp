// SPDX-License-Identifier: Apache-2.0
#include "compile/cache/disk_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "ir/graph/hash.hpp"
#include "os/environment.hpp"
#include "os/mapped_file.hpp"
#include "runtime/saved/container.hpp"
#include "runtime/saved/fields.hpp"

namespace fuse::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view entry_magic = "fusecach";
constexpr std::string_view entry_suffix = ".plan";
constexpr std::string_view unfinished = ".tmp-";  // part of the names of files that are being written
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;  // the largest entry
constexpr std::time_t abandoned_seconds = 3600;               // a writer that takes longer has died

struct EntryFile {
  std::string key, title;
  SavedTarget target;
};

template <class A>
void fields(A& a, As<A, EntryFile>& v) {
  a(v.key, v.title, v.target);
}

EntryFile read_entry(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid()) {
    throw Error({.kind = ErrorKind::runtime,
                 .code = ErrorCode::file_format,
                 .message = path + " is not a file of this user's"});
  }
  const std::string file = read_whole(path, most_bytes);
  ArchiveReader reader(unseal(entry_magic, plan_format, file, path), path);
  EntryFile entry;
  reader(entry);
  reader.finish();
  return entry;
}

/// Two hashes of 64 bits name a file; the key in it decides.
std::string name_of(const std::string& key) {
  const std::uint64_t first = ir::Hasher().add(std::string_view(key)).value();
  const std::uint64_t second = ir::Hasher().add(first).add(std::string_view(key)).value();
  return fmt::format("{:016x}{:016x}{}", first, second, entry_suffix);
}

std::string folder_in(Variable variable, const char* below) {
  const std::string value = value_of(variable);
  return value.starts_with('/') ? value + below
                                : std::string();  // a relative one is to be ignored, by XDG's rules
}

}  // namespace

std::string distrust(const std::string& directory) {
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) return {};
  if (!S_ISDIR(info.st_mode)) return "it is no directory";
  if (info.st_uid != ::geteuid()) {
    return fmt::format("it belongs to user {}, not to {}", info.st_uid, ::geteuid());
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fmt::format("others may write to it (mode {:o})", info.st_mode & 07777);
  }
  return {};
}

DiskCache DiskCache::open() {
  DiskCache cache("");
  if (value_of(Variable::cache) == "0") {
    cache.unused_ = "FUSE_CACHE is 0";
    return cache;
  }
  const std::string chosen = value_of(Variable::cache_dir);
  std::string directory = chosen;
  if (directory.empty()) directory = folder_in(Variable::xdg_cache_home, "/fuse-compiler");
  if (directory.empty()) directory = folder_in(Variable::home, "/.cache/fuse-compiler");
  if (directory.empty()) {
    cache.unused_ = "none of FUSE_CACHE_DIR, XDG_CACHE_HOME and HOME names a directory";
    return cache;
  }
  const std::string why = distrust(directory);
  if (!why.empty() && !chosen.empty()) {
    throw Error({.kind = ErrorKind::runtime,
                 .code = ErrorCode::io,
                 .message = fmt::format("the cache directory {} (from FUSE_CACHE_DIR) cannot be trusted: {}",
                                        directory, why),
                 .hint = "name one that is yours alone: chmod 700, or set FUSE_CACHE=0"});
  }
  if (why.empty()) {
    cache.directory_ = std::move(directory);
  } else {
    cache.unused_ = directory + " cannot be trusted: " + why;
  }
  return cache;
}

std::string DiskCache::path_of(const std::string& key) const { return directory_ + '/' + name_of(key); }

std::optional<SavedTarget> DiskCache::find(const std::string& key) const {
  if (directory_.empty()) return std::nullopt;
  const std::string path = path_of(key);
  try {
    EntryFile entry = read_entry(path);
    if (entry.key != key) return std::nullopt;
    ::utimensat(AT_FDCWD, path.c_str(), nullptr,
                0);  // used now; a directory that is read only keeps its times
    return std::move(entry.target);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string DiskCache::insert(const std::string& key, const std::string& title,
                              const SavedTarget& target) const {
  if (directory_.empty()) return {};
  std::error_code failed;
  const fs::path directory(directory_);
  if (!fs::exists(directory, failed)) {
    fs::create_directories(directory.parent_path(), failed);
    if (::mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST) {
      return fmt::format("cannot make {}: {}", directory_, std::generic_category().message(errno));
    }
  }
  if (const std::string why = distrust(directory_); !why.empty()) return directory_ + ": " + why;
  try {
    ArchiveWriter writer;
    writer(EntryFile{key, title, target});
    const std::string file = seal(entry_magic, plan_format, writer.bytes());
    const std::span<const std::byte> bytes = std::as_bytes(std::span(file));
    write_file_atomically(path_of(key), {&bytes, 1});
  } catch (const Error& error) {
    return error.info().message;
  }
  shrink(name_of(key));
  return {};
}

namespace {

/// Entries, and what is being written or was left by a writer that died.
struct Listed {
  std::string name;
  bool entry = false;
  std::uint64_t bytes = 0;
  timespec used{};
};

std::vector<Listed> list(const std::string& directory) {
  std::vector<Listed> found;
  std::error_code failed;
  for (fs::directory_iterator at(directory, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    const bool entry = name.ends_with(entry_suffix);
    if (!entry && name.find(unfinished) == std::string::npos) continue;
    struct stat info {};
    if (::lstat(at->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    found.push_back({name, entry, static_cast<std::uint64_t>(info.st_size), info.st_mtim});
  }
  return found;
}

}  // namespace

void DiskCache::shrink(const std::string& newest) const {
  std::vector<Listed> files = list(directory_);
  const auto remove = [&](const Listed& file) { ::unlink((directory_ + '/' + file.name).c_str()); };
  const std::time_t now = std::time(nullptr);
  std::erase_if(files, [&](const Listed& file) {
    if (!file.entry && file.used.tv_sec + abandoned_seconds < now) remove(file);
    return !file.entry;
  });
  const auto rank = [&](const Listed& file) {
    return std::tuple(file.name == newest, file.used.tv_sec, file.used.tv_nsec, file.name);
  };
  std::sort(files.begin(), files.end(), [&](const Listed& a, const Listed& b) { return rank(a) > rank(b); });
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    bytes += files[i].bytes;
    if (i > 0 && (i >= limits_.entries || bytes > limits_.bytes)) remove(files[i]);
  }
}

std::vector<DiskCache::Entry> DiskCache::entries(bool whole) const {
  std::vector<Entry> result;
  for (const Listed& file : list(directory_)) {
    if (!file.entry) continue;
    Entry entry{.name = file.name, .title = {}, .bytes = file.bytes, .used = file.used.tv_sec, .damage = {}};
    if (whole) {
      try {
        EntryFile read = read_entry(directory_ + '/' + file.name);
        if (name_of(read.key) != file.name) entry.damage = "it has the key of another entry";
        entry.title = std::move(read.title);
        runnable(std::move(read.target), file.name);
      } catch (const Error& error) {
        entry.damage = error.info().message;
      }
    }
    result.push_back(std::move(entry));
  }
  std::sort(result.begin(), result.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return result;
}

std::size_t DiskCache::clear() const {
  std::size_t removed = 0;
  for (const Listed& file : list(directory_)) {
    removed += ::unlink((directory_ + '/' + file.name).c_str()) == 0 && file.entry;
  }
  return removed;
}

}  // namespace fuse::runtime
