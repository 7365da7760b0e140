// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <fuse/error.hpp>
#include <map>
#include <string_view>

#include "base/access.hpp"
#include "ir/dims/dim_poly.hpp"
#include "ir/kernel/kernel.hpp"

namespace fuse::kernel {
namespace {

/// What differs between the threads that reach a statement.
struct Uniformity {
  bool grid = true;     ///< all blocks arrive, with all of their threads
  bool cluster = true;  ///< all blocks of a cluster arrive, with all of their threads
  bool block = true;    ///< all threads of a block arrive
  bool warp = true;     ///< all lanes of a warp arrive
};

/// Which threads an index differs between.
enum class Variation : std::uint8_t { none, clusters, blocks, warps, lanes };

class Verifier {
 public:
  Verifier(const Kernel& kernel, std::int64_t shared_limit) : kernel_(kernel), shared_limit_(shared_limit) {}

  void run() {
    std::int64_t shared = 0;
    for (const Buffer& buffer : kernel_.buffers) {
      if (buffer.space == Space::global) continue;
      check(buffer.elements.is_constant(), "buffer " + buffer.name + " has no constant size");
      if (buffer.space != Space::shared) continue;
      shared += buffer.elements.constant() * static_cast<std::int64_t>(size_of(buffer.dtype));
    }
    check(shared <= shared_limit_,
          fmt::format("{} bytes of shared memory, the limit is {}", shared, shared_limit_));
    check(kernel_.index_type == i32 || kernel_.index_type == i64, "the index type is not an integer");
    check(kernel_.cluster >= 1 && (kernel_.grid % kernel_.cluster).is(0),
          fmt::format("a grid of {} blocks is no whole number of clusters of {}", kernel_.grid.to_string(),
                      kernel_.cluster));
    for (const Reduction& reduction : kernel_.reductions) check_reduction(reduction);
    forget_variables(0);
    body(kernel_.body, {}, true);
    check(!arrived_, "threads arrive for their cluster and do not wait");
    check(!read_by_others_, "a block may end while another reads its shared memory");
  }

 private:
  void check(bool condition, std::string_view message) const {
    if (!condition) fail(message);
  }

  [[noreturn]] void fail(std::string_view message) const {
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::internal,
                 .message = fmt::format("kernel {}: {}{}", kernel_.name, message,
                                        current_.op.empty() ? "" : " (at " + current_.op + ")")});
  }

  void check_reduction(const Reduction& reduction) {
    forget_variables(0);
    const std::size_t n = reduction.state.size();
    check(n > 0 && reduction.identity.size() == n && reduction.left.size() == n &&
              reduction.right.size() == n && reduction.result.size() == n,
          "a reduction's region does not match its state");
    for (std::size_t i = 0; i < n; ++i) {
      define(reduction.left[i], reduction.state[i]);
      define(reduction.right[i], reduction.state[i]);
    }
    for (const Stmt& stmt : reduction.region) {
      const auto* let = std::get_if<Let>(&stmt.node);
      check(let && (std::holds_alternative<Compute>(let->rhs) || std::holds_alternative<Constant>(let->rhs)),
            "a combiner region holds more than lets of values");
      statement(*let, {}, false);
    }
    for (std::size_t i = 0; i < n; ++i) use(reduction.result[i], reduction.state[i]);
  }

  void define(VarId var, DType dtype) {
    check(var < kernel_.vars.size() && kernel_.vars[var].dtype == dtype,
          "a variable is defined with another type");
    if (is_defined_[var]) fail(kernel_.vars[var].name + " is defined twice");
    is_defined_[var] = true;
    defined_.push_back(var);
  }

  /// Forgets all variables but the first `kept` that were defined.
  void forget_variables(std::size_t kept) {
    for (; defined_.size() > kept; defined_.pop_back()) is_defined_[defined_.back()] = false;
  }

  void use(VarId var) const {
    check(var < kernel_.vars.size() && is_defined_[var], "a variable is used before it is defined");
  }
  void use(VarId var, DType dtype) const {
    use(var);
    const Var& variable = kernel_.vars[var];
    if (variable.pair) fail(variable.name + ", a pair, is used as a single value");
    if (variable.dtype != dtype) fail(variable.name + " is used as another type");
  }

