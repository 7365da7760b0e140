// The specialiser: dims that come often get a static build, between two runs.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cmath>
#include <cstring>
#include <fuse/fuse.hpp>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"

using namespace fuse;  // NOLINT

namespace {

using State = SpecialisedDims::State;

Graph softmax_of_rows() {
  Graph g("rows");
  const Dim m = g.dim("M", {.min = 1, .max = 4096}), n = g.dim("N", {.min = 1, .max = 4096});
  g.output("y", softmax(g.input("x", f32, {m, n})));
  return g;
}

/// Its weights are packed side by side.
Graph packed_products() {
  Graph g("two_products");
  const Dim b = g.dim("B", {.min = 1, .max = 64});
  const Tensor x = g.input("x", f32, {b, 16});
  const Tensor u = matmul(x, g.parameter("v", f32, {16, 8})), w = matmul(x, g.parameter("w", f32, {16, 24}));
  g.output("y", softmax(tanh(w)));
  g.output("z", sum(u * u, {1}));
  return g;
}

/// Buffers of all slots, with simple values.
struct Buffers {
  Buffers(const Device& device, const Executable& executable, const DimValues& dims, int seed = 0)
      : slots(executable.slots()) {
    const Prepared prepared = executable.prepare(dims);
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      buffers.push_back(device.allocate(static_cast<std::size_t>(prepared.bytes(slot))));
      views.push_back(buffers.back().view());
      if (slots[slot].kind != Slot::Kind::output) fill(slot, seed);
    }
  }
  void fill(std::size_t slot, int seed) {
    std::vector<float> value(buffers[slot].size() / 4);
    for (std::size_t i = 0; i < value.size(); ++i)
      value[i] = 0.37F * static_cast<float>((i * 7 + slot + static_cast<std::size_t>(seed)) % 13) - 2.1F;
    buffers[slot].upload(std::as_bytes(std::span(value)));
  }
  std::vector<std::vector<std::byte>> outputs() const {
    std::vector<std::vector<std::byte>> result;
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      if (slots[slot].kind != Slot::Kind::output) continue;
      result.emplace_back(buffers[slot].size());
      buffers[slot].download(result.back());
    }
    return result;
  }

  std::vector<Slot> slots;
  std::vector<Buffer> buffers;
  std::vector<BufferView> views;
};

/// What the executable for all dims gives.
std::vector<std::vector<std::byte>> usual_outputs(const Executable& executable, const DimValues& dims,
                                                  int seed = 0) {
  const Device device = executable.device();
  const Buffers buffers(device, executable, dims, seed);
  const Prepared prepared = executable.prepare(dims);
  Stream stream = device.stream();
  Workspace workspace = prepared.workspace();
  const Buffer packed = device.allocate(static_cast<std::size_t>(prepared.packed_bytes()));
  if (prepared.packed_bytes() > 0) prepared.pack(stream, buffers.views, packed.view()).throw_if_failed();
  prepared.run(stream, buffers.views, workspace, packed.view()).throw_if_failed();
  stream.synchronize().throw_if_failed();
  return buffers.outputs();
}

std::vector<std::vector<std::byte>> run(Specialiser& specialiser, const DimValues& dims, int seed = 0) {
  const Device device = specialiser.executable().device();
  const Buffers buffers(device, specialiser.executable(), dims, seed);
  Stream stream = device.stream();
  specialiser.run(stream, dims, buffers.views).throw_if_failed();
  stream.synchronize().throw_if_failed();
  return buffers.outputs();
}

/// In a function, so that a failure does not print the bytes.
bool same(const std::vector<std::vector<std::byte>>& a, const std::vector<std::vector<std::byte>>& b) {
  return a == b;
}

State state_of(const Specialiser& specialiser, const DimValues& dims) {
  for (const SpecialisedDims& each : specialiser.dims())
    if (each.dims == dims) return each.state;
  FAIL("these dims never ran");
  return {};
}

Device quick() { return Device::emulated({.profile = "h200", .optimization = 0}); }

}  // namespace

