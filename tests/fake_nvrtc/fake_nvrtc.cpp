// A libnvrtc that compiles nothing. What it tells is set by the environment: FAKE_NVRTC_VERSION=11.8, and
// FAKE_NVRTC_FAIL=7, the result of every compilation. Its cubin is no cubin: it lists the kernels of the text
// with their arguments, for the fake driver. Its log names every kernel, as ptxas's does, but where the text
// is in the cache, the folder FAKE_NVRTC_CACHE: from 12.9 on NVRTC has one, and the option --no-cache.
// SPDX-License-Identifier: Apache-2.0
#include <nvrtc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <sstream>
#include <string>

struct _nvrtcProgram {
  std::string text, log{}, cubin = "none";
};

namespace {

const char* setting(const char* name, const char* usual) {
  const char* value = std::getenv(name);
  return value ? value : usual;
}

/// The bytes of each argument: "8 8 4"; empty for parameters of other kinds than ours.
std::string sizes(const std::string& parameters) {
  std::string bytes;
  std::stringstream in(parameters);
  for (std::string one; std::getline(in, one, ',');) {
    one.erase(0, one.find_first_not_of(' '));
    const bool wide = one.starts_with("global<") || one.starts_with("long long ");
    if (!wide && !one.starts_with("int ")) return {};
    bytes += wide ? " 8" : " 4";
  }
  return bytes;
}

const int archs[] = {75, 90, 120};

bool version_has_cache() {
  int major = 0, minor = 0;
  return nvrtcVersion(&major, &minor) == NVRTC_SUCCESS && (major > 12 || (major == 12 && minor >= 9));
}

/// Whether the cache has the text; from now on it does.
bool found_in_cache(const std::string& text) {
  const char* folder = std::getenv("FAKE_NVRTC_CACHE");
  if (!folder || !version_has_cache()) return false;
  const std::filesystem::path kept =
      std::filesystem::path(folder) / std::to_string(std::hash<std::string>()(text));
  if (std::filesystem::exists(kept)) return true;
  std::ofstream{kept};
  return false;
}

}  // namespace

extern "C" {

nvrtcResult nvrtcVersion(int* major, int* minor) {
  const int read = std::sscanf(setting("FAKE_NVRTC_VERSION", "13.0"), "%d.%d", major, minor);
  return read == 2 ? NVRTC_SUCCESS : NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  *count = static_cast<int>(std::size(archs));
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetSupportedArchs(int* found) {
  std::memcpy(found, archs, sizeof archs);
  return NVRTC_SUCCESS;
}
const char* nvrtcGetErrorString(nvrtcResult) { return "NVRTC_ERROR_OF_THE_FAKE"; }

nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* text, const char*, int, const char* const*,
                               const char* const*) {
  *program = new _nvrtcProgram{text};
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options) {
  const bool no_cache = std::any_of(options, options + count,
                                    [](const char* option) { return !std::strcmp(option, "--no-cache"); });
  if (no_cache && !version_has_cache()) return NVRTC_ERROR_INVALID_OPTION;
  const auto result = static_cast<nvrtcResult>(std::atoi(setting("FAKE_NVRTC_FAIL", "0")));
  if (result == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE) {
    program->log = "nvrtc: error: failed to open libnvrtc-builtins.so.13.0.";
  }
  const std::regex kernel(
      R"((?:FUSE_KERNEL\(\d+(?:, \d+)?\)|__global__ void) (?:FUSE_CLUSTER\((\d+)\) )?(?!__launch_bounds__)(\w+)\(([^)]*)\))");
  std::string listed = "fake\n";
  for (std::sregex_iterator at(program->text.begin(), program->text.end(), kernel), end; at != end; ++at) {
    program->log += "Compiling entry function '" + (*at)[2].str() + "' for 'sm_90'\n";
    const std::string bytes = sizes((*at)[3].str());
    if (bytes.empty()) listed.clear();
    const std::string cluster = (*at)[1].matched ? " cluster " + (*at)[1].str() : "";
    if (!listed.empty()) listed += (*at)[2].str() + " 1024 0" + bytes + cluster + '\n';
  }
  if (!listed.empty()) program->cubin = listed + '\0';
  if (!no_cache && found_in_cache(program->text)) program->log.clear();
  return result;
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* size) {
  *size = program->log.size() + 1;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* size) {
  *size = program->cubin.size();
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* cubin) {
  std::memcpy(cubin, program->cubin.data(), program->cubin.size());
  return NVRTC_SUCCESS;
}

}  // extern "C"