  void check_free_of_unknown(const Index& index, std::string_view what) const {
    if (index.is_constant()) return;
    for (const Dim& symbol : index.symbols()) {
      bool known = indices_.contains(symbol.name());
      for (const Dim& extent : kernel_.extents) known = known || extent == symbol;
      if (!known) fail(fmt::format("{} uses {}, which is not in scope", what, symbol.name()));
    }
  }

  const Buffer& buffer(BufferId id) const {
    check(id < kernel_.buffers.size(), "a buffer does not exist");
    return kernel_.buffers[id];
  }

  const Reduction& reduction(ReductionId id) const {
    check(id < kernel_.reductions.size(), "a reduction does not exist");
    return kernel_.reductions[id];
  }

  /// Statements of one block; what they define is gone after it.
  void body(const std::vector<Stmt>& statements, Uniformity uniform, bool top) {
    const std::size_t defined = defined_.size();
    const auto indices = indices_;
    for (const Stmt& stmt : statements) {
      current_ = stmt.origin;
      std::visit([&](const auto& node) { statement(node, uniform, top); }, stmt.node);
    }
    forget_variables(defined);
    indices_ = indices;
  }

  Variation variation(const Index& index) const {
    Variation result = Variation::none;
    if (!poly_of(index)) return result;
    for (const detail::DimTerm& term : poly_of(index)->terms) {
      for (const detail::Atom& factor : term.factors) result = std::max(result, variation(*factor));
    }
    return result;
  }

  Variation variation(const detail::DimAtom& atom) const {
    using Kind = detail::DimAtom::Kind;
    if (atom.kind == Kind::symbol || atom.kind == Kind::index) {
      const auto found = indices_.find(atom.name);
      return found == indices_.end() ? Variation::none : found->second;
    }
    if (atom.kind == Kind::quotient && counts_clusters(atom.dividend, atom.divisor))
      return Variation::clusters;
    return std::max(variation(atom.dividend), variation(atom.divisor));
  }

  /// A block's number by the blocks of a cluster, or of several.
  bool counts_clusters(const Index& block, const Index& by) const {
    return kernel_.cluster > 1 && !block_.empty() && block.name() == block_ && by.is_constant() &&
           by.constant() % kernel_.cluster == 0;
  }

  static Uniformity narrowed(Uniformity uniform, Variation variation) {
    if (variation >= Variation::clusters) uniform.grid = false;
    if (variation >= Variation::blocks) uniform.cluster = false;
    if (variation >= Variation::warps) uniform.block = false;
    if (variation >= Variation::lanes) uniform.warp = false;
    return uniform;
  }

  void introduce(const std::string& name, Variation variation) {
    if (!indices_.emplace(name, variation).second) fail("index variable " + name + " is defined twice");
  }

  void statement(const Let& let, Uniformity, bool) {
    check(let.var < kernel_.vars.size(), "a variable does not exist");
    const DType dtype = kernel_.vars[let.var].dtype;
    if (kernel_.vars[let.var].pair) {
      check_pair(let.rhs, dtype);
    } else if (const auto* compute = std::get_if<Compute>(&let.rhs)) {
      for (const VarId operand : compute->operands) {
        use(operand);
        use(operand, kernel_.vars[operand].dtype);
      }
      check_compute(*compute, dtype);
    } else if (const auto* load = std::get_if<Load>(&let.rhs)) {
      check(buffer(load->buffer).dtype == dtype, "a load has another type than its buffer");
      check_free_of_unknown(load->index, "a load");
      if (load->predicate) use(*load->predicate, boolean);
      if (load->rank) check_rank(*load);
    } else if (const auto* value = std::get_if<IndexValue>(&let.rhs)) {
      check(is_integer(dtype), "an index becomes a value that is not an integer");
      check_free_of_unknown(value->index, "an index value");
    } else if (const auto* less = std::get_if<IndexLess>(&let.rhs)) {
      check(dtype == boolean, "a comparison of indices is not a bool");
      check_free_of_unknown(less->index, "a comparison");
      check_free_of_unknown(less->bound, "a comparison");
    } else if (const auto* random = std::get_if<Random>(&let.rhs)) {
      check_random(*random, dtype);
    } else if (const auto* reciprocal = std::get_if<Reciprocal>(&let.rhs)) {
      use(reciprocal->divisor, f32);
      check(dtype == f32, "a reciprocal for divisions is not f32");
    } else if (const auto* quotient = std::get_if<Quotient>(&let.rhs)) {
      for (const VarId var : {quotient->numerator, quotient->divisor, quotient->reciprocal}) use(var, f32);
      check(dtype == f32, "a quotient by a reciprocal is not f32");
    } else if (const auto* part = std::get_if<PartOfPair>(&let.rhs)) {
      use(part->pair);
      use_pair(part->pair, dtype == f32 ? kernel_.vars[part->pair].dtype : dtype);
    } else {
      check(!std::holds_alternative<Pair>(let.rhs), "a pair becomes a single value");
    }
    define(let.var, dtype);
  }

