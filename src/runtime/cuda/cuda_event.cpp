// Events and captured graphs of the cuda device. SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "runtime/cuda/cuda_backend.hpp"

namespace fuse::runtime {
namespace {

const CudaEvent* event_of(const CudaContext& context, const Event& event) noexcept {
  return event.owner == &context ? static_cast<const CudaEvent*>(&event) : nullptr;
}

}  // namespace

CudaEvent::CudaEvent(std::shared_ptr<const CudaContext> context, bool timed)
    : Event(context.get()), context_(std::move(context)) {
  const unsigned flags = timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
  const Status status = context_->run_apart(
      [&](const Driver& d) { return d.status("cuEventCreate", d.p_cuEventCreate(&event_, flags)); });
  if (status) return;
  if (event_) context_->release([&](const Driver& d) { d.p_cuEventDestroy(event_); });
  status.throw_if_failed();
}

CudaEvent::~CudaEvent() {
  context_->release([&](const Driver& d) { d.p_cuEventDestroy(event_); });
}

std::unique_ptr<Event> CudaBackend::create_event(bool timed) {
  return std::make_unique<CudaEvent>(context_, timed);
}

Status CudaBackend::wait(Queue& queue, const Event& event) noexcept {
  CUstream stream = nullptr;
  if (Status s = cuda_stream_of(*context_, queue, stream); !s) return s;
  const CudaEvent* const cuda = event_of(*context_, event);
  if (!cuda) return foreign_event();
  return context_->run([&](const Driver& d) {
    return d.status("cuStreamWaitEvent", d.p_cuStreamWaitEvent(stream, cuda->handle(), 0));
  });
}

bool CudaBackend::captures(Queue& queue) const noexcept {
  CUstream stream = nullptr;
  if (!cuda_stream_of(*context_, queue, stream)) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const Status asked = context_->run_apart([&](const Driver& d) {
    return d.status("cuStreamIsCapturing", d.p_cuStreamIsCapturing(stream, &status));
  });
  return asked && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool CudaBackend::passed(const Event& event) noexcept {
  const CudaEvent* const cuda = event_of(*context_, event);
  if (!cuda) return false;
  bool done = true;
  // An error of earlier work is reported by the call that meets it next: there is nothing left to wait for.
  const Status queried = context_->run_apart([&](const Driver& d) {
    done = d.p_cuEventQuery(cuda->handle()) != CUDA_ERROR_NOT_READY;
    return Status();
  });
  return done || !queried;
}

void CudaBackend::finish(const Event& event) noexcept {
  const CudaEvent* const cuda = event_of(*context_, event);
  if (!cuda) return;
  context_->release([&](const Driver& d) { d.p_cuEventSynchronize(cuda->handle()); });
}

Status CudaBackend::record(Queue& queue, Event& event) noexcept {
  CUstream stream = nullptr;
  if (Status s = cuda_stream_of(*context_, queue, stream); !s) return s;
  const CudaEvent* const cuda = event_of(*context_, event);
  if (!cuda) return foreign_event();
  return context_->run(
      [&](const Driver& d) { return d.status("cuEventRecord", d.p_cuEventRecord(cuda->handle(), stream)); });
}

Status CudaBackend::elapsed(const Event& from, const Event& to, double& seconds) noexcept {
  const CudaEvent* const first = event_of(*context_, from);
  const CudaEvent* const last = event_of(*context_, to);
  if (!first || !last) return foreign_event();
  return context_->run_apart([&](const Driver& d) {
    for (const CudaEvent* const event : {first, last}) {
      if (Status s = d.status("cuEventSynchronize", d.p_cuEventSynchronize(event->handle())); !s) return s;
    }
    float milliseconds = 0;
    const CUresult result = d.p_cuEventElapsedTime(&milliseconds, first->handle(), last->handle());
    seconds = static_cast<double>(milliseconds) * 1e-3;
    return d.status("cuEventElapsedTime", result);
  });
}

CudaGraph::CudaGraph(std::shared_ptr<const CudaContext> context, CUgraph graph)
    : context_(std::move(context)) {
  const Status status = context_->run_apart([&](const Driver& d) {
    const CUresult made = d.p_cuGraphInstantiateWithFlags(&graph_, graph, 0);
    d.p_cuGraphDestroy(graph);
    return d.status("cuGraphInstantiateWithFlags", made);
  });
  if (status) return;
  if (graph_) context_->release([&](const Driver& d) { d.p_cuGraphExecDestroy(graph_); });
  status.throw_if_failed();
}

CudaGraph::~CudaGraph() {
  context_->release([&](const Driver& d) { d.p_cuGraphExecDestroy(graph_); });
}

Status CudaGraph::launch(Queue& queue) noexcept {
  CUstream stream = nullptr;
  if (Status s = cuda_stream_of(*context_, queue, stream); !s) return s;
  return context_->run(
      [&](const Driver& d) { return d.status("cuGraphLaunch", d.p_cuGraphLaunch(graph_, stream)); });
}

std::unique_ptr<CapturedWork> CudaBackend::capture(Queue& queue, const std::function<Status()>& enqueue) {
  CUstream stream = nullptr;
  cuda_stream_of(*context_, queue, stream).throw_if_failed();
  context_
      ->run([&](const Driver& d) {
        return d.status("cuStreamBeginCapture",
                        d.p_cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
      })
      .throw_if_failed();
  const Status enqueued = enqueue();
  CUgraph graph = nullptr;
  // The capture ends on every path: a stream left in it would refuse all later work.
  const Status ended = context_->run([&](const Driver& d) {
    return d.status("cuStreamEndCapture", d.p_cuStreamEndCapture(stream, &graph));
  });
  if (enqueued && ended) return std::make_unique<CudaGraph>(context_, graph);
  if (graph) context_->release([&](const Driver& d) { d.p_cuGraphDestroy(graph); });
  enqueued.throw_if_failed();
  ended.throw_if_failed();
  return nullptr;
}

}  // namespace fuse::runtime
