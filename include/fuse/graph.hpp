// Building a graph: Graph, Tensor handles, operators and the functions that are one op or a few.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <fuse/custom.hpp>
#include <fuse/dim.hpp>
#include <fuse/dtype.hpp>
#include <fuse/error.hpp>
#include <fuse/export.hpp>
#include <fuse/relation.hpp>
#include <initializer_list>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fuse {

namespace ir {
struct Graph;
}
namespace detail {
struct Builder;  // the graph under construction, shared by a Graph and its tensors
struct Access;
}  // namespace detail

inline namespace v0 {

/// A handle to a value of a graph: three words, copied freely. It keeps the graph alive. Mixing tensors of
/// two graphs in one op throws wrong_graph.
class FUSE_COMPILER_API Tensor {
 public:
  /// A handle to nothing. What asks it for a type, and what takes it as an operand, throws invalid_argument.
  Tensor() = default;
  /// The element type.
  DType dtype() const;
  /// The extents.
  std::vector<Dim> dims() const;
  /// The number of axes.
  std::int64_t rank() const;
  /// The extent of an axis; a negative axis counts from the end. Throws invalid_argument for one out of
  /// range.
  Dim dim(std::int64_t axis) const;
  /// The type as text: "f32[B, 1024]".
  std::string type_string() const;
  /// False for a default-made handle. Not a conversion to bool, which would make `x && y` ambiguous.
  bool valid() const { return builder_ != nullptr; }

 private:
  friend struct detail::Builder;
  friend class Graph;
  Tensor(std::shared_ptr<detail::Builder> builder, std::uint32_t node)
      : builder_(std::move(builder)), node_(node) {}
  std::shared_ptr<detail::Builder> builder_;
  std::uint32_t node_ = 0;
};

/// What operators and functions take: a tensor, or a number that takes the type of the other operands (`x *
/// 2` in f16 rounds 2 to f16 first). Converting to it records the caller's line, through operators too.
class Arg {
 public:
  /// A tensor.
  Arg(const Tensor& tensor,
      std::source_location at = std::source_location::current())  // NOLINT: converts on purpose
      : tensor_(tensor), is_number_(false), at_(at) {}
  /// A number.
  template <class T>
  requires std::is_arithmetic_v<T> Arg(
      T number, std::source_location at = std::source_location::current())  // NOLINT: converts on purpose
      : real_(static_cast<double>(number)),
        integer_(std::is_integral_v<T> ? static_cast<std::int64_t>(number) : 0),
        is_integer_(std::is_integral_v<T>),
        at_(at) {}

  /// True for a number, false for a tensor.
  bool is_number() const { return is_number_; }
  /// The tensor; a handle to nothing for a number.
  const Tensor& tensor() const { return tensor_; }
  /// The number, rounded to a double; 0 for a tensor.
  double real() const { return real_; }
  /// The number as an integer: 0 for a floating type and for a tensor; an unsigned number above the maximum
  /// wraps to a negative one.
  std::int64_t integer() const { return integer_; }
  /// True for a number of an integer type, bool included.
  bool is_integer() const { return is_integer_; }
  /// The line of the caller.
  const std::source_location& at() const { return at_; }

 private:
  Tensor tensor_;
  double real_ = 0;
  std::int64_t integer_ = 0;
  bool is_integer_ = false;
  bool is_number_ = true;
  std::source_location at_;
};

/// The axes that a function works on: none, one or several, as in `sum(x)`, `sum(x, 1)`, `sum(x, {0, -1})`. A
/// negative axis counts from the end.
class Axes {
 public:
  /// No axes.
  Axes() = default;
  /// One axis.
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) Axes(T axis)
      : axes_{static_cast<std::int64_t>(axis)} {}  // NOLINT: `sum(x, 1)`
  /// The axes of a list.
  Axes(std::initializer_list<std::int64_t> axes) : axes_(axes) {}  // NOLINT
  /// The axes of a list.
  Axes(std::vector<std::int64_t> axes) : axes_(std::move(axes)) {}  // NOLINT
  /// The axes, as they were given.
  const std::vector<std::int64_t>& list() const { return axes_; }

 private:
  std::vector<std::int64_t> axes_;
};

