// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <fuse/executable.hpp>

#include "base/quoting.hpp"
#include "base/suggest.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "tensors/host_tensor.hpp"

namespace fuse {
inline namespace v0 {
namespace {

/// "input 'x' of type f32[4, 256]"
std::string describe(const Slot& slot, const std::vector<std::int64_t>& shape) {
  return fmt::format("{} {} of type {}", runtime::to_string(slot.kind), in_quotes(slot.name),
                     runtime::type_text(slot.dtype, shape));
}

void check_size(const Slot& slot, const Prepared& prepared, std::size_t index, std::size_t given) {
  const std::int64_t needed = prepared.bytes(index);
  if (static_cast<std::uint64_t>(needed) == given) return;
  throw Error({.code = ErrorCode::buffer_size,
               .message = fmt::format("{} takes {} bytes, {} were given",
                                      describe(slot, prepared.shape(index)), needed, given)});
}

void check_weight(const Slot& slot, const std::vector<std::int64_t>& shape, const Weights& weights) {
  const Weights::View* view = weights.find(slot.name);
  if (!view) {
    throw Error(
        {.code = ErrorCode::unbound,
         .message = fmt::format("{} has no value among {} weights", describe(slot, shape), weights.size()),
         .hint = nearest_names(weights.names(), slot.name)});
  }
  if (view->dtype == slot.dtype && view->shape == shape) return;
  throw Error({.code = view->dtype == slot.dtype ? ErrorCode::shape_mismatch : ErrorCode::dtype_mismatch,
               .message = fmt::format("{}: the weight of this name is {}", describe(slot, shape),
                                      runtime::type_text(view->dtype, view->shape))});
}

}  // namespace

Session::Session(Executable executable, const DimValues& dims, const WorkspaceOptions& options)
    : executable_(std::move(executable)),
      prepared_(executable_.prepare(dims)),
      stream_(executable_.device().stream()),
      set_(executable_.slots().size(), false) {
  const Device& device = executable_.device();
  for (std::size_t i = 0; i < executable_.slots().size(); ++i) {
    const bool shared = executable_.slots()[i].donor.has_value();
    buffers_.push_back(shared ? Buffer() : device.allocate(prepared_.bytes(i)));
  }
  workspace_ = prepared_.workspace(options);
  packed_ = device.allocate(prepared_.packed_bytes());
}

const Buffer& Session::buffer(std::size_t slot) const {
  return buffers_[executable_.slots()[slot].donor.value_or(slot)];
}

void Session::set(std::string_view name, std::span<const std::byte> data) {
  const std::size_t index = executable_.slot(name);
  check_size(executable_.slots()[index], prepared_, index, data.size());
  buffers_[index].upload(data);
  set_[index] = true;
  if (executable_.slots()[index].kind == Slot::Kind::parameter) is_packed_ = false;
}

void Session::set(const Weights& weights) {
  // All are checked before the first is copied: a failure changes nothing.
  const std::vector<Slot>& slots = executable_.slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].kind == Slot::Kind::parameter) check_weight(slots[i], prepared_.shape(i), weights);
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].kind == Slot::Kind::parameter) set(slots[i].name, weights.find(slots[i].name)->bytes);
  }
}

std::vector<BufferView> Session::views() const {
  std::vector<BufferView> views;
  for (std::size_t i = 0; i < buffers_.size(); ++i) views.push_back(buffer(i).view());
  return views;
}

void Session::check_set(bool inputs) const {
  const std::vector<Slot>& slots = executable_.slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const bool asked =
        slots[i].kind == Slot::Kind::parameter || (inputs && slots[i].kind == Slot::Kind::input);
    if (!asked || set_[i]) continue;
    throw Error({.code = ErrorCode::unbound,
                 .message = describe(slots[i], prepared_.shape(i)) + " was never set",
                 .hint = fmt::format("Session::set(\"{}\", ...)", slots[i].name)});
  }
}

/// What was enqueued before a failure may be under way: nothing may run on when this throws.
void Session::finish(const Status& enqueued) {
  const Status done = stream_.synchronize();
  enqueued.throw_if_failed();
  done.throw_if_failed();
}

void Session::pack() {
  if (is_packed_ || prepared_.packed_bytes() == 0) return;
  check_set(false);
  finish(prepared_.pack(stream_, views(), packed_.view()));
  is_packed_ = true;
}

void Session::run() {
  check_set(true);
  ran_ = false;
  pack();
  finish(prepared_.run(stream_, views(), workspace_, packed_.view()));
  ran_ = true;
}

void Session::get(std::string_view name, std::span<std::byte> data) const {
  const std::size_t index = executable_.output_slot(name);
  const Slot& slot = executable_.slots()[index];
  if (!ran_) {
    throw Error({.code = ErrorCode::unbound,
                 .message = describe(slot, prepared_.shape(index)) + " has no value before a successful run",
                 .hint = "call Session::run first"});
  }
  check_size(slot, prepared_, index, data.size());
  buffer(index).download(data);
}

std::vector<std::byte> Session::get(std::string_view name) const {
  std::vector<std::byte> data(static_cast<std::size_t>(prepared_.bytes(executable_.output_slot(name))));
  get(name, data);
  return data;
}

}  // namespace v0
}  // namespace fuse
