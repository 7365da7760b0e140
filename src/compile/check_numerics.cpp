// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <fuse/numerics.hpp>
#include <optional>

#include "base/access.hpp"
#include "base/quoting.hpp"
#include "compile/compile.hpp"
#include "ir/graph/kept_values.hpp"
#include "tensors/host_tensor.hpp"

namespace fuse {
inline namespace v0 {
namespace {

/// What a value has, or what it is computed from.
struct Found {
  bool nan = false, inf = false;
  std::int64_t index = 0;
  double element = 0;
};

/// The first NaN, where there is one, else the first Inf.
Found find_in(const runtime::HostTensor& tensor) {
  Found found;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    const double element = tensor.get(i);
    if (std::isfinite(element) || (found.inf && !std::isnan(element))) continue;
    found = {
        .nan = std::isnan(element), .inf = found.inf || std::isinf(element), .index = i, .element = element};
    if (found.nan) break;
  }
  return found;
}

class Checker {
 public:
  Checker(const ir::Graph& graph, const Device& device, const DimValues& dims, const CompileOptions& options)
      : graph_(graph), executable_(compile_kept(device, options)), prepared_(executable_.prepare(dims)) {}

  std::vector<NotFinite> run(Stream& stream, std::span<const BufferView> given) {
    const std::vector<Slot>& slots = executable_.slots();
    std::vector<BufferView> views(given.begin(), given.end());
    check_given(views.size());
    views.resize(given_count(), {});
    std::vector<Buffer> made;
    for (std::size_t i = views.size(); i < slots.size(); ++i) {
      made.push_back(executable_.device().allocate(prepared_.bytes(i)));
      views.push_back(made.back().view());
    }
    const Buffer packed = executable_.device().allocate(prepared_.packed_bytes());
    Workspace workspace = prepared_.workspace();
    prepared_.pack(stream, views, packed.view()).throw_if_failed();
    prepared_.run(stream, views, workspace, packed.view()).throw_if_failed();
    stream.synchronize().throw_if_failed();
    return makers(stream, views);
  }

 private:
  Executable compile_kept(const Device& device, const CompileOptions& options) const {
    std::vector<ir::NodeId> kept;
    for (const ir::NodeId id : ir::live_values(graph_)) {
      if (is_looked_at(id) && !ir::is_given(graph_[id])) kept.push_back(id);
    }
    ir::Graph graph = ir::with_kept(graph_, kept);
    for (ir::Output& output : graph.outputs) output.donor = ir::Output::no_donor;
    Compiled compiled = run_pipeline(graph, backend_of(device)->target(), pipeline_options(options));
    return runtime::make_executable(std::move(graph), std::move(compiled), device);
  }

  bool is_looked_at(ir::NodeId id) const { return is_floating(graph_[id].type.dtype); }

  std::size_t given_count() const {
    std::size_t count = 0;
    for (const Slot& slot : executable_.slots()) count += slot.kind != Slot::Kind::output;
    return count;
  }

  void check_given(std::size_t given) const {
    if (given >= given_count()) return;
    throw Error(
        {.code = ErrorCode::invalid_argument,
         .message = fmt::format("check_numerics: {} given for graph '{}', which has {} inputs and parameters",
                                counted(given, "buffer"), graph_.name, given_count()),
         .op = {},
         .hint = "give those that Prepared::run takes, by slot"});
  }

  std::size_t slot_of(ir::NodeId id) const {
    if (ir::is_given(graph_[id])) return executable_.slot(ir::attr<ir::NameAttr>(graph_[id]).name);
    return executable_.output_slot(ir::kept_name(graph_, id));
  }

  /// The values that are not finite though their operands are.
  std::vector<NotFinite> makers(Stream& stream, const std::vector<BufferView>& views) const {
    std::vector<NotFinite> values;
    std::vector<Found> founds(graph_.nodes.size());
    for (const ir::NodeId id : ir::live_values(graph_)) {
      if (!is_looked_at(id)) continue;
      const Found& found = founds[id] = find_in(read(stream, slot_of(id), views));
      bool nan = false, inf = false;
      for (const ir::NodeId operand : graph_[id].operands) {
        nan |= founds[operand].nan;
        inf |= founds[operand].inf;
      }
      const bool makes = (found.nan && !nan) || (found.inf && !nan && !inf);
      if (!makes || graph_[id].op == ir::Op::constant) continue;
      values.push_back({.value = ir::describe_value(graph_, id),
                        .location = graph_.location(graph_[id]),
                        .index = found.index,
                        .element = found.element});
    }
    return values;
  }

  runtime::HostTensor read(Stream& stream, std::size_t slot, const std::vector<BufferView>& views) const {
    auto tensor = runtime::HostTensor::make(executable_.slots()[slot].dtype, prepared_.shape(slot));
    runtime::Backend& backend = *backend_of(executable_.device());
    if (!tensor.data.empty()) {
      backend.download(queue_of(stream), tensor.data.data(), views[slot].address, prepared_.bytes(slot))
          .throw_if_failed();
      stream.synchronize().throw_if_failed();
    }
    return tensor;
  }

  const ir::Graph& graph_;
  const Executable executable_;
  const Prepared prepared_;
};

}  // namespace

std::string to_string(const NotFinite& v) {
  const char* element = std::isnan(v.element) ? "NaN" : v.element > 0 ? "inf" : "-inf";
  const std::string at =
      v.location.line == 0 ? "" : fmt::format(" at {}:{}", v.location.file, v.location.line);
  return fmt::format("{}{} has {} at element {}", v.value, at, element, v.index);
}

std::vector<NotFinite> check_numerics(const Graph& graph, const Device& device, const DimValues& dims,
                                      Stream& stream, std::span<const BufferView> buffers,
                                      const CompileOptions& options) {
  return Checker(ir_of(graph), device, dims, options).run(stream, buffers);
}

}  // namespace v0
}  // namespace fuse
