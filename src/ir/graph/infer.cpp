// One check per row of the op table: the macro expansion in infer_type calls a member named as the op.
// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/infer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/access.hpp"
#include "base/quoting.hpp"
#include "ir/dims/dim_poly.hpp"
#include "ir/dims/disproof.hpp"

namespace fuse::ir {
namespace {

constexpr std::int64_t max_elements = std::int64_t{1} << 62;
/// Products of extents that cost more are not compared: hostile text could make them exponential.
constexpr std::size_t max_cost = 1024;

std::string text(const Dim& dim) { return dim.to_string(); }

/// Whether a kernel's text has the function's name before a parenthesis, outside of comments to the line's
/// end.
bool calls(std::string_view source, std::string_view function) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (std::size_t at = 0; (at = source.find(function, at)) != std::string_view::npos; ++at) {
    const std::size_t line = source.rfind('\n', at) + 1;
    if (source.substr(line, at - line).find("//") != std::string_view::npos) continue;
    const std::size_t end = source.find_first_not_of(" \t\n", at + function.size());
    if (end == std::string_view::npos || source[end] != '(') continue;
    if (at == 0 || !is_word(source[at - 1])) return true;
  }
  return false;
}

/// Terms; a division counts as eight, since multiplying its term asks whether it comes out.
std::size_t cost(const Dim& dim) {
  if (!poly_of(dim)) return 1;
  std::size_t total = 1;
  for (const detail::DimTerm& term : poly_of(dim)->terms) {
    ++total;
    for (const detail::Atom& factor : term.factors) total += factor->dividend.is(0) ? 0 : 8;
  }
  return total;
}

bool is_rounded_to(DType dtype, double value) {
  if (std::isnan(value) || std::isinf(value)) return true;
  switch (dtype) {
    case DType::f32:
      return std::fabs(value) <= static_cast<double>(std::numeric_limits<float>::max()) &&
             static_cast<double>(static_cast<float>(value)) == value;
    case DType::f16:
      return static_cast<double>(half(value)) == value;
    case DType::bf16:
      return static_cast<double>(bfloat16(value)) == value;
    default:
      return true;
  }
}

struct Checker {
  Op op;
  std::span<const Type> operands;
  const Attr& attr;
  const Type* declared;
  const SourceLocation& at;
  std::vector<DimRelation>* needs;

  [[noreturn]] void fail(ErrorCode code, std::string message, std::string hint) const {
    std::vector<std::string> shapes;
    for (const Type& type : operands) shapes.push_back(ir::to_string(type));
    throw Error({.code = code,
                 .message = std::move(message),
                 .op = std::string(ir::to_string(op)),
                 .shapes = std::move(shapes),
                 .location = at,
                 .hint = std::move(hint)});
  }

  template <class A>
  const A& get() const {
    if (const A* value = std::get_if<A>(&attr)) return *value;
    fail(ErrorCode::invalid_argument, "the attributes are those of another op", attributes_text(A{}));
  }

  /// Arithmetic on extents can overflow; the error then names the op.
  template <class F>
  auto compute(F f) const {
    try {
      return f();
    } catch (const Error& error) {
      fail(error.code(), error.info().message, "use smaller extents");
    }
  }

  /// 6 B = 5 B holds for empty tensors alone, which nobody means, unless B is always 0: what the extents
  /// differ by is a product, and each of its factors is one of both extents, too.
  static bool needs_nothing(const Dim& a, const Dim& b) {
    const Dim difference = a - b;
    const detail::DimPoly* poly = poly_of(difference);
    const bool is_0 = difference.min() == 0 && difference.max() == 0;
    if (!poly || poly->constant != 0 || poly->terms.size() != 1 || is_0) return false;
    const std::vector<detail::Atom>& factors = poly->terms[0].factors;
    return std::all_of(factors.begin(), factors.end(), [&](const detail::Atom& factor) {
      return proven_divisible(a, detail::DimPoly::of(factor));
    });
  }
  /// True when the relation is for the caller to prove or to guard.
  bool leaves(DimRelation relation) const {
    if (!needs) return false;
    const bool open = compute([&] {
      if (relation.kind == DimRelation::Kind::at_most) return !proven_less(relation.right, relation.left);
      if (relation.kind == DimRelation::Kind::one_or)
        return can_be_equal(relation.left, 1) || can_be_equal(relation.left, relation.right);
      return can_be_equal(relation.left, relation.right) && !needs_nothing(relation.left, relation.right);
    });
    if (open) needs->push_back(std::move(relation));
    return open;
  }
  bool same(const Dim& a, const Dim& b) const { return a == b || leaves(equal(a, b)); }
  bool ordered(const Dim& low, const Dim& high) const {
    return compute([&] { return proven_le(low, high); }) || leaves(at_most(low, high));
  }

