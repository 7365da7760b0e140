// libFuzzer's entry; FUSE_GUIDED_TARGET is one of targets.hpp. SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "guided/targets.hpp"

#define FUSE_GUIDED_CALL_(name) fuse::guided::run_##name
#define FUSE_GUIDED_CALL(name) FUSE_GUIDED_CALL_(name)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    FUSE_GUIDED_CALL(FUSE_GUIDED_TARGET)({reinterpret_cast<const char*>(data), size});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
  return 0;
}
