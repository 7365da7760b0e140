// Compound functions, written as an application would write its own: open a scope, widen the arguments,
// compute with operators, round once. Operators that add nodes stand in statements of their own: C++ leaves
// the order inside an expression open, and the graph must not depend on the compiler.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <fuse/functions.hpp>
#include <limits>

#include "ir/builder/builder.hpp"

namespace fuse {
inline namespace v0 {
namespace {

using detail::Builder;

/// One call of a compound function. While it lives, ops carry the function's scope and the caller's line, and
/// errors name the function with all its arguments.
struct Function {
  std::string name;
  std::vector<Arg> args;
  std::source_location at = args.at(0).at();
  Builder& builder = Builder::of(name, args);
  ScopeGuard scope = builder.open_scope(name, at, true);

  [[noreturn]] void fail(ErrorCode code, std::string message, std::string hint) const {
    builder.fail(code, name, args, std::move(message), std::move(hint), at);
  }

  ScopeGuard part(std::string part_name) const { return builder.open_scope(std::move(part_name), at, true); }

  const Tensor& tensor(std::size_t i) const {
    if (args[i].is_number()) {
      fail(ErrorCode::invalid_argument, "a number stands where a tensor is needed",
           "make it a tensor with Graph::constant");
    }
    return args[i].tensor();
  }

  /// Argument `i` in its own type, which must be floating.
  const Tensor& real(std::size_t i) const {
    const Tensor& x = tensor(i);
    if (!is_floating(x.dtype())) {
      fail(ErrorCode::dtype_mismatch, fmt::format("{} is no floating type", to_string(x.dtype())),
           "convert the argument to f32 first");
    }
    return x;
  }

  /// The type to compute in.
  DType wide() const { return is_half(args[0].tensor().dtype()) ? f32 : args[0].tensor().dtype(); }

  /// Argument `i` in the type to compute in.
  Tensor widened(std::size_t i) const {
    const Tensor& x = real(i);
    return is_half(x.dtype()) ? convert(x, f32) : x;
  }

  /// The result in the type of the first argument: the one rounding.
  Tensor rounded(const Tensor& result) const { return convert(result, args[0].tensor().dtype()); }

  std::int64_t axis(std::int64_t axis) const {
    const std::int64_t rank = tensor(0).rank();
    if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
    fail(ErrorCode::invalid_argument, fmt::format("axis {} is out of range for rank {}", axis, rank),
         rank == 0 ? "a scalar has no axes" : fmt::format("axes are {} to {}", -rank, rank - 1));
  }

  void check_rank(std::size_t i, std::int64_t rank) const {
    if (tensor(i).rank() == rank) return;
    fail(ErrorCode::shape_mismatch,
         fmt::format("argument {} has rank {}, not {}", i + 1, tensor(i).rank(), rank), "reshape it");
  }
  void check_equal(std::string_view what, const Dim& a, const Dim& b) const {
    if (a == b) return;
    fail(ErrorCode::shape_mismatch, fmt::format("{} differ: {} and {}", what, a.to_string(), b.to_string()),
         a.is_constant() && b.is_constant() ? "check the order of the dims and of the arguments"
                                            : "declare one dim for both");
  }

  /// The coordinate along `axis` at every element of `like`.
  Tensor coordinate(DType dtype, const Tensor& like, std::int64_t axis) const {
    const ir::Type type{dtype, like.dims()};
    return builder.add(ir::Op::iota, {}, ir::AxisAttr{axis}, &type, at);
  }
};

/// Repeats a reduction along `axis`, or what has its shape, over the dims of `like`.
Tensor along(const Tensor& reduced, const Tensor& like, std::int64_t axis) {
  std::vector<std::int64_t> dims;
  for (std::int64_t i = 0; i < like.rank(); ++i) {
    if (i != axis) dims.push_back(i);
  }
  return broadcast_in_dim(reduced, like.dims(), dims);
}

/// x - max(x): exp of it neither overflows nor is 0 everywhere.
Tensor shifted(const Tensor& x, std::int64_t axis) { return x - along(reduce_max(x, {axis}), x, axis); }

Tensor log_probabilities(const Tensor& x, std::int64_t axis) {
  const Tensor z = shifted(x, axis);
  return z - along(log(sum(exp(z), {axis})), x, axis);
}

Tensor linear(const Function& f) {
  const Tensor x = f.real(0), weight = f.real(1);
  const bool has_bias = f.args.size() > 2;
  f.check_rank(1, 2);
  std::vector<Dim> dims = x.dims();
  f.check_equal("the last extent of x and the first of the weight",
                dims[static_cast<std::size_t>(f.axis(-1))], weight.dim(0));
  dims.pop_back();
  const Tensor rows = reshape(x, {product(dims), weight.dim(0)});
  // With a bias, the product stays in f32 until the bias is added: one rounding, as without.
  Tensor y = matmul(rows, weight, false, false, has_bias ? f.wide() : x.dtype());
  if (has_bias) {
    f.check_rank(2, 1);
    f.check_equal("the extents of the bias and of the weight", f.tensor(2).dim(0), weight.dim(1));
    y = f.rounded(y + f.widened(2));
  }
  dims.push_back(weight.dim(1));
  return reshape(y, dims);
}

/// Checks a scale or a shift of a normalisation: one value for each element of the last dim.
void check_row(const Function& f, std::size_t i) {
  f.check_rank(i, 1);
  f.check_equal(fmt::format("the last extent of x and the extent of argument {}", i + 1),
                f.tensor(0).dim(f.axis(-1)), f.tensor(i).dim(0));
}

}  // namespace

Tensor softmax(const Arg& x, std::int64_t axis) {
  const Function f{"softmax", {x}};
  axis = f.axis(axis);
  const Tensor e = exp(shifted(f.widened(0), axis));
  return f.rounded(e / along(sum(e, {axis}), e, axis));
}

Tensor log_softmax(const Arg& x, std::int64_t axis) {
  const Function f{"log_softmax", {x}};
  return f.rounded(log_probabilities(f.widened(0), f.axis(axis)));
}

Tensor layer_norm(const Arg& x, const Arg& gamma, const Arg& beta, double epsilon) {
  const Function f{"layer_norm", {x, gamma, beta}};
  const std::int64_t last = f.axis(-1);
  check_row(f, 1);
  check_row(f, 2);
  const Tensor wide = f.widened(0);
  const auto centred = [&] {
    const ScopeGuard part = f.part("mean");
    return wide - along(mean(wide, {last}), wide, last);
  }();
  // The mean of squared differences: E[x^2] - E[x]^2 would cancel where the mean is large.
  const auto scale = [&] {
    const ScopeGuard part = f.part("var");
    return rsqrt(mean(centred * centred, {last}) + epsilon);
  }();
  const Tensor normal = centred * along(scale, wide, last);
  const Tensor scaled = normal * f.widened(1);
  return f.rounded(scaled + f.widened(2));
}

Tensor rms_norm(const Arg& x, const Arg& gamma, double epsilon) {
  const Function f{"rms_norm", {x, gamma}};
  const std::int64_t last = f.axis(-1);
  check_row(f, 1);
  const Tensor wide = f.widened(0);
  const Tensor scale = rsqrt(mean(wide * wide, {last}) + epsilon);
  const Tensor normal = wide * along(scale, wide, last);
  return f.rounded(normal * f.widened(1));
}

Tensor gelu(const Arg& x) {
  const Function f{"gelu", {x}};
  const Tensor wide = f.widened(0);
  const Tensor halved = wide * 0.5;
  return f.rounded(halved * (1 + erf(wide * std::sqrt(0.5))));
}

Tensor silu(const Arg& x) {
  const Function f{"silu", {x}};
  const Tensor wide = f.widened(0);
  return f.rounded(wide / (1 + exp(-wide)));
}

Tensor linear(const Arg& x, const Arg& weight) { return linear(Function{"linear", {x, weight}}); }

Tensor linear(const Arg& x, const Arg& weight, const Arg& bias) {
  return linear(Function{"linear", {x, weight, bias}});
}

Tensor embedding(const Arg& table, const Arg& indices) {
  const Function f{"embedding", {table, indices}};
  f.check_rank(0, 2);
  if (!is_integer(f.tensor(1).dtype())) {
    f.fail(ErrorCode::dtype_mismatch, fmt::format("{} is no integer type", to_string(f.tensor(1).dtype())),
           "indices are i32 or i64");
  }
  return gather(table, indices, 0);
}

Tensor attention(const Arg& q, const Arg& k, const Arg& v, bool causal) {
  const Function f{"attention", {q, k, v}};
  const Tensor query = f.real(0), key = f.real(1), value = f.real(2);
  for (std::size_t i = 0; i < 3; ++i) {
    f.check_rank(i, 4);
    if (f.tensor(i).dtype() != query.dtype()) {
      f.fail(ErrorCode::dtype_mismatch, "q, k and v have different types", "convert them to one type");
    }
    f.check_equal("the batch extents", query.dim(0), f.tensor(i).dim(0));
    f.check_equal("the numbers of heads", query.dim(1), f.tensor(i).dim(1));
  }
  f.check_equal("the widths of q and k", query.dim(3), key.dim(3));
  f.check_equal("the lengths of k and v", key.dim(2), value.dim(2));
  if (causal) f.check_equal("the lengths of q and k, equal in causal attention,", query.dim(2), key.dim(2));

  Tensor scores = matmul(query, key, false, true, f.wide());
  const Dim width = query.dim(3);
  if (width.is_constant()) {
    scores = scores * (1 / std::sqrt(static_cast<double>(width.constant())));
  } else {
    const Tensor size = f.builder.add(ir::Op::dim_size, {}, ir::DimAttr{width}, nullptr, f.at);
    scores = scores / sqrt(convert(size, f.wide()));
  }
  if (causal) {
    const ScopeGuard part = f.part("mask");
    const DType counter = key.dim(2).max() <= std::numeric_limits<std::int32_t>::max() ? i32 : i64;
    const Tensor row = f.coordinate(counter, scores, 2);
    const Tensor column = f.coordinate(counter, scores, 3);
    scores = select(column <= row, scores, -std::numeric_limits<double>::infinity());
  }
  return matmul(f.rounded(softmax(scores)), value);
}

Tensor cross_entropy(const Arg& logits, const Arg& labels) {
  const Function f{"cross_entropy", {logits, labels}};
  const Tensor wide = f.widened(0), label = f.tensor(1);
  const std::int64_t last = f.axis(-1);
  if (!is_integer(label.dtype())) {
    f.fail(ErrorCode::dtype_mismatch, fmt::format("{} is no integer type", to_string(label.dtype())),
           "labels are i32 or i64");
  }
  f.check_rank(1, last);
  for (std::int64_t i = 0; i < last; ++i) {
    f.check_equal(fmt::format("extents of dim {}", i), wide.dim(i), label.dim(i));
  }
  const Tensor logp = log_probabilities(wide, last);
  const Tensor index = f.coordinate(label.dtype(), wide, last);
  return -sum(select(index == along(label, wide, last), logp, 0), {last});
}

Tensor dropout_mask(const Arg& like, double p, const Arg& seed, const Arg& offset) {
  const Function f{"dropout_mask", {like, seed, offset}};
  if (!(p >= 0 && p < 1)) {
    f.fail(ErrorCode::invalid_argument, fmt::format("p is {}", p), "p is the share to drop: 0 <= p < 1");
  }
  return random_uniform(f32, f.tensor(0).dims(), seed, offset) >= p;
}

Tensor dropout(const Arg& x, double p, const Arg& seed, const Arg& offset) {
  const Function f{"dropout", {x, seed, offset}};
  const Tensor kept = dropout_mask(x, p, seed, offset);
  const Tensor scaled = f.widened(0) * (1 / (1 - p));
  return f.rounded(select(kept, scaled, 0));
}

}  // namespace v0
}  // namespace fuse
