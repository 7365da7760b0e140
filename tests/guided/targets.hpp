// What the bytes of a guided fuzzer go through. Each returns where fuse did what it says; anything else
// throws what is no fuse::Error, or crashes. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace fuse::guided {

void run_fuse(std::string_view bytes);
void run_npy(std::string_view bytes);
void run_safetensors(std::string_view bytes);
void run_plan(std::string_view bytes);
void run_cache(std::string_view bytes);
void run_c_api(std::string_view bytes);

struct Target {
  const char* name;
  void (*run)(std::string_view);
};
inline constexpr Target targets[] = {
    {"fuse", run_fuse}, {"npy", run_npy},     {"safetensors", run_safetensors},
    {"plan", run_plan}, {"cache", run_cache}, {"c_api", run_c_api}};

}  // namespace fuse::guided