  void check_pair(const Rhs& rhs, DType dtype) const {
    check(is_half(dtype), "a pair is of no half type");
    if (const auto* compute = std::get_if<Compute>(&rhs)) {
      const ir::OpInfo& row = info(compute->op);
      check(row.has(ir::Trait::pairs), "a pair is computed by an op that has no pairs");
      check(static_cast<int>(compute->operands.size()) == row.arity, "a let has another arity than its op");
      for (const VarId operand : compute->operands) use_pair(operand, dtype);
    } else if (const auto* pair = std::get_if<Pair>(&rhs)) {
      use(pair->first);
      use(pair->second, kernel_.vars[pair->first].dtype);
      check(kernel_.vars[pair->first].dtype == f32 || kernel_.vars[pair->first].dtype == dtype,
            "a pair is of neither halves nor f32 values");
      check(!kernel_.vars[pair->first].pair && !kernel_.vars[pair->second].pair, "a pair is of pairs");
    } else if (const auto* load = std::get_if<Load>(&rhs)) {
      check(!load->predicate && !load->rank, "a pair is loaded by a condition, or from another block");
      check_own_pair(load->buffer, load->index, dtype, "a load");
    } else {
      check(std::holds_alternative<Constant>(rhs), "a single value becomes a pair");
    }
  }

  void check_own_pair(BufferId array, const Index& index, DType dtype, const std::string& what) const {
    check(buffer(array).space == Space::local && buffer(array).dtype == dtype,
          what + " of a pair is of something else than a thread's own array of its type");
    check_free_of_unknown(index, what);
    check((index % 2).is(0), fmt::format("{} of a pair at {}", what, index.to_string()));
  }

  void use_pair(VarId var, DType dtype) const {
    use(var);
    check(kernel_.vars[var].pair && kernel_.vars[var].dtype == dtype,
          kernel_.vars[var].name + " is used as a pair of another type");
  }

  void check_random(const Random& random, DType dtype) const {
    use(random.seed, i64);
    use(random.offset, i64);
    check(dtype == f32 || dtype == f64, "a random number is neither f32 nor f64");
    check_free_of_unknown(random.element, "a random number");
  }

  void check_rank(const Load& load) {
    const Index& rank = *load.rank;
    check(kernel_.cluster > 1, "a load from another block of a cluster, without clusters");
    check(buffer(load.buffer).space == Space::shared,
          "a load from another block that is not of shared memory");
    check_free_of_unknown(rank, "a rank");
    const bool below = rank.max() < kernel_.cluster ||
                       std::any_of(conditions_.begin(), conditions_.end(), [&](const IndexLess& less) {
                         return less.index == rank && less.bound.max() <= kernel_.cluster;
                       });
    check(rank.min() >= 0 && below,
          fmt::format("the rank {} may leave a cluster of {} blocks", rank.to_string(), kernel_.cluster));
    check(!arrived_, "a load from another block, after the thread has arrived");
    read_by_others_ = true;
  }

