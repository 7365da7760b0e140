// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <fuse/compound.hpp>

#include "ir/builder/call.hpp"

namespace fuse {
inline namespace v0 {

using detail::Builder;

Compound::Compound(std::string name, std::vector<Arg> args)
    : name_(std::move(name)),
      args_(std::move(args)),
      at_(args_.empty() ? std::source_location() : args_[0].at()),
      builder_(Builder::of(name_, args_)),
      scope_(builder_.open_scope(name_, at_, true)) {}

ScopeGuard Compound::part(std::string name) const { return builder_.open_scope(std::move(name), at_, true); }

void Compound::fail(ErrorCode code, std::string message, std::string hint) const {
  builder_.fail(code, name_, args_, std::move(message), std::move(hint), at_);
}

const Tensor& Compound::tensor(std::size_t i) const {
  if (args_.at(i).is_number()) {
    fail(ErrorCode::invalid_argument, "a number stands where a tensor is needed",
         "make it a tensor with Graph::constant");
  }
  return args_[i].tensor();
}

const Tensor& Compound::real(std::size_t i) const {
  const Tensor& x = tensor(i);
  if (!is_floating(x.dtype())) {
    fail(ErrorCode::dtype_mismatch, fmt::format("{} is no floating type", to_string(x.dtype())),
         "convert the argument to f32 first");
  }
  return x;
}

const Tensor& Compound::integer(std::size_t i, std::string_view what) const {
  const Tensor& x = tensor(i);
  if (!is_integer(x.dtype())) {
    fail(ErrorCode::dtype_mismatch, fmt::format("{} is no integer type", to_string(x.dtype())),
         fmt::format("{} are i32 or i64", what));
  }
  return x;
}

std::int64_t Compound::axis(std::int64_t axis, std::int64_t rank) const {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  fail(ErrorCode::invalid_argument, fmt::format("axis {} is out of range for rank {}", axis, rank),
       rank == 0 ? "a scalar has no axes" : fmt::format("axes are {} to {}", -rank, rank - 1));
}

std::vector<std::int64_t> Compound::axes(const Axes& axes) const {
  std::vector<std::int64_t> named;
  if (axes.list().empty()) {
    for (std::int64_t i = 0; i < tensor(0).rank(); ++i) named.push_back(i);
  }
  for (const std::int64_t each : axes.list()) named.push_back(axis(each));
  return named;
}

void Compound::check_rank(std::size_t i, std::int64_t rank) const {
  if (tensor(i).rank() == rank) return;
  fail(ErrorCode::shape_mismatch,
       fmt::format("argument {} has rank {}, not {}", i + 1, tensor(i).rank(), rank), "reshape it");
}

void Compound::check_equal(std::string_view what, const Dim& a, const Dim& b) const {
  if (a == b) return;
  for (const ir::Assumption& assumption : builder_.graph.assumptions) {
    const DimRelation& known = assumption.relation;
    if (known.kind != DimRelation::Kind::equal) continue;
    if ((known.left == a && known.right == b) || (known.left == b && known.right == a)) return;
  }
  fail(
      ErrorCode::shape_mismatch, fmt::format("{} differ: {} and {}", what, a.to_string(), b.to_string()),
      a.is_constant() && b.is_constant()
          ? "check the order of the dims and of the arguments"
          : fmt::format("declare one dim for both, or say first that they are equal: g.assume(equal({}, {}))",
                        a.to_string(), b.to_string()));
}

bool Compound::known_divisible(const Dim& a, const Dim& b) const {
  if (proven_divisible(a, b)) return true;
  const DimRelation wanted = divisible(a, b);
  return std::any_of(builder_.graph.assumptions.begin(), builder_.graph.assumptions.end(),
                     [&](const ir::Assumption& known) { return known.relation == wanted; });
}

DType Compound::wide() const { return is_half(tensor(0).dtype()) ? f32 : tensor(0).dtype(); }

Tensor Compound::widened(std::size_t i) const {
  const Tensor& x = real(i);
  return is_half(x.dtype()) ? convert(Arg(x, at_), f32) : x;
}

Tensor Compound::rounded(const Tensor& result) const { return convert(Arg(result, at_), tensor(0).dtype()); }

Tensor Compound::iota(DType dtype, std::vector<Dim> dims, std::int64_t axis) const {
  const ir::Type type{dtype, std::move(dims)};
  return builder_.add(ir::Op::iota, {}, ir::AxisAttr{axis}, &type, at_);
}

Tensor Compound::constant(DType dtype, const Arg& number) const {
  const ir::Type type{dtype, {}};
  return builder_.add(ir::Op::constant, {}, builder_.literal(dtype, number, name_, args_), &type, at_);
}

Tensor Compound::dim_size(const Dim& dim, DType dtype) const {
  const Tensor size = builder_.add(ir::Op::dim_size, {}, ir::DimAttr{dim}, nullptr, at_);
  return convert(Arg(size, at_), dtype);
}

}  // namespace v0
}  // namespace fuse
