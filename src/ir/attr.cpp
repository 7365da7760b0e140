// SPDX-License-Identifier: Apache-2.0
#include "ir/attr.hpp"

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

}  // namespace

std::vector<Dim> dims_of(const Attr& attr) { return std::visit(Dims{}, attr); }

}  // namespace fuse::ir