  void check_arity() const {
    const int arity = info(op).arity;
    if (arity < 0 ? !operands.empty() : operands.size() == static_cast<std::size_t>(arity)) return;
    fail(ErrorCode::invalid_argument, "the op has " + counted(operands.size(), "operand"),
         arity < 0 ? "it takes one or more" : fmt::format("it takes {}", arity));
  }

  void check_extents(const Type& type) const {
    if (static_cast<std::size_t>(type.rank()) > max_rank) {
      fail(ErrorCode::invalid_argument, fmt::format("rank {} is above {}", type.rank(), max_rank),
           "merge dims with reshape");
    }
    std::int64_t count = 1;
    for (std::size_t i = 0; i < type.dims.size(); ++i) {
      const Dim& dim = type.dims[i];
      if (dim.is_constant() ? dim.constant() < 0 : dim.max() < 0) {
        fail(ErrorCode::invalid_extent, fmt::format("the extent {} of dim {} is negative", text(dim), i),
             "an extent is 0 or more");
      }
      if (!dim.is_constant() && dim.min() < 0 && !ordered(0, dim)) {
        fail(ErrorCode::invalid_extent, fmt::format("the extent {} of dim {} may be negative", text(dim), i),
             "declare ranges of its dims that keep it at 0 or more");
      }
      // An extent 0 counts as 1, so that strides do not overflow either.
      const std::int64_t low = std::max<std::int64_t>(dim.min(), 1);
      if (low > max_elements / count) {
        fail(ErrorCode::invalid_extent,
             fmt::format("the extents of {} multiply to more than 2^62", ir::to_string(type)),
             "use smaller extents");
      }
      count *= low;
    }
  }

  const Type& stated() const {
    if (declared) return *declared;
    fail(ErrorCode::invalid_argument, "the type of the result is not stated",
         "the operands of this op do not determine it");
  }

  /// The declared type, if any, agrees with the inferred one.
  Type agreed(Type type) const {
    check_extents(type);
    if (!declared || *declared == type) return type;
    if (declared->dtype == type.dtype && same_dims(declared->dims, type.dims)) {
      check_extents(*declared);
      return *declared;
    }
    fail(declared->dtype == type.dtype ? ErrorCode::shape_mismatch : ErrorCode::dtype_mismatch,
         fmt::format("the result is stated as {}", ir::to_string(*declared)),
         fmt::format("it is {}", ir::to_string(type)));
  }

