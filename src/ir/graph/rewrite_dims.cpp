// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/rewrite_dims.hpp"

namespace fuse::ir {
namespace {

struct RewriteDims {
  const std::function<void(Dim&)>& rewrite;

  void one(Dim& dim) const {
    if (!dim.is_constant()) rewrite(dim);
  }
  void all(std::vector<Dim>& dims) const {
    for (Dim& dim : dims) one(dim);
  }

  template <class A>
  void operator()(A&) const {}
  void operator()(SliceAttr& attr) const {
    all(attr.starts);
    all(attr.limits);
  }
  void operator()(PadAttr& attr) const {
    all(attr.low);
    all(attr.high);
  }
  void operator()(SizesAttr& attr) const { all(attr.sizes); }
  void operator()(DimAttr& attr) const { one(attr.dim); }
  void operator()(CustomAttr& attr) const {
    one(attr.grid);
    all(attr.extents);
  }
};

}  // namespace

void rewrite_dims(Node& node, const std::function<void(Dim&)>& rewrite) {
  const RewriteDims each{rewrite};
  each.all(node.type.dims);
  std::visit(each, node.attr);
}

Graph with_values(const Graph& graph, detail::FunctionRef<std::int64_t(std::string_view)> of) {
  Graph result = graph;
  for (Node& node : result.nodes) rewrite_dims(node, [&](Dim& dim) { dim = dim.evaluate(of); });
  result.symbols.clear();
  result.assumptions.clear();
  return result;
}

}  // namespace fuse::ir
