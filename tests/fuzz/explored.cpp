// SPDX-License-Identifier: Apache-2.0
#include "fuzz/explored.hpp"

#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <fuse/explore.hpp>
#include <map>
#include <mutex>
#include <thread>

#include "base/access.hpp"
#include "fuzz/grow/generator.hpp"
#include "fuzz/grow/random.hpp"
#include "fuzz/judge/running_error.hpp"
#include "ir/graph/hash.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/emulated/virtual_clock.hpp"

namespace fuse::fuzz {
namespace {

using runtime::HostTensor;

/// Costs without sense: a hash of the work, so that any option may win.
runtime::PlantedCost hashed_costs(std::uint64_t seed) {
  return [seed](const runtime::ClockedWork& work) {
    ir::Hasher hash;
    hash.add(seed).add(static_cast<std::uint64_t>(work.residency.blocks));
    hash.add(static_cast<std::uint64_t>(work.residency.threads)).add(work.kernel);
    if (work.gemm)
      hash.add(static_cast<std::uint64_t>(work.gemm->algorithm))
          .add(static_cast<std::uint64_t>(work.gemm->n));
    return 1e-6 * (1 + static_cast<double>(hash.value() % 1000) / 100);
  };
}

/// The buffers of a run, on a device.
class RunBuffers {
 public:
  RunBuffers(const Explorer& explorer, const runtime::Values& inputs)
      : explorer_(explorer), inputs_(inputs), own_(explorer.slots().size()) {
    for (std::size_t i = 0; i < own_.size(); ++i) {
      if (!explorer.slots()[i].donor)
        own_[i] = explorer.default_executable().device().allocate(explorer.prepared().bytes(i));
    }
  }
  std::vector<BufferView> filled() {
    std::vector<BufferView> views;
    for (std::size_t i = 0; i < own_.size(); ++i) {
      const Slot& slot = explorer_.slots()[i];
      if (slot.kind != Slot::Kind::output) own_[i].upload(inputs_.at(slot.name).data);
      views.push_back(own_[slot.donor.value_or(i)].view());
    }
    return views;
  }
  runtime::Values outputs() const {
    runtime::Values result;
    for (std::size_t i = 0; i < own_.size(); ++i) {
      const Slot& slot = explorer_.slots()[i];
      if (slot.kind != Slot::Kind::output) continue;
      HostTensor tensor = HostTensor::make(slot.dtype, explorer_.prepared().shape(i));
      own_[slot.donor.value_or(i)].download(tensor.data);
      result.emplace(slot.name, std::move(tensor));
    }
    return result;
  }

 private:
  const Explorer& explorer_;
  const runtime::Values& inputs_;
  std::vector<Buffer> own_;
};

std::string wrong_output(const std::map<std::string, Enclosure>& expected, const runtime::Values& got,
                         const runtime::Values* first) {
  for (const auto& [name, enclosure] : expected) {
    const std::string text = mismatch(enclosure, got.at(name));
    if (!text.empty()) return fmt::format("output '{}': {}", name, text);
    if (first && got.at(name).data != first->at(name).data)
      return fmt::format("output '{}' has other bits than in the first run", name);
  }
  return "";
}

}  // namespace

Explored explored(const Case& c, int runs, std::uint64_t seed) {
  const Device device = Device::emulated(
      {.profile = c.options.profile, .threads = 1, .optimization = 0, .virtual_clock = true});
  runtime::plant_costs(*backend_of(device), hashed_costs(seed));
  const DimValues& dims = c.program.bindings.front();
  const runtime::Values inputs = make_inputs(c.program, dims);
  const auto expected = enclose(c.program.graph, inputs, dims);
  const Bits bits = seed % 2 == 0 ? Bits::keep : Bits::any;
  Explorer explorer(graph_of<Graph>(c.program.graph), device, dims,
                    {.bits = bits, .max_options = 3, .max_cuts = 3});
  RunBuffers buffers(explorer, inputs);
  Stream stream = device.stream();
  Explored result;
  runtime::Values first;
  while (result.runs < runs && result.wrong.empty()) {
    explorer.run(stream, buffers.filled()).throw_if_failed();
    stream.synchronize().throw_if_failed();
    const runtime::Values got = buffers.outputs();
    if (first.empty()) first = got;
    const std::string text = wrong_output(expected, got, bits == Bits::keep ? &first : nullptr);
    if (!text.empty()) result.wrong = fmt::format("run {}: {}", result.runs, text);
    ++result.runs;
    explorer.wait_for_compiler();
  }
  const ExploreProgress progress = explorer.progress();
  result.configurations = progress.built;
  result.dropped = static_cast<std::int64_t>(progress.dropped.size());
  result.done = progress.done;
  if (result.wrong.empty() && !progress.stopped.empty()) result.wrong = "it stopped: " + progress.stopped;
  return result;
}

ExploreTotals explore_programs(const ExploreCampaign& campaign,
                               const std::function<void(const ExploreTotals&)>& progress) {
  ExploreTotals totals;
  std::mutex mutex;
  std::atomic<std::int64_t> next = 0;
  const auto work = [&] {
    for (std::int64_t i = next++; i < campaign.count; i = next++) {
      const auto index = static_cast<std::uint64_t>(campaign.first + i);
      Explored one;
      try {
        one = explored(generate(seed_of(campaign.seed, index)), campaign.runs, index);
      } catch (const std::exception& failed) {
        one.wrong = failed.what();
      }
      const std::lock_guard lock(mutex);
      ++totals.programs;
      totals.runs += one.runs;
      totals.configurations += one.configurations;
      totals.dropped += one.dropped;
      totals.done += one.done;
      if (!one.wrong.empty())
        totals.failures.push_back(fmt::format("--seed {} --index {}: {}", campaign.seed, index, one.wrong));
      progress(totals);
    }
  };
  std::vector<std::thread> threads;
  for (int job = 1; job < campaign.jobs; ++job) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return totals;
}

}  // namespace fuse::fuzz
