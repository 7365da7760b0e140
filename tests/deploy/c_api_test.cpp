// The C interface: a saved plan runs as by C++, structs grow, and whatever is wrong is a status with a text.
// SPDX-License-Identifier: Apache-2.0
#include <fuse/c_api.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <fuse/fuse.hpp>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "deploy/deploy_support.hpp"
#include "runtime/interop/c_handles.hpp"
#include "runtime/runtime_support.hpp"
#include "support/variable.hpp"

#if FUSE_COMPILER_HAS_CUDA
#include "cuda/fake_device.hpp"
#endif

namespace fuse::test {
namespace {

template <auto free>
struct Freed {
  template <class Handle>
  void operator()(Handle* handle) const {
    free(handle);
  }
};
template <class Handle, auto free>
using Owned = std::unique_ptr<Handle, Freed<free>>;
using OwnedDevice = Owned<fuse_compiler_device, fuse_compiler_device_free>;
using OwnedPlan = Owned<fuse_compiler_plan, fuse_compiler_plan_free>;
using OwnedPrepared = Owned<fuse_compiler_prepared, fuse_compiler_prepared_free>;
using OwnedWorkspace = Owned<fuse_compiler_workspace, fuse_compiler_workspace_free>;
using OwnedStream = Owned<fuse_compiler_stream, fuse_compiler_stream_free>;
using OwnedBuffer = Owned<fuse_compiler_buffer, fuse_compiler_buffer_free>;

/// What a call returned, and what it said.
std::string said(int status) {
  if (status == FUSE_COMPILER_OK) return "ok";
  return std::string(fuse_compiler_status_name(status)) + ": " + fuse_compiler_last_error();
}

/// The handle that a call makes.
template <class Result, class Call>
Result made(Call&& call) {
  typename Result::pointer handle = nullptr;
  REQUIRE(said(call(&handle)) == "ok");
  REQUIRE(handle);
  return Result(handle);
}

OwnedDevice tiny_device() {
  fuse_compiler_emulated_options options{};
  options.struct_size = sizeof options;
  options.profile = "tiny3";
  options.threads = 1;
  return made<OwnedDevice>([&](auto** out) { return fuse_compiler_device_emulated(&options, out); });
}

/// y = x + 1 in rows of 4, z = a * w of a GEMM beside it.
Graph two_outputs() {
  Graph g("two");
  const Dim B = g.dim("B", {.min = 0, .max = 64});
  g.output("y", g.input("x", f32, {B, 4}) + 1.0f);
  g.output("z", matmul(g.input("a", f32, {B, 4}), transpose(g.parameter("w", f32, {2, 4}), {1, 0})));
  return g;
}

/// y = -x u, z = -x v: one GEMM, whose weights pack lays side by side.
Graph packing() {
  Graph g("packing");
  const Tensor x = g.input("x", f32, {g.dim("B", {.min = 1, .max = 1000, .hint = 8}), 3});
  g.output("y", -matmul(x, g.parameter("u", f32, {3, 2})));
  g.output("z", -matmul(x, g.parameter("v", f32, {3, 4})));
  return g;
}

/// A saved plan, and what most tests need of it.
struct Loaded {
  Folder folder;
  std::string path = folder / "plan";
  OwnedDevice device = tiny_device();
  OwnedPlan plan;

