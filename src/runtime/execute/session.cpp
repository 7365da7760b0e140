// Bound and Session: a compiled graph with buffers by name.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <fuse/session.hpp>
#include <mutex>

#include "base/access.hpp"
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

/// Refuses elements of another type, and more or fewer than the slot has.
void check_elements(const Slot& slot, const std::vector<std::int64_t>& shape, std::int64_t needed,
                    std::size_t given, std::optional<DType> dtype) {
  if (dtype && *dtype != slot.dtype) {
    throw Error(
        {.code = ErrorCode::dtype_mismatch,
         .message = fmt::format("{}: the elements given are {}", describe(slot, shape), to_string(*dtype)),
         .hint = fmt::format("give elements of type {}, or their bytes where the type is known to be right",
                             to_string(slot.dtype))});
  }
  if (static_cast<std::uint64_t>(needed) == given) return;
  const std::size_t size = dtype ? size_of(*dtype) : 1;
  throw Error(
      {.code = ErrorCode::buffer_size,
       .message = fmt::format("{} takes {} bytes, {} were given", describe(slot, shape), needed, given),
       .hint = size > 1 ? fmt::format("that is {} elements, and {} were given",
                                      static_cast<std::uint64_t>(needed) / size, given / size)
                        : std::string()});
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

/// "f32[4, C]"
std::string type_of(const Slot& slot) {
  std::string dims;
  for (const Dim& dim : slot.dims) dims += (dims.empty() ? "" : ", ") + dim.to_string();
  return fmt::format("{}[{}]", to_string(slot.dtype), dims);
}

void upload(Stream& stream, BufferView to, const HostData& from) {
  if (from.bytes().empty()) return;
  backend_of(stream)
      ->upload(queue_of(stream), to.address, from.bytes().data(),
               static_cast<std::int64_t>(from.bytes().size()))
      .throw_if_failed();
}

}  // namespace

/// The parameters of a model in device memory. Packing needs what `prepare` finds out, so that the first
/// session does it.
struct Bound::Impl {
  explicit Impl(Executable of)
      : executable(std::move(of)), buffers(executable.slots().size()), shapes(buffers.size()) {}

  Executable executable;
  std::vector<Buffer> buffers;                    ///< by slot; those of parameters
  std::vector<std::vector<std::int64_t>> shapes;  ///< by slot, of the weights
  mutable std::mutex mutex;
  mutable Buffer packed;
  mutable bool is_packed = false;

  Buffer pack(const Prepared& prepared, Stream& stream) const {
    const std::lock_guard lock(mutex);
    if (is_packed) return packed;
    Buffer made = executable.device().allocate(prepared.packed_bytes());
    if (made.size() > 0) {
      std::vector<BufferView> views;
      for (const Buffer& buffer : buffers) views.push_back(buffer.view());
      const Status enqueued = prepared.pack(stream, views, made.view());
      const Status done = stream.synchronize();  // nothing may run on when this throws
      enqueued.throw_if_failed();
      done.throw_if_failed();
    }
    packed = made;
    is_packed = true;
    return packed;
  }
};

namespace {

bool is_parameter(const Slot& slot) { return slot.kind == Slot::Kind::parameter; }

/// The extents of a parameter: numbers in most graphs; where symbols are among them, the weight says them.
std::vector<std::int64_t> extents_of(const Slot& slot, const Weights& weights) {
  std::vector<std::int64_t> extents;
  const Weights::View* view = weights.find(slot.name);
  for (std::size_t i = 0; i < slot.dims.size(); ++i) {
    const bool said = !slot.dims[i].is_constant() && view && view->shape.size() == slot.dims.size();
    extents.push_back(said ? view->shape[i] : slot.dims[i].is_constant() ? slot.dims[i].constant() : 0);
  }
  return extents;
}

}  // namespace

Bound::Bound(Executable executable, const Weights& weights) {
  auto impl = std::make_shared<Impl>(std::move(executable));
  const std::vector<Slot>& slots = impl->executable.slots();
  // All are checked before the first is copied.
  for (const Slot& slot : slots) {
    if (is_parameter(slot)) check_weight(slot, extents_of(slot, weights), weights);
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!is_parameter(slots[i])) continue;
    const std::span<const std::byte> bytes = weights.find(slots[i].name)->bytes;
    impl->buffers[i] = impl->executable.device().allocate(static_cast<std::int64_t>(bytes.size()));
    impl->buffers[i].upload(bytes);
    impl->shapes[i] = weights.find(slots[i].name)->shape;
  }
  impl_ = std::move(impl);
}

