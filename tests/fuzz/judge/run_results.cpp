// SPDX-License-Identifier: Apache-2.0
#include "fuzz/judge/run_results.hpp"

#include <exception>
#include <thread>

#include "os/temporary_folder.hpp"

namespace fuse::fuzz {
namespace {

using runtime::HostTensor;

class MovingRun {
 public:
  MovingRun(const Executable& executable, const DimValues& dims, bool graph_mode)
      : executable_(executable),
        prepared_(executable.prepare(dims)),
        stream_(executable.device().stream()),
        workspace_(prepared_.workspace({graph_mode ? ExecutionMode::graph : ExecutionMode::streams})) {}

  Results run(const runtime::Values& inputs) {
    bind(inputs);
    if (prepared_.packed_bytes() != 0) finish(prepared_.pack(stream_, views_, packed_.view()));
    finish(prepared_.run(stream_, views_, workspace_, packed_.view()));
    Results results;
    const std::vector<Slot>& slots = executable_.slots();
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].kind != Slot::Kind::output) continue;
      HostTensor tensor{.dtype = slots[i].dtype, .shape = prepared_.shape(i)};
      tensor.data.resize(static_cast<std::size_t>(prepared_.bytes(i)));
      buffer(i).download(tensor.data);
      results.emplace(slots[i].name, std::move(tensor));
    }
    return results;
  }

 private:
  const Buffer& buffer(std::size_t slot) const {
    return buffers_[executable_.slots()[slot].donor.value_or(slot)];
  }

  /// New memory for everything. That of the last run stays, so that the new lies elsewhere, and holds other
  /// values.
  void bind(const runtime::Values& inputs) {
    for (const Buffer& old : buffers_) overwrite(old);
    overwrite(packed_);
    last_ = std::move(buffers_);
    last_packed_ = std::move(packed_);
    buffers_.clear();
    views_.clear();
    const Device& device = executable_.device();
    const std::vector<Slot>& slots = executable_.slots();
    for (std::size_t i = 0; i < slots.size(); ++i) {
      buffers_.push_back(slots[i].donor ? Buffer() : device.allocate(prepared_.bytes(i)));
      if (slots[i].kind != Slot::Kind::output) buffers_.back().upload(inputs.at(slots[i].name).data);
    }
    for (std::size_t i = 0; i < slots.size(); ++i) views_.push_back(buffer(i).view());
    packed_ = device.allocate(prepared_.packed_bytes());
  }

  static void overwrite(const Buffer& buffer) {
    const BufferView view = buffer.view();
    if (view.bytes == 0) return;
    Buffer copy = buffer;
    copy.upload(std::vector<std::byte>(static_cast<std::size_t>(view.bytes), std::byte{0xa5}));
  }

  /// What was enqueued before a failure may be under way: nothing may go on when this throws.
  void finish(const Status& enqueued) {
    const Status done = stream_.synchronize();
    enqueued.throw_if_failed();
    done.throw_if_failed();
  }

  Executable executable_;
  Prepared prepared_;
  Stream stream_;
  Workspace workspace_;
  std::vector<Buffer> buffers_{}, last_{};
  Buffer packed_{}, last_packed_{};
  std::vector<BufferView> views_{};
};

}  // namespace

std::vector<Results> run_results(const Executable& executable, const RunOptions& options,
                                 const runtime::Values& inputs, const DimValues& dims) {
  MovingRun run(executable, dims, options.graph_mode);
  std::vector<Results> results;
  for (int i = 0; i < options.runs; ++i) results.push_back(run.run(inputs));
  return results;
}

std::vector<Results> run_together(const Executable& a, const Executable& b, const RunOptions& options,
                                  const runtime::Values& inputs, const DimValues& dims) {
  std::vector<Results> beside;
  std::exception_ptr failure;
  std::thread thread([&] {
    try {
      beside = run_results(b, options, inputs, dims);
    } catch (...) {
      failure = std::current_exception();
    }
  });
  std::vector<Results> results;
  try {
    results = run_results(a, options, inputs, dims);
  } catch (...) {
    thread.join();
    throw;
  }
  thread.join();
  if (failure) std::rethrow_exception(failure);
  for (Results& each : beside) results.push_back(std::move(each));
  return results;
}

Executable through_file(const Executable& executable) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/plan";
  executable.save(path);
  return Executable::load(path, executable.device());
}

}  // namespace fuse::fuzz
