// fusec ops: the op reference, from the op table. docs/ops.md is what it prints.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "fusec/commands.hpp"
#include "ir/graph/op.hpp"
#include "tensors/host_tensor.hpp"

namespace fuse::fusec {
namespace {

using ir::OpInfo;

/// The types that the builder takes: a half type meets an op of the table as f32.
std::string types(const OpInfo& row) {
  std::string text;
  for (const DType dtype : runtime::all_dtypes) {
    if (!takes(row.operands, is_half(dtype) ? f32 : dtype)) continue;
    text += (text.empty() ? "" : " ") + std::string(to_string(dtype));
  }
  return text;
}

std::string error_of(const OpInfo& row) {
  if (row.result == ir::ResultClass::boolean || !takes(row.operands, f32)) return "exact";
  if (row.ulp == 0) return takes(row.operands, i32) ? "0.5 ulp; integers exact" : "0.5 ulp";
  return fmt::format("{}.5 ulp{}", row.ulp, takes(row.operands, i32) ? "; integers exact" : "");
}

std::string reduction_error(const OpInfo& row) {
  if (row.combine == ir::Op::add) return "gamma(n) sum abs(x)";
  if (row.combine == ir::Op::mul) return "gamma(n) abs(product)";
  return "exact";
}

std::string_view relation_text(ir::Relation relation) {
  switch (relation) {
#define FUSE_RELATION(name) \
  case ir::Relation::name:  \
    return #name;
    FUSE_RELATION(none)
    FUSE_RELATION(identity)
    FUSE_RELATION(broadcast)
    FUSE_RELATION(expand)
    FUSE_RELATION(reduce)
    FUSE_RELATION(permute)
    FUSE_RELATION(reshape)
    FUSE_RELATION(slice)
    FUSE_RELATION(concat)
    FUSE_RELATION(reverse)
    FUSE_RELATION(pad)
    FUSE_RELATION(gather)
    FUSE_RELATION(dynamic_slice)
    FUSE_RELATION(update)
    FUSE_RELATION(scan)
    FUSE_RELATION(contraction)
    FUSE_RELATION(random)
    FUSE_RELATION(custom)
#undef FUSE_RELATION
  }
  return "?";
}

constexpr std::string_view head = R"(<!-- SPDX-License-Identifier: Apache-2.0 -->
# The ops

What `fusec ops` prints from the one op table, `include/fuse/ops.def`. The builder's functions and operators are in
`fuse/graph.hpp`; functions that open into these ops in [`fuse/nn`](functions.md).

**Types.** f64 f32 f16 bf16 i64 i32 i8 u8 bool. All operands of an element-wise op have one type and one shape; the
builder broadcasts. f16 and bf16 are storage: the builder converts them to f32, computes, and converts back, so each op
of a half type rounds once. Reductions and sums of products accumulate in f32 or wider. Integers wrap at their width.

**Rounding** is part of the graph: no fusion or schedule changes where a value is rounded. Every conversion and every
op of 0.5 ulp rounds to nearest, ties to even. Subnormals are kept.

**Error** is the largest distance from the exact result for the operands that the op gets, in units in the last place
of the result's type; for f64 one ulp more, the oracle's own, where an op is not correctly rounded. u is the unit
roundoff of the accumulating type and gamma(n) = n u / (1 - n u). `eval/bounds/error_bound.hpp` derives the bounds.

**NaN.** An arithmetic op with a NaN operand gives NaN unless a note says otherwise; its bits are not specified.
)";

void print_page() {
  fmt::print(
      "{}\n## Element by element\n\n| op | operands | types | result | error | notes |\n| --- | --- | --- | "
      "--- "
      "| --- | --- |\n",
      head);
  const auto rows = [](auto&& print) {
    for (int op = 0; op < ir::op_count; ++op) print(info(static_cast<ir::Op>(op)));
  };
  rows([](const OpInfo& row) {
    if (!row.elementwise) return;
    fmt::print("| `{}` | {} | {} | {} | {} | {} |\n", row.name, row.arity, types(row),
               row.result == ir::ResultClass::boolean ? "bool" : "same", error_of(row), row.note);
  });
  fmt::print(
      "\n## Reductions\n\nOver the listed `dims`, in an order that the schedule fixes: the same plan gives "
      "the "
      "same bits.\n\n| op | types | error | notes |\n| --- | --- | --- | --- |\n");
  rows([](const OpInfo& row) {
    if (row.relation != ir::Relation::reduce) return;
    fmt::print("| `{}` | {} | {} | {} |\n", row.name, types(row), reduction_error(row), row.note);
  });
  fmt::print(
      "\n## All others\n\n`relation`: how an element of the result depends on elements of the operands. "
      "Sources "
      "and movement are exact; a contraction of length k errs by gamma(k) sum abs(a b) and one rounding; a "
      "cumulative sum of n elements by gamma(n) sum abs(x).\n\n| op | operands | relation | notes |\n"
      "| --- | --- | --- | --- |\n");
  rows([](const OpInfo& row) {
    if (row.elementwise || row.relation == ir::Relation::reduce) return;
    const std::string arity = row.arity < 0 ? "1 or more" : std::to_string(row.arity);
    fmt::print("| `{}` | {} | {} | {} |\n", row.name, arity, relation_text(row.relation), row.note);
  });
}

}  // namespace

int execute(const OpsOptions&) {
  print_page();
  return 0;
}

}  // namespace fuse::fusec
