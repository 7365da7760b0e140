// SPDX-License-Identifier: Apache-2.0
#include "cases/case_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/access.hpp"
#include "cases/case_data.hpp"
#include "eval/evaluate.hpp"
#include "fusec/values/check.hpp"
#include "ir/graph/ir_graph.hpp"

namespace fuse::bench {
namespace {

// The flops that the reference has time for, for each element that it evaluates.
constexpr double flops_an_element = 500;

/// The part of the case that fits, by its first dim; empty where not even one row does.
std::optional<Case> affordable(const Case& c, double elements, double flops, double most_elements) {
  const double most_flops = flops_an_element * most_elements;
  const double part = std::min({1.0, most_elements / elements, flops > 0 ? most_flops / flops : 1.0});
  Case small = c;
  if (part == 1) return small;
  small.dims[0] = static_cast<std::int64_t>(part * static_cast<double>(c.dims[0]));
  if (!builder_of(c.builder).rows_are_independent || small.dims[0] == 0) return std::nullopt;
  return small;
}

runtime::Values inputs_of(const ir::Graph& graph) {
  runtime::Values values;
  for (const ir::Node& node : graph.nodes) {
    if (node.op != ir::Op::input && node.op != ir::Op::parameter) continue;
    const Slot slot{node.op == ir::Op::input ? Slot::Kind::input : Slot::Kind::parameter,
                    ir::attr<ir::NameAttr>(node).name, node.type.dtype, node.type.dims};
    values.emplace(slot.name, data_of(slot));
  }
  return values;
}

runtime::HostTensor first_rows(const runtime::HostTensor& y, std::vector<std::int64_t> shape) {
  runtime::HostTensor part = runtime::HostTensor::make(y.dtype, std::move(shape));
  std::copy_n(y.data.begin(), part.data.size(), part.data.begin());
  return part;
}

}  // namespace

CaseError check_case(const Case& c, const runtime::HostTensor& y, double elements, double flops,
                     double most_elements) {
  const std::optional<Case> small = affordable(c, elements, flops, most_elements);
  if (!small) {
    return {
        .over_bound = std::nullopt,
        .checked = fmt::format("nothing: the reference would evaluate {:.3g} elements and {:.3g} flop, and "
                               "no part of it stands alone",
                               elements, flops)};
  }
  const Graph graph = builder_of(c.builder).build(small->dtype, small->dims);
  const runtime::Values inputs = inputs_of(ir_of(graph));
  const auto no_dims = [](std::string_view) -> std::int64_t {
    throw std::logic_error("a case has no symbols");
  };
  std::vector<std::int64_t> shape;
  for (const Dim& dim : ir_of(graph)[ir_of(graph).outputs.front().node].type.dims)
    shape.push_back(dim.constant());
  const fusec::Verdict verdict =
      fusec::OutputChecker(ir_of(graph), inputs, no_dims).check("y", first_rows(y, shape));
  return {.over_bound = verdict.over_bound,
          .checked = small->dims[0] == c.dims[0]
                         ? "all"
                         : fmt::format("the first {} of {} rows", small->dims[0], c.dims[0]),
          .ok = verdict.ok,
          .text = verdict.text};
}

}  // namespace fuse::bench
