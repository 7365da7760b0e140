// A recording libcuda.so.1 over host memory: it runs everything of the cuda device but the kernels. Graphs
// are in fake_graph.cpp. A module's image that starts with "fake\n" lists its kernels, one a line:
//   name threads shared size size ...
// the block size it can run, its static shared memory, and the bytes of each argument; for a kernel of
// clusters "cluster 8" stands behind them. Any other image (a
// real cubin) has every kernel, whose arguments are not read. SPDX-License-Identifier: Apache-2.0
#include "fake_cuda/fake_cuda.hpp"

#include <algorithm>
#include <charconv>
#include <new>
#include <string_view>

#include "fake_cuda/fake_state.hpp"

using namespace fake;

namespace {

/// Records a launch with the bytes of its arguments; `size` is the grid's and the block's.
CUresult launch(const char* call_name, CUfunction function, const std::array<unsigned, 6>& size,
                unsigned shared, CUstream stream, bool cooperative, void** arguments) {
  const std::string with = arguments_text(*function, arguments);
  const std::string call =
      text("%s %s grid %u %u %u block %u %u %u shared %u stream %p args", call_name, function->name.c_str(),
           size[0], size[1], size[2], size[3], size[4], size[5], shared, static_cast<void*>(stream)) +
      with;
  if (const CUresult injected = enter(call)) return injected;
  if (size[0] == 0 || size[1] == 0 || size[2] == 0) return misused(CUDA_ERROR_INVALID_VALUE);
  if (const CUresult none = need_context()) return none;
  if (const CUresult refused = refuse_clusters(*function, size[0])) return misused(refused);
  return enqueue(stream, {.kind = CUgraphNode_st::Kind::kernel,
                          .text = kernel_text(*function, size, shared, with),
                          .function = function,
                          .cooperative = cooperative});
}

// Without streams: their numbers go through the process's locale, and a bundle has a C++ library in each
// fake.
std::string_view cut(std::string_view& text, char at) {
  const std::string_view first = text.substr(0, text.find(at));
  text.remove_prefix(std::min(text.size(), first.size() + 1));
  return first;
}
bool parse(std::string_view word, int& number) {
  return std::from_chars(word.data(), word.data() + word.size(), number).ec == std::errc();
}

struct ErrorName {
  int code;
  const char* name;
  const char* text;
};
constexpr ErrorName error_names[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
    {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the graph update was not performed"},
    {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "cluster misconfiguration"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

}  // namespace

extern "C" {

// ---- control

void fake_cuda_reset() {
  Counter::take("");
  thread_mode() = CU_STREAM_CAPTURE_MODE_GLOBAL;  // a call that was to restore it may have failed
  const std::lock_guard lock(state().mutex);
  state().reset();
}
void fake_cuda_fail_at(const char* function, int nth, int code) {
  const std::lock_guard lock(state().mutex);
  state().failures.push_back({function, nth, static_cast<CUresult>(code)});
}
void fake_cuda_set_attribute(int attribute, int value) {
  const std::lock_guard lock(state().mutex);
  state().attributes[attribute] = value;
}
void fake_cuda_set_device_count(int count) {
  const std::lock_guard lock(state().mutex);
  state().devices = count;
}
void fake_cuda_set_most_blocks(int blocks) {
  const std::lock_guard lock(state().mutex);
  state().most_blocks = blocks;
}
void fake_cuda_set_largest_cluster(int blocks) {
  const std::lock_guard lock(state().mutex);
  state().largest_cluster = blocks;
}
int fake_cuda_call_count() {
  const std::lock_guard lock(state().mutex);
  return static_cast<int>(state().calls.size());
}
const char* fake_cuda_call(int index) {
  const std::lock_guard lock(state().mutex);
  const auto i = static_cast<std::size_t>(index);
  return index >= 0 && i < state().calls.size() ? state().calls[i].c_str() : "";
}
int fake_cuda_live(const char* kind) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const std::string k = kind;
  if (k == "context") return s.retains;
  if (k == "module") return static_cast<int>(s.modules.size());
  if (k == "stream") return static_cast<int>(s.streams.size());
  if (k == "event") return static_cast<int>(s.events.size());
  if (k == "graph") return static_cast<int>(s.graphs.size() + s.graph_execs.size());
  if (k == "memory") return static_cast<int>(s.memory.size());
  return -1;
}
int fake_cuda_depth() { return static_cast<int>(stack().size()); }
int fake_cuda_misuse() {
  const std::lock_guard lock(state().mutex);
  return state().misuse;
}
void fake_cuda_on_record(void (*hook)(int)) { record_hook = hook; }
void fake_cuda_only_count(int on) { only_counting = on != 0; }
long long fake_cuda_counted(const char* function) { return Counter::take(function); }
void fake_cuda_recording(int on) { on ? Recording::begin() : Recording::end(); }
void fake_cuda_hold(int on) {
  const std::lock_guard lock(state().mutex);
  state().holding = on != 0;
  state().in_flight.clear();
}
int fake_cuda_in_flight() {
  const std::lock_guard lock(state().mutex);
  return static_cast<int>(state().in_flight.size());
}
void* fake_cuda_foreign_stream() { return &state().foreign_stream; }

// ---- the driver

CUresult CUDAAPI cuInit(unsigned) {
  FAKE_ENTER("cuInit");
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDriverGetVersion(int* version) {
  FAKE_ENTER("cuDriverGetVersion");
  const char* text = std::getenv("FAKE_CUDA_VERSION");
  *version = text ? std::atoi(text) : 13000;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGetErrorName(CUresult code, const char** name) {
  for (const ErrorName& row : error_names) {
    if (row.code == static_cast<int>(code)) {
      *name = row.name;
      return CUDA_SUCCESS;
    }
  }
  *name = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}
CUresult CUDAAPI cuGetErrorString(CUresult code, const char** string) {
  for (const ErrorName& row : error_names) {
    if (row.code == static_cast<int>(code)) {
      *string = row.text;
      return CUDA_SUCCESS;
    }
  }
  *string = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}
CUresult CUDAAPI cuDeviceGetCount(int* count) {
  FAKE_ENTER("cuDeviceGetCount");
  const std::lock_guard lock(state().mutex);
  *count = state().devices;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  FAKE_ENTER("cuDeviceGet %d", ordinal);
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetName(char* name, int size, CUdevice) {
  FAKE_ENTER("cuDeviceGetName");
  std::snprintf(name, static_cast<std::size_t>(size), "Fake H200");
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  FAKE_ENTER("cuDeviceGetAttribute %d", static_cast<int>(which));
  const std::lock_guard lock(state().mutex);
  const auto at = state().attributes.find(static_cast<int>(which));
  if (at == state().attributes.end()) return misused(CUDA_ERROR_INVALID_VALUE);
  *value = at->second;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  FAKE_ENTER("cuDevicePrimaryCtxRetain");
  const std::lock_guard lock(state().mutex);
  ++state().retains;
  *context = &state().context;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) {
  FAKE_ENTER("cuCtxPushCurrent");
  if (context != &state().context) return misused(CUDA_ERROR_INVALID_CONTEXT);
  stack().push_back(context);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxPopCurrent(CUcontext* context) {
  const CUresult injected = FAKE_INJECTED("cuCtxPopCurrent");
  if (stack().empty()) return misused(CUDA_ERROR_INVALID_CONTEXT);
  *context = stack().back();
  stack().pop_back();
  return injected;
}
CUresult CUDAAPI cuCtxSynchronize() {
  FAKE_ENTER_IN_CONTEXT("cuCtxSynchronize");
  const std::lock_guard lock(state().mutex);
  for (CUgraph_st* const graph : state().captures) graph->invalid = true;  // whatever the thread's mode
  if (!state().captures.empty()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  waited_for_all();
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice) {
  const CUresult injected = FAKE_INJECTED("cuDevicePrimaryCtxRelease");
  const std::lock_guard lock(state().mutex);
  if (state().retains-- <= 0) return misused(CUDA_ERROR_INVALID_CONTEXT);
  if (state().retains == 0 && in_flight(nullptr)) return misused(CUDA_ERROR_UNKNOWN);
  return injected;
}
CUresult CUDAAPI cuMemGetInfo(std::size_t* free, std::size_t* total) {
  FAKE_ENTER_IN_CONTEXT("cuMemGetInfo");
  *free = 1000;
  *total = 2000;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
  FAKE_ENTER_IN_CONTEXT("cuMemAlloc %zu", bytes);
  if (const CUresult refused = unsafe()) return refused;
  if (bytes == 0) return misused(CUDA_ERROR_INVALID_VALUE);
  void* memory =
      bytes > std::size_t{1} << 40 ? nullptr : ::operator new (bytes, std::align_val_t{256}, std::nothrow);
  if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(memory, 0xcd, bytes);
  const std::lock_guard lock(state().mutex);
  *address = reinterpret_cast<CUdeviceptr>(memory);
  state().memory[*address] = bytes;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemFree(CUdeviceptr address) {
  const CUresult injected = FAKE_INJECTED("cuMemFree");
  if (const CUresult refused = unsafe()) return refused;
  waited_for_all();
  const std::lock_guard lock(state().mutex);
  if (!state().memory.erase(address)) return misused(CUDA_ERROR_INVALID_VALUE);
  ::operator delete (host(address), std::align_val_t{256});
  return injected;
}
CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  FAKE_ENTER_WORK("cuMemcpyHtoDAsync %zu", bytes);
  if (!in_bounds(to, bytes)) return misused(CUDA_ERROR_INVALID_VALUE);
  return enqueue(stream, {.text = "upload", .work = [=] { std::memcpy(host(to), from, bytes); }});
}
CUresult CUDAAPI cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  FAKE_ENTER_WORK("cuMemcpyDtoHAsync %zu", bytes);
  if (!in_bounds(from, bytes)) return misused(CUDA_ERROR_INVALID_VALUE);
  return enqueue(stream, {.text = "download", .work = [=] { std::memcpy(to, host(from), bytes); }});
}
CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  FAKE_ENTER_WORK("cuMemcpyDtoDAsync %zu", bytes);
  if (!in_bounds(to, bytes) || !in_bounds(from, bytes)) return misused(CUDA_ERROR_INVALID_VALUE);
  return enqueue(stream, copy_node(to, from, bytes));
}
CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char byte, std::size_t bytes, CUstream stream) {
  FAKE_ENTER_WORK("cuMemsetD8Async %d %zu", int{byte}, bytes);
  if (!in_bounds(to, bytes)) return misused(CUDA_ERROR_INVALID_VALUE);
  return enqueue(stream, memset_node(to, byte, bytes));
}
CUresult CUDAAPI cuMemsetD2D8Async(CUdeviceptr to, std::size_t pitch, unsigned char byte, std::size_t width,
                                   std::size_t height, CUstream stream) {
  FAKE_ENTER_WORK("cuMemsetD2D8Async pitch %zu width %zu height %zu", pitch, width, height);
  if (pitch < width || !in_bounds(to, (height - 1) * pitch + width)) return misused(CUDA_ERROR_INVALID_VALUE);
  return enqueue(stream, {.text = "memset2d", .work = [=] {
                            for (std::size_t i = 0; i < height; ++i) {
                              std::memset(host(to + i * pitch), byte, width);
                            }
                          }});
}
CUresult CUDAAPI cuStreamCreate(CUstream* stream, unsigned flags) {
  FAKE_ENTER_IN_CONTEXT("cuStreamCreate %u", flags);
  const std::lock_guard lock(state().mutex);
  *stream = new CUstream_st{.context = stack().back(), .number = ++state().stream_numbers};
  state().streams.insert(*stream);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
  FAKE_ENTER_IN_CONTEXT("cuStreamSynchronize");
  if (const CUresult refused = refuse_capture(stream)) return misused(refused);
  if (stream) waited(stream->seen);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamDestroy(CUstream stream) {
  const CUresult injected = FAKE_INJECTED("cuStreamDestroy");
  const std::lock_guard lock(state().mutex);
  if (!state().streams.erase(stream)) return misused(CUDA_ERROR_INVALID_HANDLE);
  delete stream;
  return injected;
}
CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext* context) {
  FAKE_ENTER_IN_CONTEXT("cuStreamGetCtx");
  *context = stream->context;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuEventCreate(CUevent* event, unsigned flags) {
  FAKE_ENTER_IN_CONTEXT("cuEventCreate %u", flags);
  const std::lock_guard lock(state().mutex);
  *event = new CUevent_st;
  (*event)->timed = (flags & CU_EVENT_DISABLE_TIMING) == 0;
  state().events.insert(*event);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuEventDestroy(CUevent event) {
  const CUresult injected = FAKE_INJECTED("cuEventDestroy");
  const CUresult erased = erase(state().events, event);
  return erased ? erased : injected;
}
CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  FAKE_ENTER_WORK("cuEventRecord");
  const std::lock_guard lock(state().mutex);
  event->time = state().time;
  event->recorded = true;
  event->capture = stream ? stream->capture : nullptr;
  event->recorder = stream;
  if (event->capture) event->last = event->capture->last[stream];
  if (stream) event->seen = stream->seen;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  FAKE_ENTER_WORK("cuStreamWaitEvent %u", flags);
  const std::lock_guard lock(state().mutex);
  if (!event->recorded || !stream) return CUDA_SUCCESS;  // as the driver: nothing to wait for
  if (!event->capture) {
    merge(stream->seen, event->seen);
    return CUDA_SUCCESS;
  }
  CUgraph_st& graph = *event->capture;
  if (!stream->capture) {  // it becomes a part of the capture, and has to come back
    stream->capture = &graph;
    graph.others[stream] = false;
  }
  std::vector<CUgraphNode_st*>& last = graph.last[stream];
  last.insert(last.end(), event->last.begin(), event->last.end());
  const auto recorder = graph.others.find(event->recorder);
  if (recorder != graph.others.end() && event->recorder != stream) recorder->second = true;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  FAKE_ENTER_IN_CONTEXT("cuStreamIsCapturing");
  const std::lock_guard lock(state().mutex);
  *status = stream && stream->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuEventQuery(CUevent event) {
  FAKE_ENTER_IN_CONTEXT("cuEventQuery");
  if (const CUresult refused = unsafe()) return refused;
  return event->capture ? misused(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) : CUDA_SUCCESS;
}
CUresult CUDAAPI cuEventSynchronize(CUevent event) {
  FAKE_ENTER_IN_CONTEXT("cuEventSynchronize");
  if (const CUresult refused = unsafe()) return refused;
  waited(event->seen);
  return event->recorded ? CUDA_SUCCESS : misused(CUDA_ERROR_INVALID_HANDLE);
}
CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  FAKE_ENTER_IN_CONTEXT("cuEventElapsedTime");
  if (!from->recorded || !to->recorded || !from->timed || !to->timed)
    return misused(CUDA_ERROR_INVALID_HANDLE);
  *milliseconds = static_cast<float>(to->time - from->time);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void* image) {
  FAKE_ENTER_IN_CONTEXT("cuModuleLoadData");
  if (const CUresult refused = unsafe()) return refused;
  auto made = std::make_unique<CUmod_st>();
  const char* bytes = static_cast<const char*>(image);
  made->any = std::strncmp(bytes, "fake\n", 5) != 0;
  if (!made->any) {
    for (std::string_view rest = bytes + 5; !rest.empty();) {
      const std::string_view line = cut(rest, '\n');
      std::string_view fields = line;
      CUfunc_st function;
      function.known = true;
      function.name = cut(fields, ' ');
      std::vector<int> numbers;
      for (int number = 0; !fields.empty() && parse(cut(fields, ' '), number);) numbers.push_back(number);
      if (numbers.size() < 2) continue;
      function.threads = numbers[0];
      function.shared = numbers[1];
      function.sizes.assign(numbers.begin() + 2, numbers.end());
      if (int blocks = 0; parse(cut(fields, ' '), blocks)) function.cluster = blocks;
      made->functions[function.name] = function;
    }
  }
  const std::lock_guard lock(state().mutex);
  *module = made.release();
  state().modules.insert(*module);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  const CUresult injected = FAKE_INJECTED("cuModuleUnload");
  if (const CUresult refused = unsafe()) return refused;
  const std::lock_guard lock(state().mutex);
  if (!state().modules.erase(module) || in_flight(module)) return misused(CUDA_ERROR_INVALID_HANDLE);
  delete module;
  return injected;
}
CUresult CUDAAPI cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  FAKE_ENTER_IN_CONTEXT("cuModuleGetFunction %s", name);
  const std::lock_guard lock(state().mutex);
  if (module->any) module->functions[name].name = name;
  const auto at = module->functions.find(name);
  if (at == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
  at->second.module = module;
  *function = &at->second;
  return CUDA_SUCCESS;
}
#if CUDA_VERSION >= 12040
CUresult CUDAAPI cuFuncLoad(CUfunction function) {
  FAKE_ENTER_IN_CONTEXT("cuFuncLoad %s", function->name.c_str());
  return CUDA_SUCCESS;
}
#endif
CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute which, CUfunction function) {
  FAKE_ENTER_IN_CONTEXT("cuFuncGetAttribute %s %d", function->name.c_str(), static_cast<int>(which));
  if (which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) {
    *value = function->threads;
  } else if (which == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) {
    *value = function->shared;
  } else if (which == CU_FUNC_ATTRIBUTE_NUM_REGS) {
    *value = 32;
  } else {
    return misused(CUDA_ERROR_INVALID_VALUE);
  }
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value) {
  FAKE_ENTER_IN_CONTEXT("cuFuncSetAttribute %s %d = %d", function->name.c_str(), static_cast<int>(which),
                        value);
  if (which == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) function->any_cluster = value != 0;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                             std::size_t) {
  FAKE_ENTER_IN_CONTEXT("cuOccupancyMaxActiveBlocksPerMultiprocessor %s %d", function->name.c_str(), threads);
  const std::lock_guard lock(state().mutex);
  *blocks = std::min(state().most_blocks, threads > 0 ? 2048 / threads : 1);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuOccupancyMaxPotentialClusterSize(int* blocks, CUfunction function,
                                                    const CUlaunchConfig* launch) {
  FAKE_ENTER_IN_CONTEXT("cuOccupancyMaxPotentialClusterSize %s shared %u", function->name.c_str(),
                        launch->sharedMemBytes);
  const std::lock_guard lock(state().mutex);
  *blocks = std::min(state().largest_cluster, function->any_cluster ? 16 : 8);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuOccupancyMaxActiveClusters(int* clusters, CUfunction function,
                                              const CUlaunchConfig* launch) {
  FAKE_ENTER_IN_CONTEXT("cuOccupancyMaxActiveClusters %s grid %u block %u", function->name.c_str(),
                        launch->gridDimX, launch->blockDimX);
  const std::lock_guard lock(state().mutex);
  *clusters = function->cluster <= state().largest_cluster ? 132 / function->cluster : 0;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                unsigned by, unsigned bz, unsigned shared, CUstream stream, void** arguments,
                                void** extra) {
  static Counter counter("cuLaunchKernel");
  if (counter.count()) return need_context();
  const Recording recording;
  if (extra) return misused(CUDA_ERROR_INVALID_VALUE);
  return launch("cuLaunchKernel", function, {gx, gy, gz, bx, by, bz}, shared, stream, false, arguments);
}
CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                           unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                           CUstream stream, void** arguments) {
  static Counter counter("cuLaunchCooperativeKernel");
  if (counter.count()) return need_context();
  const Recording recording;
  return launch("cuLaunchCooperativeKernel", function, {gx, gy, gz, bx, by, bz}, shared, stream, true,
                arguments);
}

}  // extern "C"