/// Names the ops built while it lives: `auto s = g.scope("block.0");`. Scopes nest; they end in reverse
/// order.
class FUSE_COMPILER_API ScopeGuard {
 public:
  /// Takes over the scope, which then ends with this guard.
  ScopeGuard(ScopeGuard&&) noexcept;
  ScopeGuard& operator=(ScopeGuard&&) = delete;
  /// Ends the scope.
  ~ScopeGuard();

 private:
  friend class Graph;
  friend struct detail::Builder;
  ScopeGuard(std::shared_ptr<detail::Builder> builder, bool fixes_location)
      : builder_(std::move(builder)), fixes_location_(fixes_location) {}
  std::shared_ptr<detail::Builder> builder_;
  bool fixes_location_ = false;
};

/// A tensor graph. A value: copying copies the nodes (handles stay with the original), moving keeps handles
/// valid. Not thread safe while it is built; const use is.
class FUSE_COMPILER_API Graph {
 public:
  /// A graph without ops. Messages have its name.
  explicit Graph(std::string name = "graph");
  /// Copies the nodes, or moves them. A graph that was moved from throws invalid_argument where it is used.
  ///@{
  Graph(const Graph&);
  Graph(Graph&&) noexcept = default;
  Graph& operator=(const Graph&);
  Graph& operator=(Graph&&) noexcept = default;
  ///@}
  ~Graph() = default;

  /// The line of the caller, for messages.
  using At = std::source_location;

  /// A symbolic extent. The name is unique in the graph; 0 <= min <= max, hint 0 or in the range. Throws
  /// duplicate_name and invalid_argument.
  Dim dim(std::string name, DimRange range = {}, At at = At::current());
  /// A symbol whose value is data: it stands for the extent that `value`, an i32[] or i64[], has in the run
  /// (BladeDISC, 3.1.2). `prepare` is given the value as that of any symbol, and each run compares the two:
  /// it writes the output "NAME_holds", a bool[]. Where that is false, the run was made for another extent,
  /// and its other outputs mean nothing; it writes no other memory than any run does. Throws what `dim` and
  /// `output` throw; dtype_mismatch and shape_mismatch for a value that is no such scalar.
  Dim data_dim(std::string name, const Tensor& value, DimRange range = {}, At at = At::current());
  /// States what holds for the dims in every run, as in `g.assume(equal(S0, S2 * S3))`, `divisible(B, 8)`,
  /// `at_most(B, 4096)`. compile relies on it, prepare checks it. Assumptions that cannot hold together are a
  /// user error (contradiction): here when one alone cannot, else in compile.
  void assume(const DimRelation& relation, At at = At::current());
  /// Data that changes from run to run. Throws duplicate_name and invalid_argument, and wrong_graph for a dim
  /// of another graph.
  Tensor input(std::string name, DType dtype, std::vector<Dim> dims, At at = At::current());
  /// Data bound once (weights): neither hashed nor baked into kernels. Throws as `input` does.
  Tensor parameter(std::string name, DType dtype, std::vector<Dim> dims, At at = At::current());
  /// One value in every element; rounded to the type, which must hold an integer exactly. Throws
  /// dtype_mismatch where it does not.
  Tensor constant(DType dtype, Arg value, std::vector<Dim> dims = {});
  /// The coordinate along `axis`; an integer type, f32 or f64.
  Tensor iota(DType dtype, std::vector<Dim> dims, std::int64_t axis, At at = At::current());
  /// The run-time value of a dim expression, i64[].
  Tensor dim_size(const Dim& dim, At at = At::current());
  /// Declares a value as an output. Throws duplicate_name for the name of another output, invalid_argument
  /// for an empty name, and wrong_graph.
  void output(std::string name, const Tensor& value, At at = At::current());
  /// An output in the memory of an input (no parameter) of the same type, its donor. The caller binds both
  /// names to one buffer, and a run replaces what it held. A dynamic_update_slice of the input writes the
  /// update alone, so that a growing cache costs what is added, and its readers read that buffer. A value
  /// that is computed element by element, or by a step that does not read the input, is written there
  /// directly. Otherwise the value is made in a temporary buffer and copied at the end; `fusec explain` says
  /// why (docs/in-place.md).
  void output(std::string name, const Tensor& value, const Tensor& donor, At at = At::current());

