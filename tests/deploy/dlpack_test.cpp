// DLPack: what other libraries hand over is checked, owned and given back once; what fuse hands over lives
// until it comes back. SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <cstring>
#include <fuse/dlpack.hpp>
#include <fuse/fuse.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/interop/dlpack_abi.hpp"
#include "runtime/runtime_support.hpp"
#include "support/counting_resource.hpp"
#include "tensors/host_tensor.hpp"

#if FUSE_COMPILER_HAS_CUDA
#include "cuda/fake_device.hpp"
#endif

namespace fuse::test {
namespace {

namespace dl = runtime::dlpack;

Device tiny(bool checked = false) {
  return Device::emulated({.profile = "tiny3", .checked = checked, .optimization = 0});
}

/// A producer: host memory as f32[2, 3], and how often it was given back.
template <class Managed>
struct Producer {
  alignas(64) std::array<float, 64> data{};
  std::array<std::int64_t, 40> shape{2, 3}, strides{3, 1};
  Managed managed{};
  int deleted = 0;

  Producer() {
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
    tensor().data = data.data();
    tensor().rank = 2;
    tensor().dtype = {dl::DataType::floating, 32, 1};
    tensor().shape = shape.data();
    tensor().strides = strides.data();
    managed.context = this;
    managed.deleter = [](Managed* self) { ++static_cast<Producer*>(self->context)->deleted; };
  }
  dl::Tensor& tensor() { return managed.tensor; }
  auto* handle() {
    if constexpr (std::is_same_v<Managed, dl::Managed>) {
      return reinterpret_cast<DLManagedTensor*>(&managed);
    } else {
      return reinterpret_cast<DLManagedTensorVersioned*>(&managed);
    }
  }
};
using Versioned = Producer<dl::ManagedVersioned>;
using Unversioned = Producer<dl::Managed>;

std::vector<float> floats_at(const Device& device, BufferView view, std::size_t count) {
  if (device.kind() == DeviceKind::reference) {
    std::vector<float> values(count);
    std::memcpy(values.data(), view.address, count * sizeof(float));
    return values;
  }
  // A view of the emulated device's: its memory is the host's.
  REQUIRE(view.bytes >= static_cast<std::int64_t>(count * sizeof(float)));
  const auto* const from = static_cast<const float*>(view.address);
  return {from, from + count};
}

/// What import says of a producer that `change` has changed; the tensor stays the producer's.
template <class Change>
std::string refused(Change&& change, const Device& device = tiny()) {
  Versioned given;
  change(given);
  const std::string said = error_of([&] { static_cast<void>(import_dlpack(given.handle(), device)); });
  CHECK(given.deleted == 0);
  return said;
}

template <class Given>
void check_import(const Device& device) {
  Given given;
  given.tensor().byte_offset = 16;
  {
    const DLPackTensor tensor = import_dlpack(given.handle(), device);
    CHECK(tensor.dtype() == f32);
    CHECK(tensor.shape() == std::vector<std::int64_t>{2, 3});
    CHECK(tensor.view().bytes == 24);
    CHECK(floats_at(device, tensor.view(), 6) == std::vector<float>{4, 5, 6, 7, 8, 9});
    CHECK(tensor.copied() == (device.kind() == DeviceKind::emulated));
    CHECK_FALSE(tensor.read_only());
    const DLPackTensor copy = tensor;  // NOLINT: shares it
    CHECK(given.deleted == (tensor.copied() ? 1 : 0));
  }
  CHECK(given.deleted == 1);
}

const dl::ManagedVersioned& seen(const DLManagedTensorVersioned* tensor) {
  return *reinterpret_cast<const dl::ManagedVersioned*>(tensor);
}
void give_back(DLManagedTensorVersioned* tensor) {
  auto* const managed = reinterpret_cast<dl::ManagedVersioned*>(tensor);
  managed->deleter(managed);
}

}  // namespace

TEST_CASE("dlpack import: both forms, in place and as a copy, given back once", "[deploy][emulated]") {
  for (const Device& device : {Device::reference(), tiny(), tiny(true)}) {
    INFO(device.name());
    check_import<Versioned>(device);
    check_import<Unversioned>(device);
  }
  Unversioned without_deleter;
  without_deleter.managed.deleter = nullptr;
  CHECK(import_dlpack(without_deleter.handle(), tiny()).view().bytes == 24);
}

TEST_CASE("dlpack import: every dtype, and what has none", "[deploy][emulated]") {
  const auto imported = [](dl::DataType type) {
    Versioned given;
    given.tensor().dtype = type;
    return import_dlpack(given.handle(), Device::reference()).dtype();
  };
  CHECK(imported({2, 64, 1}) == f64);
  CHECK(imported({2, 32, 1}) == f32);
  CHECK(imported({2, 16, 1}) == f16);
  CHECK(imported({4, 16, 1}) == bf16);
  CHECK(imported({0, 64, 1}) == i64);
  CHECK(imported({0, 32, 1}) == i32);
  CHECK(imported({0, 8, 1}) == i8);
  CHECK(imported({1, 8, 1}) == u8);
  CHECK(imported({6, 8, 1}) == boolean);
  for (const dl::DataType type : {dl::DataType{1, 32, 1}, {0, 16, 1}, {5, 64, 1}, {2, 8, 1}, {9, 8, 1}}) {
    const std::string said = refused([&](Versioned& given) { given.tensor().dtype = type; });
    CHECK(said == "unsupported: DLPack tensor: fuse has no dtype of code " + std::to_string(type.code) +
                      " and " + std::to_string(type.bits) + " bits");
  }
  CHECK(refused([](Versioned& given) { given.tensor().dtype.lanes = 4; }) ==
        "unsupported: DLPack tensor: 4 lanes; an element has to be one number");
}

TEST_CASE("dlpack import: strides have to be row-major where they matter", "[deploy][emulated]") {
  const auto bytes = [](std::vector<std::int64_t> shape, std::optional<std::vector<std::int64_t>> strides) {
    Versioned given;
    std::copy(shape.begin(), shape.end(), given.shape.begin());
    if (strides) std::copy(strides->begin(), strides->end(), given.strides.begin());
    if (!strides) given.tensor().strides = nullptr;
    given.tensor().rank = static_cast<std::int32_t>(shape.size());
    return import_dlpack(given.handle(), tiny()).view().bytes;
  };
  CHECK(bytes({}, std::vector<std::int64_t>{}) == 4);
  CHECK(bytes({2, 3}, std::nullopt) == 24);
  CHECK(bytes({2, 1, 3}, std::vector<std::int64_t>{3, 77, 1}) == 24);
  CHECK(bytes({1, 3}, std::vector<std::int64_t>{-5, 1}) == 12);
  CHECK(bytes({0, 3}, std::vector<std::int64_t>{9, 9}) == 0);
  CHECK(refused([](Versioned& given) {
          given.strides = {1, 2};
        }) ==
        "unsupported: DLPack tensor: axis 1 of 2 steps by 2 elements, row-major is 1\n"
        "  hint: make it contiguous first");
  CHECK(refused([](Versioned& given) {
          given.strides = {4, 1};
        }).find("axis 0 of 2 steps by 4") != std::string::npos);
  CHECK(refused([](Versioned& given) {
          given.strides = {0, 1};
        }).find("axis 0 of 2 steps by 0") != std::string::npos);
}

TEST_CASE("dlpack import: nonsense is refused by name and stays the caller's", "[deploy][emulated]") {
  CHECK(error_of([] { static_cast<void>(import_dlpack(static_cast<DLManagedTensor*>(nullptr), tiny())); }) ==
        "invalid-argument: DLPack tensor: null");
  CHECK(error_of([] {
          static_cast<void>(import_dlpack(static_cast<DLManagedTensorVersioned*>(nullptr), tiny()));
        }) == "invalid-argument: DLPack tensor: null");
  CHECK(refused([](Versioned& given) {
          given.managed.major = 2;
          given.tensor().rank = -9;  // may mean anything there
        }) == "incompatible-version: DLPack tensor: its DLPack version is 2.0, fuse reads 1.x");
  CHECK(refused([](Versioned& given) { given.tensor().device_type = dl::cuda; }) ==
        "invalid-argument: DLPack tensor: it lies in GPU 0 (kDLCUDA), the device's memory is host memory "
        "(kDLCPU)");
  CHECK(refused([](Versioned& given) { given.tensor().device_type = 8; }).find("a device of type 8") !=
        std::string::npos);
  CHECK(refused([](Versioned& given) {
          given.tensor().rank = -1;
        }).starts_with("invalid-argument: DLPack tensor: -1 axes"));
  CHECK(refused([](Versioned& given) {
          given.tensor().rank = 2000000000;
        }).starts_with("invalid-argument: DLPack tensor: 2000000000 axes"));
  CHECK(refused([](Versioned& given) { given.tensor().shape = nullptr; }) ==
        "invalid-argument: DLPack tensor: no shape");
  CHECK(refused([](Versioned& given) { given.shape[0] = -2; }) ==
        "invalid-extent: DLPack tensor: there is no type f32[-2, 3]");
  CHECK(refused([](Versioned& given) { given.shape[0] = INT64_MAX; }).starts_with("invalid-extent: "));
  CHECK(refused([](Versioned& given) { given.tensor().data = nullptr; }) ==
        "invalid-argument: DLPack tensor: elements, and no address");
  CHECK(refused([](Versioned& given) { given.tensor().byte_offset = 8; }).starts_with("misaligned: "));
  CHECK(refused([](Versioned& given) {
          given.tensor().byte_offset = UINT64_MAX - 15;
        }).starts_with("invalid-argument: DLPack tensor: a byte offset of "));
  // What the device has no room for leaves the tensor where it was.
  const auto memory = std::make_shared<CountingResource>(tiny());
  memory->fails_at = 0;
  CHECK(refused([](Versioned&) {}, tiny().with_memory(memory)).starts_with("out-of-memory: "));
}

TEST_CASE("dlpack import: no elements need no address", "[deploy][emulated]") {
  for (const Device& device : {Device::reference(), tiny()}) {
    Versioned given;
    given.shape = {0, 3};
    given.tensor().data = nullptr;
    given.tensor().byte_offset = 3;
    { CHECK(import_dlpack(given.handle(), device).view().bytes == 0); }
    CHECK(given.deleted == 1);
  }
}

TEST_CASE("dlpack import: what is read-only or a copy is no output", "[deploy][emulated]") {
  Versioned given, fixed;
  fixed.managed.flags = dl::ManagedVersioned::read_only;
  const Device reference = Device::reference();
  const DLPackTensor open = import_dlpack(given.handle(), reference);
  CHECK(open.output_view().address == given.data.data());
  const DLPackTensor closed = import_dlpack(fixed.handle(), reference);
  CHECK(closed.read_only());
  CHECK(error_of([&] { static_cast<void>(closed.output_view()); }) ==
        "invalid-argument: DLPack tensor: it is read-only, and cannot be an output");
  Versioned other;
  const DLPackTensor copied = import_dlpack(other.handle(), tiny());
  CHECK(error_of([&] {
          static_cast<void>(copied.output_view());
        }).starts_with("invalid-argument: DLPack tensor: the emulated device has a copy of it"));
}

TEST_CASE("dlpack export: the fields of both forms", "[deploy][emulated]") {
  const Device device = tiny();
  const Buffer buffer = device.allocate(100);
  for (const DType dtype : runtime::all_dtypes) {
    const std::vector<std::int64_t> shape = {2, 1, 3};
    DLManagedTensorVersioned* const tensor = export_dlpack(buffer, dtype, shape, true);
    const dl::ManagedVersioned& managed = seen(tensor);
    CHECK(managed.major == 1);
    CHECK(managed.flags == dl::ManagedVersioned::read_only);
    CHECK(managed.tensor.data == buffer.address());
    CHECK(managed.tensor.device_type == dl::cpu);
    CHECK(managed.tensor.rank == 3);
    CHECK(managed.tensor.dtype.bits == 8 * size_of(dtype));
    CHECK(managed.tensor.dtype.lanes == 1);
    CHECK(std::vector<std::int64_t>(managed.tensor.shape, managed.tensor.shape + 3) == shape);
    CHECK(std::vector<std::int64_t>(managed.tensor.strides, managed.tensor.strides + 3) ==
          std::vector<std::int64_t>{3, 3, 1});
    const DLPackTensor back = import_dlpack(tensor, Device::reference());
    CHECK(back.dtype() == dtype);
    CHECK(back.read_only());
  }
  DLManagedTensor* const old = export_dlpack_unversioned(buffer, f32, std::vector<std::int64_t>{});
  CHECK(reinterpret_cast<dl::Managed*>(old)->tensor.rank == 0);
  CHECK(import_dlpack(old, Device::reference()).view().bytes == 4);
  CHECK(error_of([&] { static_cast<void>(export_dlpack(buffer, f32, std::vector<std::int64_t>{26})); }) ==
        "buffer-size: export to DLPack: f32[26] takes 104 bytes, the buffer has 100");
  CHECK(error_of([&] { static_cast<void>(export_dlpack(buffer, f32, std::vector<std::int64_t>{-1})); }) ==
        "invalid-extent: export to DLPack: there is no type f32[-1]");
  CHECK(error_of([&] {
          static_cast<void>(export_dlpack(buffer, f32, std::vector<std::int64_t>(33, 1)));
        }).starts_with("invalid-extent: "));
  CHECK(error_of([] { static_cast<void>(export_dlpack(Buffer(), f32, std::vector<std::int64_t>{})); }) ==
        "invalid-argument: export to DLPack: the buffer has no memory");
}

TEST_CASE("dlpack export: the memory lives until the tensor comes back", "[deploy][emulated]") {
  const Device device = tiny();
  const auto memory = std::make_shared<CountingResource>(device);
  std::optional<Buffer> buffer = device.with_memory(memory).allocate(24);
  buffer->upload(bytes_of(std::vector<float>{1, 2, 3, 4, 5, 6}));
  DLManagedTensorVersioned* const tensor = export_dlpack(*buffer, f32, std::vector<std::int64_t>{2, 3});
  buffer.reset();
  REQUIRE(memory->live() == 1);
  CHECK(static_cast<const float*>(seen(tensor).tensor.data)[5] == 6);
  give_back(tensor);
  CHECK(memory->live() == 0);
}

TEST_CASE("dlpack: a tensor in, a run, a tensor out", "[deploy][emulated]") {
  const Device device = tiny(true);
  Graph g("doubled");
  g.output("y", g.input("x", f32, {2, 3}) * 2.0f);
  const Executable executable = compile(g, device);
  const Prepared prepared = executable.prepare();
  Versioned given;
  given.managed.flags = dl::ManagedVersioned::read_only;
  const DLPackTensor x = import_dlpack(given.handle(), device);
  const Buffer y = device.allocate(prepared.bytes(1));
  Workspace workspace = prepared.workspace();
  Stream stream = device.stream();
  const std::array<BufferView, 2> views = {x.view(), y.view()};
  REQUIRE(text_of(prepared.run(stream, views, workspace)) == "ok: ");
  REQUIRE(stream.synchronize());
  const DLPackTensor out = import_dlpack(export_dlpack(y, f32, prepared.shape(1)), Device::reference());
  CHECK(floats_at(device, out.view(), 6) == std::vector<float>{0, 2, 4, 6, 8, 10});
}

#if FUSE_COMPILER_HAS_CUDA
TEST_CASE("dlpack: memory of a GPU is taken in place, of that GPU alone", "[deploy]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    const Device gpu = Device::cuda();
    const Buffer buffer = gpu.allocate(64);
    DLManagedTensorVersioned* const tensor = export_dlpack(buffer, f32, std::vector<std::int64_t>{4, 4});
    CHECK(seen(tensor).tensor.device_type == dl::cuda);
    CHECK(seen(tensor).tensor.device_id == 0);
    CHECK(error_of([&] { static_cast<void>(import_dlpack(tensor, tiny())); }) ==
          "invalid-argument: DLPack tensor: it lies in GPU 0 (kDLCUDA), the device's memory is host memory "
          "(kDLCPU)");
    const DLPackTensor back = import_dlpack(tensor, gpu);
    CHECK(back.output_view().address == buffer.address());
    CHECK_FALSE(back.copied());
    CHECK(
        refused([](Versioned& given) { given.tensor().device_type = dl::cuda, given.tensor().device_id = 1; },
                gpu) ==
        "invalid-argument: DLPack tensor: it lies in GPU 1 (kDLCUDA), the device's memory is GPU 0 "
        "(kDLCUDA)");
    CHECK(refused([](Versioned&) {}, gpu).find("it lies in host memory") != std::string::npos);
  }
  fakes.require_clean();
}
#endif

}  // namespace fuse::test