Bound::Bound(Executable executable, const Bound& other) {
  auto impl = std::make_shared<Impl>(std::move(executable));
  const Executable& from = other.executable();
  if (backend_of(impl->executable.device()) != backend_of(from.device())) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("the model is on {}, the other one on {}",
                                        impl->executable.device().name(), from.device().name()),
                 .hint = "compile both for one Device"});
  }
  const std::vector<Slot>& slots = impl->executable.slots();
  std::vector<std::string> names;
  for (const Slot& slot : from.slots()) {
    if (is_parameter(slot)) names.push_back(slot.name);
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!is_parameter(slots[i])) continue;
    const auto same = std::find_if(from.slots().begin(), from.slots().end(), [&](const Slot& slot) {
      return is_parameter(slot) && slot.name == slots[i].name;
    });
    const std::string text =
        fmt::format("parameter {} of type {}", in_quotes(slots[i].name), type_of(slots[i]));
    if (same == from.slots().end()) {
      throw Error({.code = ErrorCode::unbound,
                   .message = text + " is no parameter of the other model",
                   .hint = nearest_names(names, slots[i].name)});
    }
    if (type_of(*same) != type_of(slots[i])) {
      throw Error(
          {.code = same->dtype == slots[i].dtype ? ErrorCode::shape_mismatch : ErrorCode::dtype_mismatch,
           .message = fmt::format("{}: it is {} in the other model", text, type_of(*same))});
    }
    const auto at = static_cast<std::size_t>(same - from.slots().begin());
    impl->buffers[i] = other.impl_->buffers[at];
    impl->shapes[i] = other.impl_->shapes[at];
  }
  impl_ = std::move(impl);
}

const Executable& Bound::executable() const { return impl_->executable; }

Session Bound::session(const DimValues& dims, const WorkspaceOptions& options) const {
  return Session(*this, dims, options);
}

Bound Executable::bind(const Weights& weights) const { return Bound(*this, weights); }

Session::Session(Executable executable, const DimValues& dims, const WorkspaceOptions& options)
    : executable_(std::move(executable)),
      prepared_(executable_.prepare(dims)),
      stream_(executable_.device().stream()),
      set_(executable_.slots().size(), false),
      made_(set_) {
  allocate(options);
  packed_ = executable_.device().allocate(prepared_.packed_bytes());
}

Session::Session(const Bound& bound, const DimValues& dims, const WorkspaceOptions& options)
    : executable_(bound.executable()),
      bound_(bound.impl_),
      prepared_(executable_.prepare(dims)),
      stream_(executable_.device().stream()),
      set_(executable_.slots().size(), false),
      made_(set_) {
  allocate(options);
  packed_ = bound_->pack(prepared_, stream_);
  is_packed_ = true;
}

void Session::allocate(const WorkspaceOptions& options) {
  const std::vector<Slot>& slots = executable_.slots();
  const Device& device = executable_.device();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const bool bound = bound_ && is_parameter(slots[i]);
    set_[i] = bound;
    if (bound && bound_->shapes[i] != prepared_.shape(i)) {
      throw Error(
          {.code = ErrorCode::shape_mismatch,
           .message = fmt::format("{}: the weight of this name is {}", describe(slots[i], prepared_.shape(i)),
                                  runtime::type_text(slots[i].dtype, bound_->shapes[i])),
           .hint = "give the dims that the weights have"});
    }
    buffers_.push_back(slots[i].donor ? Buffer()
                       : bound        ? bound_->buffers[i]
                                      : device.allocate(prepared_.bytes(i)));
    views_.push_back(buffers_[slots[i].donor.value_or(i)].view());
  }
  workspace_ = prepared_.workspace(options);
}

Session::Session(Session&& other) noexcept
    : executable_(std::move(other.executable_)),
      bound_(std::move(other.bound_)),
      prepared_(std::move(other.prepared_)),
      stream_(std::move(other.stream_)),
      buffers_(std::move(other.buffers_)),
      views_(std::move(other.views_)),
      set_(std::move(other.set_)),
      made_(std::move(other.made_)),
      workspace_(std::move(other.workspace_)),
      packed_(std::move(other.packed_)),
      in_flight_(std::exchange(other.in_flight_, std::nullopt)),
      is_packed_(other.is_packed_) {}

