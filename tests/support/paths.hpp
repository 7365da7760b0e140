// Where the files of the tests are: what the build was told, or what the environment says, as in a bundle.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>

namespace fuse::test {

/// The value of an environment variable; `built_in` where it is not set.
inline std::filesystem::path path_from(const char* variable, const char* built_in) {
  const char* value = std::getenv(variable);
  return value && *value ? value : built_in;
}

/// The root of the repository: tests/golden, examples/graphs, docs.
inline std::filesystem::path source_directory() {
  return path_from("FUSE_TEST_SOURCE_DIR", FUSE_TEST_SOURCE_DIR);
}

/// The folder of libfake_cuda.so and the other fakes.
inline std::filesystem::path fake_directory() { return path_from("FUSE_TEST_FAKE_DIR", FUSE_TEST_FAKE_DIR); }

}  // namespace fuse::test
