// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <span>

#include "runtime/interop/c_handles.hpp"

namespace {

namespace c = fuse::runtime::c;
using fuse::BufferView;
using fuse::Error;
using fuse::ErrorCode;

// A run reads the caller's views where they are.
static_assert(sizeof(fuse_compiler_view) == sizeof(BufferView) &&
              offsetof(fuse_compiler_view, bytes) == offsetof(BufferView, bytes));
static_assert(static_cast<int>(fuse::Slot::Kind::parameter) == FUSE_COMPILER_PARAMETER &&
              static_cast<int>(fuse::Slot::Kind::output) == FUSE_COMPILER_OUTPUT);
static_assert(
    static_cast<int>(fuse::f64) == FUSE_COMPILER_F64 && static_cast<int>(fuse::f32) == FUSE_COMPILER_F32 &&
    static_cast<int>(fuse::f16) == FUSE_COMPILER_F16 && static_cast<int>(fuse::bf16) == FUSE_COMPILER_BF16 &&
    static_cast<int>(fuse::i64) == FUSE_COMPILER_I64 && static_cast<int>(fuse::i32) == FUSE_COMPILER_I32 &&
    static_cast<int>(fuse::i8) == FUSE_COMPILER_I8 && static_cast<int>(fuse::u8) == FUSE_COMPILER_U8 &&
    static_cast<int>(fuse::boolean) == FUSE_COMPILER_BOOL);

/// The caller's struct, whatever its version, as this version's: what it lacks is 0.
template <class Options>
Options options_of(const char* type, const Options* given) {
  Options own{};
  if (given) std::memcpy(&own, given, c::checked_size(type, given, given->struct_size, sizeof own));
  return own;
}

/// Writes what the caller's struct has room for, and leaves its struct_size.
template <class Info>
void give(const char* type, Info info, Info* out) {
  const std::size_t size = c::checked_size(type, out, out->struct_size, sizeof info);
  info.struct_size = out->struct_size;
  std::memcpy(out, &info, size);
}

/// A handle reaches the caller when all is done.
template <class Handle, class... Parts>
void hand_over(Handle** out, Parts&&... parts) {
  *out = new Handle{std::forward<Parts>(parts)...};
}

[[noreturn]] void refuse_argument(std::string message) {
  throw Error({.code = ErrorCode::invalid_argument, .message = std::move(message)});
}

int checked_int(const char* field, std::int64_t value) {
  if (value == static_cast<int>(value)) return static_cast<int>(value);
  refuse_argument(fmt::format("{} cannot be {}", field, value));
}

/// An enumeration whose values C has as numbers from 0 on.
template <class Enum>
Enum checked_enum(const char* field, std::int64_t value, Enum last) {
  if (value >= 0 && value <= static_cast<std::int64_t>(last)) return static_cast<Enum>(value);
  refuse_argument(fmt::format("{} cannot be {}; it is from 0 to {}", field, value, static_cast<int>(last)));
}

const fuse::Slot& slot_of(const fuse::Executable& executable, std::size_t slot) {
  if (slot < executable.slots().size()) return executable.slots()[slot];
  refuse_argument(fmt::format("there is no slot {}; there are {}", slot, executable.slots().size()));
}

fuse_compiler_slot_info info_of(const fuse::Slot& slot) {
  fuse_compiler_slot_info info{};
  info.name = slot.name.c_str();
  info.kind = static_cast<int>(slot.kind);
  info.dtype = static_cast<int>(slot.dtype);
  info.rank = static_cast<std::int64_t>(slot.dims.size());
  info.donor = slot.donor ? static_cast<std::int64_t>(*slot.donor) : -1;
  info.bytes = -1;
  info.read_in_run = 1;
  return info;
}

std::span<const BufferView> views_of(const fuse_compiler_view* views, std::size_t count) noexcept {
  return {reinterpret_cast<const BufferView*>(views), count};
}

BufferView view_of(const fuse_compiler_view* view) noexcept {
  return view ? BufferView{view->address, view->bytes} : BufferView{};
}

}  // namespace

// Names what is null, by the arguments' own names.
#define FUSE_COMPILER_NAMED(argument) \
  c::NamedArgument { argument, #argument }
#define FUSE_COMPILER_NOT_NULL(...) \
  if (const char* const missing = c::first_null(__VA_ARGS__)) return c::null_argument(__func__, missing)

int fuse_compiler_device_emulated(const fuse_compiler_emulated_options* options, fuse_compiler_device** out) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(out));
  return c::guarded([&] {
    const fuse_compiler_emulated_options own = options_of("fuse_compiler_emulated_options", options);
    fuse::Device::Emulated chosen;
    if (own.profile) chosen.profile = own.profile;
    chosen.checked = own.checked != 0;
    chosen.threads = checked_int("threads", own.threads);
    chosen.shuffle_seed = own.shuffle_seed;
    chosen.scheduling = checked_enum("scheduling", own.scheduling, fuse::BlockScheduling::gang);
    const fuse::Device device = fuse::Device::emulated(chosen);
    hand_over(out, device, device.name());
  });
}

