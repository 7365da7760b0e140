// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <fuse/dlpack.hpp>
#include <limits>
#include <optional>
#include <string>

#include "base/access.hpp"
#include "ir/graph/infer.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/interop/dlpack_abi.hpp"
#include "tensors/host_tensor.hpp"
#if FUSE_COMPILER_HAS_CUDA
#include "runtime/cuda/cuda.hpp"
#endif

namespace fuse {

struct DLPackTensor::Parts {
  std::shared_ptr<const void> owner;
  BufferView view{};
  DType dtype = f32;
  std::vector<std::int64_t> shape{};
  bool read_only = false, copied = false;
};

namespace {

namespace dlpack = runtime::dlpack;
constexpr std::uintptr_t dlpack_alignment = 16;  // what a run asks of every buffer

struct DLPackType {
  DType dtype;
  dlpack::DataType type;
};
constexpr std::array dlpack_types = {
    DLPackType{f64, {dlpack::DataType::floating, 64, 1}},
    DLPackType{f32, {dlpack::DataType::floating, 32, 1}},
    DLPackType{f16, {dlpack::DataType::floating, 16, 1}},
    DLPackType{bf16, {dlpack::DataType::bfloat, 16, 1}},
    DLPackType{i64, {dlpack::DataType::integer, 64, 1}},
    DLPackType{i32, {dlpack::DataType::integer, 32, 1}},
    DLPackType{i8, {dlpack::DataType::integer, 8, 1}},
    DLPackType{u8, {dlpack::DataType::unsigned_integer, 8, 1}},
    DLPackType{boolean, {dlpack::DataType::boolean, 8, 1}},
};
static_assert(dlpack_types.size() == std::size(runtime::all_dtypes));

[[noreturn]] void refuse_dlpack(ErrorCode code, const std::string& what, std::string hint = "") {
  throw Error({.code = code, .message = "DLPack tensor: " + what, .hint = std::move(hint)});
}

struct DLPackDevice {
  std::int32_t type = dlpack::cpu, id = 0;
};

DLPackDevice device_of([[maybe_unused]] const runtime::Backend& backend) {
#if FUSE_COMPILER_HAS_CUDA
  if (const std::optional<int> ordinal = runtime::cuda_ordinal(backend)) return {dlpack::cuda, *ordinal};
#endif
  return {};
}

std::string device_text(std::int32_t type, std::int32_t id) {
  if (type == dlpack::cpu) return "host memory (kDLCPU)";
  if (type == dlpack::cuda) return fmt::format("GPU {} (kDLCUDA)", id);
  return fmt::format("a device of type {}", type);
}

DType dtype_of(const dlpack::DataType& given) {
  if (given.lanes != 1) {
    refuse_dlpack(ErrorCode::unsupported,
                  fmt::format("{} lanes; an element has to be one number", given.lanes));
  }
  for (const DLPackType& known : dlpack_types) {
    if (known.type.code == given.code && known.type.bits == given.bits) return known.dtype;
  }
  refuse_dlpack(ErrorCode::unsupported,
                fmt::format("fuse has no dtype of code {} and {} bits", given.code, given.bits));
}

std::vector<std::int64_t> shape_of(const dlpack::Tensor& tensor) {
  if (tensor.rank < 0 || tensor.rank > static_cast<std::int32_t>(ir::max_rank)) {
    refuse_dlpack(ErrorCode::invalid_argument,
                  fmt::format("{} axes; from 0 to {} are possible", tensor.rank, ir::max_rank));
  }
  if (tensor.rank == 0) return {};
  if (!tensor.shape) refuse_dlpack(ErrorCode::invalid_argument, "no shape");
  return {tensor.shape, tensor.shape + tensor.rank};
}

/// Where an axis has one position, nothing steps along it.
void check_row_major(const dlpack::Tensor& tensor, const std::vector<std::int64_t>& shape) {
  if (!tensor.strides) return;
  std::int64_t expected = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] == 1) continue;
    if (tensor.strides[axis] != expected) {
      refuse_dlpack(ErrorCode::unsupported,
                    fmt::format("axis {} of {} steps by {} elements, row-major is {}", axis, shape.size(),
                                tensor.strides[axis], expected),
                    "make it contiguous first");
    }
    expected *= shape[axis];
  }
}

