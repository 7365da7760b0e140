// DLPack on the cpu device, whose memory is the host's: a tensor of another library is bound where it lies,
// as an input and as an output. SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <fuse/dlpack.hpp>
#include <fuse/fuse.hpp>
#include <string>
#include <vector>

#include "runtime/interop/dlpack_abi.hpp"
#include "runtime/runtime_support.hpp"

namespace fuse::test {
namespace {

namespace abi = runtime::dlpack;

/// f32[16, 64] of another library, in host memory.
struct HostArray {
  alignas(64) std::array<float, 16 * 64 + 4> data{};
  std::array<std::int64_t, 2> shape{16, 64};
  abi::ManagedVersioned managed{};
  int deleted = 0;

  HostArray() {
    managed.tensor.data = data.data();
    managed.tensor.device_type = abi::cpu;
    managed.tensor.rank = 2;
    managed.tensor.dtype = {abi::DataType::floating, 32, 1};
    managed.tensor.shape = shape.data();
    managed.context = this;
    managed.deleter = [](abi::ManagedVersioned* self) { ++static_cast<HostArray*>(self->context)->deleted; };
  }
  DLManagedTensorVersioned* handle() { return reinterpret_cast<DLManagedTensorVersioned*>(&managed); }
};

}  // namespace

TEST_CASE("dlpack: a run on the cpu device reads and writes tensors where they lie", "[deploy][emulated]") {
  const Device device = Device::cpu({.threads = 2});
  Graph g("tripled");
  g.output("y", g.input("x", f32, {16, 64}) * 3.0f);
  const Executable executable = compile(g, device);
  const Prepared prepared = executable.prepare();
  Workspace workspace = prepared.workspace();
  Stream stream = device.stream();
  HostArray given, taken;
  for (std::size_t i = 0; i < given.data.size(); ++i) given.data[i] = static_cast<float>(i);
  {
    const DLPackTensor x = import_dlpack(given.handle(), device), y = import_dlpack(taken.handle(), device);
    CHECK_FALSE(x.copied());
    CHECK(x.view().address == given.data.data());
    CHECK(y.output_view().address == taken.data.data());
    CHECK(given.deleted == 0);
    const std::array<BufferView, 2> views = {x.view(), y.output_view()};
    REQUIRE(text_of(prepared.run(stream, views, workspace)) == "ok: ");
    REQUIRE(stream.synchronize());
    CHECK(taken.data[1023] == 3 * 1023.0f);
    given.data[5] = -1;  // the next run sees it: nothing was copied
    REQUIRE(text_of(prepared.run(stream, views, workspace)) == "ok: ");
    CHECK(taken.data[5] == -3);
    CHECK(taken.data[1024] == 0);
  }
  CHECK(given.deleted == 1);
  CHECK(taken.deleted == 1);
}

TEST_CASE("dlpack: the cpu device refuses what it cannot bind in place", "[deploy]") {
  const Device device = Device::cpu({.threads = 1});
  const auto refused = [&](auto&& change) {
    HostArray given;
    change(given);
    const std::string said = error_of([&] { static_cast<void>(import_dlpack(given.handle(), device)); });
    CHECK(given.deleted == 0);
    return said;
  };
  const std::string apart = refused([](HostArray& given) { given.managed.tensor.byte_offset = 4; });
  CHECK(apart.starts_with("misaligned: DLPack tensor: its elements start at 0x"));
  CHECK(apart.find("not aligned to 16 bytes\n  hint: copy it to memory of its own first") !=
        std::string::npos);
  CHECK(refused([](HostArray& given) { given.managed.tensor.device_type = abi::cuda; }) ==
        "invalid-argument: DLPack tensor: it lies in GPU 0 (kDLCUDA), the device's memory is host memory "
        "(kDLCPU)");
  HostArray fixed;
  fixed.managed.flags = abi::ManagedVersioned::read_only;
  const DLPackTensor closed = import_dlpack(fixed.handle(), device);
  CHECK(error_of([&] { static_cast<void>(closed.output_view()); }) ==
        "invalid-argument: DLPack tensor: it is read-only, and cannot be an output");
}

TEST_CASE("dlpack: a buffer of the cpu device is host memory for others", "[deploy]") {
  const Device device = Device::cpu({.threads = 1});
  Buffer buffer = device.allocate(16);
  buffer.upload(bytes_of(std::vector<float>{1, 2, 3, 4}));
  DLManagedTensorVersioned* const tensor = export_dlpack(buffer, f32, std::vector<std::int64_t>{4});
  auto* const seen = reinterpret_cast<abi::ManagedVersioned*>(tensor);
  CHECK(seen->tensor.device_type == abi::cpu);
  CHECK(seen->tensor.data == buffer.address());
  buffer = {};
  CHECK(static_cast<const float*>(seen->tensor.data)[3] == 4);
  seen->deleter(seen);
}

}  // namespace fuse::test
