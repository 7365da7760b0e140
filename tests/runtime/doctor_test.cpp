// What doctor finds on the machine of the tests. Bad machines are tried by tests/commands/doctor_*.t.
// SPDX-License-Identifier: Apache-2.0
#include "compile/toolchains/doctor.hpp"

#include <algorithm>
#include <filesystem>

#include "runtime/runtime_support.hpp"
#include "support/variable.hpp"

namespace fuse::test {
namespace {

const runtime::DeviceFinding& device_of(const runtime::Diagnosis& d, const std::string& name) {
  const auto at =
      std::find_if(d.devices.begin(), d.devices.end(), [&](const auto& f) { return f.name == name; });
  REQUIRE(at != d.devices.end());
  return *at;
}

TEST_CASE("doctor: every device, library and directory is told", "[runtime][nvrtc][emulated]") {
  const runtime::Diagnosis d = runtime::diagnose();
  CHECK(d.version == FUSE_COMPILER_VERSION);
  CHECK(device_of(d, "reference").works);
  CHECK(device_of(d, "cuda").detail != "");
#if FUSE_COMPILER_HAS_EMULATED
  CHECK(device_of(d, "emulated").works);
  CHECK(device_of(d, "emulated").detail == "emulated h200");
  CHECK(d.usable());
  CHECK(d.compiler.path != "");
  CHECK(d.compiler.version != "");
#endif
  CHECK(d.directories.at(0).path == temporary_directory());
  CHECK(d.directories.at(0).state.writable);
  CHECK(d.directories.at(1).use == "cache");
  for (const runtime::LibraryFinding& library : d.libraries) {
    INFO(library.name);
    CHECK_FALSE(library.tried.empty());
    CHECK(library.found == std::filesystem::exists(library.file));
  }
}

TEST_CASE("doctor: the temporary directory and the compiler are told apart", "[runtime][nvrtc]") {
#if FUSE_COMPILER_HAS_EMULATED
  const Variable tmp("TMPDIR", "/nonexistent"), cxx("FUSE_CXX", "/nonexistent/c++");
  const runtime::Diagnosis d = runtime::diagnose();
  CHECK_FALSE(device_of(d, "emulated").works);
  REQUIRE(d.problems.size() >= 2);
  CHECK(d.problems[0].where == "the temporary directory");
  CHECK(d.problems[0].code == ErrorCode::io);
  CHECK(d.problems[0].hint.find("TMPDIR") != std::string::npos);
  CHECK(d.problems[1].where == "the C++ compiler");
  CHECK(d.problems[1].code == ErrorCode::missing_compiler);
  CHECK(d.usable() == device_of(d, "cuda").works);
#endif
}

TEST_CASE("doctor: a device whose results are wrong does not work, and they are told",
          "[runtime][emulated]") {
#if FUSE_COMPILER_HAS_EMULATED
  const Variable wrong("FUSE_FAULT", "rewrite.simplify.0");  // x * x + x * x
  runtime::Diagnosis d;
  runtime::try_device(d, "emulated", [] { return Device::emulated(); });
  CHECK_FALSE(device_of(d, "emulated").works);
  CHECK(device_of(d, "emulated").detail == "emulated h200, but a small graph failed");
  REQUIRE(d.problems.size() == 1);
  CHECK(d.problems[0].message == "emulated h200 computed 2, 8, 18, 32 of x * x + 1, not 2, 5, 10, 17");
#endif
}

TEST_CASE("doctor: a device that runs kernels and no GEMM does not work", "[runtime]") {
  static int opened;
  opened = 0;
  runtime::Diagnosis d;
  runtime::try_device(d, "halfway", [] {
    if (++opened > 1) throw Error({.code = ErrorCode::missing_library, .message = "no library for it"});
    return Device::reference();
  });
  CHECK(opened == 2);
  CHECK_FALSE(device_of(d, "halfway").works);
  CHECK(device_of(d, "halfway").detail == Device::reference().name() + ", but a small graph failed");
  REQUIRE(d.problems.size() == 1);
  CHECK(d.problems[0].message == "no library for it");
}

TEST_CASE("doctor: the directory that fuse keeps programs in is told", "[runtime][nvrtc]") {
  const TemporaryFolder folder;
  const auto cache = [] {
    const runtime::Diagnosis d = runtime::diagnose();
    return d.directories.at(1);
  };
  const Variable used("FUSE_CACHE", "1"), chosen("FUSE_CACHE_DIR", (folder.path() + "/kept").c_str());
  const runtime::DirectoryFinding first = cache();
  CHECK(first.path == folder.path() + "/kept");
  CHECK(first.note == "made when the first program is kept");
  std::filesystem::create_directory(folder.path() + "/kept");
  std::filesystem::permissions(folder.path() + "/kept", std::filesystem::perms::owner_all);
  CHECK(cache().note == "what was compiled is kept there");
  std::filesystem::permissions(folder.path() + "/kept", std::filesystem::perms::all);
  const runtime::Diagnosis shared = runtime::diagnose();
  CHECK(shared.directories.at(1).path.empty());
  REQUIRE_FALSE(shared.problems.empty());
  CHECK(shared.problems[0].where == "the cache directory");
  const Variable off("FUSE_CACHE", "0");
  CHECK(cache().note == "not used: FUSE_CACHE is 0");
}

}  // namespace
}  // namespace fuse::test
