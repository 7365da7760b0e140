// A recording libcuda.so.1 over host memory: it runs everything of the cuda device but the kernels.
// A module's image that starts with "fake\n" lists its kernels, one a line:
//   name threads shared size size ...
// the block size it can run, its static shared memory, and the bytes of each argument. Any other image (a
// real cubin) has every kernel, whose arguments are not read. SPDX-License-Identifier: Apache-2.0
#include "fake_cuda/fake_cuda.hpp"

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct CUfunc_st {
  std::string name;
  int threads = 1024;
  int shared = 0;
  bool known = false;
  std::vector<int> sizes;
};
struct CUmod_st {
  std::map<std::string, CUfunc_st> functions;
  bool any = false;
};
struct CUctx_st {
  int device = 0;
};
struct CUstream_st {
  CUctx_st* context = nullptr;
  CUgraph_st* capture = nullptr;
};
struct CUevent_st {
  std::uint64_t time = 0;
  bool recorded = false;
  bool timed = true;
  CUstream_st* recorder = nullptr;
  CUgraph_st* capture = nullptr;  // of the recorder, then
};
struct CUgraph_st {
  std::uint64_t operations = 0;
  std::map<CUstream_st*, bool> others;  // streams that joined the capture; whether they have come back
};
struct CUgraphExec_st {
  std::uint64_t operations = 0;
};

namespace {

struct Failure {
  std::string function;
  int countdown = 0;
  CUresult code = CUDA_SUCCESS;
};

struct State {
  std::recursive_mutex mutex;
  std::vector<std::string> calls;
  std::vector<Failure> failures;
  std::map<int, int> attributes;
  std::map<CUdeviceptr, std::size_t> memory;
  std::set<CUmod_st*> modules;
  std::set<CUstream_st*> streams;
  std::set<CUevent_st*> events;
  std::set<CUgraph_st*> graphs;
  std::set<CUgraphExec_st*> graph_execs;
  std::uint64_t time = 0;  // operations that any stream ran so far
  CUctx_st context;
  CUctx_st foreign_context;
  CUstream_st foreign_stream{&foreign_context, nullptr};
  int retains = 0;
  int misuse = 0;

  State() { reset(); }

