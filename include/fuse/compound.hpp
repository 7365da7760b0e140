// Compound: how a function that is made of ops is written. fuse's own functions (nn/*.hpp) are written with
// it, and an application writes its own in the same way:
//
//   inline fuse::Tensor swish(const fuse::Arg& x, double slope) {
//     const fuse::Compound f("swish", {x});
//     const fuse::Tensor wide = f.widened(0);                       // f16 and bf16 become f32
//     return f.rounded(wide / (1 + exp(wide * -slope)));            // one rounding at the end
//   }
//
// A compound function opens at once into ops (APOLLO, section 3.2), so nothing later sees its boundary: it is
// fused with what stands around it. Ops that add nodes stand in statements of their own where their order
// matters: C++ leaves the order inside an expression open.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/export.hpp>
#include <fuse/graph.hpp>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

namespace fuse {
inline namespace v0 {

/// One call of a compound function. While it lives, ops of the graph carry the function's name as their scope
/// and the line of the caller, and `fail` names the function with all its arguments. Not copied or moved.
class FUSE_COMPILER_API Compound {
 public:
  /// `args`: at least one of them a tensor. Throws invalid_argument and wrong_graph.
  Compound(std::string name, std::vector<Arg> args);
  Compound(const Compound&) = delete;
  Compound& operator=(const Compound&) = delete;

  /// The number of arguments.
  std::size_t size() const { return args_.size(); }
  /// Argument i; throws std::out_of_range where there is none.
  const Arg& arg(std::size_t i) const { return args_.at(i); }
  /// The line of the caller.
  const std::source_location& at() const { return at_; }
  /// A scope inside the function's: `const ScopeGuard part = f.part("mean");`
  ScopeGuard part(std::string name) const;

  // What arguments must be; each throws a user Error that names the function and its arguments.

  /// Throws a user Error that names the function, its arguments and the line of the caller.
  [[noreturn]] void fail(ErrorCode code, std::string message, std::string hint) const;
  /// Argument i. Throws invalid_argument for a number.
  const Tensor& tensor(std::size_t i) const;
  /// Argument i. Throws invalid_argument for a number, and dtype_mismatch for one of no floating type.
  const Tensor& real(std::size_t i) const;
  /// Argument i. Throws invalid_argument for a number, and dtype_mismatch for one of no integer type; `what`
  /// says what it is in the hint: "indices".
  const Tensor& integer(std::size_t i, std::string_view what) const;
  /// The axis of argument 0, counted from the start. Throws invalid_argument for one out of range.
  std::int64_t axis(std::int64_t axis) const { return this->axis(axis, tensor(0).rank()); }
  /// The axis of a tensor of this rank, counted from the start. Throws invalid_argument for one out of range.
  std::int64_t axis(std::int64_t axis, std::int64_t rank) const;
  /// The axes of argument 0, counted from the start, in the order of the list; all where none is named.
  /// Throws invalid_argument for one out of range.
  std::vector<std::int64_t> axes(const Axes& axes) const;
  /// Throws shape_mismatch where argument i has another rank.
  void check_rank(std::size_t i, std::int64_t rank) const;
  /// Throws shape_mismatch for dims that are not the same, unless an assumption of the graph says that these
  /// two are equal; `what` names them: "the lengths of k and v".
  void check_equal(std::string_view what, const Dim& a, const Dim& b) const;
  /// True when `a` is a multiple of `b`, by itself or by an assumption of the graph about these two.
  bool known_divisible(const Dim& a, const Dim& b) const;

  // Types: f16 and bf16 are stored only, so a function computes in f32 and rounds once.

  /// The type to compute in: f32 for f16 and bf16, else that of argument 0.
  DType wide() const;
  /// Argument i, of a floating type, in f32 if it is f16 or bf16.
  Tensor widened(std::size_t i) const;
  /// The result in the type of argument 0.
  Tensor rounded(const Tensor& result) const;

  // Values that no argument has.

  /// The coordinate along `axis` at every element of a tensor of these dims; of an integer type, f32 or f64.
  Tensor iota(DType dtype, std::vector<Dim> dims, std::int64_t axis) const;
  /// A number as a scalar tensor, which must be exact in an integer type.
  Tensor constant(DType dtype, const Arg& number) const;
  /// The run-time value of a dim, in a floating or integer type.
  Tensor dim_size(const Dim& dim, DType dtype) const;

 private:
  std::string name_;
  std::vector<Arg> args_;
  std::source_location at_;
  detail::Builder& builder_;
  ScopeGuard scope_;  ///< keeps the builder alive
};

/// Repeats a reduced tensor along `axis`, so that it has the dims of `like`. `reduced` has one axis fewer.
inline Tensor along(const Tensor& reduced, const Tensor& like, std::int64_t axis) {
  std::vector<std::int64_t> dims;
  for (std::int64_t i = 0; i < like.rank(); ++i) {
    if (i != axis) dims.push_back(i);
  }
  return broadcast_in_dim(reduced, like.dims(), dims);
}

}  // namespace v0
}  // namespace fuse
