// SPDX-License-Identifier: Apache-2.0
#include "runtime/explore/snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/access.hpp"
#include "base/quoting.hpp"
#include "eval/bounds/error_bound.hpp"
#include "runtime/device/backend.hpp"

namespace fuse::runtime {
namespace {

/// Evaluations that tell how far right results may be off.
constexpr std::size_t evaluations = 4;
/// Operations of the graph beyond which no exact results are computed: tens of seconds.
constexpr double most_operations = 2e10;

}  // namespace

double operations_of(const ir::Graph& graph, const DimValues& dims) {
  double sum = 0;
  const auto value_of = [&](std::string_view name) { return dims.find(name)->second; };
  const auto extent = [&](const Dim& dim) { return static_cast<double>(dim.evaluate(value_of)); };
  for (const ir::Node& node : graph.nodes) {
    double own = 1;
    for (const Dim& dim : node.type.dims) own *= extent(dim);
    if (node.op == ir::Op::matmul) {
      const std::vector<Dim>& a = graph[node.operands[0]].type.dims;
      const bool transposed = ir::attr<ir::MatmulAttr>(node).transpose_a;
      own *= 2 * extent(a[a.size() - (transposed ? 2 : 1)]);
    }
    sum += own;
  }
  return sum;
}

Snapshot::Snapshot(Variant& usual, const ir::Graph& graph, const DimValues& dims, Stream& stream,
                   std::span<const BufferView> buffers)
    : graph_(graph), dims_(dims), usual_(usual), inputs_(buffers.size()) {
  const Device& device = usual.executable().device();
  const std::vector<Slot>& slots = usual.executable().slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const std::int64_t bytes = usual.prepared().bytes(i);
    if (slots[i].kind == Slot::Kind::output || bytes == 0) continue;
    inputs_[i] = device.allocate(bytes);
    backend_of(device)
        ->copy(queue_of(stream), inputs_[i].address(), buffers[i].address, bytes)
        .throw_if_failed();
  }
  stream.synchronize().throw_if_failed();
}

Snapshot::Outputs Snapshot::outputs_of(Variant& variant) {
  const Device& device = variant.executable().device();
  const std::vector<Slot>& slots = variant.executable().slots();
  Stream stream = device.stream();
  std::vector<Buffer> own(slots.size());
  std::vector<BufferView> views(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) views[i] = inputs_[i].view();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].kind != Slot::Kind::output) continue;
    const std::int64_t bytes = variant.prepared().bytes(i);
    own[i] = device.allocate(bytes);
    views[i] = own[i].view();
    if (!slots[i].donor || bytes == 0) continue;
    const std::size_t donor = *slots[i].donor;
    backend_of(device)
        ->copy(queue_of(stream), own[i].address(), inputs_[donor].address(), bytes)
        .throw_if_failed();
    views[donor] = own[i].view();
  }
  // Not the variant's own workspace and packed memory: those are for the caller's runs, with parameters that
  // may have changed since.
  const Prepared& prepared = variant.prepared();
  Workspace workspace = prepared.workspace({variant.mode()});
  const Buffer packed = device.allocate(prepared.packed_bytes());
  if (prepared.packed_bytes() > 0) prepared.pack(stream, views, packed.view()).throw_if_failed();
  prepared.run(stream, views, workspace, packed.view()).throw_if_failed();
  stream.synchronize().throw_if_failed();
  Outputs result;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].kind != Slot::Kind::output) continue;
    HostTensor tensor = HostTensor::make(slots[i].dtype, variant.prepared().shape(i));
    own[i].download(tensor.data);
    result.emplace(slots[i].name, std::move(tensor));
  }
  return result;
}

std::map<std::size_t, HostTensor> Snapshot::inputs() const {
  std::map<std::size_t, HostTensor> result;
  const std::vector<Slot>& slots = usual_.executable().slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].kind == Slot::Kind::output) continue;
    HostTensor tensor = HostTensor::make(slots[i].dtype, usual_.prepared().shape(i));
    inputs_[i].download(tensor.data);
    result.emplace(i, std::move(tensor));
  }
  return result;
}

const Snapshot::Exact& Snapshot::exact() {
  if (exact_) return *exact_;
  Values values;
  for (auto&& [slot, tensor] : inputs())
    values.emplace(usual_.executable().slots()[slot].name, std::move(tensor));
  const TogetherResult together = evaluate_together(
      graph_, values, [this](std::string_view name) { return dims_.find(name)->second; }, evaluations, 0);
  Exact result;
  result.undecided = together.undecided;
  for (const auto& [name, tensor] : together.exact.outputs) {
    if (!tensor.is_real()) continue;
    const HostTensor& exact = result.values.emplace(name, tensor.to_host(f64)).first->second;
    std::vector<double>& errors = result.errors[name];
    errors.resize(static_cast<std::size_t>(exact.element_count()));
    double largest = 0;
    for (const ReferenceResult& each : together.evaluations) {
      const HostTensor own = each.outputs.at(name).to_host(f64);
      for (std::size_t i = 0; i < errors.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        const double error = std::abs(own.get(at) - exact.get(at));
        if (std::isfinite(error)) errors[i] = std::max(errors[i], error), largest = std::max(largest, error);
      }
    }
    for (double& error : errors) error = std::max(8 * error, 4 * largest);
  }
  return exact_.emplace(std::move(result));
}

std::string Snapshot::check(Variant& candidate, Bits bits) {
  const std::lock_guard lock(mutex_);
  if (!expected_) expected_ = outputs_of(usual_);
  return difference(outputs_of(candidate), bits);
}

std::string Snapshot::difference(const Outputs& own, Bits bits) {
  for (const auto& [name, expected] : *expected_) {
    const HostTensor& got = own.at(name);
    if (got.data == expected.data) continue;
    const std::string what = fmt::format("output {} has other bits than by default", in_quotes(name));
    if (bits == Bits::keep || !is_floating(got.dtype)) return what;
    if (operations_of(graph_, dims_) > most_operations)
      return what + ", and the graph is too large to compute how far it may be off";
    const Exact& exact = this->exact();
    if (exact.undecided) return what + ", and decisions in the graph hang on roundings";
    const HostTensor& values = exact.values.at(name);
    for (std::int64_t i = 0; i < got.element_count(); ++i) {
      const double right = values.get(i), usual = expected.get(i), value = got.get(i);
      if (value == usual || (std::isnan(value) && std::isnan(usual))) continue;
      const double most =
          std::max(exact.errors.at(name)[static_cast<std::size_t>(i)], 4 * ulp_of(right, got.dtype));
      if (std::abs(value - right) <= most) continue;
      return fmt::format("output {}, element {}: {} is off the exact {} by more than {:.3g}", in_quotes(name),
                         i, value, right, most);
    }
  }
  return "";
}

}  // namespace fuse::runtime
