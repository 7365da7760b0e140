// Every input of the guided fuzzers' corpora, without their fuzzer. SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <sstream>

#include "guided/targets.hpp"
#include "support/catch.hpp"
#include "support/paths.hpp"

namespace fuse::test {

TEST_CASE("guided corpora: each input has an answer", "[guided][emulated]") {
  namespace fs = std::filesystem;
  for (const guided::Target& target : guided::targets) {
    std::size_t inputs = 0;
    for (const auto& entry :
         fs::directory_iterator(source_directory() / "tests/guided/corpus" / target.name)) {
      std::ifstream in(entry.path(), std::ios::binary);
      std::ostringstream bytes;
      bytes << in.rdbuf();
      INFO(entry.path().string());
      CHECK_NOTHROW(target.run(bytes.str()));
      ++inputs;
    }
    INFO(target.name);
    CHECK(inputs > 0);
  }
}

}  // namespace fuse::test