  explicit Loaded(const Graph& graph = two_outputs()) {
    compile(graph, Device::emulated({.profile = "tiny3", .optimization = 0})).save(path);
    plan =
        made<OwnedPlan>([&](auto** out) { return fuse_compiler_plan_load(path.c_str(), device.get(), out); });
  }
  OwnedPrepared prepared(std::int64_t rows) const {
    const char* const name = "B";
    return made<OwnedPrepared>(
        [&](auto** out) { return fuse_compiler_prepare(plan.get(), &name, &rows, 1, out); });
  }
  OwnedStream stream() const {
    return made<OwnedStream>([&](auto** out) { return fuse_compiler_stream_new(device.get(), out); });
  }
  OwnedBuffer buffer(std::int64_t bytes) const {
    return made<OwnedBuffer>([&](auto** out) { return fuse_compiler_buffer_new(device.get(), bytes, out); });
  }
};

OwnedWorkspace workspace_of(const OwnedPrepared& prepared) {
  return made<OwnedWorkspace>(
      [&](auto** out) { return fuse_compiler_workspace_new(prepared.get(), nullptr, out); });
}

fuse_compiler_slot_info slot_info(const OwnedPrepared& prepared, std::size_t slot) {
  fuse_compiler_slot_info info{};
  info.struct_size = sizeof info;
  REQUIRE(said(fuse_compiler_prepared_slot(prepared.get(), slot, &info)) == "ok");
  return info;
}

fuse_compiler_run_info run_info(const OwnedPrepared& prepared) {
  fuse_compiler_run_info info{};
  info.struct_size = sizeof info;
  REQUIRE(said(fuse_compiler_prepared_info(prepared.get(), &info)) == "ok");
  return info;
}

}  // namespace

TEST_CASE("c api: a saved plan runs", "[deploy][emulated]") {
  const Loaded loaded;
  const OwnedPrepared prepared = loaded.prepared(2);
  const OwnedStream stream = loaded.stream();
  std::vector<OwnedBuffer> buffers;
  std::vector<fuse_compiler_view> views(5);
  for (std::size_t i = 0; i < views.size(); ++i) {
    buffers.push_back(loaded.buffer(slot_info(prepared, i).bytes));
    REQUIRE(fuse_compiler_buffer_view(buffers[i].get(), &views[i]) == FUSE_COMPILER_OK);
  }
  const auto set = [&](const char* name, std::vector<float> values) {
    std::size_t slot = 99;
    REQUIRE(said(fuse_compiler_plan_find_input(loaded.plan.get(), name, &slot)) == "ok");
    REQUIRE(said(fuse_compiler_buffer_upload(buffers[slot].get(), values.data(), values.size() * 4)) == "ok");
  };
  set("x", {1, 2, 3, 4, 5, 6, 7, 8});
  set("a", {1, 0, 0, 0, 0, 1, 0, 0});
  set("w", {1, 2, 3, 4, 5, 6, 7, 8});
  const fuse_compiler_run_info info = run_info(prepared);
  CHECK(info.gemms == 1);
  CHECK(info.launches >= 1);
  CHECK(info.streams >= 1);
  CHECK(info.packed_bytes == 0);
  const OwnedWorkspace workspace = workspace_of(prepared);
  REQUIRE(said(fuse_compiler_run(prepared.get(), stream.get(), views.data(), 5, workspace.get(), nullptr)) ==
          "ok");
  REQUIRE(said(fuse_compiler_stream_synchronize(stream.get())) == "ok");
  const auto get = [&](const char* name, std::size_t count) {
    std::size_t slot = 99;
    REQUIRE(said(fuse_compiler_plan_find_output(loaded.plan.get(), name, &slot)) == "ok");
    std::vector<float> values(count);
    REQUIRE(said(fuse_compiler_buffer_download(buffers[slot].get(), values.data(), count * 4)) == "ok");
    return values;
  };
  CHECK(get("y", 8) == std::vector<float>{2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(get("z", 4) == std::vector<float>{1, 5, 2, 6});
}

TEST_CASE("c api: parameters are packed once, and not read again", "[deploy][emulated]") {
  const Loaded loaded(packing());
  const OwnedPrepared prepared = loaded.prepared(1);
  const OwnedStream stream = loaded.stream();
  // In memory of the caller's, as a graph where there are graphs.
  REQUIRE(run_info(prepared).workspace_bytes > 0);
  const OwnedBuffer room = loaded.buffer(run_info(prepared).workspace_bytes);
  fuse_compiler_view memory{};
  REQUIRE(fuse_compiler_buffer_view(room.get(), &memory) == FUSE_COMPILER_OK);
  fuse_compiler_workspace_options options{};
  options.struct_size = sizeof options;
  options.mode = FUSE_COMPILER_GRAPH;
  options.memory = memory.address;
  options.memory_bytes = memory.bytes - 1;
  fuse_compiler_workspace* small = nullptr;
  CHECK(
      said(fuse_compiler_workspace_new(prepared.get(), &options, &small)).starts_with("invalid-argument: "));
  CHECK(small == nullptr);
  options.memory_bytes = memory.bytes;
  const OwnedWorkspace workspace = made<OwnedWorkspace>(
      [&](auto** out) { return fuse_compiler_workspace_new(prepared.get(), &options, out); });
  CHECK(workspace->workspace.memory().address == memory.address);
  CHECK(workspace->workspace.mode() == ExecutionMode::graph);
  std::vector<OwnedBuffer> buffers;
  std::vector<fuse_compiler_view> views(5);
  for (std::size_t i = 0; i < views.size(); ++i) {
    const fuse_compiler_slot_info slot = slot_info(prepared, i);
    CHECK((slot.read_in_run == 0) == (slot.kind == FUSE_COMPILER_PARAMETER));
    buffers.push_back(loaded.buffer(slot.bytes));
    REQUIRE(fuse_compiler_buffer_view(buffers[i].get(), &views[i]) == FUSE_COMPILER_OK);
    const std::vector<float> ones(static_cast<std::size_t>(slot.bytes) / sizeof(float), 1.0f + i);
    REQUIRE(said(fuse_compiler_buffer_upload(buffers[i].get(), ones.data(), ones.size() * 4)) == "ok");
  }
  REQUIRE(run_info(prepared).packed_bytes > 0);
  const OwnedBuffer packed = loaded.buffer(run_info(prepared).packed_bytes);
  fuse_compiler_view in{};
  REQUIRE(fuse_compiler_buffer_view(packed.get(), &in) == FUSE_COMPILER_OK);
  const auto run = [&](const fuse_compiler_view* with) {
    return said(fuse_compiler_run(prepared.get(), stream.get(), views.data(), 5, workspace.get(), with));
  };
  CHECK(run(nullptr).starts_with("invalid-argument: packed memory"));
  CHECK(said(fuse_compiler_pack(prepared.get(), stream.get(), views.data(), 5, nullptr))
            .starts_with("invalid-argument: packed memory"));
  REQUIRE(said(fuse_compiler_pack(prepared.get(), stream.get(), views.data(), 5, &in)) == "ok");
  views[1] = views[2] = {};
  REQUIRE(run(&in) == "ok");
  REQUIRE(said(fuse_compiler_stream_synchronize(stream.get())) == "ok");
  std::array<float, 2> y{};
  REQUIRE(said(fuse_compiler_buffer_download(buffers[3].get(), y.data(), sizeof y)) == "ok");
  CHECK(y == std::array<float, 2>{-6, -6});
}

TEST_CASE("c api: slots tell what Executable and Prepared do", "[deploy][emulated]") {
  const Loaded loaded;
  const char* name = nullptr;
  REQUIRE(fuse_compiler_device_name(loaded.device.get(), &name) == FUSE_COMPILER_OK);
  CHECK(std::string(name) == "emulated tiny3");
  std::size_t count = 0;
  REQUIRE(fuse_compiler_plan_slot_count(loaded.plan.get(), &count) == FUSE_COMPILER_OK);
  REQUIRE(count == 5);
  const Executable executable = Executable::load(loaded.path, Device::emulated({.profile = "tiny3"}));
  const Prepared expected = executable.prepare({{"B", 3}});
  const OwnedPrepared prepared = loaded.prepared(3);
  for (std::size_t i = 0; i < count; ++i) {
    const Slot& slot = executable.slots()[i];
    fuse_compiler_slot_info open{};
    open.struct_size = sizeof open;
    REQUIRE(said(fuse_compiler_plan_slot(loaded.plan.get(), i, &open)) == "ok");
    const fuse_compiler_slot_info info = slot_info(prepared, i);
    CHECK(std::string(info.name) == slot.name);
    CHECK(info.kind == static_cast<int>(slot.kind));
    CHECK(info.dtype == FUSE_COMPILER_F32);
    CHECK(info.donor == -1);
    CHECK(std::vector<std::int64_t>(info.shape, info.shape + info.rank) == expected.shape(i));
    CHECK(info.bytes == expected.bytes(i));
    CHECK((info.read_in_run != 0) == expected.reads_in_run(i));
    CHECK(std::string(open.name) == slot.name);
    CHECK(open.rank == info.rank);
    CHECK(open.shape == nullptr);
    CHECK(open.bytes == -1);
  }
  fuse_compiler_slot_info none{};
  none.struct_size = sizeof none;
  CHECK(said(fuse_compiler_plan_slot(loaded.plan.get(), 5, &none)) ==
        "invalid-argument: there is no slot 5; there are 5");
  CHECK(said(fuse_compiler_prepared_slot(prepared.get(), 5, &none)) ==
        "invalid-argument: there is no slot 5; there are 5");
  CHECK(none.name == nullptr);
  std::size_t slot = 99;
  CHECK(said(fuse_compiler_plan_find_input(loaded.plan.get(), "y", &slot))
            .starts_with("unknown-name: no input or parameter is named 'y'"));
  CHECK(said(fuse_compiler_plan_find_output(loaded.plan.get(), "x", &slot)).starts_with("unknown-name: "));
  CHECK(slot == 99);
}

TEST_CASE("c api: structs that are smaller and larger than this version's", "[deploy][emulated]") {
  struct {
    fuse_compiler_emulated_options options{};
    std::array<std::uint64_t, 4> newer{};
  } given;
  given.options.profile = "tiny3";
  given.options.checked = 1;
  given.options.scheduling = 77;  // what no version means is refused where it is read
  const auto opened = [&](std::size_t size) {
    given.options.struct_size = size;
    fuse_compiler_device* device = nullptr;
    const std::string text = said(fuse_compiler_device_emulated(&given.options, &device));
    const OwnedDevice owned(device);
    if (!device) return text;
    return device->name;
  };
  CHECK(opened(8) == "emulated h200");
  CHECK(opened(16) == "emulated tiny3");
  CHECK(opened(24) == "emulated tiny3 (checked)");
  CHECK(opened(40) == "emulated tiny3 (checked)");
  CHECK(opened(48) == "invalid-argument: scheduling cannot be 77; it is from 0 to 1");
  given.options.scheduling = FUSE_COMPILER_GANG;
  CHECK(opened(sizeof given.options) == "emulated tiny3 (checked)");
  CHECK(opened(sizeof given) == "emulated tiny3 (checked)");
  given.newer[2] = 1;
  CHECK(opened(sizeof given.options + 16) == "emulated tiny3 (checked)");
  CHECK(opened(sizeof given) ==
        "invalid-argument: fuse_compiler_emulated_options: byte 64 is of a field that this version of fuse "
        "does "
        "not have, and not zero (its struct has 48 bytes, 80 were given)");
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{12}, std::size_t{1} << 60}) {
    CHECK(opened(size) ==
          "invalid-argument: fuse_compiler_emulated_options: no version of it has the struct_size " +
              std::to_string(size) + "\n  hint: set struct_size to its sizeof");
  }
  given.options.threads = std::int64_t{1} << 40;
  CHECK(opened(48) == "invalid-argument: threads cannot be 1099511627776");
}

TEST_CASE("c api: what is written stays in the caller's struct", "[deploy][emulated]") {
  const Loaded loaded;
  const OwnedPrepared prepared = loaded.prepared(2);
  struct {
    fuse_compiler_slot_info info;
    std::uint64_t newer;
  } given;
  std::memset(&given, 0x5a, sizeof given);
  given.info.struct_size = 24;
  REQUIRE(said(fuse_compiler_prepared_slot(prepared.get(), 0, &given.info)) == "ok");
  CHECK(given.info.struct_size == 24);
  CHECK(std::string(given.info.name) == "x");
  CHECK(given.info.kind == FUSE_COMPILER_INPUT);
  CHECK(given.info.dtype == 0x5a5a5a5a5a5a5a5a);
  given.info.struct_size = sizeof given;
  given.info.name = nullptr;
  CHECK(said(fuse_compiler_prepared_slot(prepared.get(), 0, &given.info))
            .starts_with("invalid-argument: fuse_compiler_slot_info: byte 72 is of a field"));
  CHECK(given.info.name == nullptr);
  given.newer = 0;
  CHECK(said(fuse_compiler_prepared_slot(prepared.get(), 0, &given.info)) == "ok");
  CHECK(given.info.dtype == FUSE_COMPILER_F32);
}

TEST_CASE("c api: null arguments are named", "[deploy][emulated]") {
  const Loaded loaded;
  const OwnedPrepared prepared = loaded.prepared(1);
  const OwnedStream stream = loaded.stream();
  const OwnedBuffer buffer = loaded.buffer(4);
  const OwnedWorkspace workspace = workspace_of(prepared);
  const auto is_null = [](int status, const std::string& call, const std::string& argument) {
    CHECK(said(status) == "invalid-argument: fuse_compiler_" + call + ": " + argument + " is null");
  };
  fuse_compiler_device* device = nullptr;
  fuse_compiler_plan* plan = nullptr;
  std::size_t number = 0;
  is_null(fuse_compiler_device_emulated(nullptr, nullptr), "device_emulated", "out");
  is_null(fuse_compiler_device_cuda(0, nullptr), "device_cuda", "out");
  is_null(fuse_compiler_device_name(device, nullptr), "device_name", "device");
  is_null(fuse_compiler_plan_load(nullptr, loaded.device.get(), &plan), "plan_load", "path");
  is_null(fuse_compiler_plan_load("x", nullptr, &plan), "plan_load", "device");
  is_null(fuse_compiler_plan_load("x", loaded.device.get(), nullptr), "plan_load", "out");
  is_null(fuse_compiler_plan_slot_count(nullptr, &number), "plan_slot_count", "plan");
  is_null(fuse_compiler_plan_slot(loaded.plan.get(), 0, nullptr), "plan_slot", "out");
  is_null(fuse_compiler_plan_find_input(loaded.plan.get(), nullptr, &number), "plan_find_input", "name");
  is_null(fuse_compiler_plan_find_output(loaded.plan.get(), "y", nullptr), "plan_find_output", "out");
  is_null(fuse_compiler_prepare(loaded.plan.get(), nullptr, nullptr, 1, nullptr), "prepare", "out");
  fuse_compiler_prepared* other = nullptr;
  const char* const names[] = {"B", nullptr};
  const std::int64_t values[] = {1, 2};
  is_null(fuse_compiler_prepare(loaded.plan.get(), nullptr, values, 1, &other), "prepare", "names");
  is_null(fuse_compiler_prepare(loaded.plan.get(), names, nullptr, 1, &other), "prepare", "values");
  is_null(fuse_compiler_prepare(loaded.plan.get(), names, values, 2, &other), "prepare", "names[1]");
  is_null(fuse_compiler_prepared_slot(nullptr, 0, nullptr), "prepared_slot", "prepared");
  is_null(fuse_compiler_prepared_info(prepared.get(), nullptr), "prepared_info", "out");
  is_null(fuse_compiler_workspace_new(nullptr, nullptr, nullptr), "workspace_new", "prepared");
  is_null(fuse_compiler_stream_new(nullptr, nullptr), "stream_new", "device");
  is_null(fuse_compiler_stream_wrap(loaded.device.get(), nullptr, nullptr), "stream_wrap", "out");
  is_null(fuse_compiler_stream_synchronize(nullptr), "stream_synchronize", "stream");
  is_null(fuse_compiler_stream_native(stream.get(), nullptr), "stream_native", "out");
  is_null(fuse_compiler_buffer_new(loaded.device.get(), 1, nullptr), "buffer_new", "out");
  is_null(fuse_compiler_buffer_view(nullptr, nullptr), "buffer_view", "buffer");
  is_null(fuse_compiler_buffer_upload(buffer.get(), nullptr, 4), "buffer_upload", "from");
  is_null(fuse_compiler_buffer_download(buffer.get(), nullptr, 4), "buffer_download", "to");
  is_null(fuse_compiler_pack(prepared.get(), nullptr, nullptr, 0, nullptr), "pack", "stream");
  is_null(fuse_compiler_run(prepared.get(), stream.get(), nullptr, 0, nullptr, nullptr), "run", "workspace");
  is_null(fuse_compiler_run(prepared.get(), stream.get(), nullptr, 5, workspace.get(), nullptr), "run",
          "buffers");
  // Nothing was made; and freeing nothing does nothing.
  CHECK((!device && !plan && !other && number == 0));
  fuse_compiler_device_free(nullptr);
  fuse_compiler_plan_free(nullptr);
  fuse_compiler_prepared_free(nullptr);
  fuse_compiler_workspace_free(nullptr);
  fuse_compiler_stream_free(nullptr);
  fuse_compiler_buffer_free(nullptr);
}

TEST_CASE("c api: errors of C++ are statuses with its text, and make nothing", "[deploy][emulated]") {
  const Loaded loaded;
  fuse_compiler_plan* plan = nullptr;
  CHECK(said(fuse_compiler_plan_load("/nonexistent/plan", loaded.device.get(), &plan)).starts_with("io: "));
  write_contents(loaded.folder / "text", "no plan");
  CHECK(said(fuse_compiler_plan_load((loaded.folder / "text").c_str(), loaded.device.get(), &plan))
            .find("is no fuseplan of fuse") != std::string::npos);
  CHECK(plan == nullptr);
  fuse_compiler_prepared* prepared = nullptr;
  const char* const twice[] = {"B", "B"};
  const std::int64_t values[] = {65, 2};
  CHECK(said(fuse_compiler_prepare(loaded.plan.get(), nullptr, nullptr, 0, &prepared))
            .starts_with("unbound: "));
  CHECK(said(fuse_compiler_prepare(loaded.plan.get(), twice, values, 1, &prepared))
            .starts_with("invalid-extent: "));
  CHECK(said(fuse_compiler_prepare(loaded.plan.get(), twice, values, 2, &prepared)) ==
        "duplicate-name: two values are given for the dim 'B'");
  CHECK(prepared == nullptr);
  fuse_compiler_stream* stream = nullptr;
  CHECK(said(fuse_compiler_stream_wrap(loaded.device.get(), &stream, &stream))
            .starts_with("invalid-argument: emulated tiny3 is no cuda device"));
  fuse_compiler_buffer* buffer = nullptr;
  CHECK(said(fuse_compiler_buffer_new(loaded.device.get(), -1, &buffer)) ==
        "invalid-argument: a buffer cannot have -1 bytes");
  CHECK(
      said(fuse_compiler_buffer_new(loaded.device.get(), INT64_MAX, &buffer)).starts_with("out-of-memory: "));
  CHECK((!stream && !buffer));
  const OwnedBuffer eight = loaded.buffer(8);
  const float four = 4;
  CHECK(said(fuse_compiler_buffer_upload(eight.get(), &four, 4)) ==
        "buffer-size: upload of 4 bytes for a buffer of 8");
  const OwnedPrepared two = loaded.prepared(2);
  fuse_compiler_workspace_options options{};
  options.struct_size = sizeof options;
  options.memory_bytes = 8;
  fuse_compiler_workspace* workspace = nullptr;
  CHECK(said(fuse_compiler_workspace_new(two.get(), &options, &workspace)) ==
        "invalid-argument: a workspace in 8 bytes of no memory");
  options.memory_bytes = 0;
  options.mode = 3;
  CHECK(said(fuse_compiler_workspace_new(two.get(), &options, &workspace)) ==
        "invalid-argument: mode cannot be 3; it is from 0 to 2");
  CHECK(workspace == nullptr);
  const OwnedWorkspace own = workspace_of(two);
  const OwnedStream queue = loaded.stream();
  const std::array<fuse_compiler_view, 4> few{};
  CHECK(said(fuse_compiler_run(two.get(), queue.get(), few.data(), few.size(), own.get(), nullptr)) ==
        "invalid-argument: 4 buffers given for 5 slots");
}

TEST_CASE("c api: the last error is the thread's own, and cut where it is long", "[deploy][emulated]") {
  CHECK(said(fuse_compiler_device_emulated(nullptr, nullptr)).ends_with("out is null"));
  std::string before, after;
  std::thread([&] {
    before = fuse_compiler_last_error();
    static_cast<void>(fuse_compiler_device_cuda(0, nullptr));
    after = fuse_compiler_last_error();
  }).join();
  CHECK(before.empty());
  CHECK(after == "fuse_compiler_device_cuda: out is null");
  CHECK(std::string(fuse_compiler_last_error()) == "fuse_compiler_device_emulated: out is null");
  const std::string profile(10000, 'p');
  fuse_compiler_emulated_options options{};
  options.struct_size = sizeof options;
  options.profile = profile.c_str();
  fuse_compiler_device* device = nullptr;
  REQUIRE(fuse_compiler_device_emulated(&options, &device) != FUSE_COMPILER_OK);
  CHECK(std::strlen(fuse_compiler_last_error()) <= 4095);
}

TEST_CASE("c api: every code of C++ has a status of its own, and an exception becomes one", "[deploy]") {
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
    const auto of_cxx = static_cast<ErrorCode>(code);
    CHECK(fuse_compiler_status_name(runtime::c::status_of(of_cxx)) == to_string(of_cxx));
  }
  CHECK(std::string(fuse_compiler_status_name(-1)) == "?");
  CHECK(std::string(fuse_compiler_version()) == FUSE_COMPILER_VERSION);
  CHECK(said(runtime::c::guarded([] { throw std::bad_alloc(); })) ==
        "out-of-memory: the host has no memory left");
  CHECK(said(runtime::c::guarded([] { throw std::runtime_error("other"); })) == "internal: other");
  CHECK(said(runtime::c::guarded([] { throw 5; })) == "internal: an exception of an unknown type");
}

