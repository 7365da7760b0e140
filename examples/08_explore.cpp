// 8. A training loop that gets faster while it works.
//
// fuse chooses kernels by a cost model. An Explorer runs the same graph, tries other ways to run it in some
// of the steps, and goes on with the fastest. Every step trains, those too that try something. The model is a
// recurrent one, two layers of LSTMs (models/stacked_lstm.hpp), which learns a short text by heart. Its
// weights are inputs whose memory the new weights take. SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fuse/fuse.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/stacked_lstm.hpp"
#include "support/options.hpp"
#include "support/run.hpp"
#include "support/step_times.hpp"

namespace {

example::StackedLstm model_of(std::int64_t batch) {
  return {.batch = batch, .steps = 8, .layers = 2, .input = 128, .hidden = 128, .vocabulary = 1000};
}

/// Numbers from -0.1 to 0.1, the same in each run of the program.
std::vector<float> small_numbers(std::size_t count, std::size_t seed) {
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i)
    numbers[i] = 0.1F * std::sin(static_cast<float>((i + 1) * (seed + 3) % 9973));
  return numbers;
}

/// What a step reads and writes: a buffer for each slot, which an output shares with the input that it
/// replaces.
class Training {
 public:
  Training(const fuse::Explorer& explorer, const example::StackedLstm& model, const fuse::Device& device)
      : slots_(explorer.slots()), buffers_(slots_.size()) {
    loss_ = explorer.default_executable().output_slot("loss");
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].donor) continue;  // it has no memory of its own
      buffers_[i] = device.allocate(explorer.prepared().bytes(i));
      if (slots_[i].kind != fuse::Slot::Kind::output) fill(i, model);
    }
    for (std::size_t i = 0; i < slots_.size(); ++i)
      views_.push_back(buffers_[slots_[i].donor.value_or(i)].view());
  }

  std::span<const fuse::BufferView> views() const { return views_; }

  float loss() const {
    float loss = 0;
    buffers_[loss_].download(std::as_writable_bytes(std::span(&loss, 1)));
    return loss;
  }

 private:
  void fill(std::size_t slot, const example::StackedLstm& model) {
    const auto bytes = static_cast<std::size_t>(buffers_[slot].size());
    if (slots_[slot].name == "targets") {
      std::vector<std::int32_t> words(bytes / sizeof(std::int32_t));
      for (std::size_t i = 0; i < words.size(); ++i)
        words[i] = static_cast<std::int32_t>(i * 37 % static_cast<std::size_t>(model.vocabulary));
      buffers_[slot].upload(std::as_bytes(std::span(words)));
    } else {
      // Weights, the words' vectors, and the first states, which stay: each step reads the same text.
      const std::vector<float> numbers = small_numbers(bytes / sizeof(float), slot);
      buffers_[slot].upload(std::as_bytes(std::span(numbers)));
    }
  }

  std::vector<fuse::Slot> slots_;
  std::vector<fuse::Buffer> buffers_;
  std::vector<fuse::BufferView> views_;
  std::size_t loss_ = 0;
};

int explore(const example::Options& options) {
  const example::StackedLstm model = model_of(options.integer("--batch", 1, 1024));
  const std::int64_t most = options.integer("--steps", 1, 10'000'000);
  fuse::Device device = fuse::Device::auto_select();
  // On a CPU the compiler of the exploration works beside the steps: by default one core is left to it.
  if (device.kind() == fuse::DeviceKind::cpu)
    device = fuse::Device::cpu({.threads = static_cast<int>(options.integer("--threads", 1, 1024))});
  constexpr double learning_rate = 0.5;
  const fuse::Graph graph = example::build_stacked_lstm_training(model, learning_rate);
  // Bits::any also tries what adds in another order, such as merged GEMMs: the loss may differ a little from
  // what it is without exploration. The graph has no symbolic dims, so that there are no values for them.
  const auto seconds_for_it = static_cast<double>(options.integer("--seconds", 1, 86'400));
  fuse::Explorer explorer(graph, device, {},
                          {.bits = fuse::Bits::any, .max_options = 4, .max_seconds = seconds_for_it});
  Training training(explorer, model, device);
  fuse::Stream stream = device.stream();

  std::printf("device   %s\n", device.name().c_str());
  std::vector<double> seconds;
  std::int64_t after = 0;  // steps since the exploration ended
  for (std::int64_t step = 0; step < most && after < 200; ++step) {
    const auto start = std::chrono::steady_clock::now();
    explorer.run(stream, training.views()).throw_if_failed();
    stream.synchronize().throw_if_failed();  // else the next step could not be measured while this one runs
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    seconds.push_back(took.count());
    after += explorer.done() ? 1 : 0;
    if (step == 0 || (step + 1) % 2000 == 0)
      std::printf("step     %6lld  loss %.4f  %.3f ms\n", static_cast<long long>(step + 1), training.loss(),
                  took.count() * 1e3);
  }
  const fuse::ExploreProgress end = explorer.progress();
  std::printf("steps    %zu, of which %lld were measured; %lld other configurations were compiled\n",
              seconds.size(), static_cast<long long>(end.explored), static_cast<long long>(end.built));
  std::printf("loss     %.4f\n", training.loss());
  if (!end.stopped.empty()) std::printf("stopped  %s\n", end.stopped.c_str());
  if (end.tuned_seconds > 0)
    std::printf("a step   %.3f ms by default, %.3f ms now, by the device's clock: %.3fx\n",
                end.default_seconds * 1e3, end.tuned_seconds * 1e3, end.default_seconds / end.tuned_seconds);
  if (!options.text("--picture").empty()) example::draw_step_times(options.text("--picture"), seconds);
  if (!options.text("--save").empty()) {
    if (!end.done || !end.stopped.empty())
      throw std::runtime_error("nothing is saved: it did not explore to its end");
    explorer.tuning().save(options.text("--save"));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return example::run([&] {
    return explore(
        example::Options(argc, argv, "A training loop that gets faster while it works",
                         {{"--batch", "N", "8", "sequences in a batch"},
                          {"--threads", "N", "1", "of a CPU: a compiler works beside it"},
                          {"--steps", "N", "1000000", "at most; it ends 200 steps after the exploration"},
                          {"--seconds", "N", "600", "for the exploration: with fewer, less is tried"},
                          {"--picture", "FILE", "", "write the time of each step there, as SVG"},
                          {"--save", "FILE", "", "write what was found there"}}));
  });
}
