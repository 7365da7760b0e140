// Building a graph: Graph, Tensor handles and operators.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/custom.hpp>
#include <fuse/dim.hpp>
#include <fuse/dtype.hpp>
#include <fuse/error.hpp>
#include <fuse/export.hpp>
#include <fuse/relation.hpp>
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
}

inline namespace v0 {

/// A handle to a value of a graph: two words, copied freely. It keeps the graph alive. Mixing tensors of two
/// graphs in one op throws wrong_graph.
class FUSE_COMPILER_API Tensor {
 public:
  Tensor() = default;
  DType dtype() const;
  std::vector<Dim> dims() const;
  std::int64_t rank() const;
  /// The extent of a dim; a negative axis counts from the end.
  Dim dim(std::int64_t axis) const;
  /// "f32[B, 1024]"
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
  Arg(const Tensor& tensor,
      std::source_location at = std::source_location::current())  // NOLINT: converts on purpose
      : tensor_(tensor), is_number_(false), at_(at) {}
  template <class T>
  requires std::is_arithmetic_v<T> Arg(
      T number, std::source_location at = std::source_location::current())  // NOLINT: converts on purpose
      : real_(static_cast<double>(number)),
        integer_(std::is_integral_v<T> ? static_cast<std::int64_t>(number) : 0),
        is_integer_(std::is_integral_v<T>),
        at_(at) {}

  bool is_number() const { return is_number_; }
  const Tensor& tensor() const { return tensor_; }
  double real() const { return real_; }
  /// 0 for a fractional type; an unsigned number above the maximum wraps to a negative one.
  std::int64_t integer() const { return integer_; }
  bool is_integer() const { return is_integer_; }
  const std::source_location& at() const { return at_; }

 private:
  Tensor tensor_;
  double real_ = 0;
  std::int64_t integer_ = 0;
  bool is_integer_ = false;
  bool is_number_ = true;
  std::source_location at_;
};

/// Names the ops built while it lives: `auto s = g.scope("block.0");`. Scopes nest; they end in reverse
/// order.
class FUSE_COMPILER_API ScopeGuard {
 public:
  ScopeGuard(ScopeGuard&&) noexcept;
  ScopeGuard& operator=(ScopeGuard&&) = delete;
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
  explicit Graph(std::string name = "graph");
  Graph(const Graph&);
  Graph(Graph&&) noexcept = default;
  Graph& operator=(const Graph&);
  Graph& operator=(Graph&&) noexcept = default;
  ~Graph() = default;

  using At = std::source_location;

  /// A symbolic extent. The name is unique in the graph; 0 <= min <= max, hint 0 or in the range.
  Dim dim(std::string name, DimRange range = {}, At at = At::current());
  /// States what holds for the dims in every run, as in `g.assume(equal(S0, S2 * S3))`, `divisible(B, 8)`,
  /// `at_most(B, 4096)`. compile relies on it, prepare checks it. Assumptions that cannot hold together are a
  /// user error (contradiction): here when one alone cannot, else in compile.
  void assume(const DimRelation& relation, At at = At::current());
  /// Data that changes from run to run.
  Tensor input(std::string name, DType dtype, std::vector<Dim> dims, At at = At::current());
  /// Data bound once (weights): neither hashed nor baked into kernels.
  Tensor parameter(std::string name, DType dtype, std::vector<Dim> dims, At at = At::current());
  /// One value in every element; rounded to the type, which must hold an integer exactly.
  Tensor constant(DType dtype, Arg value, std::vector<Dim> dims = {});
  /// The coordinate along `axis`; an integer type, f32 or f64.
  Tensor iota(DType dtype, std::vector<Dim> dims, std::int64_t axis, At at = At::current());
  /// The run-time value of a dim expression, i64[].
  Tensor dim_size(const Dim& dim, At at = At::current());
  void output(std::string name, const Tensor& value, At at = At::current());
  /// An output in the memory of an input (no parameter) of the same type, its donor. The caller binds both
  /// names to one buffer, and a run replaces what it held. A dynamic_update_slice of the input writes the
  /// update alone, so that a growing cache costs what is added, and its readers read that buffer. A value
  /// that is computed element by element, or by a step that does not read the input, is written there
  /// directly. Otherwise the value is made in a temporary buffer and copied at the end; `fusec explain` says
  /// why (docs/in-place.md).
  void output(std::string name, const Tensor& value, const Tensor& donor, At at = At::current());

  [[nodiscard]] ScopeGuard scope(std::string name, At at = At::current());

  const std::string& name() const;
  /// The `.fuse` text.
  std::string to_string() const;
  static Graph parse(std::string_view text, const std::string& file = "<text>");
  static Graph load(const std::string& path);

  /// The representation that passes work on; internal headers only.
  const ir::Graph& ir() const;
  static Graph from_ir(ir::Graph graph);

 private:
  explicit Graph(std::shared_ptr<detail::Builder> builder) : builder_(std::move(builder)) {}
  std::shared_ptr<detail::Builder> builder_;
};

FUSE_COMPILER_API_BEGIN

// Arithmetic with implicit broadcast: shapes align at the right, an extent 1 or a missing dim repeats.
// Operands have one dtype; numbers take it. f16 and bf16: convert to f32, compute, convert back (one rounding
// per op). `+ - *` on integers wrap; x / 0 is 0 and INT_MIN / -1 is INT_MIN on integers, which divide toward
// zero.
Tensor operator+(const Arg& a, const Arg& b);
Tensor operator-(const Arg& a, const Arg& b);
Tensor operator*(const Arg& a, const Arg& b);
Tensor operator/(const Arg& a, const Arg& b);
Tensor operator%(const Arg& a, const Arg& b);  ///< the remainder of truncating division
Tensor operator-(const Arg& a);
// Comparisons give bool tensors; `==` compares elements, never handles. A NaN equals nothing.
Tensor operator==(const Arg& a, const Arg& b);
Tensor operator!=(const Arg& a, const Arg& b);
Tensor operator<(const Arg& a, const Arg& b);
Tensor operator<=(const Arg& a, const Arg& b);
Tensor operator>(const Arg& a, const Arg& b);
Tensor operator>=(const Arg& a, const Arg& b);
Tensor operator&&(const Arg& a, const Arg& b);  ///< bool tensors; both sides are evaluated
Tensor operator||(const Arg& a, const Arg& b);
Tensor operator!(const Arg& a);
// Bits of integers. A shift by a negative number or by the width or more leaves 0, or -1 to the right of a
// negative.
Tensor operator~(const Arg& a);
Tensor operator&(const Arg& a, const Arg& b);
Tensor operator|(const Arg& a, const Arg& b);
Tensor operator^(const Arg& a, const Arg& b);
Tensor operator<<(const Arg& a, const Arg& b);
Tensor operator>>(const Arg& a, const Arg& b);  ///< keeps the sign of a

Tensor abs(const Arg& x);
Tensor sign(const Arg& x);
Tensor floor(const Arg& x);
Tensor ceil(const Arg& x);
Tensor round(const Arg& x);  ///< halves to even
Tensor sqrt(const Arg& x);
Tensor rsqrt(const Arg& x);
Tensor reciprocal(const Arg& x);
Tensor exp(const Arg& x);
Tensor exp2(const Arg& x);
Tensor expm1(const Arg& x);
Tensor log(const Arg& x);
Tensor log2(const Arg& x);
Tensor log1p(const Arg& x);
Tensor sin(const Arg& x);
Tensor cos(const Arg& x);
Tensor tanh(const Arg& x);
Tensor erf(const Arg& x);
Tensor is_nan(const Arg& x);
Tensor is_inf(const Arg& x);
Tensor atan2(const Arg& y, const Arg& x);  ///< the angle of the point (x, y), in [-pi, pi]
Tensor pow(const Arg& a, const Arg& b);
Tensor max(const Arg& a, const Arg& b);                           ///< NaN if either is
Tensor min(const Arg& a, const Arg& b);                           ///< NaN if either is
Tensor select(const Arg& condition, const Arg& a, const Arg& b);  ///< a where condition, else b
Tensor clamp(const Arg& x, const Arg& low, const Arg& high);      ///< min(max(x, low), high)
/// Rounds once, to nearest even. A float to an integer truncates and saturates, a NaN becomes 0; an integer
/// to a narrower one wraps; anything to bool: whether it is not 0.
Tensor convert(const Arg& x, DType dtype);

/// Repeats extents 1 and missing leading dims, as operators do; the shape must allow it.
Tensor broadcast_to(const Arg& x, std::vector<Dim> dims);
/// Operand dim i becomes result dim dims[i]; the other result dims repeat.
Tensor broadcast_in_dim(const Arg& x, std::vector<Dim> result_dims, std::vector<std::int64_t> dims);
/// Same elements in row-major order; one extent may be -1 when the others determine it.
Tensor reshape(const Arg& x, std::vector<Dim> dims);
/// Result dim i is operand dim permutation[i].
Tensor transpose(const Arg& x, std::vector<std::int64_t> permutation);
/// Elements [start, limit) with a step along one axis.
Tensor slice(const Arg& x, std::int64_t axis, const Dim& start, const Dim& limit, std::int64_t stride = 1);
/// The listed axes run backwards.
Tensor reverse(const Arg& x, std::vector<std::int64_t> axes);
/// `low[i]` elements of value before and `high[i]` after dim i; the value is a number or a scalar of x's
/// dtype.
Tensor pad(const Arg& x, const Arg& value, std::vector<Dim> low, std::vector<Dim> high);
Tensor concat(const std::vector<Tensor>& parts, std::int64_t axis,
              std::source_location at = std::source_location::current());
/// x.dims[:axis] + indices.dims + x.dims[axis + 1:]; an index out of range is clamped. As numpy.take.
Tensor gather(const Arg& x, const Arg& indices, std::int64_t axis);

/// sizes[i] elements of dim i from starts[i], a number or an i32 or i64 scalar known at run time; a start is
/// clamped so that the slice lies inside.
Tensor dynamic_slice(const Arg& x, const std::vector<Arg>& starts, std::vector<Dim> sizes);
/// x with `update`, of the same rank and no greater, at the starts, which are clamped as above.
Tensor dynamic_update_slice(const Arg& x, const Arg& update, const std::vector<Arg>& starts);

// Reductions over the given axes (all when empty); the reduced dims go away unless keep_dims. f16 and bf16
// are converted to f32, reduced and rounded once.
Tensor sum(const Arg& x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
Tensor prod(const Arg& x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
Tensor reduce_max(const Arg& x, std::vector<std::int64_t> axes = {},
                  bool keep_dims = false);  ///< NaN if any is
Tensor reduce_min(const Arg& x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
Tensor any(const Arg& x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);  ///< for bool
Tensor all(const Arg& x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);  ///< for bool
Tensor mean(const Arg& x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
/// i64 position of the largest (smallest) element along one axis: the first of equals, a NaN before all.
Tensor argmax(const Arg& x, std::int64_t axis, bool keep_dims = false);
Tensor argmin(const Arg& x, std::int64_t axis, bool keep_dims = false);

/// The sum of the elements up to and including each along the axis; `exclusive` leaves out the element
/// itself, `reverse` runs from the end. f16 and bf16 add in f32 and round once. Floats add in an order that
/// the extent alone determines.
Tensor cumulative_sum(const Arg& x, std::int64_t axis, bool exclusive = false, bool reverse = false);

/// [.., m, k] x [.., k, n]; leading dims are equal. transpose_* swaps the last two dims of an operand first.
/// Accumulates in f32 (f64 for f64) and rounds once to `result` (default: the operands' dtype).
Tensor matmul(const Arg& a, const Arg& b, bool transpose_a = false, bool transpose_b = false,
              std::optional<DType> result = std::nullopt);

/// The dims of a contraction, in pairs of equal extent: batch_a[i] with batch_b[i], contract_a[i] with
/// contract_b[i].
struct ContractionDims {
  std::vector<std::int64_t> batch_a{}, batch_b{}, contract_a{}, contract_b{};
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
}  // namespace fuse
