// SPDX-License-Identifier: Apache-2.0
#include "os/temporary_folder.hpp"

#include <filesystem>
#include <fstream>

#include "runtime/runtime_support.hpp"
#include "support/variable.hpp"

namespace fuse::test {
namespace {

namespace fs = std::filesystem;

TEST_CASE("temporary folder: in TMPDIR, private, gone afterwards", "[runtime]") {
  const TemporaryFolder outer;
  std::string inner;
  {
    const Variable tmp("TMPDIR", outer.path().c_str());
    const TemporaryFolder folder;
    inner = folder.path();
    CHECK(fs::path(inner).parent_path() == outer.path());
    CHECK((fs::status(inner).permissions() & fs::perms::all) == fs::perms::owner_all);
    folder.write("file", "text");
    CHECK(fs::file_size(inner + "/file") == 4);
    CHECK_NOTHROW(folder.blame("nothing"));
  }
  CHECK_FALSE(fs::exists(inner));
}

TEST_CASE("temporary folder: what is wrong with the directory is said", "[runtime]") {
  const TemporaryFolder good;
  good.write("file", "");
  const auto error = [](const std::string& directory) {
    const Variable tmp("TMPDIR", directory.c_str());
    return error_of([] { TemporaryFolder folder; });
  };
  CHECK(error("/nonexistent") ==
        "io: the temporary directory /nonexistent (from TMPDIR) does not exist\n"
        "  hint: make it, or set TMPDIR to another one");
  CHECK(error(good.path() + "/file").find("does not exist") != std::string::npos);
  // Not even root makes a folder there.
  CHECK(error("/proc").starts_with("io: the temporary directory /proc (from TMPDIR) "));
}

TEST_CASE("temporary folder: a write that fails is an error", "[runtime]") {
  const TemporaryFolder folder;
  const std::string error = error_of([&] { folder.write("missing/file", "text"); });
  CHECK(error.find("missing/file of 4 bytes: No such file or directory") != std::string::npos);
}

TEST_CASE("temporary folder: one that was removed is called so, not full", "[runtime]") {
  const TemporaryFolder folder;
  fs::remove_all(folder.path());
  const std::string error = error_of([&] { folder.write("file", "text"); });
  CHECK(error.starts_with("io: " + folder.path() +
                          " is gone: somebody removed it while fuse used it: file of 4"));
  CHECK(error.find("full") == std::string::npos);
}

TEST_CASE("directory state: of a directory, and of none", "[runtime]") {
  const TemporaryFolder folder;
  const DirectoryState state = directory_state(folder.path());
  CHECK(state.exists);
  CHECK(state.writable);
  CHECK_FALSE(state.read_only);
  CHECK(state.executable);
  CHECK(state.free_bytes > 0);
  CHECK_FALSE(directory_state("/nonexistent").exists);
  CHECK_FALSE(directory_state("").exists);
}

}  // namespace
}  // namespace fuse::test