  void reset() {
    calls.clear();
    failures.clear();
    misuse = 0;
    attributes = {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
                  {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
                  {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
                  {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
                  {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
                  {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
                  {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
                  {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
                  {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
                  {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
                  {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
                  {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 50 << 20},
                  {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1},
                  {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 3201000},
                  {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6144},
                  {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000}};
    if (const char* text = std::getenv("FAKE_CUDA_ARCH")) {
      attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = std::atoi(text) / 10;
      attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = std::atoi(text) % 10;
    }
    if (const char* text = std::getenv("FAKE_CUDA_FAIL")) {
      std::istringstream in(text);
      Failure failure;
      std::string nth, code;
      if (std::getline(in, failure.function, ':') && std::getline(in, nth, ':') && std::getline(in, code)) {
        failure.countdown = std::atoi(nth.c_str());
        failure.code = static_cast<CUresult>(std::atoi(code.c_str()));
        failures.push_back(failure);
      }
    }
  }
};

// Never destroyed: the library under test may give things back while the process ends.
State& state() {
  static State* s = new State;
  return *s;
}

std::vector<CUctx_st*>& stack() {
  thread_local std::vector<CUctx_st*> contexts;
  return contexts;
}

std::atomic<bool> only_counting = false;
std::atomic<void (*)(int)> record_hook = nullptr;

/// While one lives, the fake does something that a driver would not.
struct Recording {
  Recording() { tell(1); }
  ~Recording() { tell(0); }
  static void tell(int on) {
    if (auto* const hook = record_hook.load(std::memory_order_relaxed)) hook(on);
  }
};

/// Calls of one function, counted where nothing else is to be recorded: cheap enough for what is measured.
class Counter {
 public:
  explicit Counter(std::string_view call) : name_(call.substr(0, call.find(' '))) {
    const std::lock_guard lock(state().mutex);
    next_ = std::exchange(first(), this);
  }
  bool count() {
    if (!only_counting.load(std::memory_order_relaxed)) return false;
    count_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  /// Of the function, "" all of them; and forgets what was counted.
  static long long take(std::string_view name) {
    const std::lock_guard lock(state().mutex);
    long long sum = 0;
    for (Counter* c = first(); c; c = c->next_) {
      if (name.empty() || c->name_ == name) sum += c->count_.exchange(0);
    }
    return sum;
  }

 private:
  static Counter*& first() {
    static Counter* list = nullptr;
    return list;
  }
  std::string_view name_;
  std::atomic<long long> count_ = 0;
  Counter* next_ = nullptr;
};

std::string text(const char* plain) { return plain; }
template <class... Args>
std::string text(const char* format, Args... args) {
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, format, args...);
  return buffer;
}

/// Records the call; the code it is to return.
CUresult enter(const std::string& call) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.calls.push_back(call);
  const std::string function = call.substr(0, call.find(' '));
  for (Failure& failure : s.failures) {
    if (failure.function.empty() || failure.function == function) {
      if (--failure.countdown == 0) return failure.code;
    }
  }
  return CUDA_SUCCESS;
}

CUresult misused(CUresult code) {
  const std::lock_guard lock(state().mutex);
  ++state().misuse;
  return code;
}

CUresult need_context() { return stack().empty() ? misused(CUDA_ERROR_INVALID_CONTEXT) : CUDA_SUCCESS; }

bool in_bounds(CUdeviceptr address, std::size_t bytes) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  auto at = s.memory.upper_bound(address);
  if (at == s.memory.begin()) return false;
  --at;
  return address - at->first <= at->second && bytes <= at->second - (address - at->first);
}

/// One operation of a stream: it takes 1 ms of the fake's time, or becomes a part of the graph.
void pass(CUstream stream, std::uint64_t operations = 1) {
  const std::lock_guard lock(state().mutex);
  (stream && stream->capture ? stream->capture->operations : state().time) += operations;
  if (!stream || !stream->capture) return;
  const auto other = stream->capture->others.find(stream);
  if (other != stream->capture->others.end()) other->second = false;
}

template <class T>
CUresult erase(std::set<T*>& live, T* object) {
  const std::lock_guard lock(state().mutex);
  if (!live.erase(object)) return misused(CUDA_ERROR_INVALID_HANDLE);
  delete object;
  return CUDA_SUCCESS;
}

/// Records a launch with the bytes of its arguments; `size` is the grid's and the block's.
CUresult launch(const char* call_name, CUfunction function, const std::array<unsigned, 6>& size,
                unsigned shared, CUstream stream, void** arguments) {
  std::string call =
      text("%s %s grid %u %u %u block %u %u %u shared %u stream %p args", call_name, function->name.c_str(),
           size[0], size[1], size[2], size[3], size[4], size[5], shared, static_cast<void*>(stream));
  for (std::size_t i = 0; i < function->sizes.size(); ++i) {
    unsigned long long value = 0;
    std::memcpy(&value, arguments[i], static_cast<std::size_t>(function->sizes[i]));
    call += text(" %d:%llx", function->sizes[i], value);
  }
  if (const CUresult injected = enter(call)) return injected;
  if (size[0] == 0 || size[1] == 0 || size[2] == 0) return misused(CUDA_ERROR_INVALID_VALUE);
  pass(stream);
  return need_context();
}

void* host(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

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
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

}  // namespace

#define FAKE_FIRST(first, ...) first
#define FAKE_ENTER(...)                                                      \
  do {                                                                       \
    static Counter counter(FAKE_FIRST(__VA_ARGS__, 0));                      \
    if (counter.count()) break;                                              \
    const Recording recording;                                               \
    if (const CUresult injected = enter(text(__VA_ARGS__))) return injected; \
  } while (false)
// The code that the call is to return, for calls that do their work all the same.
#define FAKE_INJECTED(name)                              \
  [] {                                                   \
    static Counter counter(name);                        \
    const Recording recording;                           \
    return counter.count() ? CUDA_SUCCESS : enter(name); \
  }()
#define FAKE_ENTER_IN_CONTEXT(...)                               \
  FAKE_ENTER(__VA_ARGS__);                                       \
  do {                                                           \
    if (const CUresult current = need_context()) return current; \
  } while (false)

extern "C" {

// ---- control

void fake_cuda_reset() {
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
  *count = 1;
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
CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice) {
  const CUresult injected = FAKE_INJECTED("cuDevicePrimaryCtxRelease");
  const std::lock_guard lock(state().mutex);
  if (state().retains-- <= 0) return misused(CUDA_ERROR_INVALID_CONTEXT);
  return injected;
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
CUresult CUDAAPI cuMemGetInfo(std::size_t* free, std::size_t* total) {
  FAKE_ENTER_IN_CONTEXT("cuMemGetInfo");
  *free = 1000;
  *total = 2000;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
  FAKE_ENTER_IN_CONTEXT("cuMemAlloc %zu", bytes);
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
  const std::lock_guard lock(state().mutex);
  if (!state().memory.erase(address)) return misused(CUDA_ERROR_INVALID_VALUE);
  ::operator delete (host(address), std::align_val_t{256});
  return injected;
}
CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  FAKE_ENTER_IN_CONTEXT("cuMemcpyHtoDAsync %zu", bytes);
  if (!in_bounds(to, bytes)) return misused(CUDA_ERROR_INVALID_VALUE);
  std::memcpy(host(to), from, bytes);
  pass(stream);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  FAKE_ENTER_IN_CONTEXT("cuMemcpyDtoHAsync %zu", bytes);
  if (!in_bounds(from, bytes)) return misused(CUDA_ERROR_INVALID_VALUE);
  std::memcpy(to, host(from), bytes);
  pass(stream);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  FAKE_ENTER_IN_CONTEXT("cuMemcpyDtoDAsync %zu", bytes);
  if (!in_bounds(to, bytes) || !in_bounds(from, bytes)) return misused(CUDA_ERROR_INVALID_VALUE);
  std::memmove(host(to), host(from), bytes);
  pass(stream);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char byte, std::size_t bytes, CUstream stream) {
  FAKE_ENTER_IN_CONTEXT("cuMemsetD8Async %d %zu", int{byte}, bytes);
  if (!in_bounds(to, bytes)) return misused(CUDA_ERROR_INVALID_VALUE);
  std::memset(host(to), byte, bytes);
  pass(stream);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemsetD2D8Async(CUdeviceptr to, std::size_t pitch, unsigned char byte, std::size_t width,
                                   std::size_t height, CUstream stream) {
  FAKE_ENTER_IN_CONTEXT("cuMemsetD2D8Async pitch %zu width %zu height %zu", pitch, width, height);
  if (pitch < width || !in_bounds(to, (height - 1) * pitch + width)) return misused(CUDA_ERROR_INVALID_VALUE);
  for (std::size_t i = 0; i < height; ++i) std::memset(host(to + i * pitch), byte, width);
  pass(stream);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamCreate(CUstream* stream, unsigned flags) {
  FAKE_ENTER_IN_CONTEXT("cuStreamCreate %u", flags);
  const std::lock_guard lock(state().mutex);
  *stream = new CUstream_st{stack().back(), nullptr};
  state().streams.insert(*stream);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamDestroy(CUstream stream) {
  const CUresult injected = FAKE_INJECTED("cuStreamDestroy");
  const std::lock_guard lock(state().mutex);
  if (!state().streams.erase(stream)) return misused(CUDA_ERROR_INVALID_HANDLE);
  delete stream;
  return injected;
}
CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
  FAKE_ENTER_IN_CONTEXT("cuStreamSynchronize");
  if (stream && stream->capture) return misused(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext* context) {
  FAKE_ENTER_IN_CONTEXT("cuStreamGetCtx");
  *context = stream->context;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  FAKE_ENTER_IN_CONTEXT("cuStreamBeginCapture %d", static_cast<int>(mode));
  if (!stream || stream->capture) return misused(CUDA_ERROR_ILLEGAL_STATE);
  const std::lock_guard lock(state().mutex);
  stream->capture = new CUgraph_st;
  state().graphs.insert(stream->capture);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  const CUresult injected = FAKE_INJECTED("cuStreamEndCapture");
  if (!stream || !stream->capture) return misused(CUDA_ERROR_ILLEGAL_STATE);
  *graph = std::exchange(stream->capture, nullptr);
  bool unjoined = false;
  for (const auto& [other, back] : (*graph)->others) {
    other->capture = nullptr;
    unjoined |= !back;
  }
  return unjoined ? misused(CUDA_ERROR_STREAM_CAPTURE_UNJOINED) : injected;
}
CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec* made, CUgraph graph, unsigned long long flags) {
  FAKE_ENTER_IN_CONTEXT("cuGraphInstantiateWithFlags %llu", flags);
  const std::lock_guard lock(state().mutex);
  if (!state().graphs.count(graph)) return misused(CUDA_ERROR_INVALID_HANDLE);
  *made = new CUgraphExec_st{graph->operations};
  state().graph_execs.insert(*made);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  FAKE_ENTER_IN_CONTEXT("cuGraphLaunch %llu", static_cast<unsigned long long>(graph->operations));
  pass(stream, graph->operations);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec graph) {
  const CUresult injected = FAKE_INJECTED("cuGraphExecDestroy");
  const CUresult erased = erase(state().graph_execs, graph);
  return erased ? erased : injected;
}
CUresult CUDAAPI cuGraphDestroy(CUgraph graph) {
  const CUresult injected = FAKE_INJECTED("cuGraphDestroy");
  const CUresult erased = erase(state().graphs, graph);
  return erased ? erased : injected;
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
  FAKE_ENTER_IN_CONTEXT("cuEventRecord");
  const std::lock_guard lock(state().mutex);
  event->time = state().time;
  event->recorded = true;
  event->capture = stream ? stream->capture : nullptr;
  event->recorder = stream;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  FAKE_ENTER_IN_CONTEXT("cuStreamWaitEvent %u", flags);
  const std::lock_guard lock(state().mutex);
  if (!event->recorded) return CUDA_SUCCESS;  // as the driver: nothing to wait for
  if (!stream || !event->capture) return CUDA_SUCCESS;
  CUgraph_st& graph = *event->capture;
  const Recording recording;
  if (!stream->capture) {  // it becomes a part of the capture, and has to come back
    stream->capture = &graph;
    graph.others[stream] = false;
  }
  const auto recorder = graph.others.find(event->recorder);
  if (recorder != graph.others.end() && event->recorder != stream) recorder->second = true;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuEventQuery(CUevent event) {
  FAKE_ENTER_IN_CONTEXT("cuEventQuery");
  return event->capture ? misused(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) : CUDA_SUCCESS;
}
CUresult CUDAAPI cuEventSynchronize(CUevent event) {
  FAKE_ENTER_IN_CONTEXT("cuEventSynchronize");
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
  auto made = std::make_unique<CUmod_st>();
  const char* bytes = static_cast<const char*>(image);
  made->any = std::strncmp(bytes, "fake\n", 5) != 0;
  if (!made->any) {
    std::istringstream lines(bytes + 5);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream fields(line);
      CUfunc_st function;
      function.known = true;
      if (!(fields >> function.name >> function.threads >> function.shared)) continue;
      for (int size; fields >> size;) function.sizes.push_back(size);
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
  const std::lock_guard lock(state().mutex);
  if (!state().modules.erase(module)) return misused(CUDA_ERROR_INVALID_HANDLE);
  delete module;
  return injected;
}
CUresult CUDAAPI cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  FAKE_ENTER_IN_CONTEXT("cuModuleGetFunction %s", name);
  const std::lock_guard lock(state().mutex);
  if (module->any) module->functions[name].name = name;
  const auto at = module->functions.find(name);
  if (at == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
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
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                             std::size_t) {
  FAKE_ENTER_IN_CONTEXT("cuOccupancyMaxActiveBlocksPerMultiprocessor %s %d", function->name.c_str(), threads);
  *blocks = threads > 0 ? 2048 / threads : 1;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                unsigned by, unsigned bz, unsigned shared, CUstream stream, void** arguments,
                                void** extra) {
  static Counter counter("cuLaunchKernel");
  if (counter.count()) return need_context();
  const Recording recording;
  if (extra) return misused(CUDA_ERROR_INVALID_VALUE);
  return launch("cuLaunchKernel", function, {gx, gy, gz, bx, by, bz}, shared, stream, arguments);
}
CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                           unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                           CUstream stream, void** arguments) {
  static Counter counter("cuLaunchCooperativeKernel");
  if (counter.count()) return need_context();
  const Recording recording;
  return launch("cuLaunchCooperativeKernel", function, {gx, gy, gz, bx, by, bz}, shared, stream, arguments);
}

}  // extern "C"