  bool same_dims(const std::vector<Dim>& a, const std::vector<Dim>& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](const Dim& x, const Dim& y) { return same(x, y); });
  }

  void check_same_dims(const std::vector<Dim>& a, const std::vector<Dim>& b) const {
    if (a.size() != b.size()) {
      fail(ErrorCode::shape_mismatch, fmt::format("ranks differ: {} and {}", a.size(), b.size()),
           "repeat the smaller operand with broadcast_in_dim first");
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (same(a[i], b[i])) continue;
      fail(ErrorCode::shape_mismatch,
           fmt::format("extents differ in dim {}: {} and {}", i, text(a[i]), text(b[i])),
           a[i].is_constant() && b[i].is_constant()
               ? "reshape, slice or broadcast_in_dim makes them equal"
               : "symbolic extents must be the same expression; declare one dim for both");
    }
  }

  void check_same_dtype(DType a, DType b) const {
    if (a == b) return;
    fail(ErrorCode::dtype_mismatch,
         fmt::format("operands have types {} and {}", fuse::to_string(a), fuse::to_string(b)),
         "convert one of them");
  }

  void check_class(DType dtype, OperandClass operand_class) const {
    if (takes(operand_class, dtype)) return;
    std::string hint = "convert to f32 or f64 first";
    if (operand_class == OperandClass::logical) {
      hint = "compare first: this op takes bool";
    } else if (operand_class == OperandClass::integer) {
      hint = "convert to an integer type first";
    } else if (is_half(dtype)) {
      hint = "convert to f32 first";
    } else if (kind_of(dtype) == DTypeKind::boolean) {
      hint = operand_class == OperandClass::real ? "convert to f32 first" : "convert to i32 first";
    }
    fail(ErrorCode::dtype_mismatch, fmt::format("the op is not defined for {}", fuse::to_string(dtype)),
         std::move(hint));
  }

  Type elementwise(const NoAttr&) const {
    const OpInfo& row = info(op);
    const Type& first = operands[0];
    for (const Type& other : operands.subspan(1)) {
      check_same_dtype(first.dtype, other.dtype);
      check_same_dims(first.dims, other.dims);
    }
    check_class(first.dtype, row.operands);
    return agreed({row.result == ResultClass::boolean ? DType::boolean : first.dtype, first.dims});
  }

  std::size_t check_axis(std::int64_t axis, std::int64_t rank) const {
    if (axis < 0 || axis >= rank) {
      fail(ErrorCode::invalid_argument, fmt::format("axis {} is out of range for rank {}", axis, rank),
           rank == 0 ? "a scalar has no axes" : fmt::format("axes are 0 to {}", rank - 1));
    }
    return static_cast<std::size_t>(axis);
  }

  void check_increasing(const std::vector<std::int64_t>& dims) const {
    if (std::adjacent_find(dims.begin(), dims.end(), std::greater_equal<>()) == dims.end()) return;
    fail(ErrorCode::invalid_argument, fmt::format("dims [{}] do not increase", fmt::join(dims, ", ")),
         "name each dim once, in order");
  }

  Type reduction(const DimsAttr& attribute) const {
    const OpInfo& row = info(op);
    const Type& x = operands[0];
    check_class(x.dtype, row.operands);
    for (const std::int64_t dim : attribute.dims) check_axis(dim, x.rank());
    check_increasing(attribute.dims);
    if (attribute.dims.empty()) {
      fail(ErrorCode::invalid_argument, "no dim is reduced", "name one dim or more, or use the operand");
    }
    const bool finds_index = row.identity == Identity::none;
    if (finds_index && attribute.dims.size() != 1) {
      fail(ErrorCode::invalid_argument, fmt::format("{} dims are reduced", attribute.dims.size()),
           "reduce exactly one dim; reshape merges dims");
    }
    Type type{finds_index ? i64 : x.dtype, {}};
    for (std::int64_t i = 0; i < x.rank(); ++i) {
      const Dim& extent = x.dims[static_cast<std::size_t>(i)];
      if (!std::binary_search(attribute.dims.begin(), attribute.dims.end(), i)) {
        type.dims.push_back(extent);
      } else if (finds_index && extent.max() <= 0) {
        fail(ErrorCode::invalid_extent, fmt::format("the reduced dim {} is empty", i),
             "an empty dim has no largest or smallest element");
      }
    }
    return agreed(std::move(type));
  }

  Type source() const {
    check_extents(stated());
    return stated();
  }
  Type input(const NameAttr&) const { return source(); }
  Type parameter(const NameAttr&) const { return source(); }

  Type constant(const ConstantAttr& value) const {
    const DType dtype = stated().dtype;
    const std::string name(fuse::to_string(dtype));
    if (is_floating(dtype)) {
      if (!is_rounded_to(dtype, value.real)) {
        fail(ErrorCode::dtype_mismatch, fmt::format("the value {} is not exact in {}", value.real, name),
             "round it to the type first");
      }
    } else if (const auto [low, high] = integer_range(dtype); value.integer < low || value.integer > high) {
      fail(ErrorCode::dtype_mismatch, fmt::format("the value {} does not fit in {}", value.integer, name),
           is_integer(dtype) ? fmt::format("it holds {} to {}", low, high) : "a bool is 0 or 1");
    }
    return source();
  }

  Type iota(const AxisAttr& attribute) const {
    const Type& type = stated();
    if (is_half(type.dtype) || kind_of(type.dtype) == DTypeKind::boolean) {
      fail(ErrorCode::dtype_mismatch,
           fmt::format("coordinates cannot be of type {}", fuse::to_string(type.dtype)),
           "use an integer type, f32 or f64 and convert");
    }
    check_axis(attribute.axis, type.rank());
    return source();
  }

  Type dim_size(const DimAttr&) const { return agreed({i64, {}}); }

  Type select(const NoAttr&) const {
    if (operands[0].dtype != DType::boolean) {
      fail(ErrorCode::dtype_mismatch,
           fmt::format("the condition is {}, not bool", fuse::to_string(operands[0].dtype)),
           "compare it with a value first");
    }
    check_same_dtype(operands[1].dtype, operands[2].dtype);
    check_same_dims(operands[0].dims, operands[1].dims);
    check_same_dims(operands[1].dims, operands[2].dims);
    return agreed(operands[1]);
  }

  Type convert(const NoAttr&) const {
    check_same_dims(operands[0].dims, stated().dims);
    return source();
  }

  void check_keeps_dtype() const {
    if (stated().dtype == operands[0].dtype) return;
    fail(ErrorCode::dtype_mismatch,
         fmt::format("the result is stated as {}", fuse::to_string(stated().dtype)),
         "this op keeps the operand's dtype; convert changes it");
  }

  Type broadcast_in_dim(const DimsAttr& attribute) const {
    const Type& x = operands[0];
    const Type& type = stated();
    check_keeps_dtype();
    if (attribute.dims.size() != x.dims.size()) {
      fail(ErrorCode::invalid_argument,
           fmt::format("the list has {}, the operand's rank is {}", counted(attribute.dims.size(), "dim"),
                       x.rank()),
           "name a dim of the result for each dim of the operand");
    }
    for (const std::int64_t dim : attribute.dims) check_axis(dim, type.rank());
    check_increasing(attribute.dims);
    for (std::size_t i = 0; i < x.dims.size(); ++i) {
      const Dim& extent = type.dims[static_cast<std::size_t>(attribute.dims[i])];
      if (x.dims[i].is(1) || same(x.dims[i], extent)) continue;
      fail(ErrorCode::shape_mismatch,
           fmt::format("operand dim {} of extent {} cannot become dim {} of extent {}", i, text(x.dims[i]),
                       attribute.dims[i], text(extent)),
           "an extent must be 1 or equal");
    }
    return source();
  }

  Type expand(const NoAttr&) const {
    const Type& x = operands[0];
    const Type& type = stated();
    check_keeps_dtype();
    if (x.rank() != type.rank()) {
      fail(ErrorCode::shape_mismatch, fmt::format("ranks differ: {} and {}", x.rank(), type.rank()),
           "broadcast_in_dim adds dims");
    }
    for (std::size_t i = 0; i < x.dims.size(); ++i) {
      const Dim &from = x.dims[i], &to = type.dims[i];
      if (from == to || from.is(1) || leaves(one_or(from, to))) continue;
      fail(ErrorCode::shape_mismatch,
           fmt::format("extent {} of dim {} can be neither 1 nor {}", text(from), i, text(to)),
           "an extent must be 1 or equal");
    }
    return source();
  }

  Dim element_count(const std::vector<Dim>& dims) const {
    Dim count = 1;
    for (const Dim& dim : dims) {
      if (cost(count) * cost(dim) > max_cost) {
        fail(ErrorCode::invalid_extent, "the number of elements is too long an expression",
             "name a part of it as a dim of its own");
      }
      count = compute([&] { return count * dim; });
    }
    return count;
  }

  Type reshape(const NoAttr&) const {
    check_keeps_dtype();
    check_extents(stated());
    const Dim from = element_count(operands[0].dims), to = element_count(stated().dims);
    if (!same(from, to)) {
      fail(ErrorCode::shape_mismatch, fmt::format("element counts differ: {} and {}", text(from), text(to)),
           fmt::format("that of the operand is {}, that of {} is {}", text(from), ir::to_string(stated()),
                       text(to)));
    }
    return source();
  }

  Type transpose(const DimsAttr& attribute) const {
    const Type& x = operands[0];
    std::vector<bool> seen(x.dims.size());
    Type type{x.dtype, {}};
    for (const std::int64_t dim : attribute.dims) {
      const std::size_t axis = check_axis(dim, x.rank());
      if (seen[axis]) break;
      seen[axis] = true;
      type.dims.push_back(x.dims[axis]);
    }
    if (attribute.dims.size() != x.dims.size() || type.dims.size() != x.dims.size()) {
      fail(ErrorCode::invalid_argument,
           fmt::format("dims [{}] are no permutation of rank {}", fmt::join(attribute.dims, ", "), x.rank()),
           "name each dim of the operand once");
    }
    return agreed(std::move(type));
  }

  void check_order(std::size_t dim, std::string_view low_name, const Dim& low, std::string_view high_name,
                   const Dim& high) const {
    if (ordered(low, high)) return;
    const auto name = [](std::string_view kind, const Dim& value) {
      return kind.empty() ? text(value) : fmt::format("{} {}", kind, text(value));
    };
    const bool violated = compute([&] { return proven_less(high, low); });
    fail(ErrorCode::invalid_argument,
         violated ? fmt::format("in dim {}, {} is below {}", dim, name(high_name, high), name(low_name, low))
                  : fmt::format("in dim {}, {} is not known to be at least {}", dim, name(high_name, high),
                                name(low_name, low)),
         violated ? "0 <= start <= limit <= extent must hold"
                  : "declare ranges of the dims from which 0 <= start <= limit <= extent follows");
  }

  Type slice(const SliceAttr& attribute) const {
    const Type& x = operands[0];
    const auto& [starts, limits, strides] = attribute;
    if (starts.size() != x.dims.size() || limits.size() != x.dims.size() || strides.size() != x.dims.size()) {
      fail(ErrorCode::invalid_argument,
           fmt::format("the lists have {}, {} and {}, the operand's rank is {}",
                       counted(starts.size(), "start"), counted(limits.size(), "limit"),
                       counted(strides.size(), "stride"), x.rank()),
           "give one of each a dim");
    }
    Type type{x.dtype, {}};
    for (std::size_t i = 0; i < x.dims.size(); ++i) {
      if (strides[i] < 1) {
        fail(ErrorCode::invalid_argument, fmt::format("the stride of dim {} is {}", i, strides[i]),
             "a stride is 1 or more");
      }
      check_order(i, "", 0, "start", starts[i]);
      check_order(i, "start", starts[i], "limit", limits[i]);
      check_order(i, "limit", limits[i], "extent", x.dims[i]);
      type.dims.push_back(compute([&] { return ceil_div(limits[i] - starts[i], strides[i]); }));
    }
    return agreed(std::move(type));
  }

  Type concat(const AxisAttr& attribute) const {
    Type type = operands[0];
    const std::size_t axis = check_axis(attribute.axis, type.rank());
    for (const Type& other : operands.subspan(1)) {
      check_same_dtype(type.dtype, other.dtype);
      if (other.rank() != type.rank()) check_same_dims(type.dims, other.dims);
      for (std::size_t i = 0; i < type.dims.size(); ++i) {
        if (i == axis || same(type.dims[i], other.dims[i])) continue;
        fail(ErrorCode::shape_mismatch,
             fmt::format("extents differ in dim {}: {} and {}", i, text(type.dims[i]), text(other.dims[i])),
             fmt::format("only the extents of axis {} may differ", axis));
      }
      type.dims[axis] = compute([&] { return type.dims[axis] + other.dims[axis]; });
    }
    return agreed(std::move(type));
  }

  Type gather(const AxisAttr& attribute) const {
    const Type& x = operands[0];
    const Type& indices = operands[1];
    check_index(indices.dtype, "the indices are");
    const std::size_t axis = check_axis(attribute.axis, x.rank());
    if (x.dims[axis].max() <= 0) {
      fail(ErrorCode::invalid_extent, fmt::format("the extent of axis {} is 0", axis),
           "an index is clamped into the axis, which must hold an element");
    }
    Type type{x.dtype, x.dims};
    const auto position = type.dims.erase(type.dims.begin() + static_cast<std::ptrdiff_t>(axis));
    type.dims.insert(position, indices.dims.begin(), indices.dims.end());
    return agreed(std::move(type));
  }

  Type reverse(const DimsAttr& attribute) const {
    for (const std::int64_t dim : attribute.dims) check_axis(dim, operands[0].rank());
    check_increasing(attribute.dims);
    return agreed(operands[0]);
  }

  void check_scalar(std::size_t operand) const {
    if (operands[operand].rank() == 0) return;
    fail(ErrorCode::shape_mismatch,
         fmt::format("operand {} is {}, not a scalar", operand, ir::to_string(operands[operand])),
         "reshape it to rank 0");
  }
  void check_index(DType dtype, std::string_view what) const {
    if (dtype == i32 || dtype == i64) return;
    fail(ErrorCode::dtype_mismatch, fmt::format("{} {}", what, fuse::to_string(dtype)),
         "indices are i32 or i64");
  }

  Type pad(const PadAttr& attribute) const {
    const Type& x = operands[0];
    check_same_dtype(x.dtype, operands[1].dtype);
    check_scalar(1);
    const auto& [low, high] = attribute;
    if (low.size() != x.dims.size() || high.size() != x.dims.size()) {
      fail(ErrorCode::invalid_argument,
           fmt::format("{} low and {} high are given for rank {}", low.size(), high.size(), x.rank()),
           "give one of each a dim");
    }
    Type type = x;
    for (std::size_t i = 0; i < x.dims.size(); ++i) {
      for (const Dim& count : {low[i], high[i]}) {
        if (ordered(0, count)) continue;
        fail(ErrorCode::invalid_argument,
             fmt::format("dim {} is padded by {}, which is not known to be 0 or more", i, text(count)),
             "slice removes elements");
      }
      type.dims[i] = compute([&] { return low[i] + x.dims[i] + high[i]; });
    }
    return agreed(std::move(type));
  }

  /// Operands from `first` on: one index scalar for each dim of operand 0.
  void check_starts(std::size_t first) const {
    const Type& x = operands[0];
    const std::size_t count = operands.size() - std::min(first, operands.size());
    if (operands.size() < first || count != x.dims.size()) {
      fail(ErrorCode::invalid_argument,
           fmt::format("the op has {}, the operand's rank is {}", counted(count, "start"), x.rank()),
           "give one scalar a dim");
    }
    for (std::size_t i = first; i < operands.size(); ++i) {
      check_scalar(i);
      check_index(operands[i].dtype, "a start is");
      check_same_dtype(operands[first].dtype, operands[i].dtype);
    }
  }
  void check_inside(const std::vector<Dim>& sizes) const {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const Dim& extent = operands[0].dims[i];
      if (ordered(sizes[i], extent)) continue;
      fail(
          ErrorCode::invalid_argument,
          fmt::format("in dim {}, {} elements are not known to fit into {}", i, text(sizes[i]), text(extent)),
          "declare ranges of the dims from which it follows");
    }
  }

  Type dynamic_slice(const SizesAttr& attribute) const {
    check_starts(1);
    if (attribute.sizes.size() != operands[0].dims.size()) {
      fail(ErrorCode::invalid_argument,
           fmt::format("the op has {}, the operand's rank is {}", counted(attribute.sizes.size(), "size"),
                       operands[0].rank()),
           "give one a dim");
    }
    check_inside(attribute.sizes);
    return agreed({operands[0].dtype, attribute.sizes});
  }

  Type dynamic_update_slice(const NoAttr&) const {
    if (operands.size() < 2)
      fail(ErrorCode::invalid_argument, "there is no update", "give x, update and the starts");
    check_same_dtype(operands[0].dtype, operands[1].dtype);
    if (operands[0].rank() != operands[1].rank()) check_same_dims(operands[0].dims, operands[1].dims);
    check_starts(2);
    check_inside(operands[1].dims);
    return agreed(operands[0]);
  }

  Type cumulative_sum(const ScanAttr& attribute) const {
    check_class(operands[0].dtype, OperandClass::number);
    check_axis(attribute.axis, operands[0].rank());
    return agreed(operands[0]);
  }

  Type random_uniform(const RandomAttr&) const {
    for (std::size_t i = 0; i < 2; ++i) {
      check_scalar(i);
      if (operands[i].dtype == i64) continue;
      fail(ErrorCode::dtype_mismatch,
           fmt::format("the {} is {}", i == 0 ? "seed" : "offset", fuse::to_string(operands[i].dtype)),
           "seed and offset are i64 scalars");
    }
    if (stated().dtype != f32 && stated().dtype != f64) {
      fail(ErrorCode::dtype_mismatch, fmt::format("the result is {}", fuse::to_string(stated().dtype)),
           "draw f32 or f64 and convert");
    }
    return source();
  }

  /// One function, from the first character on: devices find and cut the text by it.
  void check_kernel_text(const std::string& name, std::string_view source, std::int64_t threads) const {
    const std::size_t name_at = source.find_first_not_of(' ', source.find(')') + 1);
    if (!name.empty() && source.starts_with("FUSE_KERNEL(") &&
        source.find("\nFUSE_KERNEL(") == std::string_view::npos && name_at != std::string_view::npos &&
        source.substr(name_at).starts_with(name + '(')) {
      for (const char* primitive :
           {"cluster_barrier", "cluster_shared_barrier", "cluster_arrive", "cluster_wait", "cluster_load"}) {
        if (!calls(source, primitive)) continue;
        fail(ErrorCode::invalid_argument,
             fmt::format("the kernel '{}' calls {}, and a user's kernel has no clusters", name, primitive),
             "let its blocks meet in global memory, after a grid barrier");
      }
      if (calls(source, "group_barrier")) {
        fail(ErrorCode::invalid_argument,
             fmt::format("the kernel '{}' calls group_barrier, and a user's kernel has one counter", name),
             "let all of its blocks wait, in grid_barrier");
      }
      return;
    }
    fail(ErrorCode::invalid_argument, fmt::format("the text is not one kernel '{}'", name),
         fmt::format("it begins with FUSE_KERNEL({}) {}(", threads, name));
  }

  Type custom_call(const CustomAttr& attribute) const {
    check_kernel_text(attribute.name, attribute.source, attribute.threads);
    if (!attribute.grid_barrier && calls(attribute.source, "grid_barrier")) {
      fail(ErrorCode::invalid_argument,
           fmt::format("the kernel '{}' calls grid_barrier and does not say that its blocks wait",
                       attribute.name),
           "set grid_barrier, and take `global<int> barrier` after the result");
    }
    if (!attribute.parts.empty() && !attribute.grid_barrier) {
      fail(ErrorCode::invalid_argument,
           fmt::format("the kernel '{}' has parts and no grid barrier to be cut at", attribute.name),
           "set grid_barrier, or give the kernel alone");
    }
    for (std::size_t i = 0; i < attribute.parts.size(); ++i) {
      check_kernel_text(attribute.part_name(i), attribute.parts[i], attribute.threads);
      if (!calls(attribute.parts[i], "grid_barrier")) continue;
      fail(ErrorCode::invalid_argument,
           fmt::format("part '{}' calls grid_barrier: parts run where blocks cannot wait for each other",
                       attribute.part_name(i)),
           "cut the kernel at each of its barriers");
    }
    if (attribute.threads < 32 || attribute.threads > 1024 || attribute.threads % 32 != 0) {
      fail(ErrorCode::invalid_argument,
           fmt::format("a block has {} thread{}", attribute.threads, attribute.threads == 1 ? "" : "s"),
           "32 to 1024, a multiple of 32");
    }
    if (attribute.shared_bytes < 0 || attribute.shared_bytes > 49152) {
      fail(ErrorCode::invalid_argument, fmt::format("{} bytes of shared memory", attribute.shared_bytes),
           "0 to 49152");
    }
    if (!ordered(0, attribute.grid)) {
      fail(ErrorCode::invalid_argument, fmt::format("the grid {} may be negative", text(attribute.grid)),
           "declare ranges of its dims that keep it at 0 or more");
    }
    return source();
  }

  void check_pairs(std::string_view what, const std::vector<std::int64_t>& a,
                   const std::vector<std::int64_t>& b) const {
    if (a.size() != b.size()) {
      fail(ErrorCode::invalid_argument,
           fmt::format("{} of a and {} of b", counted(a.size(), fmt::format("{} dim", what)), b.size()),
           "name them in pairs");
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
      const Dim& left = operands[0].dims[check_axis(a[i], operands[0].rank())];
      const Dim& right = operands[1].dims[check_axis(b[i], operands[1].rank())];
      if (same(left, right)) continue;
      fail(ErrorCode::shape_mismatch,
           fmt::format("{} extents differ: {} of dim {} and {} of dim {}", what, text(left), a[i],
                       text(right), b[i]),
           "dims are named in pairs of equal extent");
    }
  }

  std::vector<Dim> free_dims(std::size_t operand, const std::vector<std::int64_t>& batch,
                             const std::vector<std::int64_t>& contracted) const {
    const Type& type = operands[operand];
    std::vector<bool> used(type.dims.size());
    for (const auto* dims : {&batch, &contracted}) {
      for (const std::int64_t dim : *dims) {
        if (used[static_cast<std::size_t>(dim)]) {
          fail(ErrorCode::invalid_argument, fmt::format("dim {} of operand {} is named twice", dim, operand),
               "a dim is batch, contracted or free");
        }
        used[static_cast<std::size_t>(dim)] = true;
      }
    }
    std::vector<Dim> free;
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) free.push_back(type.dims[i]);
    }
    return free;
  }

  Type contraction(const ContractionAttr& attribute) const {
    check_same_dtype(operands[0].dtype, operands[1].dtype);
    check_floating(operands[0].dtype);
    check_pairs("batch", attribute.batch_a, attribute.batch_b);
    check_pairs("contracted", attribute.contract_a, attribute.contract_b);
    Type type{operands[0].dtype, {}};
    for (const std::int64_t dim : attribute.batch_a)
      type.dims.push_back(operands[0].dims[static_cast<std::size_t>(dim)]);
    for (const Dim& dim : free_dims(0, attribute.batch_a, attribute.contract_a)) type.dims.push_back(dim);
    for (const Dim& dim : free_dims(1, attribute.batch_b, attribute.contract_b)) type.dims.push_back(dim);
    return accumulated(std::move(type));
  }

  void check_floating(DType dtype) const {
    if (is_floating(dtype)) return;
    fail(ErrorCode::dtype_mismatch, fmt::format("the op is not defined for {}", fuse::to_string(dtype)),
         "convert to f32 or f64 first");
  }

  /// A sum of products may stay in the accumulator's type.
  Type accumulated(Type type) const {
    if (!declared || declared->dtype == type.dtype) return agreed(std::move(type));
    if (declared->dtype != f32 || !is_half(type.dtype)) {
      fail(ErrorCode::dtype_mismatch,
           fmt::format("the result is stated as {}", fuse::to_string(declared->dtype)),
           is_half(type.dtype) ? "it is the operands' type or f32" : "it is the operands' type; convert it");
    }
    type.dtype = f32;
    return agreed(std::move(type));
  }

  Type matmul(const MatmulAttr& attribute) const {
    const Type& a = operands[0];
    const Type& b = operands[1];
    if (a.rank() < 2 || b.rank() < 2) {
      fail(ErrorCode::shape_mismatch, fmt::format("the ranks are {} and {}", a.rank(), b.rank()),
           "both operands need a rank of 2 or more; reshape adds a dim of extent 1");
    }
    if (a.rank() != b.rank()) {
      fail(ErrorCode::shape_mismatch, fmt::format("ranks differ: {} and {}", a.rank(), b.rank()),
           "repeat the smaller operand with broadcast_in_dim first");
    }
    check_same_dtype(a.dtype, b.dtype);
    check_floating(a.dtype);
    const std::size_t batch = a.dims.size() - 2;
    for (std::size_t i = 0; i < batch; ++i) {
      if (same(a.dims[i], b.dims[i])) continue;
      fail(ErrorCode::shape_mismatch,
           fmt::format("batch extents differ in dim {}: {} and {}", i, text(a.dims[i]), text(b.dims[i])),
           "leading dims must be equal; broadcast_in_dim repeats them");
    }
    const std::size_t a_row = attribute.transpose_a, b_row = attribute.transpose_b;
    const Dim &rows = a.dims[batch + a_row], &inner = a.dims[batch + 1 - a_row];
    const Dim &other_inner = b.dims[batch + b_row], &columns = b.dims[batch + 1 - b_row];
    if (!same(inner, other_inner)) {
      fail(ErrorCode::shape_mismatch,
           fmt::format("contracted extents differ: {} and {}", text(inner), text(other_inner)),
           inner == columns ? "transpose the second operand"
           : rows == other_inner
               ? "transpose the first operand"
               : "the last extent of the first operand meets the last but one of the second");
    }
    Type type = a;
    type.dims[batch] = rows;
    type.dims[batch + 1] = columns;
    return accumulated(std::move(type));
  }
};

}  // namespace

Type infer_type(Op op, std::span<const Type> operands, const Attr& attr, const Type* declared,
                const SourceLocation& at, std::vector<DimRelation>* needs) {
  const Checker check{op, operands, attr, declared, at, needs};
  check.check_arity();
  switch (op) {
#define FUSE_ELEMENTWISE(name, arity, operands, result, ulp, traits, cuda, note) \
  case Op::name:                                                                 \
    return check.elementwise(check.get<NoAttr>());
#define FUSE_REDUCTION(name, operands, identity, combine, note) \
  case Op::name:                                                \
    return check.reduction(check.get<DimsAttr>());
#define FUSE_OP(name, arity, attribute, relation, traits, note) \
  case Op::name:                                                \
    return check.name(check.get<attribute>());
#include <fuse/ops.def>
  }
  throw Error({.kind = ErrorKind::internal, .code = ErrorCode::internal, .message = "no such op"});
}

}  // namespace fuse::ir