int fuse_compiler_device_cpu(const fuse_compiler_cpu_options* options, fuse_compiler_device** out) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(out));
  return c::guarded([&] {
    const fuse_compiler_cpu_options own = options_of("fuse_compiler_cpu_options", options);
    fuse::Device::Cpu chosen;
    chosen.threads = checked_int("threads", own.threads);
    chosen.pin = own.pin != 0;
    if (own.machine) chosen.machine = own.machine;
    const fuse::Device device = fuse::Device::cpu(chosen);
    hand_over(out, device, device.name());
  });
}

int fuse_compiler_device_cuda(int ordinal, fuse_compiler_device** out) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(out));
  return c::guarded([&] {
    const fuse::Device device = fuse::Device::cuda(ordinal);
    hand_over(out, device, device.name());
  });
}

int fuse_compiler_device_name(const fuse_compiler_device* device, const char** out) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(device), FUSE_COMPILER_NAMED(out));
  *out = device->name.c_str();
  return FUSE_COMPILER_OK;
}

int fuse_compiler_plan_load(const char* path, const fuse_compiler_device* device, fuse_compiler_plan** out) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(path), FUSE_COMPILER_NAMED(device), FUSE_COMPILER_NAMED(out));
  return c::guarded([&] { hand_over(out, fuse::Executable::load(path, device->device)); });
}

int fuse_compiler_plan_slot_count(const fuse_compiler_plan* plan, size_t* out) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(plan), FUSE_COMPILER_NAMED(out));
  *out = plan->executable.slots().size();
  return FUSE_COMPILER_OK;
}

int fuse_compiler_plan_slot(const fuse_compiler_plan* plan, size_t slot, fuse_compiler_slot_info* out) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(plan), FUSE_COMPILER_NAMED(out));
  return c::guarded([&] { give("fuse_compiler_slot_info", info_of(slot_of(plan->executable, slot)), out); });
}

int fuse_compiler_plan_find_input(const fuse_compiler_plan* plan, const char* name, size_t* out) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(plan), FUSE_COMPILER_NAMED(name), FUSE_COMPILER_NAMED(out));
  return c::guarded([&] { *out = plan->executable.slot(name); });
}

int fuse_compiler_plan_find_output(const fuse_compiler_plan* plan, const char* name, size_t* out) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(plan), FUSE_COMPILER_NAMED(name), FUSE_COMPILER_NAMED(out));
  return c::guarded([&] { *out = plan->executable.output_slot(name); });
}

int fuse_compiler_prepare(const fuse_compiler_plan* plan, const char* const* names, const int64_t* values,
                          size_t count, fuse_compiler_prepared** out) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(plan), FUSE_COMPILER_NAMED(out));
  if (count > 0) FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(names), FUSE_COMPILER_NAMED(values));
  return c::guarded([&] {
    fuse::DimValues dims;
    for (std::size_t i = 0; i < count; ++i) {
      if (!names[i]) refuse_argument(fmt::format("fuse_compiler_prepare: names[{}] is null", i));
      if (dims.emplace(names[i], values[i]).second) continue;
      throw Error({.code = ErrorCode::duplicate_name,
                   .message = fmt::format("two values are given for the dim '{}'", names[i])});
    }
    hand_over(out, plan->executable, plan->executable.prepare(dims));
  });
}

int fuse_compiler_prepared_slot(const fuse_compiler_prepared* prepared, size_t slot,
                                fuse_compiler_slot_info* out) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(prepared), FUSE_COMPILER_NAMED(out));
  return c::guarded([&] {
    fuse_compiler_slot_info info = info_of(slot_of(prepared->executable, slot));
    info.shape = prepared->prepared.shape(slot).data();
    info.bytes = prepared->prepared.bytes(slot);
    info.read_in_run = prepared->prepared.reads_in_run(slot) ? 1 : 0;
    give("fuse_compiler_slot_info", info, out);
  });
}

int fuse_compiler_prepared_info(const fuse_compiler_prepared* prepared, fuse_compiler_run_info* out) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(prepared), FUSE_COMPILER_NAMED(out));
  return c::guarded([&] {
    const fuse::Prepared& from = prepared->prepared;
    fuse_compiler_run_info info{};
    info.workspace_bytes = from.workspace_bytes();
    info.packed_bytes = from.packed_bytes();
    info.launches = from.launches();
    info.gemms = from.gemms();
    info.streams = from.streams();
    give("fuse_compiler_run_info", info, out);
  });
}