  /// Opens a scope, which lasts as long as the guard. Throws invalid_argument for an empty name.
  [[nodiscard]] ScopeGuard scope(std::string name, At at = At::current());

  /// The name of the graph.
  const std::string& name() const;
  /// The graph as `.fuse` text (docs/text-form.md).
  std::string to_string() const;
  /// The graph of a `.fuse` text; `file` is its name in messages. Throws parse and cycle, with line and
  /// column, and what the builder throws.
  static Graph parse(std::string_view text, const std::string& file = "<text>");
  /// The graph of a `.fuse` file. Throws io, and what `parse` throws.
  static Graph load(const std::string& path);

 private:
  friend struct detail::Access;
  const ir::Graph& ir() const;
  static Graph from_ir(ir::Graph graph);
  explicit Graph(std::shared_ptr<detail::Builder> builder) : builder_(std::move(builder)) {}
  std::shared_ptr<detail::Builder> builder_;
};

FUSE_COMPILER_API_BEGIN

/// Arithmetic with implicit broadcast: shapes align at the right, an extent 1 or a missing dim repeats.
/// Operands have one dtype; numbers take it. f16 and bf16: convert to f32, compute, convert back (one
/// rounding per op). `+ - *` on integers wrap; x / 0 is 0 and INT_MIN / -1 is INT_MIN on integers, which
/// divide toward zero. Throws shape_mismatch and dtype_mismatch.
///@{
Tensor operator+(const Arg& a, const Arg& b);
Tensor operator-(const Arg& a, const Arg& b);
Tensor operator*(const Arg& a, const Arg& b);
Tensor operator/(const Arg& a, const Arg& b);
Tensor operator%(const Arg& a, const Arg& b);  ///< the remainder of truncating division
Tensor operator-(const Arg& a);
///@}
/// Comparisons, with the broadcast of arithmetic. They give bool tensors; `==` compares elements, never
/// handles. A NaN equals nothing, and is neither less nor greater than anything.
///@{
Tensor operator==(const Arg& a, const Arg& b);
Tensor operator!=(const Arg& a, const Arg& b);
Tensor operator<(const Arg& a, const Arg& b);
Tensor operator<=(const Arg& a, const Arg& b);
Tensor operator>(const Arg& a, const Arg& b);
Tensor operator>=(const Arg& a, const Arg& b);
///@}
/// Logic of bool tensors, with the broadcast of arithmetic. Both sides are evaluated.
///@{
Tensor operator&&(const Arg& a, const Arg& b);
Tensor operator||(const Arg& a, const Arg& b);
Tensor operator!(const Arg& a);
///@}
/// Bits of integers, with the broadcast of arithmetic. A shift by a negative number or by the width or more
/// leaves 0, or -1 to the right of a negative.
///@{
Tensor operator~(const Arg& a);
Tensor operator&(const Arg& a, const Arg& b);
Tensor operator|(const Arg& a, const Arg& b);
Tensor operator^(const Arg& a, const Arg& b);
Tensor operator<<(const Arg& a, const Arg& b);
Tensor operator>>(const Arg& a, const Arg& b);  ///< keeps the sign of a
///@}

