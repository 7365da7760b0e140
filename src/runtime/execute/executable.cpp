// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/quoting.hpp"
#include "base/suggest.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "runtime/execute/prepared_shapes.hpp"
#include "tensors/host_tensor.hpp"

namespace fuse {
namespace runtime {

Executable make_executable(const Device& device, std::shared_ptr<const Program> program,
                           std::shared_ptr<const Origin> origin, std::shared_ptr<const Module> module) {
  if (device.kind() != DeviceKind::reference) verify(*program);
  auto impl = std::make_shared<Executable::Impl>(Executable::Impl{.device = device,
                                                                  .program = std::move(program),
                                                                  .origin = std::move(origin),
                                                                  .module = std::move(module)});
  for (const codegen::KernelInfo& kernel : impl->program->kernels) {
    impl->functions.push_back(&impl->module->function(kernel.name));
  }
  return Executable(std::move(impl));
}

}  // namespace runtime

inline namespace v0 {
namespace {

std::size_t find_slot(const std::vector<Slot>& slots, std::string_view name, bool output) {
  std::vector<std::string> names;
  bool other = false;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const bool wanted = (slots[i].kind == Slot::Kind::output) == output;
    if (wanted && slots[i].name == name) return i;
    if (wanted) names.push_back(slots[i].name);
    other |= !wanted && slots[i].name == name;
  }
  std::string hint = nearest_names(names, name);
  if (other) hint = fmt::format("{} is an {}", in_quotes(name), output ? "input or parameter" : "output");
  throw Error(
      {.code = ErrorCode::unknown_name,
       .message = fmt::format("no {} is named {}", output ? "output" : "input or parameter", in_quotes(name)),
       .hint = std::move(hint)});
}

}  // namespace

Executable::Executable(std::shared_ptr<const Impl> impl)
    : impl_(std::move(impl)), prepared_(std::make_shared<runtime::PreparedShapes>()) {}
const std::vector<Slot>& Executable::slots() const { return impl_->slots(); }
std::size_t Executable::slot(std::string_view name) const { return find_slot(impl_->slots(), name, false); }
std::size_t Executable::output_slot(std::string_view name) const {
  return find_slot(impl_->slots(), name, true);
}
std::string Executable::explain() const { return impl_->origin->explain(*impl_); }
const std::string& Executable::source() const { return impl_->origin->source(); }
const Device& Executable::device() const { return impl_->device; }
const Compiled& Executable::stages() const { return impl_->origin->stages(); }

}  // namespace v0
}  // namespace fuse