  void check_compute(const Compute& compute, DType dtype) const {
    const ir::OpInfo& row = info(compute.op);
    check(row.relation == ir::Relation::identity, "a let computes an op that is not element-wise");
    check(static_cast<int>(compute.operands.size()) == row.arity, "a let has another arity than its op");
    const auto type = [&](std::size_t i) { return kernel_.vars[compute.operands[i]].dtype; };
    if (row.elementwise) {
      for (std::size_t i = 1; i < compute.operands.size(); ++i) {
        check(type(i) == type(0), "operands of an element-wise op differ in type");
      }
      check(dtype == (row.result == ir::ResultClass::boolean ? boolean : type(0)),
            "a let has another type than its op");
    } else if (row.arity == 3) {
      check(type(0) == boolean && type(1) == dtype && type(2) == dtype, "a select mixes types");
    }
  }

  void statement(const Declare& declare, Uniformity, bool) {
    const Reduction& of = reduction(declare.reduction);
    check(declare.state.size() == of.state.size(), "a declaration does not match its reduction");
    check(declare.initial.empty() || declare.initial.size() == of.state.size(),
          "initial values do not match their reduction");
    for (std::size_t i = 0; i < declare.initial.size(); ++i) use(declare.initial[i], of.state[i]);
    for (std::size_t i = 0; i < declare.state.size(); ++i) define(declare.state[i], of.state[i]);
  }

  void statement(const Combine& combine, Uniformity, bool) {
    const Reduction& of = reduction(combine.reduction);
    check(combine.state.size() == of.state.size() && combine.incoming.size() == of.state.size(),
          "a combination does not match its reduction");
    for (std::size_t i = 0; i < combine.state.size(); ++i) {
      use(combine.state[i], of.state[i]);
      use(combine.incoming[i], of.state[i]);
    }
  }

  void statement(const WarpCombine& combine, Uniformity uniform, bool) {
    const Reduction& of = reduction(combine.reduction);
    check(combine.state.size() == of.state.size(), "a combination does not match its reduction");
    for (std::size_t i = 0; i < combine.state.size(); ++i) use(combine.state[i], of.state[i]);
    check(combine.lanes > 1 && combine.lanes <= 32 && (combine.lanes & (combine.lanes - 1)) == 0,
          fmt::format("a combination of {} lanes", combine.lanes));
    const int stride = combine.stride;
    check(stride > 0 && (stride & (stride - 1)) == 0 && stride * combine.lanes <= 32,
          fmt::format("a combination of {} lanes that lie {} apart", combine.lanes, stride));
    check(uniform.warp, "lanes of a warp may miss its combination");
  }

  void statement(const WarpScan& scan, Uniformity uniform, bool) {
    const Reduction& of = reduction(scan.reduction);
    check(of.state.size() == 1 && of.single == ir::Op::add, "a scan of something else than a sum");
    use(scan.carry, of.state[0]);
    use(scan.incoming, of.state[0]);
    check(uniform.warp, "lanes of a warp may miss its scan");
    define(scan.result, of.state[0]);
  }

  void statement(const Store& store, Uniformity, bool) {
    check(buffer(store.buffer).written, "a store to " + buffer(store.buffer).name + ", which is only read");
    use(store.value);
    if (kernel_.vars[store.value].pair) {
      use_pair(store.value, buffer(store.buffer).dtype);
      return check_own_pair(store.buffer, store.index, buffer(store.buffer).dtype, "a store");
    }
    use(store.value, buffer(store.buffer).dtype);
    check_free_of_unknown(store.index, "a store");
  }

  void statement(const Prefetch& prefetch, Uniformity, bool) {
    check(buffer(prefetch.buffer).space == Space::global, "a prefetch of something else than global memory");
    check_free_of_unknown(prefetch.index, "a prefetch");
  }

  void statement(const VectorLoad& load, Uniformity, bool) {
    check_vector(load.array, load.buffer, load.index, "a vector load");
  }

  void statement(const VectorStore& store, Uniformity, bool) {
    check(buffer(store.buffer).written, "a store to " + buffer(store.buffer).name + ", which is only read");
    check_vector(store.array, store.buffer, store.index, "a vector store");
  }

