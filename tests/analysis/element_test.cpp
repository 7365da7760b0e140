// Element relations against dependency by trying, for every row of the op table that has operands.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/element.hpp"

#include <map>

#include "analysis/influence.hpp"

namespace fuse::analysis_test {
namespace {

using analysis::ElementRelation;
using namespace ir;  // NOLINT: a table of ops
using ir_test::Maker;

struct Case {
  std::vector<Type> operands;
  Attr attr = NoAttr{};
  std::optional<Type> declared{};
};

Attr weighted_sum(const std::vector<Dim>& extents) {
  CustomAttr attr;
  attr.name = "mine";
  attr.source = "FUSE_KERNEL(32) mine() {}";
  attr.threads = 32;
  attr.extents = extents;
  attr.reference =
      std::make_shared<const CustomReference>([](std::span<const HostView> operands, HostView result) {
        double sum = 0, weight = 1;
        for (const HostView& operand : operands) {
          std::int64_t count = 1;
          for (const std::int64_t extent : operand.dims) count *= extent;
          for (std::int64_t i = 0; i < count; ++i)
            sum += static_cast<const double*>(operand.data)[i] * weight++;
        }
        for (std::int64_t i = 0; i < result.dims[0]; ++i)
          static_cast<double*>(result.data)[i] = sum * static_cast<double>(i + 1);
      });
  return attr;
}

std::vector<Case> cases_of(Op op) {
  const OpInfo& row = info(op);
  if (row.elementwise) {
    const DType dtype = row.operands == OperandClass::logical   ? DType::boolean
                        : row.operands == OperandClass::integer ? i32
                                                                : f64;
    return {{std::vector<Type>(static_cast<std::size_t>(row.arity), Type{dtype, {2, 3}})}};
  }
  if (row.relation == Relation::reduce) {
    const DType dtype = row.operands == OperandClass::logical ? DType::boolean : f64;
    std::vector<Case> cases = {{{{dtype, {2, 3, 2}}}, DimsAttr{{1}}},
                               {{{dtype, {3, 2}}}, DimsAttr{{1}}},
                               {{{dtype, {3}}}, DimsAttr{{0}}},
                               {{{dtype, {1, 2}}}, DimsAttr{{1}}}};
    if (row.identity != Identity::none) cases.push_back({{{dtype, {2, 3, 2}}}, DimsAttr{{0, 2}}});
    if (row.identity != Identity::none) cases.push_back({{{dtype, {1, 2}}}, DimsAttr{{0}}});
    return cases;
  }
  const Type x{f64, {2, 3}}, cube{f64, {2, 3, 2}}, row3{f64, {3}}, scalar{f64, {}}, i{i64, {}};
  static const std::map<Op, std::vector<Case>> others = {
      {Op::select, {{{{DType::boolean, {2, 3}}, x, x}}}},
      {Op::convert, {{{x}, NoAttr{}, Type{i32, {2, 3}}}, {{{bf16, {3}}}, NoAttr{}, Type{f32, {3}}}}},
      {Op::broadcast_in_dim,
       {{{row3}, DimsAttr{{1}}, x},
        {{scalar}, DimsAttr{}, x},
        {{{f64, {1, 3}}}, DimsAttr{{0, 1}}, x},
        {{x}, DimsAttr{{0, 2}}, Type{f64, {2, 4, 3}}},
        {{x}, DimsAttr{{0, 1}}, x},
        {{{f64, {3, 1}}}, DimsAttr{{0, 2}}, Type{f64, {3, 2, 1}}}}},
      {Op::expand,
       {{{{f64, {1, 3}}}, NoAttr{}, x},
        {{{f64, {1, 1}}}, NoAttr{}, x},
        {{{f64, {2, 1, 2}}}, NoAttr{}, cube},
        {{x}, NoAttr{}, x}}},
      {Op::reshape,
       {{{x}, NoAttr{}, Type{f64, {6}}},
        {{x}, NoAttr{}, Type{f64, {3, 2}}},
        {{cube}, NoAttr{}, Type{f64, {2, 6}}},
        {{cube}, NoAttr{}, Type{f64, {6, 1, 2}}},
        {{{f64, {2, 6, 2}}}, NoAttr{}, Type{f64, {4, 3, 2}}},
        {{x}, NoAttr{}, Type{f64, {1, 2, 1, 3}}},
        {{{f64, {1}}}, NoAttr{}, scalar}}},
      {Op::transpose,
       {{{x}, DimsAttr{{1, 0}}},
        {{cube}, DimsAttr{{2, 0, 1}}},
        {{cube}, DimsAttr{{0, 2, 1}}},
        {{x}, DimsAttr{{0, 1}}},
        {{{f64, {1, 3}}}, DimsAttr{{1, 0}}}}},
      {Op::slice,
       {{{x}, SliceAttr{{0, 1}, {2, 3}, {1, 1}}},
        {{{f64, {2, 7}}}, SliceAttr{{1, 1}, {2, 7}, {1, 2}}},
        {{x}, SliceAttr{{0, 0}, {2, 3}, {1, 1}}},
        {{x}, SliceAttr{{1, 1}, {2, 2}, {1, 1}}}}},
      {Op::reverse, {{{x}, DimsAttr{{1}}}, {{cube}, DimsAttr{{0, 1}}}, {{{f64, {1, 3}}}, DimsAttr{{0}}}}},
      {Op::pad,
       {{{x, scalar}, PadAttr{{0, 1}, {2, 0}}},
        {{x, scalar}, PadAttr{{0, 0}, {0, 0}}},
        {{{f64, {1}}, scalar}, PadAttr{{1}, {1}}}}},
      {Op::concat,
       {{{x, x, {f64, {2, 1}}}, AxisAttr{1}}, {{x, {f64, {0, 3}}, x}, AxisAttr{0}}, {{x}, AxisAttr{0}}}},
      {Op::gather,
       {{{{f64, {4, 2}}, {i64, {3}}}, AxisAttr{0}},
        {{{f64, {2, 4}}, {i32, {2, 2}}}, AxisAttr{1}},
        {{{f64, {4}}, {i64, {2}}}, AxisAttr{0}},
        {{{f64, {1, 2}}, {i64, {3}}}, AxisAttr{0}},
        {{{f64, {3, 2}}, i}, AxisAttr{0}}}},
      {Op::dynamic_slice,
       {{{{f64, {4, 2}}, i, i}, SizesAttr{{2, 2}}},
        {{x, i, i}, SizesAttr{{1, 2}}},
        {{x, i, i}, SizesAttr{{2, 3}}}}},
      {Op::dynamic_update_slice,
       {{{{f64, {4, 2}}, {f64, {2, 2}}, i, i}},
        {{x, {f64, {1, 2}}, i, i}},
        {{x, x, i, i}},
        {{x, {f64, {0, 3}}, i, i}}}},
      {Op::cumulative_sum,
       {{{x}, ScanAttr{1}},
        {{{f64, {4, 2}}}, ScanAttr{0, true, false}},
        {{x}, ScanAttr{1, false, true}},
        {{{f64, {4, 2}}}, ScanAttr{0, true, true}},
        {{{f64, {1, 2}}}, ScanAttr{0, false, false}},
        {{{f64, {1, 2}}}, ScanAttr{0, true, false}}}},
      {Op::matmul,
       {{{x, {f64, {3, 4}}}, MatmulAttr{}},
        {{{f64, {2, 3, 2}}, {f64, {2, 2, 3}}}, MatmulAttr{true, true}},
        {{{f64, {1, 3}}, {f64, {3, 2}}}, MatmulAttr{}},
        {{{f64, {2, 1}}, {f64, {1, 3}}}, MatmulAttr{}}}},
      {Op::contraction,
       {{{cube, {f64, {3, 2, 2}}}, ContractionAttr{{0}, {1}, {1}, {0}}},
        {{x, x}, ContractionAttr{{}, {}, {0, 1}, {0, 1}}},
        {{cube, {f64, {3, 2, 4}}}, ContractionAttr{{}, {}, {2, 1}, {1, 0}}}}},
      {Op::random_uniform, {{{i, i}, RandomAttr{3}, x}}},
      {Op::custom_call, {{{x, row3}, weighted_sum({2}), Type{f64, {2}}}}},
  };
  const auto found = others.find(op);
  return found == others.end() ? std::vector<Case>() : found->second;
}

TEST_CASE("Each op reads the elements that its relation says, and no others", "[analysis][element]") {
  const std::uint64_t seed = 20260102;
  for (int index = 0; index < op_count; ++index) {
    const Op op = static_cast<Op>(index);
    if (info(op).arity == 0) continue;
    const std::vector<Case> cases = cases_of(op);
    INFO(to_string(op) << ": a row of the op table needs a case here");
    CHECK(!cases.empty());
    for (const Case& one : cases) {
      Maker m;
      std::vector<NodeId> operands;
      for (const Type& type : one.operands)
        operands.push_back(m.input("x" + std::to_string(operands.size()), type));
      const NodeId node = m.add(op, operands, one.attr, one.declared);
      m.output("y", node);
      for (std::size_t k = 0; k < operands.size(); ++k) {
        const ElementRelation relation = analysis::element_relation(m.graph, node, k);
        const Pairs tried = influence(m.graph, "x" + std::to_string(k), 14, seed);
        const Pairs said = pairs_of(relation);
        INFO("seed " << seed << " operand " << k << " of " << ir::to_string(one.operands[k]) << " to "
                     << ir::to_string(m.graph[node].type) << ": " << to_string(relation));
        // Over many settings data makes every choice, so that even what it may read is read.
        CHECK(tried == said);
        check_promises(relation, tried);
        for (const analysis::AlignedDim& dim : relation.dims) {
          const auto extent = [](const Type& type, int axis) {
            return axis < 0 ? Dim(1) : type.dims[static_cast<std::size_t>(axis)];
          };
          CHECK(dim.operand_extent == extent(one.operands[k], dim.operand));
          CHECK(dim.result_extent == extent(m.graph[node].type, dim.result));
        }
      }
    }
  }
}

TEST_CASE("Which elements are read depends on data where it does", "[analysis][element]") {
  for (int index = 0; index < op_count; ++index) {
    const Op op = static_cast<Op>(index);
    if (info(op).arity == 0) continue;
    INFO(to_string(op));
    const Case one = cases_of(op).front();
    Maker m;
    std::vector<NodeId> operands;
    for (const Type& type : one.operands)
      operands.push_back(m.input("x" + std::to_string(operands.size()), type));
    const NodeId node = m.add(op, operands, one.attr, one.declared);
    const Relation relation = info(op).relation;
    const bool by_data = relation == Relation::gather || relation == Relation::dynamic_slice ||
                         relation == Relation::update || relation == Relation::custom;
    CHECK(depends_on_data(analysis::element_relation(m.graph, node, 0)) == by_data);
  }
}

}  // namespace
}  // namespace fuse::analysis_test
