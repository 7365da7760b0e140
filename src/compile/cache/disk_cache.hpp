// DiskCache: what was compiled for this user on this machine, for other processes (docs/deploy.md). An entry
// is the whole of what decided a program, then the program with its binary; whatever is wrong with an entry,
// it is a miss.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "runtime/saved/plan_file.hpp"

namespace fuse::runtime {

class DiskCache {
 public:
  struct Limits {
    std::size_t entries = 4096;
    std::uint64_t bytes = std::uint64_t{1} << 30;
  };
  struct Entry {
    std::string name;   ///< the file's name
    std::string title;  ///< "softmax for h200"
    std::uint64_t bytes = 0;
    std::time_t used = 0;
    std::string damage;  ///< empty: it is whole
  };

  /// The directory that FUSE_CACHE_DIR names, else XDG_CACHE_HOME/fuse-compiler, else
  /// HOME/.cache/fuse-compiler; none where FUSE_CACHE is 0. Nothing is made before the first entry. Throws io
  /// where FUSE_CACHE_DIR names a directory that others own or may write to; such a one of the other two is
  /// not used, and `unused` says why.
  static DiskCache open();
  explicit DiskCache(std::string directory) : DiskCache(std::move(directory), Limits{}) {}
  DiskCache(std::string directory, const Limits& limits)
      : directory_(std::move(directory)), limits_(limits) {}

  const std::string& directory() const { return directory_; }  ///< empty: it is not used
  const std::string& unused() const { return unused_; }

  /// The entry of this key. Never throws for what is on the disk.
  std::optional<SavedTarget> find(const std::string& key) const;
  /// Keeps it, and removes the entries that were not used for longest where they are too many. Returns why it
  /// could not be kept, when nothing of it is there; else empty.
  std::string insert(const std::string& key, const std::string& title, const SavedTarget&) const;

  /// What is there, by name. `whole`: reads each entry and says what is wrong with it, or its title.
  std::vector<Entry> entries(bool whole) const;
  /// Removes all entries and what writers that died left. Returns how many.
  std::size_t clear() const;

 private:
  std::string path_of(const std::string& key) const;
  void shrink(const std::string& newest) const;

  std::string directory_, unused_;
  Limits limits_;
};

/// Why a directory is not to be trusted with programs: "it belongs to user 0, not to 1000"; empty where it
/// is, and where it does not exist.
std::string distrust(const std::string& directory);

}  // namespace fuse::runtime
