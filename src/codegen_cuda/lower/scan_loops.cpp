// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/lower/lowering_context.hpp"
#include "codegen_cuda/lower/nest_position.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;

namespace {

class ScanLoops {
 public:
  explicit ScanLoops(Lowering& to)
      : to_(to),
        builder_(to.builder),
        root_(to.root()),
        operand_(to.graph[to.root()].operands[0]),
        scan_(ir::attr<ir::ScanAttr>(to.graph[to.root()])),
        shape_(schedule::loop_shape(to.graph, to.graph[to.root()])),
        by_warps_(units_of(to.launch.nest, to.launch.nest.dims[1].name, schedule::Level::lane) > 1) {}

  void run() { by_warps_ ? by_warp() : by_thread(); }

 private:
  // One warp per row: 32 elements at a time, the sum so far carried on.
  void by_warp() {
    const int warps = to_.launch.block_threads / warp_size;
    if (stays()) {
      return to_.threads(builder_.unique("b"), [&](const ThreadIndex& at) {
        row_of_warp(builder_.unique("row"), at.block * warps + at.warp, at.lane);
      });
    }
    const std::string block = builder_.unique("b"), warp = builder_.unique("warp"),
                      lane = builder_.unique("lane"), name = builder_.unique("row");
    to_.parallel(Parallel::grid, block, builder_.kernel.grid, [&] {
      to_.parallel(Parallel::warp, warp, warps, [&] {
        to_.parallel(Parallel::lane, lane, warp_size, [&] {
          row_of_warp(name, Dim::index(block, builder_.kernel.grid) * warps + Dim::index(warp, warps),
                      Dim::index(lane, warp_size));
        });
      });
    });
  }

  void row_of_warp(const std::string& name, const Index& number, const Index& lane) {
    const Index row = to_.bind(name, number, to_.results);
    builder_.when({{row, to_.results}}, [&] {
      const VarId carry = declare();
      const std::string first = builder_.unique("c");
      builder_.loop({.name = first, .begin = 0, .end = to_.reduced, .step = warp_size, .body = {}}, [&] {
        stretch(to_.among_all(row, to_.results), Dim::index(first, to_.reduced) + lane, carry);
      });
    });
  }

  void stretch(const Index& row, const Index& element, VarId carry) {
    const DType dtype = to_.graph[root_].type.dtype;
    const Index c = to_.bind(builder_.unique("p"), element, to_.reduced);
    VarId inside = builder_.value(boolean, IndexLess{c, to_.reduced});
    if (scan_.exclusive) {
      const VarId after = builder_.value(boolean, IndexLess{0, c});
      inside = builder_.compute(ir::Op::logical_and, boolean, {inside, after});
    }
    to_.elements.enter_scope();
    VarId incoming = to_.elements.value(operand_, position(row, scan_.exclusive ? c - 1 : c), inside);
    builder_.at(root_);
    if (scan_.exclusive) {
      const VarId zero = builder_.value(dtype, Constant{});
      incoming = builder_.compute(ir::Op::select, dtype, {inside, incoming, zero});
    }
    const VarId sum = builder_.variable(dtype);
    builder_.append(WarpScan{reduction_, carry, incoming, sum});
    builder_.when({{c, to_.reduced}}, [&] { store(position(row, c), sum); });
    to_.elements.leave_scope();
  }

  // One thread per row; neighbours read neighbouring elements where the rows are columns.
  void by_thread() {
    const int threads = to_.launch.block_threads;
    if (stays()) {
      return to_.threads(builder_.unique("b"), [&](const ThreadIndex& at) {
        row_of_thread(builder_.unique("row"), at.block * threads + at.warp * warp_size + at.lane);
      });
    }
    const std::string block = builder_.unique("b"), thread = builder_.unique("t"),
                      name = builder_.unique("row");
    to_.parallel(Parallel::grid, block, builder_.kernel.grid, [&] {
      to_.parallel(Parallel::block, thread, threads, [&] {
        row_of_thread(name, Dim::index(block, builder_.kernel.grid) * threads + Dim::index(thread, threads));
      });
    });
  }

  void row_of_thread(const std::string& name, const Index& number) {
    const Index row = to_.bind(name, number, to_.results);
    builder_.when({{row, to_.results}}, [&] {
      const VarId sum = declare();
      const std::string c = builder_.unique("c");
      builder_.loop({.name = c, .begin = 0, .end = to_.reduced, .body = {}}, [&] {
        const Coordinates at = position(to_.among_all(row, to_.results), Dim::index(c, to_.reduced));
        to_.elements.enter_scope();
        if (scan_.exclusive) store(at, sum);
        const VarId incoming = to_.elements.value(operand_, at);
        builder_.at(root_);
        builder_.append(Combine{reduction_, {sum}, {incoming}});
        if (!scan_.exclusive) store(at, sum);
        to_.elements.leave_scope();
      });
    });
  }

  /// Whether others say which rows the thread takes: a block that stays, or a kernel of several launches.
  bool stays() const { return to_.cooperative || to_.rename(to_.launch.tiles) != builder_.kernel.grid; }

  VarId declare() {
    reduction_ = builder_.reduction(ir::Op::reduce_sum, to_.graph[operand_].type.dtype);
    return builder_.declare(reduction_, "acc")[0];
  }

  void store(const Coordinates& at, VarId sum) {
    to_.store(root_, flatten(at, to_.elements.dims(root_)), sum);
  }

  /// The coordinates of the c-th element that the scan visits in a row.
  Coordinates position(const Index& row, const Index& c) const {
    return to_.operand_coordinates(shape_, row, scan_.reverse ? to_.reduced - 1 - c : c);
  }

  Lowering& to_;
  KernelBuilder& builder_;
  const NodeId root_, operand_;
  const ir::ScanAttr& scan_;
  const schedule::LoopShape shape_;
  const bool by_warps_;
  ReductionId reduction_ = 0;
};

}  // namespace

void lower_scan(Lowering& to) { ScanLoops(to).run(); }

}  // namespace fuse::codegen