Session& Session::operator=(Session&& other) noexcept {
  if (this == &other) return *this;
  // A run that is in flight works in what is replaced below.
  if (in_flight_) (void)std::exchange(in_flight_, std::nullopt)->synchronize();
  workspace_ = std::move(other.workspace_);
  executable_ = std::move(other.executable_);
  bound_ = std::move(other.bound_);
  prepared_ = std::move(other.prepared_);
  stream_ = std::move(other.stream_);
  buffers_ = std::move(other.buffers_);
  views_ = std::move(other.views_);
  set_ = std::move(other.set_);
  made_ = std::move(other.made_);
  packed_ = std::move(other.packed_);
  in_flight_ = std::exchange(other.in_flight_, std::nullopt);
  is_packed_ = other.is_packed_;
  return *this;
}

Session::~Session() {
  if (in_flight_) (void)in_flight_->synchronize();
}

std::size_t Session::any_slot(std::string_view name) const {
  const std::vector<Slot>& slots = executable_.slots();  // inputs and parameters come first
  const auto found =
      std::find_if(slots.begin(), slots.end(), [&](const Slot& slot) { return slot.name == name; });
  return found == slots.end() ? executable_.slot(name) : static_cast<std::size_t>(found - slots.begin());
}

/// The outputs in the memory of a slot have no value of a run any more.
void Session::forget(std::size_t place) {
  const std::vector<Slot>& slots = executable_.slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].donor.value_or(i) == place) made_[i] = false;
  }
}

void Session::check_device(const std::shared_ptr<runtime::Backend>& backend, std::string_view what) const {
  if (backend == backend_of(executable_.device())) return;
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("the {} is of another device than the session's, {}", what,
                                      executable_.device().name()),
               .hint = "make it with Executable::device()"});
}

std::size_t Session::settable(std::string_view name, const HostData& elements) const {
  const std::size_t index = executable_.slot(name);
  const Slot& slot = executable_.slots()[index];
  if (bound_ && is_parameter(slot)) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = describe(slot, prepared_.shape(index)) + " belongs to the bound model",
                 .hint = "bind other weights, or make the session of the executable"});
  }
  check_elements(slot, prepared_.shape(index), prepared_.bytes(index), elements.bytes().size(),
                 elements.dtype());
  return index;
}

void Session::set(std::string_view name, const HostData& elements) {
  const std::size_t index = settable(name, elements);
  wait();
  forget(index);
  upload(stream_, views_[index], elements);
  stream_.synchronize().throw_if_failed();
  set_[index] = true;
  if (is_parameter(executable_.slots()[index])) is_packed_ = false;
}

void Session::set_later(Stream& stream, std::string_view name, const HostData& elements) {
  check_device(backend_of(stream), "stream");
  const std::size_t index = settable(name, elements);
  if (in_flight_ && &queue_of(*in_flight_) != &queue_of(stream)) wait();
  in_flight_ = stream;
  forget(index);
  upload(stream, views_[index], elements);
  set_[index] = true;
  if (is_parameter(executable_.slots()[index])) is_packed_ = false;
}

void Session::set(const Weights& weights) {
  // All are checked before the first is copied: a failure changes nothing.
  const std::vector<Slot>& slots = executable_.slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (is_parameter(slots[i])) check_weight(slots[i], prepared_.shape(i), weights);
  }
  for (const Slot& slot : slots) {
    if (is_parameter(slot)) set(slot.name, weights.find(slot.name)->bytes);
  }
}

void Session::use(std::string_view name, BufferView memory) {
  const std::size_t index = any_slot(name);
  const Slot& slot = executable_.slots()[index];
  const std::string text = describe(slot, prepared_.shape(index));
  if (is_parameter(slot)) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = text + " cannot be in the caller's memory",
                 .hint = "set its value, or bind weights"});
  }
  if (slot.donor) {
    throw Error(
        {.code = ErrorCode::invalid_argument,
         .message = fmt::format("{} is in the memory of {}", text,
                                describe(executable_.slots()[*slot.donor], prepared_.shape(*slot.donor))),
         .hint = "use memory for that input instead"});
  }
  const std::int64_t needed = prepared_.bytes(index);
  if (memory.bytes < needed) {
    throw Error({.code = ErrorCode::buffer_size,
                 .message = fmt::format("{} needs {} bytes, the memory has {}", text, needed, memory.bytes)});
  }
  if (reinterpret_cast<std::uintptr_t>(memory.address) % 16 != 0 || (!memory.address && needed > 0)) {
    throw Error({.code = ErrorCode::misaligned,
                 .message = fmt::format("{}: the address {} is not 16-byte aligned memory", text,
                                        fmt::ptr(memory.address))});
  }
  if (buffers_[index].address()) wait();  // a run may be at work in it
  forget(index);
  buffers_[index] = Buffer();
  const std::vector<Slot>& slots = executable_.slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].donor.value_or(i) == index) views_[i] = memory;
  }
  if (slot.kind == Slot::Kind::input) set_[index] = true;
}

