// What a test tells the fake driver, and what it asks of it. The functions are exported by libfake_cuda.so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

extern "C" {
/// Forgets calls, failures and attributes; live objects stay. FAKE_CUDA_FAIL="cuInit:1:100" and
/// FAKE_CUDA_ARCH="70" are read again; FAKE_CUDA_VERSION="12040" is read by each cuDriverGetVersion.
void fake_cuda_reset();
/// The nth call (from 1) of `function` ("" counts all) returns `code`, once. A call that gives something back
/// or pops a context still does so, as the driver's do.
void fake_cuda_fail_at(const char* function, int nth, int code);
void fake_cuda_set_attribute(int attribute, int value);

void fake_cuda_set_device_count(int count);  ///< 1 after a reset
/// Blocks that a multiprocessor holds at most, by the driver's count (32 after a reset).
void fake_cuda_set_most_blocks(int blocks);
/// Blocks of the largest cluster of which the GPU holds one (16 after a reset): 0 where it holds none.
void fake_cuda_set_largest_cluster(int blocks);

int fake_cuda_call_count();
/// "cuMemAlloc 1024"; "" out of range. Valid until the next reset.
const char* fake_cuda_call(int index);
/// Live objects: "context" (retains), "module", "stream", "event", "graph", "memory".
int fake_cuda_live(const char* kind);
/// Contexts on this thread's stack.
int fake_cuda_depth();
/// Calls that a driver would refuse or crash on: no current context, an unknown handle, bytes out of bounds.
int fake_cuda_misuse();
/// Calls are counted by function and not recorded; none fails, and no time passes. For measuring the caller.
void fake_cuda_only_count(int on);
/// Calls of the function ("" of all) since it was last asked, while only counting.
long long fake_cuda_counted(const char* function);
/// Called with 1 before the fake records something, which allocates, and with 0 behind it; null for none.
void fake_cuda_on_record(void (*hook)(int));
/// Nodes of the graph that was launched last, and one of them: "kernel scale grid ... args 8:7f00 cooperative
/// after 0 2", "child {...} after 1". Valid until the next launch.
int fake_cuda_graph_nodes();
const char* fake_cuda_graph_node(int index);
/// A fake library's call that enqueues: 1 where the stream is captured, whose graph then does `work` with
/// `data` and drops it at last; 0 where it is not, and the caller does the work; -1 where the capture
/// refused.
int fake_cuda_capture_work(void* stream, const char* text, void (*work)(void*), void* data,
                           void (*drop)(void*));
/// A fake library tells with 1 that it records something, which allocates, and with 0 that it is done.
void fake_cuda_recording(int on);
/// From now on work is in flight until a call waits for it. What goes meanwhile and may not is misuse: a
/// module, a graph, the context. Forgets what is in flight.
void fake_cuda_hold(int on);
int fake_cuda_in_flight();
/// A stream that belongs to no primary context; not counted as live.
void* fake_cuda_foreign_stream();
}
