// The kernel IR: a small structured loop IR between schedule and CUDA text. No CUDA strings.
// A kernel is loops (parallel or serial) around three-address lets, loads, stores, reductions over tuple
// state, and barriers. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/dim.hpp>
#include <fuse/dtype.hpp>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/graph/op.hpp"

namespace fuse::kernel {

using BufferId = std::uint32_t;
using VarId = std::uint32_t;
using ReductionId = std::uint32_t;
/// An integer expression over extents (Dim::symbol) and index variables (Dim::index) in scope.
using Index = Dim;

enum class Space : std::uint8_t {
  global,
  shared,
  local,  ///< a thread's own array; registers, where unrolled loops name the elements
};

struct Buffer {
  std::string name{};
  DType dtype = f32;
  Space space = Space::global;
  Dim elements{};        ///< shared and local: a constant
  bool written = false;  ///< written by this kernel
  /// Loads of it stay between the barriers around them: they are for later.
  bool ordered = false;
};

/// A scalar value. Mutable ones are reduction state.
struct Var {
  std::string name{};
  DType dtype = f32;
  bool pair = false;  ///< two elements of a half type, side by side
};

/// Where a statement comes from: the op, its scope and the user's line.
struct Origin {
  std::string op{};        ///< "%7 reduce_sum"
  std::string scope{};     ///< "layer_norm.mean"
  std::string location{};  ///< "main.cpp:4"
};

struct Constant {
  double real = 0;
  std::int64_t integer = 0;
};
/// Tuple state and how two states combine: sum is one var and `add`; argmax is (value, position); a sum of
/// exponentials below a maximum is (maximum, sum).
/// The region computes `result` from `left` and `right` with lets only; it may not touch memory.
struct Stmt;
struct Reduction {
  ir::Op op = ir::Op::reduce_sum;
  std::vector<DType> state{};
  std::vector<Constant> identity{};  ///< what state starts from
  std::vector<VarId> left{}, right{}, result{};
  std::vector<Stmt> region;
  std::optional<ir::Op> single{};  ///< the element-wise op when the region is that op alone
};

/// Applies an element-wise op, select or convert to vars; an op of Trait::pairs to pairs too.
struct Compute {
  ir::Op op = ir::Op::add;
  std::vector<VarId> operands{};
};
/// Reads one element, or a pair of two from a multiple of two on in a thread's own array; 0 without touching
/// memory where the predicate is false. With a rank, reads the shared memory of that block of the cluster:
/// block b has rank b % cluster.
struct Load {
  BufferId buffer = 0;
  Index index{};
  std::optional<VarId> predicate{};
  std::optional<Index> rank{};
};
/// An index expression as a value of the var's integer type.
struct IndexValue {
  Index index{};
};
/// index < bound as a bool value.
struct IndexLess {
  Index index{}, bound{};
  bool operator==(const IndexLess&) const = default;
};
/// A uniform random number of the var's type: the element-th of a draw (see ir::RandomAttr).
struct Random {
  VarId seed = 0, offset = 0;  ///< i64
  Index element{};
  std::int64_t stream = 0;
};
/// The float nearest to 1 / divisor where a division by it takes few steps, else NaN: see VectorDivide.
struct Reciprocal {
  VarId divisor = 0;  ///< f32
};
/// numerator / divisor in f32, with the bits of a division, in fewer steps for the lanes of a CPU's vectors.
struct Quotient {
  VarId numerator = 0, divisor = 0, reciprocal = 0;
};
/// Two values as a pair of the var's half type: halves, or f32 values that are rounded to it.
struct Pair {
  VarId first = 0, second = 0;
};
/// One element of a pair, as the half that it is or as f32.
struct PartOfPair {
  VarId pair = 0;
  bool second = false;
};
using Rhs = std::variant<Constant, Compute, Load, IndexValue, IndexLess, Random, Reciprocal, Quotient, Pair,
                         PartOfPair>;

/// var = rhs
struct Let {
  VarId var = 0;
  Rhs rhs{};
};
/// Declares reduction state, set to the identity or to other values.
struct Declare {
  ReductionId reduction = 0;
  std::vector<VarId> state{};
  std::vector<VarId> initial{};  ///< empty: the identity
};
/// state = combine(state, incoming)
struct Combine {
  ReductionId reduction = 0;
  std::vector<VarId> state{}, incoming{};
};
/// Every lane's state becomes the combination over its part of the warp, of `lanes` that lie `stride` apart:
/// a butterfly over lane distances stride * lanes / 2 .. 2 * stride, stride.
struct WarpCombine {
  ReductionId reduction = 0;
  std::vector<VarId> state{};
  int lanes = 32;
  int stride = 1;
};
/// result = carry + the incoming values of the lanes up to this one; carry becomes the last lane's result.
/// The state of a sum, declared with the reduction, carries from one stretch of 32 elements to the next.
struct WarpScan {
  ReductionId reduction = 0;
  VarId carry = 0, incoming = 0, result = 0;
};
/// Writes one element, or in a thread's own array a pair too, at a multiple of two.
struct Store {
  BufferId buffer = 0;
  Index index{};
  VarId value = 0;
};
/// Asks for the element's memory, which may lie outside of the buffer, to come into the first or the second
/// cache of a CPU. It changes no value.
struct Prefetch {
  BufferId buffer = 0;
  Index index{};
  int cache = 1;
};
/// Bytes of the widest access, and of the most elements that a thread moves side by side: two accesses.
inline constexpr std::int64_t access_bytes = 16, vector_bytes = 32;
/// The array, a thread's own, becomes as many elements of the buffer, which lie side by side from `index` on.
/// They take vector_bytes at most, and the index is a multiple of their number.
struct VectorLoad {
  BufferId array = 0, buffer = 0;
  Index index{};
};
/// Those elements of the buffer become the array.
struct VectorStore {
  BufferId buffer = 0, array = 0;
  Index index{};
};
/// quotients[i] = numerators[i] / divisor for two arrays of f32, both a thread's own with as many elements:
/// the same bits as a division gives, in fewer steps where many elements share the divisor.
struct VectorDivide {
  BufferId quotients = 0, numerators = 0;
  VarId divisor = 0, reciprocal = 0;
};
/// The array, a thread's own, becomes as many numbers of a draw, from `first.element` on, which is a multiple
/// of their number: neighbours share the work.
struct VectorRandom {
  BufferId array = 0;
  Random first{};
};
/// The array, a thread's own, stays in as few registers as its bytes fill, unchanged: after this, a compiler
/// knows of no wider value that was made of an element, so it keeps none, and makes it again.
struct KeepPacked {
  BufferId array = 0;
};
/// Names an index expression; inside an If that bounds it, uses see Dim::index(name, extent).
struct Bind {
  std::string name{};
  Index value{};
};
/// name = the value clamped into [0, extent): an index that is data.
struct BindData {
  std::string name{};
  VarId value = 0;
  Dim extent{};
};

/// Who runs the iterations of a loop.
enum class Parallel : std::uint8_t {
  grid,    ///< a block each; extent is the grid
  block,   ///< a thread of the block each; extent is the block
  warp,    ///< a warp of the block each; extent is the block's warps
  lane,    ///< a lane each; extent is the warp size
  serial,  ///< one thread, in order
};
std::string_view to_string(Parallel);

/// for name in [begin, end) by step. Parallel loops start at 0 and step 1.
struct For {
  std::string name{};
  Index begin{}, end{}, step = 1;
  Parallel parallel = Parallel::serial;
  bool unrolled = false;  ///< serial, with constant bounds
  std::string next{};     ///< grid: names the block that the same thread of a CPU probably runs next
  std::vector<Stmt> body;
};
/// if index < bound for every condition
struct If {
  std::vector<IndexLess> conditions{};
  std::vector<Stmt> body;
};
inline constexpr std::int64_t tile_side = 32;
/// The buffer, tile_side rows of as many elements, becomes its transpose, by the block's one warp.
struct TransposeTile {
  BufferId buffer = 0;  ///< shared
};
/// All threads of the block arrive; memory they wrote before is visible to all after.
struct Barrier {};
/// All threads of all blocks arrive, which must all have slots on the multiprocessors; as above. The counter
/// is an element, 0, of a written buffer of i32, zero when the kernel starts. In groups, blocks with the same
/// b / group wait for each other alone, and count in element first + b / group; too few for a group at the
/// end of the grid wait for their own threads.
struct GridBarrier {
  BufferId counter = 0;
  std::int64_t first = 0;
  std::int64_t group = 0;  ///< blocks; 0: all
};
/// All threads of all blocks of the cluster arrive; memory they wrote before, each other's shared memory too,
/// is visible to all after.
struct ClusterBarrier {
  bool shared = false;  ///< orders accesses of shared memory alone, which costs less
};
/// The thread promises not to read other blocks' shared memory before its next ClusterWait, which waits for
/// this promise of all threads of the cluster: then a block may end. Neither orders any other access.
struct ClusterArrive {};
struct ClusterWait {};

struct Stmt {
  std::variant<Let, Declare, Combine, WarpCombine, WarpScan, Store, Prefetch, VectorLoad, VectorStore,
               VectorDivide, VectorRandom, KeepPacked, Bind, BindData, For, If, TransposeTile, Barrier,
               GridBarrier, ClusterBarrier, ClusterArrive, ClusterWait>
      node{};
  Origin origin{};
};

struct Kernel {
  std::string name{};
  std::string summary{};          ///< one line for the reader of the text
  std::vector<Buffer> buffers{};  ///< global ones are parameters, in this order
  std::vector<Dim> extents{};     ///< symbols that are parameters, after the buffers
  std::vector<Var> vars{};
  std::vector<Reduction> reductions{};
  std::vector<Stmt> body;
  int block_threads = 256;
  Dim grid = 1;               ///< blocks
  int blocks_per_sm = 1;      ///< blocks that must fit a multiprocessor at a time
  int min_blocks_per_sm = 1;  ///< as many or more: the blocks that registers should suffice for
  int cluster = 1;            ///< blocks per cluster; the grid has a whole number of clusters; 1: no clusters
  DType index_type = i64;     ///< i32 when every index and grid stride is proven below 2^31

  // Made once, in the .cpp: in every file that includes this they take longer than the rest of it.
  Kernel();
  Kernel(const Kernel&);
  Kernel(Kernel&&) noexcept;
  Kernel& operator=(const Kernel&);
  Kernel& operator=(Kernel&&) noexcept;
  ~Kernel();
};

/// "kernel @ln_0(x: global bf16[B * 1024], ...) block 128 grid (B + 3) / 4 { ... }": deterministic.
std::string print(const Kernel&);

/// Throws an internal Error naming kernel and statement: vars defined before use with matching dtypes, index
/// variables in scope, buffers and reductions in range, stores only to written buffers, parallel loops at the
/// top of the nest with the launch's extents, barriers and warp combines where all threads of the block
/// (warp) arrive, shared memory constant; and that no block of a cluster may end while another reads its
/// shared memory.
void verify(const Kernel&, std::int64_t shared_limit);

}  // namespace fuse::kernel
