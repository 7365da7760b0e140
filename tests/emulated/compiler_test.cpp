// The system compiler: found, chosen by FUSE_CXX, missing, or displeased with the text.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "emulated/support.hpp"
#include "support/variable.hpp"

namespace fuse::test {
namespace {

const char* const one_store = "FUSE_KERNEL(32) one(global<int> y) {\n  store(y, threadIdx.x, 1);\n}\n";

}  // namespace

TEST_CASE("a missing compiler is an error that lists what was looked for", "[emulated]") {
  const Variable path("PATH", "/nonexistent"), chosen("FUSE_CXX", nullptr);
  EmulatedDevice d({});
  CHECK(d.backend->report().find("c++, g++, clang++ on PATH: not found") != std::string::npos);
  try {
    d.load(one_store);
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::runtime);
    CHECK(e.code() == ErrorCode::missing_compiler);
    CHECK(std::string(e.what()).find("c++, g++, clang++ on PATH: not found") != std::string::npos);
    CHECK(std::string(e.what()).find("set FUSE_CXX") != std::string::npos);
  }
}

TEST_CASE("FUSE_CXX is used alone, and must exist", "[emulated]") {
  const Variable chosen("FUSE_CXX", "/nonexistent/cxx");
  EmulatedDevice d({});
  CHECK_THROWS_WITH(d.load(one_store), Catch::Contains("FUSE_CXX=/nonexistent/cxx: not found"));
}

TEST_CASE("every compiler on PATH runs the dialect", "[emulated]") {
  int found = 0;
  for (const char* name : {"g++", "clang++", "clang++-16"}) {
    const Variable chosen("FUSE_CXX", name);
    for (const bool checked : {false, true}) {
      EmulatedDevice d({.checked = checked});
      if (d.backend->report().find("not found") != std::string::npos) continue;
      ++found;
      d.load(
          "FUSE_KERNEL(64) all(global<const float> x, global<bf16> y) {\n  FUSE_SHARED(float, 64, t);\n"
          "  store(t, threadIdx.x, warp_max(load(x, threadIdx.x)));\n  block_barrier();\n"
          "  store(y, threadIdx.x, to_bf16(power(load(t, 63 - threadIdx.x), 2.0f)));\n}\n");
      const auto y = d.buffer(128);
      REQUIRE(d.run("all", {1}, {d.buffer(std::vector<float>(64, 3.0f)), y}));
      CHECK(d.values<std::uint16_t>(y)[5] == 0x4110);
    }
  }
  CHECK(found > 0);
}

TEST_CASE("a text that does not compile is an internal error with the compiler's words", "[emulated]") {
  EmulatedDevice d({});
  try {
    d.load("FUSE_KERNEL(32) one(global<int> y) {\n  store(y, threadIdx.x, unheard_of);\n}\n");
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::internal);
    CHECK(std::string(e.what()).find("test.cu:2") != std::string::npos);
    CHECK(std::string(e.what()).find("unheard_of") != std::string::npos);
  }
  codegen::Source source = make_source(one_store);
  source.kernels[0].name = "two";
  CHECK_THROWS_WITH(d.backend->load(source), Catch::Contains("test.cu has no kernel two"));
}

TEST_CASE("loading leaves no files behind", "[emulated]") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("fuse-test-" + std::to_string(getpid()));
  fs::create_directory(folder);
  {
    const Variable tmp("TMPDIR", folder.c_str());
    EmulatedDevice d({});
    d.load(one_store);
    const auto y = d.buffer(128);
    CHECK(d.run("one", {1}, {y}));
    CHECK(fs::is_empty(folder));
    CHECK_THROWS(d.load("FUSE_KERNEL(32) one(global<int> y) { nonsense }\n"));
    CHECK(fs::is_empty(folder));
  }
  fs::remove_all(folder);
  const Variable tmp("TMPDIR", "/nonexistent");
  EmulatedDevice d({});
  CHECK_THROWS_WITH(d.load(one_store),
                    Catch::Contains("the temporary directory /nonexistent (from TMPDIR) does not exist"));
}

}  // namespace fuse::test
