// Threads that share one executable on the emulated device, each with buffers, a workspace and a stream of
// its own. SPDX-License-Identifier: Apache-2.0
#include <mutex>
#include <thread>

#include "base/access.hpp"
#include "fuzz/judge/running_error.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/examples.hpp"
#include "tensors/random_fill.hpp"

namespace fuse::test {
namespace {

using runtime::HostTensor;

/// Runs the executable `times` over on inputs of its own; what is wrong, or nothing.
std::string run_alone(const Executable& executable, const Graph& graph, std::int64_t rows, std::uint64_t seed,
                      int times) {
  const Device& device = executable.device();
  const Prepared prepared = executable.prepare({{"B", rows}});
  std::vector<Buffer> buffers;
  std::vector<BufferView> views;
  runtime::Values inputs;
  std::size_t output = 0;
  for (std::size_t i = 0; i < executable.slots().size(); ++i) {
    const Slot& slot = executable.slots()[i];
    buffers.push_back(device.allocate(prepared.bytes(i)));
    views.push_back(buffers.back().view());
    if (slot.kind == Slot::Kind::output) {
      output = i;
      continue;
    }
    HostTensor tensor = HostTensor::make(slot.dtype, prepared.shape(i));
    runtime::random_fill(tensor, seed, slot.name, -4, 4);
    buffers.back().upload(tensor.data);
    inputs.emplace(slot.name, std::move(tensor));
  }
  const fuzz::Enclosure expected = fuzz::enclose(ir_of(graph), inputs, {{"B", rows}}).at("y");
  Workspace workspace = prepared.workspace();
  Stream stream = device.stream();
  HostTensor got = HostTensor::make(executable.slots()[output].dtype, prepared.shape(output)), first;
  for (int i = 0; i < times; ++i) {
    Status status = prepared.run(stream, views, workspace);
    if (status) status = stream.synchronize();
    if (!status) return std::string(status.message());
    buffers[output].download(got.data);
    if (i == 0) {
      const std::string wrong = fuzz::mismatch(expected, got);
      if (!wrong.empty()) return wrong;
      first = got;
    }
    if (got.data != first.data) return "run " + std::to_string(i) + " has other bits than the first";
  }
  return {};
}

TEST_CASE("16 threads share an executable of softmax, and of layernorm", "[emulated][streams]") {
  const Device device = Device::emulated();
  for (const std::string name : {"softmax", "layernorm"}) {
    const Graph graph = example(name);
    const Executable executable = compile(graph, device);
    std::mutex mutex;
    std::string wrong;
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 16; ++t) {
        threads.emplace_back([&, t] {
          const std::string text =
              run_alone(executable, graph, 1 + t % 5, 100 + static_cast<unsigned>(t), 50);
          const std::lock_guard lock(mutex);
          if (!text.empty()) wrong += "thread " + std::to_string(t) + ": " + text + "\n";
        });
      }
    }
    INFO(name);
    CHECK(wrong == "");
  }
}

}  // namespace
}  // namespace fuse::test
