// SPDX-License-Identifier: Apache-2.0
#include "runtime/reference/reference_run.hpp"

#include <cstring>
#include <new>

#include "eval/evaluate.hpp"

namespace fuse::runtime {
namespace {

Values read_inputs(const Prepared::Impl& p, std::span<const BufferView> buffers) {
  const std::vector<Slot>& slots = p.executable->slots();
  Values values;
  for (std::size_t i = 0; i < slots.size() && slots[i].kind != Slot::Kind::output; ++i) {
    HostTensor tensor = HostTensor::make(slots[i].dtype, *p.shapes[i]);
    if (p.bytes[i] > 0) std::memcpy(tensor.data.data(), buffers[i].address, tensor.data.size());
    values.emplace(slots[i].name, std::move(tensor));
  }
  return values;
}

void run(const ir::Graph& graph, const Prepared::Impl& p, std::span<const BufferView> buffers) {
  const auto dim = [&](std::string_view name) {
    if (const auto found = p.dims.find(name); found != p.dims.end()) return found->second;
    // prepare has seen that nothing uses this symbol: any value of its range does.
    for (const ir::Symbol& symbol : graph.symbols) {
      if (symbol.name == name) return symbol.range.min;
    }
    return std::int64_t{0};
  };
  const ReferenceResult result = evaluate(graph, read_inputs(p, buffers), dim, Precision::exact);
  const std::vector<Slot>& slots = p.executable->slots();
  std::vector<HostTensor> outputs(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].kind == Slot::Kind::output)
      outputs[i] = result.outputs.at(slots[i].name).to_host(slots[i].dtype);
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].kind != Slot::Kind::output || p.bytes[i] == 0) continue;
    std::memcpy(buffers[i].address, outputs[i].data.data(), outputs[i].data.size());
  }
}

}  // namespace

Status run_reference(const ir::Graph& graph, const Prepared::Impl& p,
                     std::span<const BufferView> buffers) noexcept {
  try {
    run(graph, p, buffers);
    return Status();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  } catch (const std::bad_alloc&) {
    return {ErrorCode::out_of_memory, "the reference device ran out of host memory"};
  } catch (const std::exception& error) {
    return {ErrorCode::internal, error.what()};
  }
}

}  // namespace fuse::runtime