/// A function of each element, of the dtype and dims of x. `abs` and `sign` take every type but bool, the
/// others floating types. f16 and bf16 are computed in f32 and rounded once. docs/ops.md has the error bounds
/// and the values at the edges. Throws dtype_mismatch, and invalid_argument for a number.
///@{
Tensor abs(const Arg& x);
Tensor sign(const Arg& x);  ///< -1, 0 or 1; NaN for NaN
Tensor floor(const Arg& x);
Tensor ceil(const Arg& x);
Tensor round(const Arg& x);  ///< halves to even
Tensor sqrt(const Arg& x);
Tensor rsqrt(const Arg& x);       ///< 1 / sqrt(x)
Tensor reciprocal(const Arg& x);  ///< 1 / x
Tensor exp(const Arg& x);
Tensor exp2(const Arg& x);   ///< 2 to the power of x
Tensor expm1(const Arg& x);  ///< exp(x) - 1, without cancellation
Tensor log(const Arg& x);
Tensor log2(const Arg& x);
Tensor log1p(const Arg& x);  ///< log(1 + x), without cancellation
Tensor sin(const Arg& x);    ///< of radians
Tensor cos(const Arg& x);    ///< of radians
Tensor tanh(const Arg& x);
Tensor erf(const Arg& x);
///@}
Tensor is_nan(const Arg& x);                 ///< bool: whether an element of a floating type is a NaN
Tensor is_inf(const Arg& x);                 ///< bool: whether an element of a floating type is an infinity
Tensor atan2(const Arg& y, const Arg& x);    ///< the angle of the point (x, y), in [-pi, pi]
Tensor pow(const Arg& a, const Arg& b);      ///< a to the power of b; integers wrap, and a negative exponent
                                             ///< gives the truncated fraction
Tensor maximum(const Arg& a, const Arg& b);  ///< the larger element; NaN if either is
Tensor minimum(const Arg& a, const Arg& b);  ///< the smaller element; NaN if either is
Tensor select(const Arg& condition, const Arg& a, const Arg& b);  ///< a where condition, else b
Tensor where(const Arg& condition, const Arg& a, const Arg& b);   ///< numpy's name of select
Tensor clamp(const Arg& x, const Arg& low, const Arg& high);      ///< minimum(maximum(x, low), high)
/// Rounds once, to nearest even. A float to an integer truncates and saturates, a NaN becomes 0; an integer
/// to a narrower one wraps; anything to bool: whether it is not 0.
Tensor convert(const Arg& x, DType dtype);

/// The extents that a tensor states, an i32 or i64 scalar or a vector of up to 64 elements: a shape value
/// (BladeDISC, 3.1.2), as in `reshape(x, extents_of(shape))`. It is computed of Graph::dim_size and numbers
/// by add, sub, mul, div, rem, neg, max, min, sums and products, convert, reshape, slice, concat, gather and
/// reverse, so that it is an expression of symbols. Throws invalid_argument, which names the op, for a value
/// that is data, for a division that may be by 0 or of what is negative, for a max or min of which the ranges
/// do not say which it is, and for these of what may be beyond 64 bits; for an i32 that may be beyond 32
/// bits, and for a very long expression. Throws invalid_extent where the arithmetic of extents overflows.
///@{
Dim extent_of(const Arg& value);
std::vector<Dim> extents_of(const Arg& values);
///@}