TEST_CASE("a specialiser gives dims that come often a static build", "[versions][specialise][emulated]") {
  const Device device = quick();
  std::vector<SpecialisedDims> news;
  const SpecialiseOptions options{.runs = 3,
                                  .announce = [&](const SpecialisedDims& each) { news.push_back(each); }};
  Specialiser specialiser(softmax_of_rows(), device, options, {.cache = false});
  const DimValues often{{"M", 6}, {"N", 100}}, once{{"M", 5}, {"N", 100}};
  const auto right = usual_outputs(specialiser.executable(), often);
  run(specialiser, once);
  for (int i = 0; i < 2; ++i) CHECK(same(run(specialiser, often), right));
  CHECK(state_of(specialiser, often) == State::counted);
  CHECK(same(run(specialiser, often), right));  // asks for it
  CHECK(state_of(specialiser, often) != State::counted);
  specialiser.wait_for_compiler();
  const bool late = news.empty();
  CHECK(same(run(specialiser, often), right));
  CHECK(late);
  REQUIRE(news.size() == 1);
  CHECK(news[0].why == "");
  CHECK(news[0].state == State::special);
  CHECK(news[0].dims == often);
  CHECK(news[0].compile_seconds > 0);
  CHECK(news[0].special_seconds > 0);
  CHECK(news[0].special_seconds <= news[0].usual_seconds);
  CHECK(state_of(specialiser, often) == State::special);
  CHECK(state_of(specialiser, once) == State::counted);
  for (int i = 0; i < 3; ++i) CHECK(same(run(specialiser, often), right));
  CHECK(news.size() == 1);
}

