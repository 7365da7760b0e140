// DLPack: tensors of other libraries as buffers of a run, and Buffers as tensors for them. Both forms of the
// ABI, with a version (1.x) and without; no header of DLPack's is needed here (docs/interop.md).
//
//   fuse::DLPackTensor x = fuse::import_dlpack(tensor, device);   // owns the tensor
//   views[executable.slot("x")] = x.view();
//   DLManagedTensorVersioned* y = fuse::export_dlpack(buffer, fuse::f32, {{64, 1024}});
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/device.hpp>
#include <fuse/dtype.hpp>
#include <fuse/export.hpp>
#include <memory>
#include <span>
#include <utility>
#include <vector>

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace fuse {
inline namespace v0 {

/// A tensor of another library. Shared by copies; given back once, with the last of them. Where the tensor is
/// in memory that the device works on, its own memory is used; on the emulated device, a copy of it.
class FUSE_COMPILER_API DLPackTensor {
 public:
  /// The element type.
  DType dtype() const { return dtype_; }
  /// The extents.
  const std::vector<std::int64_t>& shape() const { return shape_; }
  bool read_only() const { return read_only_; }  ///< its owner says so
  bool copied() const { return copied_; }        ///< nothing that is written here reaches its owner

  /// The view for an input or parameter. Valid as long as any copy of this.
  BufferView view() const { return view_; }
  /// The view for an output. Throws invalid_argument where read_only() or copied().
  BufferView output_view() const;

  struct Parts;  ///< For the library itself.
  /// For the library itself.
  explicit DLPackTensor(Parts&& parts);

 private:
  std::shared_ptr<const void> owner_;  ///< the tensor, or the buffer that it was copied to
  BufferView view_;
  DType dtype_ = f32;
  std::vector<std::int64_t> shape_;
  bool read_only_ = false, copied_ = false;
};

/// Takes a tensor of `device`: in the memory of that GPU, or of the host for the other devices; dense and
/// row-major, 16-byte aligned, of a dtype that fuse has. The work that fills it must be over, or be on the
/// stream of the run. On success the tensor belongs to what is returned; where this throws, to the caller as
/// before. Throws invalid_argument (no tensor, another device, nonsense in a field), unsupported (dtype,
/// lanes, strides), incompatible_version, invalid_extent, misaligned, and what Device::allocate throws.
///@{
FUSE_COMPILER_API DLPackTensor import_dlpack(DLManagedTensorVersioned* tensor, const Device& device);
FUSE_COMPILER_API DLPackTensor import_dlpack(DLManagedTensor* tensor, const Device& device);
///@}

/// The first elements of a buffer as a tensor that has its memory until the deleter is called, whatever
/// becomes of the Buffer. Waits for nothing: work on the memory is the caller's to order. `read_only` tells
/// the consumer not to write. Throws invalid_argument for a buffer without memory, invalid_extent,
/// buffer_size.
FUSE_COMPILER_API DLManagedTensorVersioned* export_dlpack(const Buffer& buffer, DType dtype,
                                                          std::span<const std::int64_t> shape,
                                                          bool read_only = false);
/// As export_dlpack in the older form, which has neither a version nor flags.
FUSE_COMPILER_API DLManagedTensor* export_dlpack_unversioned(const Buffer& buffer, DType dtype,
                                                             std::span<const std::int64_t> shape);

}  // namespace v0
}  // namespace fuse
