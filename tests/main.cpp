// The tests' main. Runs are held to their contract, and nothing is taken from the user's cache or left in it.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

int main(int argc, char** argv) {
  ::setenv("FUSE_CONTRACT", "1", 0);
  ::setenv("FUSE_CACHE", "0", 0);
  return Catch::Session().run(argc, argv);
}
