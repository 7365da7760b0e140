// A profiler that writes NVTX ranges into the file FAKE_NVTX_LOG: "push NAME" and "pop", a line each. NVTX
// opens it where NVTX_INJECTION64_PATH names it. SPDX-License-Identifier: Apache-2.0
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>

namespace {

std::mutex mutex;
std::deque<std::string> strings;  // registered; handles are their addresses
int depth = 0;

void line(const std::string& text) {
  const char* const path = std::getenv("FAKE_NVTX_LOG");
  if (std::FILE* const file = path ? std::fopen(path, "a") : nullptr) {
    std::fprintf(file, "%s\n", text.c_str());
    std::fclose(file);
  }
}

nvtxDomainHandle_t NVTX_API create(const char* name) {
  const std::lock_guard lock(mutex);
  line(std::string("domain ") + name);
  return reinterpret_cast<nvtxDomainHandle_t>(&strings);
}
nvtxStringHandle_t NVTX_API keep(nvtxDomainHandle_t, const char* text) {
  const std::lock_guard lock(mutex);
  strings.emplace_back(text);
  return reinterpret_cast<nvtxStringHandle_t>(&strings.back());
}
int NVTX_API push(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
  const std::lock_guard lock(mutex);
  const bool registered = attributes->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
  line("push " + (registered ? *reinterpret_cast<const std::string*>(attributes->message.registered)
                             : std::string("a name that was not registered")));
  return depth++;
}
int NVTX_API pop(nvtxDomainHandle_t) {
  const std::lock_guard lock(mutex);
  line("pop");
  return --depth;
}

template <class F>
void install(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module, unsigned id, F* function) {
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks.GetModuleFunctionTable(module, &table, &size) && id < size)
    *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_export_table) {
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  if (!callbacks) return 0;
  install(*callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA, create);
  install(*callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringA, keep);
  install(*callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx, push);
  install(*callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePop, pop);
  return 1;
}