/// Repeats x along axes of extent 1 and along missing leading axes, as operators do, so that it has these
/// dims. Throws shape_mismatch where that is not possible.
Tensor broadcast_to(const Arg& x, std::vector<Dim> dims);
/// Axis i of x becomes axis dims[i] of the result; x repeats along the other axes.
Tensor broadcast_in_dim(const Arg& x, std::vector<Dim> result_dims, std::vector<std::int64_t> dims);
/// Gives the elements, in row-major order, other dims. One extent may be -1 when the others determine it.
Tensor reshape(const Arg& x, std::vector<Dim> dims);
/// Removes the axes that are named; each must have extent 1. Without axes it removes all axes of extent 1.
Tensor squeeze(const Arg& x, const Axes& axes = {});
/// Inserts axes of extent 1. Each number is the place of a new axis in the result.
Tensor unsqueeze(const Arg& x, const Axes& axes);
/// Makes one axis of the axes `first` to `last`, both included.
Tensor flatten(const Arg& x, std::int64_t first = 0, std::int64_t last = -1);
/// Reorders the axes: axis i of the result is axis permutation[i] of x.
Tensor transpose(const Arg& x, std::vector<std::int64_t> permutation);
/// Takes the elements [start, limit) along one axis, with a stride.
Tensor slice(const Arg& x, std::int64_t axis, const Dim& start, const Dim& limit, std::int64_t stride = 1);
/// What a slice takes along one axis: the elements [start, limit), with a stride.
struct SliceRange {
  std::int64_t axis = 0;  ///< a negative one counts from the end
  ///@{
  /// The first element, `start`, and the first one that is left out, `limit`.
  Dim start = 0, limit = 0;
  ///@}
  std::int64_t stride = 1;  ///< 1 or more
};
/// Takes the elements that lie in all of the ranges. Each range names another axis; an axis without a range
/// is taken whole.
Tensor slice(const Arg& x, const std::vector<SliceRange>& ranges);
/// Cuts x along an axis into parts. `extents` has the extent of each part; their sum is that of the axis.
std::vector<Tensor> split(const Arg& x, const std::vector<Dim>& extents, std::int64_t axis);
/// Reverses the order of the elements along each of the axes.
Tensor reverse(const Arg& x, const Axes& axes);
/// Puts `low[i]` elements before those of axis i, and `high[i]` behind them. They have the value, which is a
/// number or a scalar of x's dtype.
Tensor pad(const Arg& x, const Arg& value, std::vector<Dim> low, std::vector<Dim> high);
/// Joins the parts along an axis, one after the other. Their other extents are equal. Throws invalid_argument
/// for no parts.
Tensor concat(const std::vector<Tensor>& parts, std::int64_t axis,
              std::source_location at = std::source_location::current());
/// Joins tensors of one shape along a new axis of the result.
Tensor stack(const std::vector<Tensor>& parts, std::int64_t axis = 0,
             std::source_location at = std::source_location::current());
/// Takes the elements of x at the indices along an axis, as numpy.take does. The dims are x.dims[:axis] +
/// indices.dims + x.dims[axis + 1:]. An index out of range is clamped.
Tensor gather(const Arg& x, const Arg& indices, std::int64_t axis);

/// Takes sizes[i] elements along axis i from starts[i], which is a number, or an i32 or i64 scalar that is
/// known at run time. A start is clamped so that the slice lies inside of x.
Tensor dynamic_slice(const Arg& x, const std::vector<Arg>& starts, std::vector<Dim> sizes);
/// Gives x with `update` written at the starts, which are clamped as above. Both have one rank; the update is
/// no larger than x.
Tensor dynamic_update_slice(const Arg& x, const Arg& update, const std::vector<Arg>& starts);

/// Options of a reduction.
struct ReduceOptions {
  bool keep_dims = false;  ///< the reduced dims stay, with extent 1
};
/// Reductions over the given axes (all when none is named); the reduced dims go away unless they are kept.
/// f16 and bf16 are converted to f32, reduced and rounded once. docs/ops.md has the results of no elements.
///@{
Tensor sum(const Arg& x, const Axes& axes = {}, ReduceOptions options = {});
Tensor prod(const Arg& x, const Axes& axes = {}, ReduceOptions options = {});
Tensor max(const Arg& x, const Axes& axes = {}, ReduceOptions options = {});  ///< the largest; NaN if any is
Tensor min(const Arg& x, const Axes& axes = {}, ReduceOptions options = {});  ///< the smallest; NaN if any is
Tensor any(const Arg& x, const Axes& axes = {}, ReduceOptions options = {});  ///< for bool
Tensor all(const Arg& x, const Axes& axes = {}, ReduceOptions options = {});  ///< for bool
Tensor mean(const Arg& x, const Axes& axes = {}, ReduceOptions options = {});  ///< of floating types
///@}
/// i64 position of the largest (smallest) element along one axis: the first of equals, a NaN before all.
///@{
Tensor argmax(const Arg& x, std::int64_t axis, ReduceOptions options = {});
Tensor argmin(const Arg& x, std::int64_t axis, ReduceOptions options = {});
///@}

