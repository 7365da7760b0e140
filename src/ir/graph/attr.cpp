// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/attr.hpp"

#include "base/quoting.hpp"

namespace fuse::ir {
namespace {

std::vector<Dim> joined(std::vector<Dim> first, const std::vector<Dim>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

struct Dims {
  std::vector<Dim> operator()(const DimAttr& attr) const { return {attr.dim}; }
  std::vector<Dim> operator()(const SliceAttr& attr) const { return joined(attr.starts, attr.limits); }
  std::vector<Dim> operator()(const PadAttr& attr) const { return joined(attr.low, attr.high); }
  std::vector<Dim> operator()(const SizesAttr& attr) const { return attr.sizes; }
  std::vector<Dim> operator()(const CustomAttr& attr) const { return joined({attr.grid}, attr.extents); }
  std::vector<Dim> operator()(const NoAttr&) const { return {}; }
  std::vector<Dim> operator()(const NameAttr&) const { return {}; }
  std::vector<Dim> operator()(const ConstantAttr&) const { return {}; }
  std::vector<Dim> operator()(const DimsAttr&) const { return {}; }
  std::vector<Dim> operator()(const AxisAttr&) const { return {}; }
  std::vector<Dim> operator()(const MatmulAttr&) const { return {}; }
  std::vector<Dim> operator()(const ScanAttr&) const { return {}; }
  std::vector<Dim> operator()(const ContractionAttr&) const { return {}; }
  std::vector<Dim> operator()(const RandomAttr&) const { return {}; }
};

struct Names {
  AttributeNames operator()(const NoAttr&) const { return {}; }
  AttributeNames operator()(const NameAttr&) const { return {{"name"}}; }
  AttributeNames operator()(const ConstantAttr&) const { return {{"value"}}; }
  AttributeNames operator()(const DimsAttr&) const { return {{"dims"}}; }
  AttributeNames operator()(const AxisAttr&) const { return {{"axis"}}; }
  AttributeNames operator()(const DimAttr&) const { return {{"dim"}}; }
  AttributeNames operator()(const SliceAttr&) const { return {{"starts", "limits", "strides"}}; }
  AttributeNames operator()(const PadAttr&) const { return {{"low", "high"}}; }
  AttributeNames operator()(const SizesAttr&) const { return {{"sizes"}}; }
  AttributeNames operator()(const MatmulAttr&) const { return {{}, {"transpose_a", "transpose_b"}}; }
  AttributeNames operator()(const ScanAttr&) const { return {{"axis"}, {"exclusive", "reverse"}}; }
  AttributeNames operator()(const ContractionAttr&) const {
    return {{"batch_a", "batch_b", "contract_a", "contract_b"}};
  }
  AttributeNames operator()(const RandomAttr&) const { return {{"stream"}}; }
  AttributeNames operator()(const CustomAttr&) const {
    return {{"kernel", "source", "threads", "grid", "extents"}, {"shared_bytes", "grid_barrier", "parts"}};
  }
};

}  // namespace

Attr empty_attribute(Op op) {
  switch (op) {
#define FUSE_ELEMENTWISE(name, arity, operands, result, ulp, traits, cuda, note) \
  case Op::name:                                                                 \
    return NoAttr{};
#define FUSE_REDUCTION(name, operands, identity, combine, note) \
  case Op::name:                                                \
    return DimsAttr{};
#define FUSE_OP(name, arity, attribute, relation, traits, note) \
  case Op::name:                                                \
    return attribute{};
#include <fuse/ops.def>
  }
  return NoAttr{};
}

AttributeNames attribute_names(const Attr& attr) { return std::visit(Names{}, attr); }

std::string attributes_text(const Attr& attr) {
  auto [names, optional] = attribute_names(attr);
  names.insert(names.end(), optional.begin(), optional.end());
  if (names.empty()) return "it has no attributes";
  return (names.size() == 1 ? "it has the attribute " : "it has the attributes ") + listed(names);
}

std::vector<Dim> dims_of(const Attr& attr) { return std::visit(Dims{}, attr); }

}  // namespace fuse::ir