int fuse_compiler_workspace_new(const fuse_compiler_prepared* prepared,
                                const fuse_compiler_workspace_options* options,
                                fuse_compiler_workspace** out) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(prepared), FUSE_COMPILER_NAMED(out));
  return c::guarded([&] {
    const fuse_compiler_workspace_options own = options_of("fuse_compiler_workspace_options", options);
    const fuse::WorkspaceOptions chosen{checked_enum("mode", own.mode, fuse::ExecutionMode::automatic)};
    const fuse::Prepared& from = prepared->prepared;
    if (!own.memory && own.memory_bytes != 0) {
      refuse_argument(fmt::format("a workspace in {} bytes of no memory", own.memory_bytes));
    }
    hand_over(out, own.memory ? from.workspace(BufferView{own.memory, own.memory_bytes}, chosen)
                              : from.workspace(chosen));
  });
}

int fuse_compiler_stream_new(const fuse_compiler_device* device, fuse_compiler_stream** out) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(device), FUSE_COMPILER_NAMED(out));
  return c::guarded([&] { hand_over(out, device->device.stream()); });
}

int fuse_compiler_stream_wrap(const fuse_compiler_device* device, void* custream,
                              fuse_compiler_stream** out) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(device), FUSE_COMPILER_NAMED(out));
  return c::guarded([&] { hand_over(out, device->device.wrap_stream(custream)); });
}

int fuse_compiler_stream_synchronize(fuse_compiler_stream* stream) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(stream));
  return c::ended(stream->stream.synchronize());
}

int fuse_compiler_stream_native(const fuse_compiler_stream* stream, void** out) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(stream), FUSE_COMPILER_NAMED(out));
  *out = stream->stream.native();
  return FUSE_COMPILER_OK;
}

int fuse_compiler_buffer_new(const fuse_compiler_device* device, int64_t bytes, fuse_compiler_buffer** out) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(device), FUSE_COMPILER_NAMED(out));
  return c::guarded([&] { hand_over(out, device->device.allocate(bytes)); });
}

int fuse_compiler_buffer_view(const fuse_compiler_buffer* buffer, fuse_compiler_view* out) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(buffer), FUSE_COMPILER_NAMED(out));
  *out = {buffer->buffer.address(), buffer->buffer.size()};
  return FUSE_COMPILER_OK;
}

int fuse_compiler_buffer_upload(fuse_compiler_buffer* buffer, const void* from, size_t bytes) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(buffer));
  if (bytes > 0) FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(from));
  return c::guarded([&] { buffer->buffer.upload({static_cast<const std::byte*>(from), bytes}); });
}

int fuse_compiler_buffer_download(const fuse_compiler_buffer* buffer, void* to, size_t bytes) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(buffer));
  if (bytes > 0) FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(to));
  return c::guarded([&] { buffer->buffer.download({static_cast<std::byte*>(to), bytes}); });
}

int fuse_compiler_pack(const fuse_compiler_prepared* prepared, fuse_compiler_stream* stream,
                       const fuse_compiler_view* buffers, size_t count, const fuse_compiler_view* packed) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(prepared), FUSE_COMPILER_NAMED(stream));
  if (count > 0) FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(buffers));
  return c::ended(prepared->prepared.pack(stream->stream, views_of(buffers, count), view_of(packed)));
}

int fuse_compiler_run(const fuse_compiler_prepared* prepared, fuse_compiler_stream* stream,
                      const fuse_compiler_view* buffers, size_t count, fuse_compiler_workspace* workspace,
                      const fuse_compiler_view* packed) {
  FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(prepared), FUSE_COMPILER_NAMED(stream),
                         FUSE_COMPILER_NAMED(workspace));
  if (count > 0) FUSE_COMPILER_NOT_NULL(FUSE_COMPILER_NAMED(buffers));
  return c::ended(prepared->prepared.run(stream->stream, views_of(buffers, count), workspace->workspace,
                                         view_of(packed)));
}

#undef FUSE_COMPILER_NOT_NULL
#undef FUSE_COMPILER_NAMED

void fuse_compiler_device_free(fuse_compiler_device* device) { delete device; }
void fuse_compiler_plan_free(fuse_compiler_plan* plan) { delete plan; }
void fuse_compiler_prepared_free(fuse_compiler_prepared* prepared) { delete prepared; }
void fuse_compiler_workspace_free(fuse_compiler_workspace* workspace) { delete workspace; }
void fuse_compiler_stream_free(fuse_compiler_stream* stream) { delete stream; }
void fuse_compiler_buffer_free(fuse_compiler_buffer* buffer) { delete buffer; }