/// Options of a scan.
struct ScanOptions {
  bool exclusive = false;  ///< leaves out the element itself
  bool reverse = false;    ///< runs from the end
};
/// The sum of the elements up to and including each along the axis. f16 and bf16 add in f32 and round once.
/// Floats add in an order that the shape and the axis determine.
Tensor cumulative_sum(const Arg& x, std::int64_t axis, ScanOptions options = {});

/// Options of a matrix product.
struct MatmulOptions {
  ///@{
  /// Swaps the last two dims of an operand first.
  bool transpose_a = false, transpose_b = false;
  ///@}
  std::optional<DType> result{};  ///< what the sums are rounded to; the operands' type if empty
};
/// [.., m, k] x [.., k, n]; leading dims are equal. Accumulates in f32 (f64 for f64) and rounds once.
Tensor matmul(const Arg& a, const Arg& b, const MatmulOptions& options = {});

/// The dims of a contraction, in pairs of equal extent: batch_a[i] with batch_b[i], contract_a[i] with
/// contract_b[i].
struct ContractionDims {
  ///@{
  /// Axes of operand a, or b, of a contraction.
  std::vector<std::int64_t> batch_a{}, batch_b{}, contract_a{}, contract_b{};
  ///@}
};
/// Sums a * b over the contracted dims: result dims are the batch dims, a's free dims, b's free dims, each in
/// order. Accumulates and rounds as matmul does. A negative dim counts from the end.
Tensor contraction(const Arg& a, const Arg& b, ContractionDims dims,
                   std::optional<DType> result = std::nullopt);

/// Uniform in [0, 1), f32 (multiples of 2^-24) or f64 (of 2^-53): Philox 4x32-10 of (seed, offset, stream,
/// element). Seed and offset are i64 scalars, known at run time; only the low 32 bits of the offset count.
/// Each call has a stream of its own, which rewrites keep: the same seed and offset give the same numbers,
/// another offset gives new ones.
Tensor random_uniform(DType dtype, std::vector<Dim> dims, const Arg& seed, const Arg& offset);

/// A user's kernel makes the result; fusion does not look inside.
Tensor custom_call(const CustomKernel& kernel, const std::vector<Tensor>& operands, DType dtype,
                   std::vector<Dim> dims, std::source_location at = std::source_location::current());

FUSE_COMPILER_API_END
}  // namespace v0

namespace detail {
/// For the library itself.
FUSE_COMPILER_API std::vector<Tensor> split_equally(const Arg& x, std::int64_t parts, std::int64_t axis);
}  // namespace detail

inline namespace v0 {

/// Cuts x along an axis into so many equal parts, 1 to 65,536. The extent of the axis must be a multiple of
/// it.
template <std::integral T>
std::vector<Tensor> split(const Arg& x, T parts, std::int64_t axis) {  // a template, so that {3} is a list
  return detail::split_equally(x, static_cast<std::int64_t>(parts), axis);
}

/// Makes `a` a handle to the result of the operator; the value that it was a handle to stays as it is.
///@{
inline Tensor& operator+=(Tensor& a, const Arg& b) { return a = Arg(a, b.at()) + b; }
inline Tensor& operator-=(Tensor& a, const Arg& b) { return a = Arg(a, b.at()) - b; }
inline Tensor& operator*=(Tensor& a, const Arg& b) { return a = Arg(a, b.at()) * b; }
inline Tensor& operator/=(Tensor& a, const Arg& b) { return a = Arg(a, b.at()) / b; }
inline Tensor& operator%=(Tensor& a, const Arg& b) { return a = Arg(a, b.at()) % b; }
inline Tensor& operator&=(Tensor& a, const Arg& b) { return a = Arg(a, b.at()) & b; }
inline Tensor& operator|=(Tensor& a, const Arg& b) { return a = Arg(a, b.at()) | b; }
inline Tensor& operator^=(Tensor& a, const Arg& b) { return a = Arg(a, b.at()) ^ b; }
///@}

}  // namespace v0
}  // namespace fuse

#include <fuse/deprecated.hpp>