TEST_CASE("a static build that keeps bits has those of the executable for all dims",
          "[versions][specialise][emulated]") {
  const Device device = quick();
  Graph norms("norms");
  const Dim m = norms.dim("M", {.min = 1, .max = 100'000}), n = norms.dim("N", {.min = 1, .max = 100'000});
  norms.output("y", layer_norm(norms.input("x", f32, {m, n}), norms.parameter("gamma", f32, {n}),
                               norms.parameter("beta", f32, {n})));
  Graph columns("columns");  // whose blocks take rows in turns
  const Dim r = columns.dim("M", {.min = 1, .max = 100'000}),
            c = columns.dim("N", {.min = 1, .max = 100'000});
  columns.output("y", sum(columns.input("z", f32, {r, c}), {0}));
  int special = 0, refused = 0;
  for (const Graph& graph : {softmax_of_rows(), norms, columns}) {
    Specialiser specialiser(graph, device, {.runs = 1, .most = 32});
    for (const std::int64_t rows : {1, 3, 64, 301}) {
      for (const std::int64_t length : {1, 2, 63, 64, 1000, 4096}) {
        const DimValues dims{{"M", rows}, {"N", length}};
        const auto right = usual_outputs(specialiser.executable(), dims);
        CAPTURE(rows, length);
        CHECK(same(run(specialiser, dims), right));
        specialiser.wait_for_compiler();
        CHECK(same(run(specialiser, dims), right));
        special += state_of(specialiser, dims) == State::special;
        refused += state_of(specialiser, dims) == State::refused;
      }
    }
  }
  CHECK(special + refused == 72);
  CHECK(special >= 40);
}

TEST_CASE("a static build packs parameters of its own", "[versions][specialise][emulated]") {
  const Device device = quick();
  for (const Bits bits : {Bits::keep, Bits::any}) {
    Specialiser specialiser(packed_products(), device, {.runs = 1, .bits = bits});
    const DimValues dims{{"B", 8}};
    for (const int seed : {0, 1, 2}) {  // other parameters each time
      const auto right = usual_outputs(specialiser.executable(), dims, seed);
      for (int i = 0; i < 2; ++i) {
        const auto got = run(specialiser, dims, seed);
        REQUIRE(got.size() == right.size());
        for (std::size_t output = 0; output < got.size(); ++output) {
          for (std::size_t at = 0; at < got[output].size(); at += 4) {
            float a = 0, b = 0;
            std::memcpy(&a, &got[output][at], 4);
            std::memcpy(&b, &right[output][at], 4);
            CHECK(std::abs(a - b) <= 1e-5F * std::max(1.0F, std::abs(b)));
          }
        }
        if (bits == Bits::keep) CHECK(same(got, right));
        specialiser.wait_for_compiler();
      }
      CHECK(state_of(specialiser, dims) == State::special);
      specialiser.parameters_changed();
    }
  }
}

TEST_CASE("a specialiser keeps no more static builds than it may", "[versions][specialise][emulated]") {
  std::vector<SpecialisedDims> news;
  Specialiser specialiser(
      softmax_of_rows(), quick(),
      {.runs = 2, .most = 2, .announce = [&](const SpecialisedDims& each) { news.push_back(each); }});
  const auto dims = [](std::int64_t rows) { return DimValues{{"M", rows}, {"N", 8}}; };
  for (const std::int64_t rows : {1, 2, 3}) {
    for (int i = 0; i < 2; ++i) run(specialiser, dims(rows));
    specialiser.wait_for_compiler();
    run(specialiser, dims(rows));
  }
  REQUIRE(news.size() == 4);
  CHECK(news[2].dims == dims(1));  // it ran longest ago
  CHECK(news[2].state == State::counted);
  CHECK(news[2].runs == 0);
  CHECK(state_of(specialiser, dims(1)) == State::counted);
  CHECK(state_of(specialiser, dims(2)) == State::special);
  CHECK(state_of(specialiser, dims(3)) == State::special);
  for (std::int64_t rows = 10; rows < 60; ++rows) run(specialiser, dims(rows));
  CHECK(specialiser.dims().size() == 32);
  CHECK(news.size() == 6);  // both were forgotten
}

TEST_CASE("a static build that has other bits is refused, and runs go on",
          "[versions][specialise][emulated]") {
  const DimValues one{{"M", 7}, {"N", 1}}, dims{{"M", 7}, {"N", 77}};
  Specialiser specialiser(softmax_of_rows(), quick(), {.runs = 1}, {.builds = 1});
  Specialiser relaxed(softmax_of_rows(), quick(), {.runs = 1}, {.relaxed_rounding = true});
  const auto why = [](Specialiser& each, const DimValues& of) {
    const auto right = usual_outputs(each.executable(), of);
    CHECK(same(run(each, of), right));
    each.wait_for_compiler();
    for (int i = 0; i < 3; ++i) CHECK(same(run(each, of), right));
    CHECK(each.dims().at(0).state == State::refused);
    return each.dims().at(0).why;
  };
  CHECK(why(specialiser, one).find("with these numbers other ops share a kernel") != std::string::npos);
  CHECK(why(relaxed, dims).find("relaxed_rounding lets") != std::string::npos);
  specialiser.wait_for_compiler();
}

TEST_CASE("values that nobody reads need not fit a static build", "[versions][specialise][emulated]") {
  Graph g("dead");
  const Dim k = g.dim("K", {.min = 1, .max = 64});
  const Tensor x = g.input("x", f32, {2, k});
  matmul(x, g.input("w", f32, {6, 3}));
  g.output("y", softmax(x));
  Specialiser specialiser(g, quick(), {.runs = 1});
  run(specialiser, {{"K", 8}});
  specialiser.wait_for_compiler();
  run(specialiser, {{"K", 8}});
  CHECK(specialiser.dims().at(0).why == "");
  CHECK(specialiser.dims().at(0).state == State::special);
}

TEST_CASE("what a specialiser refuses", "[versions][specialise][emulated]") {
  const Graph graph = softmax_of_rows();
  const auto message = [&](const Device& device, const SpecialiseOptions& options) -> std::string {
    try {
      Specialiser made(graph, device, options);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::invalid_argument);
      return error.info().message;
    }
    return "no error";
  };
  CHECK(message(quick(), {.runs = 0}) == "specialise: runs = 0");
  CHECK(message(quick(), {.most = 0}) == "specialise: most = 0");
  CHECK(message(quick(), {.bits = static_cast<Bits>(9)}) == "specialise: bits = 9");
  CHECK(message(Device::reference(), {}) == "the reference device has nothing to specialise");
  Specialiser specialiser(graph, quick());
  Stream stream = specialiser.executable().device().stream();
  CHECK(specialiser.run(stream, {{"M", 3}}, {}).code() == ErrorCode::unbound);
  CHECK(specialiser.run(stream, {{"M", 3}, {"N", 0}}, {}).code() == ErrorCode::invalid_extent);
  CHECK(specialiser.dims().empty());
  CHECK(to_string(State::refused) == "refused");
}

TEST_CASE("threads share a specialiser", "[versions][specialise][threads][emulated]") {
  const Device device = quick();
  std::mutex mutex;
  std::vector<SpecialisedDims> news;
  Specialiser specialiser(packed_products(), device,
                          {.runs = 2, .announce = [&](const SpecialisedDims& each) {
                             const std::lock_guard lock(mutex);
                             news.push_back(each);
                           }});
  std::vector<std::vector<std::vector<std::byte>>> right;
  for (const std::int64_t rows : {3, 4, 5})
    right.push_back(usual_outputs(specialiser.executable(), {{"B", rows}}));
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 12; ++i) {
        const auto which = static_cast<std::size_t>((t + i) % 3);
        wrong += run(specialiser, {{"B", static_cast<std::int64_t>(which) + 3}}) != right[which];
        if (i == 6) specialiser.wait_for_compiler();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(news.size() == 3);
}
