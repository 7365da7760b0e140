// The structs of the DLPack ABI, 1.x and before, as every producer and consumer lays them out. In a namespace
// of ours, so that they stand beside any dlpack.h. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace fuse::runtime::dlpack {

enum DeviceType : std::int32_t { cpu = 1, cuda = 2 };

struct DataType {
  /// The codes that fuse has types for.
  enum Code : std::uint8_t { integer = 0, unsigned_integer = 1, floating = 2, bfloat = 4, boolean = 6 };
  std::uint8_t code = 0;
  std::uint8_t bits = 0;
  std::uint16_t lanes = 1;
};

struct Tensor {
  void* data = nullptr;
  std::int32_t device_type = cpu;
  std::int32_t device_id = 0;
  std::int32_t rank = 0;
  DataType dtype;
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;  ///< in elements; null: row-major
  std::uint64_t byte_offset = 0;
};

struct Managed {
  Tensor tensor;
  void* context = nullptr;
  void (*deleter)(Managed*) = nullptr;  ///< null: nothing to give back
};

struct ManagedVersioned {
  static constexpr std::uint32_t version = 1;
  static constexpr std::uint64_t read_only = 1, copied = 2;
  std::uint32_t major = version, minor = 0;  ///< all that follows the deleter depends on the major version
  void* context = nullptr;
  void (*deleter)(ManagedVersioned*) = nullptr;
  std::uint64_t flags = 0;
  Tensor tensor;
};

static_assert(sizeof(DataType) == 4 && sizeof(Tensor) == 48 && sizeof(Managed) == 64 &&
              sizeof(ManagedVersioned) == 80);
static_assert(offsetof(Tensor, rank) == 16 && offsetof(Tensor, dtype) == 20 && offsetof(Tensor, shape) == 24);
static_assert(offsetof(ManagedVersioned, deleter) == 16 && offsetof(ManagedVersioned, tensor) == 32);

}  // namespace fuse::runtime::dlpack