TEST_CASE("c api: handles go in any order", "[deploy][emulated]") {
  Loaded loaded;
  OwnedPrepared prepared = loaded.prepared(0);
  OwnedStream stream = loaded.stream();
  const OwnedBuffer buffer = loaded.buffer(32);
  const OwnedWorkspace workspace = workspace_of(prepared);
  loaded.device.reset();
  loaded.plan.reset();
  const fuse_compiler_slot_info info = slot_info(prepared, 3);
  CHECK(std::string(info.name) == "y");
  CHECK(info.bytes == 0);
  prepared.reset();
  stream.reset();
}

#if FUSE_COMPILER_HAS_CUDA
TEST_CASE("c api: a CUstream of the caller's on a GPU", "[deploy]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    const OwnedDevice device =
        made<OwnedDevice>([](auto** out) { return fuse_compiler_device_cuda(0, out); });
    const OwnedStream own =
        made<OwnedStream>([&](auto** out) { return fuse_compiler_stream_new(device.get(), out); });
    void* native = nullptr;
    REQUIRE(fuse_compiler_stream_native(own.get(), &native) == FUSE_COMPILER_OK);
    REQUIRE(native);
    const OwnedStream wrapped =
        made<OwnedStream>([&](auto** out) { return fuse_compiler_stream_wrap(device.get(), native, out); });
    void* again = nullptr;
    REQUIRE(fuse_compiler_stream_native(wrapped.get(), &again) == FUSE_COMPILER_OK);
    CHECK(again == native);
    CHECK(said(fuse_compiler_stream_synchronize(wrapped.get())) == "ok");
    fuse_compiler_device* none = nullptr;
    CHECK(said(fuse_compiler_device_cuda(7, &none)).starts_with("invalid-argument: "));
    CHECK(none == nullptr);
  }
  fakes.require_clean();
}
#endif

}  // namespace fuse::test
