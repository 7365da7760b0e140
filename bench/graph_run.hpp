// A compiled graph with its buffers, for runs without transfers; and the data to run it on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <fuse/fuse.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace fuse::bench {

/// Numbers in [-4, 4], the same ones in every run.
inline std::vector<float> test_numbers(std::size_t count, std::uint32_t seed = 1) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto mixed = static_cast<std::uint32_t>((i + seed) * 2654435761u);
    values[i] = static_cast<float>(mixed >> 8) / 2097152.0f - 4.0f;
  }
  return values;
}

class GraphRun {
 public:
  GraphRun(const Graph& graph, const Device& device, const DimValues& dims = {})
      : executable_(compile(graph, device)), prepared_(executable_.prepare(dims)), stream_(device.stream()) {
    for (std::size_t slot = 0; slot < executable_.slots().size(); ++slot) {
      buffers_.push_back(device.allocate(prepared_.bytes(slot)));
      views_.push_back(buffers_.back().view());
    }
    workspace_ = prepared_.workspace();
    packed_ = device.allocate(prepared_.packed_bytes());
  }

  void set(std::string_view input, std::span<const float> values) {
    buffers_[executable_.slot(input)].upload(std::as_bytes(values));
    prepared_.pack(stream_, views_, packed_.view()).throw_if_failed();
  }
  void run() {
    prepared_.run(stream_, views_, workspace_, packed_.view()).throw_if_failed();
    stream_.synchronize().throw_if_failed();
  }
  std::vector<float> get(std::string_view output) const {
    const Buffer& buffer = buffers_[executable_.output_slot(output)];
    std::vector<float> values(static_cast<std::size_t>(buffer.size()) / sizeof(float));
    buffer.download(std::as_writable_bytes(std::span(values)));
    return values;
  }
  const Prepared& prepared() const { return prepared_; }

 private:
  Executable executable_;
  Prepared prepared_;
  Stream stream_;
  std::vector<Buffer> buffers_;
  std::vector<BufferView> views_;
  Workspace workspace_;
  Buffer packed_;
};

}  // namespace fuse::bench
