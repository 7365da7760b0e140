// What the tests of saved plans share: a run on drawn values, a folder of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>  // NOLINT: mkdtemp is POSIX's

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <fuse/fuse.hpp>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "tensors/random_fill.hpp"

namespace fuse::test {

/// Goes away with its contents.
class Folder {
 public:
  Folder() { REQUIRE(::mkdtemp(path_.data())); }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + '/' + name; }
  const std::string& path() const { return path_; }
  std::vector<std::string> names() const { return names_in(path_); }
  static std::vector<std::string> names_in(const std::string& path) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      found.push_back(entry.path().filename().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "fuse-deploy-XXXXXX").string();
};

inline std::string contents_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

inline void write_contents(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
  REQUIRE(out.flush());
}

using Results = std::map<std::string, std::vector<std::byte>>;

/// Every output, of inputs and parameters that are drawn by their names.
inline Results run_on_drawn(const Executable& executable, const DimValues& dims = {}) {
  Session session(executable, dims);
  const std::vector<Slot>& slots = executable.slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].kind == Slot::Kind::output) continue;
    runtime::HostTensor tensor = runtime::HostTensor::make(slots[i].dtype, session.prepared().shape(i));
    const bool floating = kind_of(slots[i].dtype) == DTypeKind::floating;
    runtime::random_fill(tensor, 7, slots[i].name, floating ? -1 : 0, floating ? 1 : 2);
    session.set(slots[i].name, tensor.data);
  }
  session.run();
  Results results;
  for (const Slot& slot : slots) {
    if (slot.kind == Slot::Kind::output) results[slot.name] = session.get(slot.name);
  }
  return results;
}

}  // namespace fuse::test
