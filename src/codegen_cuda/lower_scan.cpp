// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/lowering.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;
using schedule::Mapping;

namespace {

class ScanLowering {
 public:
  explicit ScanLowering(Lowering& to)
      : to_(to),
        builder_(to.builder),
        root_(to.root()),
        operand_(to.graph[to.root()].operands[0]),
        scan_(ir::attr<ir::ScanAttr>(to.graph[to.root()])),
        shape_(schedule::loop_shape(to.graph, to.graph[to.root()])) {}

  void run() { to_.launch.mapping == Mapping::scan_warp ? by_warp() : by_thread(); }

 private:
  // A warp a row: 32 elements at a time, the sum so far carried on.
  void by_warp() {
    const std::string block = builder_.unique("b"), warp = builder_.unique("warp"),
                      lane = builder_.unique("lane"), name = builder_.unique("row");
    const int warps = to_.launch.block_threads / warp_size;
    to_.parallel(Parallel::grid, block, builder_.kernel.grid, [&] {
      to_.parallel(Parallel::warp, warp, warps, [&] {
        to_.parallel(Parallel::lane, lane, warp_size, [&] {
          const Index row = to_.bind(
              name, Dim::index(block, builder_.kernel.grid) * warps + Dim::index(warp, warps), to_.results);
          builder_.when({{row, to_.results}}, [&] {
            const VarId carry = declare();
            const std::string first = builder_.unique("c");
            builder_.loop(
                {.name = first, .begin = 0, .end = to_.reduced, .step = warp_size, .body = {}},
                [&] { stretch(row, Dim::index(first, to_.reduced) + Dim::index(lane, warp_size), carry); });
          });
        });
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
    VarId incoming = to_.elements.value(operand_, place(row, scan_.exclusive ? c - 1 : c), inside);
    builder_.at(root_);
    if (scan_.exclusive) {
      const VarId zero = builder_.value(dtype, Constant{});
      incoming = builder_.compute(ir::Op::select, dtype, {inside, incoming, zero});
    }
    const VarId sum = builder_.variable(dtype);
    builder_.append(WarpScan{reduction_, carry, incoming, sum});
    builder_.when({{c, to_.reduced}}, [&] { store(place(row, c), sum); });
    to_.elements.leave_scope();
  }

  // A thread a row; neighbours read neighbouring elements where the rows are columns.
  void by_thread() {
    const std::string block = builder_.unique("b"), thread = builder_.unique("t"),
                      name = builder_.unique("row");
    const int threads = to_.launch.block_threads;
    to_.parallel(Parallel::grid, block, builder_.kernel.grid, [&] {
      to_.parallel(Parallel::block, thread, threads, [&] {
        const Index row =
            to_.bind(name, Dim::index(block, builder_.kernel.grid) * threads + Dim::index(thread, threads),
                     to_.results);
        builder_.when({{row, to_.results}}, [&] {
          const VarId sum = declare();
          const std::string c = builder_.unique("c");
          builder_.loop({.name = c, .begin = 0, .end = to_.reduced, .body = {}}, [&] {
            const Coordinates at = place(row, Dim::index(c, to_.reduced));
            to_.elements.enter_scope();
            if (scan_.exclusive) store(at, sum);
            const VarId incoming = to_.elements.value(operand_, at);
            builder_.at(root_);
            builder_.append(Combine{reduction_, {sum}, {incoming}});
            if (!scan_.exclusive) store(at, sum);
            to_.elements.leave_scope();
          });
        });
      });
    });
  }

  VarId declare() {
    reduction_ = builder_.reduction(ir::Op::reduce_sum, to_.graph[operand_].type.dtype);
    return builder_.declare(reduction_, "acc")[0];
  }

  void store(const Coordinates& at, VarId sum) {
    builder_.append(Store{to_.outputs.at(root_), flatten(at, to_.elements.dims(root_)), sum});
  }

  /// Of the c-th element that the scan visits in a row.
  Coordinates place(const Index& row, const Index& c) const {
    return to_.operand_coordinates(shape_, row, scan_.reverse ? to_.reduced - 1 - c : c);
  }

  Lowering& to_;
  KernelBuilder& builder_;
  const NodeId root_, operand_;
  const ir::ScanAttr& scan_;
  const schedule::LoopShape shape_;
  ReductionId reduction_ = 0;
};

}  // namespace

void lower_scan(Lowering& to) { ScanLowering(to).run(); }

}  // namespace fuse::codegen
