// The fake driver's graphs: captured ones and those made node by node. A launch runs what its nodes do to
// host memory, of the nodes that may start the last one first, so that only the dependencies keep an order.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "fake_cuda/fake_cuda.hpp"
#include "fake_cuda/fake_state.hpp"

using namespace fake;

namespace {

using Kind = CUgraphNode_st::Kind;

struct Copy {
  std::unique_ptr<CUgraph_st> graph = std::make_unique<CUgraph_st>();
  std::map<const CUgraphNode_st*, CUgraphNode_st*> of;
};

Copy copy_of(const CUgraph_st& graph) {
  Copy copy;
  for (const auto& node : graph.nodes) {
    auto made = std::make_unique<CUgraphNode_st>(*node);
    for (CUgraphNode_st*& before : made->after) before = copy.of.at(before);
    copy.of[node.get()] = made.get();
    copy.graph->nodes.push_back(std::move(made));
  }
  return copy;
}

std::uint64_t operations(const CUgraph_st& graph) {
  std::uint64_t count = 0;
  for (const auto& node : graph.nodes) count += node->child ? operations(*node->child) : 1;
  return count;
}

void modules(const CUgraph_st& graph, std::set<const void*>& needs) {
  for (const auto& node : graph.nodes) {
    if (node->function) needs.insert(node->function->module);
    if (node->child) modules(*node->child, needs);
  }
}

void work(const CUgraph_st& graph) {
  std::set<const CUgraphNode_st*> done;
  while (done.size() < graph.nodes.size()) {
    for (std::size_t i = graph.nodes.size(); i-- > 0;) {
      const CUgraphNode_st& node = *graph.nodes[i];
      if (done.count(&node)) continue;
      if (!std::all_of(node.after.begin(), node.after.end(), [&](auto* b) { return done.count(b) != 0; }))
        continue;
      if (node.work) node.work();
      if (node.child) work(*node.child);
      done.insert(&node);
      break;
    }
  }
}

/// "kernel scale grid ... cooperative after 0 2"
std::vector<std::string> texts(const CUgraph_st& graph) {
  std::map<const CUgraphNode_st*, std::size_t> number;
  std::vector<std::string> lines;
  for (const auto& node : graph.nodes) {
    std::string line = node->text;
    if (node->cooperative) line += " cooperative";
    if (node->child) {
      line = "child";
      for (const std::string& inner : texts(*node->child)) line += " {" + inner + "}";
    }
    line += " after";
    for (const CUgraphNode_st* before : node->after) line += ' ' + std::to_string(number.at(before));
    number.emplace(node.get(), number.size());
    lines.push_back(std::move(line));
  }
  return lines;
}

CUresult add(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, std::size_t count,
             CUgraphNode_st node) {
  const std::lock_guard lock(state().mutex);
  if (!state().graphs.count(graph)) return misused(CUDA_ERROR_INVALID_HANDLE);
  for (std::size_t i = 0; i < count; ++i) {
    const auto known = [&](const auto& other) { return other.get() == after[i]; };
    if (std::none_of(graph->nodes.begin(), graph->nodes.end(), known))
      return misused(CUDA_ERROR_INVALID_VALUE);
    node.after.push_back(after[i]);
  }
  graph->nodes.push_back(std::make_unique<CUgraphNode_st>(std::move(node)));
  *made = graph->nodes.back().get();
  return CUDA_SUCCESS;
}

/// Gives a node of the executable graph what it does from the next launch on.
CUresult set(CUgraphExec graph, CUgraphNode original, CUgraphNode_st with) {
  const std::lock_guard lock(state().mutex);
  if (!state().graph_execs.count(graph)) return misused(CUDA_ERROR_INVALID_HANDLE);
  const auto at = graph->of.find(original);
  if (at == graph->of.end() || at->second->kind != with.kind || at->second->function != with.function)
    return misused(CUDA_ERROR_INVALID_VALUE);
  at->second->text = std::move(with.text);
  at->second->work = std::move(with.work);
  if (with.child) at->second->child = std::move(with.child);
  return CUDA_SUCCESS;
}

CUresult kernel(const CUDA_KERNEL_NODE_PARAMS& p, CUgraphNode_st& node) {
  if (!p.func || p.extra || p.gridDimX == 0 || p.gridDimY == 0 || p.gridDimZ == 0)
    return misused(CUDA_ERROR_INVALID_VALUE);
  if (const CUresult refused = refuse_clusters(*p.func, p.gridDimX)) return misused(refused);
  node.kind = Kind::kernel;
  node.function = p.func;
  node.text =
      kernel_text(*p.func, {p.gridDimX, p.gridDimY, p.gridDimZ, p.blockDimX, p.blockDimY, p.blockDimZ},
                  p.sharedMemBytes, arguments_text(*p.func, p.kernelParams));
  return CUDA_SUCCESS;
}

CUresult copy(const CUDA_MEMCPY3D& p, CUcontext context, CUgraphNode_st& node) {
  const bool linear = p.Height == 1 && p.Depth == 1 && p.WidthInBytes > 0 &&
                      p.srcMemoryType == CU_MEMORYTYPE_DEVICE && p.dstMemoryType == CU_MEMORYTYPE_DEVICE;
  if (!linear || context != &state().context || !in_bounds(p.dstDevice, p.WidthInBytes) ||
      !in_bounds(p.srcDevice, p.WidthInBytes)) {
    return misused(CUDA_ERROR_INVALID_VALUE);
  }
  node = copy_node(p.dstDevice, p.srcDevice, p.WidthInBytes);
  return CUDA_SUCCESS;
}

CUresult fill(const CUDA_MEMSET_NODE_PARAMS& p, CUcontext context, CUgraphNode_st& node) {
  if (p.elementSize != 1 || p.height != 1 || p.width == 0 || p.value > 255 || context != &state().context ||
      !in_bounds(p.dst, p.width)) {
    return misused(CUDA_ERROR_INVALID_VALUE);
  }
  node = memset_node(p.dst, static_cast<int>(p.value), p.width);
  return CUDA_SUCCESS;
}

/// Of the graph as it is now: it may change or go afterwards.
CUresult child(CUgraph graph, CUgraphNode_st& node) {
  const std::lock_guard lock(state().mutex);
  if (!state().graphs.count(graph) || state().captures.count(graph)) return misused(CUDA_ERROR_INVALID_VALUE);
  node.kind = Kind::child;
  node.child = copy_of(*graph).graph;
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

int fake_cuda_graph_nodes() {
  const std::lock_guard lock(state().mutex);
  return static_cast<int>(state().launched.size());
}
const char* fake_cuda_graph_node(int index) {
  const std::lock_guard lock(state().mutex);
  const auto i = static_cast<std::size_t>(index);
  return index >= 0 && i < state().launched.size() ? state().launched[i].c_str() : "";
}
int fake_cuda_capture_work(void* stream, const char* text, void (*work)(void*), void* data,
                           void (*drop)(void*)) {
  auto* const on = static_cast<CUstream>(stream);
  if (!on || !on->capture) return 0;
  const Recording recording;
  const std::shared_ptr<void> held(data, drop);
  return enqueue(on, {.text = text, .work = [=] { work(held.get()); }}) == CUDA_SUCCESS ? 1 : -1;
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  const CUresult injected = FAKE_INJECTED("cuThreadExchangeStreamCaptureMode");
  std::swap(*mode, thread_mode());
  return injected;
}
CUresult CUDAAPI cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  FAKE_ENTER_IN_CONTEXT("cuStreamBeginCapture %d", static_cast<int>(mode));
  if (!stream || stream->capture) return misused(CUDA_ERROR_ILLEGAL_STATE);
  if (only_counting) {
    stream->capture = &counted_graph();
    return CUDA_SUCCESS;
  }
  const Recording recording;
  const std::lock_guard lock(state().mutex);
  stream->capture = new CUgraph_st;
  stream->capture->mode = mode;
  stream->capture->thread = std::this_thread::get_id();
  state().graphs.insert(stream->capture);
  state().captures.insert(stream->capture);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  const CUresult injected = FAKE_INJECTED("cuStreamEndCapture");
  if (!stream || !stream->capture) return misused(CUDA_ERROR_ILLEGAL_STATE);
  *graph = std::exchange(stream->capture, nullptr);
  if (*graph == &counted_graph()) return CUDA_SUCCESS;
  const std::lock_guard lock(state().mutex);
  state().captures.erase(*graph);
  bool unjoined = false;
  for (const auto& [other, back] : (*graph)->others) {
    other->capture = nullptr;
    unjoined |= !back;
  }
  for (CUevent_st* const event : state().events) {
    if (event->capture == *graph) event->capture = nullptr;
  }
  if ((*graph)->invalid) {
    erase(state().graphs, std::exchange(*graph, nullptr));
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  return unjoined ? misused(CUDA_ERROR_STREAM_CAPTURE_UNJOINED) : injected;
}
CUresult CUDAAPI cuGraphCreate(CUgraph* graph, unsigned flags) {
  FAKE_ENTER_IN_CONTEXT("cuGraphCreate %u", flags);
  const std::lock_guard lock(state().mutex);
  *graph = new CUgraph_st;
  state().graphs.insert(*graph);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after,
                                      std::size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
  FAKE_ENTER_IN_CONTEXT("cuGraphAddKernelNode");
  CUgraphNode_st node;
  if (const CUresult bad = kernel(*params, node)) return bad;
  return add(made, graph, after, count, std::move(node));
}
CUresult CUDAAPI cuGraphAddMemcpyNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after,
                                      std::size_t count, const CUDA_MEMCPY3D* params, CUcontext context) {
  FAKE_ENTER_IN_CONTEXT("cuGraphAddMemcpyNode");
  CUgraphNode_st node;
  if (const CUresult bad = copy(*params, context, node)) return bad;
  return add(made, graph, after, count, std::move(node));
}
CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after,
                                      std::size_t count, const CUDA_MEMSET_NODE_PARAMS* params,
                                      CUcontext context) {
  FAKE_ENTER_IN_CONTEXT("cuGraphAddMemsetNode");
  CUgraphNode_st node;
  if (const CUresult bad = fill(*params, context, node)) return bad;
  return add(made, graph, after, count, std::move(node));
}
CUresult CUDAAPI cuGraphAddChildGraphNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after,
                                          std::size_t count, CUgraph with) {
  FAKE_ENTER_IN_CONTEXT("cuGraphAddChildGraphNode");
  CUgraphNode_st node;
  if (const CUresult bad = child(with, node)) return bad;
  return add(made, graph, after, count, std::move(node));
}
CUresult CUDAAPI cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID which,
                                               const CUkernelNodeAttrValue* value) {
  FAKE_ENTER_IN_CONTEXT("cuGraphKernelNodeSetAttribute %d", static_cast<int>(which));
  if (node->kind != Kind::kernel || which != CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
    return misused(CUDA_ERROR_INVALID_VALUE);
  node->cooperative = value->cooperative != 0;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec graph, CUgraphNode node,
                                                const CUDA_KERNEL_NODE_PARAMS* params) {
  FAKE_ENTER_IN_CONTEXT("cuGraphExecKernelNodeSetParams");
  if (only_counting) return CUDA_SUCCESS;
  const Recording recording;
  CUgraphNode_st with;
  if (const CUresult bad = kernel(*params, with)) return bad;
  return set(graph, node, std::move(with));
}
CUresult CUDAAPI cuGraphExecMemcpyNodeSetParams(CUgraphExec graph, CUgraphNode node,
                                                const CUDA_MEMCPY3D* params, CUcontext context) {
  FAKE_ENTER_IN_CONTEXT("cuGraphExecMemcpyNodeSetParams");
  if (only_counting) return CUDA_SUCCESS;
  const Recording recording;
  CUgraphNode_st with;
  if (const CUresult bad = copy(*params, context, with)) return bad;
  return set(graph, node, std::move(with));
}
CUresult CUDAAPI cuGraphExecMemsetNodeSetParams(CUgraphExec graph, CUgraphNode node,
                                                const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context) {
  FAKE_ENTER_IN_CONTEXT("cuGraphExecMemsetNodeSetParams");
  if (only_counting) return CUDA_SUCCESS;
  const Recording recording;
  CUgraphNode_st with;
  if (const CUresult bad = fill(*params, context, with)) return bad;
  if (with.bytes != node->bytes) return misused(CUDA_ERROR_INVALID_VALUE);  // a driver may refuse
  return set(graph, node, std::move(with));
}
CUresult CUDAAPI cuGraphExecChildGraphNodeSetParams(CUgraphExec graph, CUgraphNode node, CUgraph with) {
  FAKE_ENTER_IN_CONTEXT("cuGraphExecChildGraphNodeSetParams");
  if (only_counting) return CUDA_SUCCESS;
  const Recording recording;
  CUgraphNode_st work;
  if (const CUresult bad = child(with, work)) return bad;
  if (node->child && node->child->nodes.size() != work.child->nodes.size())
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  return set(graph, node, std::move(work));
}
CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec* made, CUgraph graph, unsigned long long flags) {
  FAKE_ENTER_IN_CONTEXT("cuGraphInstantiateWithFlags %llu", flags);
  const std::lock_guard lock(state().mutex);
  if (!state().graphs.count(graph)) return misused(CUDA_ERROR_INVALID_HANDLE);
  Copy copy = copy_of(*graph);
  *made = new CUgraphExec_st{std::move(copy.graph), std::move(copy.of)};
  state().graph_execs.insert(*made);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGraphUpload(CUgraphExec graph, CUstream) {
  FAKE_ENTER_IN_CONTEXT("cuGraphUpload");
  const std::lock_guard lock(state().mutex);
  return state().graph_execs.count(graph) ? CUDA_SUCCESS : misused(CUDA_ERROR_INVALID_HANDLE);
}
CUresult CUDAAPI cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  FAKE_ENTER_IN_CONTEXT("cuGraphLaunch %llu", static_cast<unsigned long long>(operations(*graph->graph)));
  if (only_counting) return CUDA_SUCCESS;
  const Recording recording;
  if (const CUresult refused = refuse_capture(stream)) return refused;
  const std::lock_guard lock(state().mutex);
  work(*graph->graph);
  state().launched = texts(*graph->graph);
  std::set<const void*> needs;
  modules(*graph->graph, needs);
  return enqueue(stream, {.text = "graph"}, operations(*graph->graph), std::move(needs));
}
CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec graph) {
  const CUresult injected = FAKE_INJECTED("cuGraphExecDestroy");
  const CUresult erased = erase(state().graph_execs, graph);
  return erased ? erased : injected;
}
CUresult CUDAAPI cuGraphDestroy(CUgraph graph) {
  const CUresult injected = FAKE_INJECTED("cuGraphDestroy");
  if (graph == &counted_graph()) return CUDA_SUCCESS;
  const CUresult erased = erase(state().graphs, graph);
  return erased ? erased : injected;
}

}  // extern "C"
