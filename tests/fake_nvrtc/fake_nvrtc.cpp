// A libnvrtc that compiles nothing. What it tells is set by the environment: FAKE_NVRTC_VERSION=11.8, and
// FAKE_NVRTC_FAIL=7, the result of every compilation. Its cubin is no cubin; its log names every kernel of
// the text, as ptxas's does. SPDX-License-Identifier: Apache-2.0
#include <nvrtc.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <string>

struct _nvrtcProgram {
  std::string text, log;
};

namespace {

const char* setting(const char* name, const char* usual) {
  const char* value = std::getenv(name);
  return value ? value : usual;
}

const int archs[] = {75, 90, 120};

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
  *program = new _nvrtcProgram{text, {}};
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int, const char* const*) {
  const auto result = static_cast<nvrtcResult>(std::atoi(setting("FAKE_NVRTC_FAIL", "0")));
  if (result == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE) {
    program->log = "nvrtc: error: failed to open libnvrtc-builtins.so.13.0.";
  }
  const std::regex kernel(R"((?:FUSE_KERNEL\(\d+\)|__global__ void) (\w+)\()");
  for (std::sregex_iterator at(program->text.begin(), program->text.end(), kernel), end; at != end; ++at) {
    program->log += "Compiling entry function '" + (*at)[1].str() + "' for 'sm_90'\n";
  }
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
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram, size_t* size) {
  *size = 4;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram, char* cubin) {
  std::memcpy(cubin, "none", 4);
  return NVRTC_SUCCESS;
}

}  // extern "C"
