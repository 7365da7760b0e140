// A tile that one warp writes by rows and reads by columns is transposed between the two, and no other.
// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/transpose_tiles.hpp"

#include <functional>

#include "ir/kernel/visit.hpp"
#include "kernel/kernel_support.hpp"
#include "schedule/nest/usual_nests.hpp"

using namespace fuse;          // NOLINT
using namespace fuse::kernel;  // NOLINT
using namespace fuse::test;    // NOLINT

namespace {

Kernel turned(const Graph& graph, int threads) {
  Kernel kernel = transpose_tiles(lowered(graph, {.splits = schedule::nest_of_tiles(threads)}));
  verify(kernel, target_profile("h200").shared_per_block);
  return kernel;
}

int transposes_in(const Kernel& kernel) {
  int count = 0;
  for_each_stmt(kernel.body,
                [&](const Stmt& stmt) { count += std::holds_alternative<TransposeTile>(stmt.node); });
  return count;
}

Graph two_transposes() {
  Graph g("tiles");
  const Tensor x = g.input("x", f32, {100, 70}), y = g.input("y", bf16, {100, 70});
  g.output("z", transpose(x, {1, 0}) + convert(transpose(y, {1, 0}), f32));
  return g;
}

}  // namespace

TEST_CASE("transpose_tiles: one warp's tiles are transposed between two barriers", "[kernel]") {
  const Kernel kernel = turned(two_transposes(), 32);
  CHECK(transposes_in(kernel) == 2);
  for (const kernel::Buffer& buffer : kernel.buffers) {
    if (buffer.space == Space::shared) CHECK(buffer.elements.is(tile_side * tile_side));
  }
  // Both sides of the tile take neighbours with neighbouring lanes.
  for_each_stmt(kernel.body, [&](const Stmt& stmt) {
    const auto* const let = std::get_if<Let>(&stmt.node);
    const auto* const load = let ? std::get_if<Load>(&let->rhs) : nullptr;
    const auto* const store = std::get_if<Store>(&stmt.node);
    if (!load && !store) return;
    if (kernel.buffers[load ? load->buffer : store->buffer].space != Space::shared) return;
    const Index& index = load ? load->index : store->index;
    const Dim zero = 0, one = 1;
    const auto at = [&](const Dim& lane) {
      return index.substitute([&](std::string_view name) { return name == "lane" ? &lane : nullptr; });
    };
    INFO(index.to_string());
    CHECK((at(one) - at(zero)).is(1));
  });
}

TEST_CASE("transpose_tiles: blocks of several warps keep their tiles", "[kernel]") {
  CHECK(transposes_in(turned(two_transposes(), 256)) == 0);
}

TEST_CASE(
    "transpose_tiles: a tile that is read before the barrier, or whose columns are not all read there, stays",
    "[kernel]") {
  const Kernel before = lowered(two_transposes(), {.splits = schedule::nest_of_tiles(32)});
  const auto with = [&](const std::function<void(std::vector<Stmt>&, std::size_t barrier)>& change) {
    Kernel kernel = before;
    const std::function<void(std::vector<Stmt>&)> visit = [&](std::vector<Stmt>& body) {
      for (std::size_t i = 0; i < body.size(); ++i) {
        if (std::holds_alternative<Barrier>(body[i].node)) return change(body, i);
        if (std::vector<Stmt>* inner = body_of(body[i])) visit(*inner);
      }
    };
    visit(kernel.body);
    return transposes_in(transpose_tiles(std::move(kernel)));
  };
  CHECK(with([](std::vector<Stmt>&, std::size_t) {}) == 2);
  CHECK(with([](std::vector<Stmt>& body, std::size_t i) { std::swap(body[i], body[i + 1]); }) == 0);
  CHECK(with([](std::vector<Stmt>& body, std::size_t i) {
          for_each_stmt(body, [](Stmt& stmt) {
            auto* const let = std::get_if<Let>(&stmt.node);
            auto* const load = let ? std::get_if<Load>(&let->rhs) : nullptr;
            if (load) load->index = load->index + 1;
          });
          static_cast<void>(i);
        }) == 0);
  // Stores come first, and loads that are as they should be behind them help nothing.
  CHECK(with([&](std::vector<Stmt>& body, std::size_t i) {
          std::vector<Stmt> stores(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(i));
          for_each_stmt(stores, [&](Stmt& stmt) {
            auto* const store = std::get_if<Store>(&stmt.node);
            if (store && before.buffers[store->buffer].space == Space::shared)
              store->index = store->index + 1;
          });
          std::copy(stores.begin(), stores.end(), body.begin());
        }) == 0);
}

TEST_CASE("transpose_tiles: the verifier takes whole tiles of shared memory and one warp alone", "[kernel]") {
  Kernel kernel = turned(two_transposes(), 32);
  const auto refused = [](const Kernel& wrong) {
    try {
      verify(wrong, 1 << 20);
    } catch (const Error& error) {
      return error.info().message;
    }
    return std::string();
  };
  for (kernel::Buffer& buffer : kernel.buffers) {
    if (buffer.space == Space::shared) buffer.elements = 33 * tile_side;
  }
  CHECK(refused(kernel).find("another size than its buffer") != std::string::npos);
}
