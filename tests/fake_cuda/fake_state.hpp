// What the fake driver's functions share: its objects, the record of calls, captures, and work in flight.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

struct CUfunc_st {
  std::string name;
  int threads = 1024;
  int shared = 0;
  bool known = false;
  std::vector<int> sizes;
  int cluster = 1;
  bool any_cluster = false;  // also one that not every GPU has
  CUmod_st* module = nullptr;
};
struct CUmod_st {
  std::map<std::string, CUfunc_st> functions;
  bool any = false;
};
struct CUctx_st {
  int device = 0;
};

namespace fake {

/// Of each stream, by its number: how many of its operations.
using Clock = std::map<int, std::uint64_t>;

inline void merge(Clock& into, const Clock& from) {
  for (const auto& [stream, count] : from) into[stream] = std::max(into[stream], count);
}

}  // namespace fake

struct CUgraphNode_st {
  enum class Kind { kernel, copy, memset, child, other };
  Kind kind = Kind::other;
  std::string text{};            // "kernel NAME grid ..."
  std::function<void()> work{};  // on host memory
  std::vector<CUgraphNode_st*> after{};
  CUfunc_st* function = nullptr;  // of a kernel
  bool cooperative = false;       // a kernel
  std::size_t bytes = 0;          // of a memset
  std::shared_ptr<CUgraph_st> child{};
};
struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
  // While it is captured:
  std::map<CUstream_st*, bool> others;  // streams that joined the capture; whether they have come back
  std::map<CUstream_st*, std::vector<CUgraphNode_st*>> last;  // of each stream: what its next node is behind
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread{};
  bool invalid = false;
};
struct CUstream_st {
  CUctx_st* context = nullptr;
  CUgraph_st* capture = nullptr;
  int number = 0;
  fake::Clock seen{};  // its own operations, and those it waited for
};
struct CUevent_st {
  std::uint64_t time = 0;
  bool recorded = false;
  bool timed = true;
  CUstream_st* recorder = nullptr;
  CUgraph_st* capture = nullptr;        // of the recorder, then
  std::vector<CUgraphNode_st*> last{};  // and its last nodes
  fake::Clock seen{};
};
struct CUgraphExec_st {
  std::unique_ptr<CUgraph_st> graph;
  std::map<const CUgraphNode_st*, CUgraphNode_st*> of;  // of each node of the original
};

namespace fake {

struct Failure {
  std::string function;
  int countdown = 0;
  CUresult code = CUDA_SUCCESS;
};

/// Work that nobody has waited for yet, while the fake holds work back.
struct InFlight {
  int stream = 0;
  std::uint64_t count = 0;        // of the stream's operations, with it
  std::set<const void*> needs{};  // modules
};

/// The graph that stands for every capture while calls are only counted.
inline CUgraph_st& counted_graph() {
  static CUgraph_st* graph = new CUgraph_st;
  return *graph;
}

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
  std::set<CUgraph_st*> captures;     // of the graphs
  std::vector<std::string> launched;  // nodes of the last graph
  std::vector<InFlight> in_flight;
  bool holding = false;
  int stream_numbers = 0;
  int largest_cluster = 16, devices = 1, most_blocks = 32;
  std::uint64_t time = 0;  // operations that any stream ran so far
  CUctx_st context;
  CUctx_st foreign_context;
  CUstream_st foreign_stream{&foreign_context};
  int retains = 0;
  int misuse = 0;

  State() { reset(); }