void* address_of(const dlpack::Tensor& tensor) {
  if (!tensor.data) refuse_dlpack(ErrorCode::invalid_argument, "elements, and no address");
  const auto base = reinterpret_cast<std::uintptr_t>(tensor.data);
  if (tensor.byte_offset > std::numeric_limits<std::uintptr_t>::max() - base) {
    refuse_dlpack(ErrorCode::invalid_argument, fmt::format("a byte offset of {}", tensor.byte_offset));
  }
  const std::uintptr_t address = base + tensor.byte_offset;
  if (address % dlpack_alignment != 0) {
    refuse_dlpack(ErrorCode::misaligned,
                  fmt::format("its elements start at {:#x}, which is not aligned to {} bytes", address,
                              dlpack_alignment),
                  "copy it to memory of its own first");
  }
  return reinterpret_cast<void*>(address);
}

/// Reads all but the owner. What is not understood is not touched.
DLPackTensor::Parts read_dlpack(const dlpack::Tensor& tensor, const runtime::Backend& backend) {
  const DLPackDevice device = device_of(backend);
  if (tensor.device_type != device.type || (device.type == dlpack::cuda && tensor.device_id != device.id)) {
    refuse_dlpack(ErrorCode::invalid_argument, fmt::format("it lies in {}, the device's memory is {}",
                                                           device_text(tensor.device_type, tensor.device_id),
                                                           device_text(device.type, device.id)));
  }
  DLPackTensor::Parts parts;
  parts.dtype = dtype_of(tensor.dtype);
  parts.shape = shape_of(tensor);
  const std::optional<std::int64_t> count = runtime::checked_element_count(parts.shape, parts.dtype);
  if (!count) {
    refuse_dlpack(ErrorCode::invalid_extent,
                  "there is no type " + runtime::type_text(parts.dtype, parts.shape));
  }
  if (*count == 0) return parts;  // neither strides nor an address say anything
  check_row_major(tensor, parts.shape);
  parts.view = {address_of(tensor), *count * static_cast<std::int64_t>(size_of(parts.dtype))};
  return parts;
}

/// Calls the deleter once, when it is destroyed.
template <class Managed>
struct GivenTensor {
  Managed* managed = nullptr;
  GivenTensor() = default;
  GivenTensor(const GivenTensor&) = delete;
  GivenTensor& operator=(const GivenTensor&) = delete;
  ~GivenTensor() {
    if (managed && managed->deleter) managed->deleter(managed);
  }
};

/// The tensor changes hands when nothing can fail any more.
template <class Managed>
DLPackTensor take(Managed* managed, DLPackTensor::Parts parts, const Device& device) {
  auto given = std::make_shared<GivenTensor<Managed>>();
  if (device.kind() == DeviceKind::emulated) {
    auto own = std::make_shared<Buffer>(device.allocate(parts.view.bytes));
    own->upload(
        {static_cast<const std::byte*>(parts.view.address), static_cast<std::size_t>(parts.view.bytes)});
    parts.view = own->view();
    parts.owner = std::move(own);
    parts.copied = true;
  } else {
    parts.owner = given;
  }
  given->managed = managed;
  return DLPackTensor(std::move(parts));
}

/// What a tensor that was exported holds; `managed` is what the other side sees of it.
template <class Managed>
struct ExportedTensor {
  Buffer buffer;
  std::vector<std::int64_t> shape{}, strides{};
  Managed managed{};
};