void Session::use(std::string_view name, const Buffer& buffer) {
  check_device(backend_of(buffer), "buffer");
  use(name, buffer.view());
  buffers_[any_slot(name)] = buffer;
}

Buffer Session::buffer(std::string_view name) const {
  const std::size_t index = any_slot(name), place = executable_.slots()[index].donor.value_or(index);
  if (!buffers_[place].address()) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = describe(executable_.slots()[index], prepared_.shape(index)) +
                            " is in memory that the caller gave with `use`",
                 .hint = "the caller has it"});
  }
  return buffers_[place];
}

void Session::check_set(bool inputs) const {
  const std::vector<Slot>& slots = executable_.slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const bool asked = is_parameter(slots[i]) || (inputs && slots[i].kind == Slot::Kind::input);
    if (!asked || set_[i]) continue;
    throw Error({.code = ErrorCode::unbound,
                 .message = describe(slots[i], prepared_.shape(i)) + " was never set",
                 .hint = fmt::format("Session::set(\"{}\", ...)", slots[i].name)});
  }
}

void Session::pack() {
  if (is_packed_ || prepared_.packed_bytes() == 0) return;
  check_set(false);
  wait();
  const Status enqueued = prepared_.pack(stream_, views_, packed_.view());
  // What was enqueued before a failure may be under way: nothing may run on when this throws.
  const Status done = stream_.synchronize();
  enqueued.throw_if_failed();
  done.throw_if_failed();
  is_packed_ = true;
}

void Session::enqueue(Stream& stream) {
  check_set(true);
  if (in_flight_ && &queue_of(*in_flight_) != &queue_of(stream)) wait();
  std::fill(made_.begin(), made_.end(), false);
  in_flight_ = stream;
  if (!is_packed_ && prepared_.packed_bytes() > 0) {
    prepared_.pack(stream, views_, packed_.view()).throw_if_failed();
    is_packed_ = true;
  }
  prepared_.run(stream, views_, workspace_, packed_.view()).throw_if_failed();
  std::fill(made_.begin(), made_.end(), true);
}

void Session::wait() const {
  if (!in_flight_) return;
  Stream stream = *std::exchange(in_flight_, std::nullopt);
  const Status status = stream.synchronize();
  if (!status) std::fill(made_.begin(), made_.end(), false);
  status.throw_if_failed();
}

void Session::run() {
  try {
    enqueue(stream_);
  } catch (const Error&) {
    // What was enqueued before the failure may be under way: nothing may run on when this throws.
    if (in_flight_) (void)std::exchange(in_flight_, std::nullopt)->synchronize();
    throw;
  }
  wait();
}

void Session::run(Stream& stream) { enqueue(stream); }

void Session::run(Stream& stream, std::initializer_list<std::pair<std::string_view, BufferView>> buffers) {
  for (const auto& [name, view] : buffers) use(name, view);
  enqueue(stream);
}

std::int64_t Session::bytes_of(std::string_view output) const {
  return prepared_.bytes(executable_.output_slot(output));
}

std::vector<std::byte> Session::get(std::string_view name) const { return get<std::byte>(name); }

std::optional<Profile> Session::measured() const { return workspace_.measured(); }

void Session::get(std::string_view name, const HostSpan& elements) const {
  const std::size_t index = executable_.output_slot(name);
  const Slot& slot = executable_.slots()[index];
  if (!made_[index]) {
    throw Error({.code = ErrorCode::unbound,
                 .message = describe(slot, prepared_.shape(index)) + " has no value before a successful run",
                 .hint = "call Session::run first"});
  }
  check_elements(slot, prepared_.shape(index), prepared_.bytes(index), elements.bytes().size(),
                 elements.dtype());
  wait();
  if (elements.bytes().empty()) return;
  backend_of(stream_)
      ->download(queue_of(stream_), elements.bytes().data(), views_[index].address, prepared_.bytes(index))
      .throw_if_failed();
  stream_.synchronize().throw_if_failed();
}

}  // namespace v0
}  // namespace fuse