  void reset() {
    calls.clear();
    failures.clear();
    launched.clear();
    in_flight.clear();
    holding = false;
    largest_cluster = 16;
    devices = 1;
    most_blocks = 32;
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
                  {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
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
inline State& state() {
  static State* s = new State;
  return *s;
}

inline std::vector<CUctx_st*>& stack() {
  thread_local std::vector<CUctx_st*> contexts;
  return contexts;
}

inline CUstreamCaptureMode& thread_mode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

inline std::atomic<bool> only_counting = false;
inline std::atomic<void (*)(int)> record_hook = nullptr;

/// While one lives, the fake does something that a driver would not.
struct Recording {
  Recording() { begin(); }
  ~Recording() { end(); }
  static void begin() {
    if (depth()++ == 0) tell(1);
  }
  static void end() {
    if (--depth() == 0) tell(0);
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  static int& depth() {
    thread_local int nested = 0;
    return nested;
  }
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

inline std::string text(const char* plain) { return plain; }
template <class... Args>
std::string text(const char* format, Args... args) {
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, format, args...);
  return buffer;
}

/// Records the call; the code it is to return.
inline CUresult enter(const std::string& call) {
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

inline CUresult misused(CUresult code) {
  const std::lock_guard lock(state().mutex);
  ++state().misuse;
  return code;
}

inline CUresult need_context() {
  return stack().empty() ? misused(CUDA_ERROR_INVALID_CONTEXT) : CUDA_SUCCESS;
}

inline bool in_bounds(CUdeviceptr address, std::size_t bytes) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  auto at = s.memory.upper_bound(address);
  if (at == s.memory.begin()) return false;
  --at;
  return address - at->first <= at->second && bytes <= at->second - (address - at->first);
}

template <class T>
CUresult erase(std::set<T*>& live, T* object) {
  const std::lock_guard lock(state().mutex);
  if (!live.erase(object)) return misused(CUDA_ERROR_INVALID_HANDLE);
  delete object;
  return CUDA_SUCCESS;
}

inline void* host(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

/// Why a grid of a function with clusters is not launched.
inline CUresult refuse_clusters(const CUfunc_st& function, unsigned grid_x) {
  const bool whole = grid_x % static_cast<unsigned>(function.cluster) == 0;
  return whole && (function.cluster <= 8 || function.any_cluster) ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

// ---- nodes of graphs

inline std::string arguments_text(const CUfunc_st& function, void* const* arguments) {
  std::string with;
  for (std::size_t i = 0; i < function.sizes.size(); ++i) {
    unsigned long long value = 0;
    std::memcpy(&value, arguments[i], static_cast<std::size_t>(function.sizes[i]));
    with += text(" %d:%llx", function.sizes[i], value);
  }
  return with;
}

inline std::string kernel_text(const CUfunc_st& function, const std::array<unsigned, 6>& size,
                               unsigned shared, const std::string& arguments) {
  return text("kernel %s grid %u %u %u block %u %u %u shared %u args", function.name.c_str(), size[0],
              size[1], size[2], size[3], size[4], size[5], shared) +
         arguments;
}

inline CUgraphNode_st copy_node(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return {.kind = CUgraphNode_st::Kind::copy,
          .text = text("copy %zu from %llx to %llx", bytes, from, to),
          .work = [=] { std::memmove(host(to), host(from), bytes); }};
}

inline CUgraphNode_st memset_node(CUdeviceptr to, int byte, std::size_t bytes) {
  return {.kind = CUgraphNode_st::Kind::memset,
          .text = text("memset %d %zu at %llx", byte, bytes, to),
          .work = [=] { std::memset(host(to), byte, bytes); },
          .bytes = bytes};
}

// ---- captures, and work in flight

/// A call that a capture forbids unless the thread has relaxed: it may allocate, load or wait. It fails then,
/// and so does the capture.
inline CUresult unsafe() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  bool refused = false;
  for (CUgraph_st* const graph : s.captures) {
    if (thread_mode() == CU_STREAM_CAPTURE_MODE_RELAXED) break;
    const bool own = graph->thread == std::this_thread::get_id();
    const bool hit =
        own ? graph->mode != CU_STREAM_CAPTURE_MODE_RELAXED
            : graph->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread_mode() == CU_STREAM_CAPTURE_MODE_GLOBAL;
    graph->invalid |= hit;
    refused |= hit;
  }
  return refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

/// A call that no captured stream takes.
inline CUresult refuse_capture(CUstream stream) {
  if (!stream || !stream->capture) return CUDA_SUCCESS;
  const std::lock_guard lock(state().mutex);
  stream->capture->invalid = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/// Gives the stream work: it is done now, takes 1 ms of the fake's time, and is in flight until somebody
/// waits where the fake holds work back; or it becomes a node of the graph that the stream is captured into.
inline CUresult enqueue(CUstream stream, CUgraphNode_st node, std::uint64_t operations = 1,
                        std::set<const void*> needs = {}) {
  if (only_counting) return CUDA_SUCCESS;
  const Recording recording;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (stream && stream->capture) {
    CUgraph_st& graph = *stream->capture;
    if (graph.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    node.after = graph.last[stream];
    graph.nodes.push_back(std::make_unique<CUgraphNode_st>(std::move(node)));
    graph.last[stream] = {graph.nodes.back().get()};
    if (const auto other = graph.others.find(stream); other != graph.others.end()) other->second = false;
    return CUDA_SUCCESS;
  }
  if (node.work) node.work();
  s.time += operations;
  if (!s.holding || !stream) return CUDA_SUCCESS;
  const std::uint64_t count = ++stream->seen[stream->number];
  if (node.function) needs.insert(node.function->module);
  s.in_flight.push_back({stream->number, count, std::move(needs)});
  return CUDA_SUCCESS;
}

/// What the clock has seen has been waited for.
inline void waited(const Clock& seen) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  std::erase_if(s.in_flight, [&](const InFlight& work) {
    const auto at = seen.find(work.stream);
    return at != seen.end() && work.count <= at->second;
  });
}
inline void waited_for_all() {
  const std::lock_guard lock(state().mutex);
  state().in_flight.clear();
}
/// Whether work in flight needs the object; of null, whether there is any.
inline bool in_flight(const void* object) {
  const std::lock_guard lock(state().mutex);
  for (const InFlight& work : state().in_flight) {
    if (!object || work.needs.count(object)) return true;
  }
  return false;
}

}  // namespace fake

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
// A call that gives a stream work, which is not done while calls are only counted.
#define FAKE_ENTER_WORK(...)              \
  FAKE_ENTER_IN_CONTEXT(__VA_ARGS__);     \
  if (only_counting) return CUDA_SUCCESS; \
  const Recording recording
#define FAKE_ENTER_IN_CONTEXT(...)                               \
  FAKE_ENTER(__VA_ARGS__);                                       \
  do {                                                           \
    if (const CUresult current = need_context()) return current; \
  } while (false)