template <class Managed>
std::unique_ptr<ExportedTensor<Managed>> make_exported(const Buffer& buffer, DType dtype,
                                                       std::span<const std::int64_t> shape) {
  if (!buffer.address()) {
    throw Error(
        {.code = ErrorCode::invalid_argument, .message = "export to DLPack: the buffer has no memory"});
  }
  const std::optional<std::int64_t> count = runtime::checked_element_count(shape, dtype);
  if (!count || shape.size() > ir::max_rank) {
    throw Error({.code = ErrorCode::invalid_extent,
                 .message = "export to DLPack: there is no type " + runtime::type_text(dtype, shape)});
  }
  const std::int64_t bytes = *count * static_cast<std::int64_t>(size_of(dtype));
  if (bytes > buffer.size()) {
    throw Error({.code = ErrorCode::buffer_size,
                 .message = fmt::format("export to DLPack: {} takes {} bytes, the buffer has {}",
                                        runtime::type_text(dtype, shape), bytes, buffer.size())});
  }
  auto exported = std::make_unique<ExportedTensor<Managed>>(ExportedTensor<Managed>{.buffer = buffer});
  exported->shape.assign(shape.begin(), shape.end());
  exported->strides.assign(shape.size(), 1);
  // Goes from the last axis on; where there are no elements, none is stepped by.
  for (std::size_t axis = shape.size(); axis-- > 1;) {
    exported->strides[axis - 1] = exported->strides[axis] * (shape[axis] == 0 ? 1 : shape[axis]);
  }
  dlpack::Tensor& tensor = exported->managed.tensor;
  tensor.data = buffer.address();
  const DLPackDevice device = device_of(*backend_of(buffer));
  tensor.device_type = device.type;
  tensor.device_id = device.id;
  tensor.rank = static_cast<std::int32_t>(shape.size());
  for (const DLPackType& known : dlpack_types) {
    if (known.dtype == dtype) tensor.dtype = known.type;
  }
  tensor.shape = exported->shape.data();
  tensor.strides = exported->strides.data();
  exported->managed.context = exported.get();
  exported->managed.deleter = [](Managed* self) {
    delete static_cast<ExportedTensor<Managed>*>(self->context);
  };
  return exported;
}

}  // namespace

inline namespace v0 {

DLPackTensor::DLPackTensor(Parts&& parts)
    : owner_(std::move(parts.owner)),
      view_(parts.view),
      dtype_(parts.dtype),
      shape_(std::move(parts.shape)),
      read_only_(parts.read_only),
      copied_(parts.copied) {}

BufferView DLPackTensor::output_view() const {
  if (read_only_) {
    refuse_dlpack(ErrorCode::invalid_argument, "it is read-only, and cannot be an output");
  }
  if (copied_) {
    refuse_dlpack(ErrorCode::invalid_argument,
                  "the emulated device has a copy of it, so that no output would reach its owner",
                  "write to a Buffer and export that");
  }
  return view_;
}

DLPackTensor import_dlpack(DLManagedTensorVersioned* tensor, const Device& device) {
  auto* const managed = reinterpret_cast<dlpack::ManagedVersioned*>(tensor);
  if (!managed) refuse_dlpack(ErrorCode::invalid_argument, "null");
  if (managed->major != dlpack::ManagedVersioned::version) {
    refuse_dlpack(ErrorCode::incompatible_version,
                  fmt::format("its DLPack version is {}.{}, fuse reads {}.x", managed->major, managed->minor,
                              dlpack::ManagedVersioned::version));
  }
  DLPackTensor::Parts parts = read_dlpack(managed->tensor, *backend_of(device));
  parts.read_only = (managed->flags & dlpack::ManagedVersioned::read_only) != 0;
  return take(managed, std::move(parts), device);
}

DLPackTensor import_dlpack(DLManagedTensor* tensor, const Device& device) {
  auto* const managed = reinterpret_cast<dlpack::Managed*>(tensor);
  if (!managed) refuse_dlpack(ErrorCode::invalid_argument, "null");
  return take(managed, read_dlpack(managed->tensor, *backend_of(device)), device);
}

DLManagedTensorVersioned* export_dlpack(const Buffer& buffer, DType dtype,
                                        std::span<const std::int64_t> shape, bool read_only) {
  auto exported = make_exported<dlpack::ManagedVersioned>(buffer, dtype, shape);
  if (read_only) exported->managed.flags = dlpack::ManagedVersioned::read_only;
  return reinterpret_cast<DLManagedTensorVersioned*>(&exported.release()->managed);
}

DLManagedTensor* export_dlpack_unversioned(const Buffer& buffer, DType dtype,
                                           std::span<const std::int64_t> shape) {
  auto exported = make_exported<dlpack::Managed>(buffer, dtype, shape);
  return reinterpret_cast<DLManagedTensor*>(&exported.release()->managed);
}

}  // namespace v0
}  // namespace fuse