  void statement(const VectorDivide& divide, Uniformity, bool) {
    for (const BufferId array : {divide.quotients, divide.numerators}) {
      check(buffer(array).space == Space::local && buffer(array).dtype == f32,
            "a division by one value is of something else than a thread's own array of f32");
    }
    check(divide.quotients != divide.numerators &&
              buffer(divide.quotients).elements == buffer(divide.numerators).elements,
          "a division by one value is of arrays of two sizes, or of one array");
    use(divide.divisor, f32);
    use(divide.reciprocal, f32);
  }

  void check_vector(BufferId array, BufferId memory, const Index& index, const std::string& what) const {
    check(buffer(array).space == Space::local && buffer(memory).space != Space::local,
          what + " is not between a thread's own array and memory");
    check(buffer(array).dtype == buffer(memory).dtype, what + " has another type than its buffer");
    check_free_of_unknown(index, what);
    const std::int64_t elements = buffer(array).elements.constant();
    const std::int64_t bytes = elements * static_cast<std::int64_t>(size_of(buffer(array).dtype));
    check(
        elements > 1 && bytes <= vector_bytes && (elements & (elements - 1)) == 0 && (index % elements).is(0),
        fmt::format("{} of {} elements at {}", what, elements, index.to_string()));
  }

  void statement(const VectorRandom& random, Uniformity, bool) {
    const Buffer& array = buffer(random.array);
    check(array.space == Space::local, "random numbers go to an array that is not a thread's own");
    check_random(random.first, array.dtype);
    const std::int64_t elements = array.elements.constant();
    check(elements > 1 && (elements & (elements - 1)) == 0 && (random.first.element % elements).is(0),
          fmt::format("a draw of {} numbers at {}", elements, random.first.element.to_string()));
  }

  void statement(const KeepPacked& kept, Uniformity, bool) {
    const Buffer& array = buffer(kept.array);
    const std::int64_t bytes = array.elements.constant() * static_cast<std::int64_t>(size_of(array.dtype));
    check(array.space == Space::local && bytes % 4 == 0,
          "something else than a thread's own array of whole registers is kept packed");
  }

  void statement(const Bind& bind, Uniformity, bool) {
    check_free_of_unknown(bind.value, "a binding");
    introduce(bind.name, variation(bind.value));
  }

  void statement(const BindData& bind, Uniformity, bool) {
    use(bind.value);
    check(is_integer(kernel_.vars[bind.value].dtype), "an index from data is not an integer");
    check_free_of_unknown(bind.extent, "a binding");
    introduce(bind.name, Variation::lanes);
  }

  void statement(const For& loop, Uniformity uniform, bool top) {
    if (loop.parallel == Parallel::serial) {
      for (const Index* index : {&loop.begin, &loop.end, &loop.step}) check_free_of_unknown(*index, "a loop");
      const Variation bounds = std::max({variation(loop.begin), variation(loop.end), variation(loop.step)});
      check(!loop.unrolled || (loop.begin.is_constant() && loop.end.is_constant() && loop.step.is_constant()),
            "an unrolled loop has no constant bounds");
      introduce(loop.name, bounds);
      const bool runs =
          loop.begin.is_constant() && loop.end.is_constant() && loop.begin.constant() < loop.end.constant();
      maybe([&] { body(loop.body, narrowed(uniform, bounds), false); }, runs);
      forget(loop.name);
      return;
    }
    check(top, "a parallel loop inside serial code");
    check(loop.begin.is(0) && loop.step.is(1), "a parallel loop does not start at 0 by 1");
    const Dim threads = loop.parallel == Parallel::grid    ? kernel_.grid
                        : loop.parallel == Parallel::block ? Dim(kernel_.block_threads)
                        : loop.parallel == Parallel::warp  ? Dim(kernel_.block_threads / 32)
                                                           : Dim(32);
    check(loop.end == threads, "a parallel loop has another extent than the launch");
    introduce(loop.name, loop.parallel == Parallel::grid   ? Variation::blocks
                         : loop.parallel == Parallel::warp ? Variation::warps
                                                           : Variation::lanes);
    if (loop.parallel == Parallel::grid) block_ = loop.name;
    check(loop.next.empty() || loop.parallel == Parallel::grid, "a next block that no block has");
    if (!loop.next.empty()) introduce(loop.next, Variation::blocks);
    body(loop.body, uniform, true);
    if (!loop.next.empty()) forget(loop.next);
    forget(loop.name);
  }

  void statement(const If& branch, Uniformity uniform, bool) {
    Variation varies = Variation::none;
    for (const IndexLess& less : branch.conditions) {
      check_free_of_unknown(less.index, "a condition");
      check_free_of_unknown(less.bound, "a condition");
      varies = std::max({varies, variation(less.index), variation(less.bound)});
    }
    const std::size_t around = conditions_.size();
    conditions_.insert(conditions_.end(), branch.conditions.begin(), branch.conditions.end());
    maybe([&] { body(branch.body, narrowed(uniform, varies), false); }, false);
    conditions_.resize(around);
  }

  /// Handles a body that may not run: a barrier in it does not count for what was before it.
  template <class F>
  void maybe(F&& check_body, bool runs) {
    const bool before = read_by_others_, arrived = arrived_;
    check_body();
    check(runs || arrived_ == arrived,
          "threads arrive for their cluster, or wait for it, in what may not run");
    if (!runs) read_by_others_ = read_by_others_ || before;
  }

  void statement(const TransposeTile& tile, Uniformity uniform, bool) {
    const Buffer& of = buffer(tile.buffer);
    check(uniform.block && kernel_.block_threads == tile_side, "a tile is transposed by one warp");
    check(of.space == Space::shared && of.written, "a tile lies in shared memory");
    check(of.elements.is(tile_side * tile_side), "a tile has another size than its buffer");
  }

  void statement(const Barrier&, Uniformity uniform, bool) {
    check(uniform.block, "threads of a block may miss a barrier");
  }

  void statement(const GridBarrier& barrier, Uniformity uniform, bool) {
    const Buffer& counter = buffer(barrier.counter);
    const bool groups = barrier.group > 0;
    check(!groups || (barrier.group > 1 && kernel_.cluster == 1 && kernel_.grid.is_constant()),
          fmt::format("a grid barrier of groups of {} blocks", barrier.group));
    const std::int64_t counters = groups ? kernel_.grid.constant() / barrier.group : 1;
    check(counter.written && counter.dtype == i32 && counter.space == Space::global &&
              counter.elements.is_constant() && barrier.first >= (groups ? 1 : 0) &&
              barrier.first + counters <= counter.elements.constant(),
          "a grid barrier counts in " + counter.name);
    check(uniform.grid, "blocks may miss a grid barrier");
  }

  void statement(const ClusterBarrier&, Uniformity uniform, bool) {
    check(kernel_.cluster > 1, "a barrier of clusters, without clusters");
    check(uniform.cluster, "blocks of a cluster may miss its barrier");
    check(!arrived_, "a barrier of the cluster, after its threads have arrived");
    read_by_others_ = false;
  }

  void statement(const ClusterArrive&, Uniformity uniform, bool) {
    check(kernel_.cluster > 1, "threads arrive for their cluster, without clusters");
    check(uniform.cluster, "blocks of a cluster may not arrive");
    check(!arrived_, "threads arrive for their cluster twice");
    arrived_ = true;
  }

  void statement(const ClusterWait&, Uniformity uniform, bool) {
    check(uniform.cluster, "blocks of a cluster may not wait");
    check(arrived_, "threads wait for their cluster, and have not arrived");
    arrived_ = false;
    read_by_others_ = false;
  }

  void forget(const std::string& name) { indices_.erase(name); }

  const Kernel& kernel_;
  const std::int64_t shared_limit_;
  std::vector<VarId> defined_;  ///< in the order of their definition
  std::vector<bool> is_defined_ = std::vector<bool>(kernel_.vars.size());
  std::map<std::string, Variation, std::less<>> indices_;
  std::string block_;                  // the index of the grid's loop
  std::vector<IndexLess> conditions_;  // the conditions around
  bool read_by_others_ = false;        // others read shared memory, and no barrier of the cluster followed
  bool arrived_ = false;               // it has arrived for the cluster, and not waited
  Origin current_;
};

}  // namespace

void verify(const Kernel& kernel, std::int64_t shared_limit) { Verifier(kernel, shared_limit).run(); }

}  // namespace fuse::kernel
