// The C interface on the cpu device: plans that were saved for it run on memory of the program's own, and
// options that make no sense are a status with a text.
// SPDX-License-Identifier: Apache-2.0
#include <fuse/c_api.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <fuse/fuse.hpp>
#include <string>
#include <vector>

#include "deploy/deploy_support.hpp"
#include "runtime/cpu/cores/machine.hpp"
#include "runtime/interop/c_handles.hpp"
#include "runtime/runtime_support.hpp"
#include "support/variable.hpp"

namespace fuse::test {
namespace {

std::string c_answer(int status) {
  if (status == FUSE_COMPILER_OK) return "ok";
  return std::string(fuse_compiler_status_name(status)) + ": " + fuse_compiler_last_error();
}

/// A program in C, whose handles go at its end, whatever it did.
struct CpuProgram {
  fuse_compiler_cpu_options options{};
  fuse_compiler_device* device = nullptr;
  fuse_compiler_plan* plan = nullptr;
  fuse_compiler_prepared* prepared = nullptr;
  fuse_compiler_workspace* workspace = nullptr;
  fuse_compiler_stream* stream = nullptr;

  CpuProgram() { options.struct_size = sizeof options; }
  CpuProgram(const CpuProgram&) = delete;
  CpuProgram& operator=(const CpuProgram&) = delete;
  ~CpuProgram() {
    fuse_compiler_stream_free(stream);
    fuse_compiler_workspace_free(workspace);
    fuse_compiler_prepared_free(prepared);
    fuse_compiler_plan_free(plan);
    fuse_compiler_device_free(device);
  }

  std::string open() { return c_answer(fuse_compiler_device_cpu(&options, &device)); }
  std::string load(const std::string& path) {
    return c_answer(fuse_compiler_plan_load(path.c_str(), device, &plan));
  }
  /// y of x, both in memory of this process that no Device knows.
  std::vector<float> run(std::vector<float> x) {
    std::vector<float> y(x.size(), -1);
    const auto bytes = static_cast<std::int64_t>(x.size() * sizeof(float));
    const std::array<fuse_compiler_view, 2> views = {
        {{.address = x.data(), .bytes = bytes}, {.address = y.data(), .bytes = bytes}}};
    REQUIRE(c_answer(fuse_compiler_prepare(plan, nullptr, nullptr, 0, &prepared)) == "ok");
    REQUIRE(c_answer(fuse_compiler_workspace_new(prepared, nullptr, &workspace)) == "ok");
    REQUIRE(c_answer(fuse_compiler_stream_new(device, &stream)) == "ok");
    REQUIRE(c_answer(fuse_compiler_run(prepared, stream, views.data(), views.size(), workspace, nullptr)) ==
            "ok");
    REQUIRE(c_answer(fuse_compiler_stream_synchronize(stream)) == "ok");
    return y;
  }
};

Graph halves_of_rows() {
  Graph g("halves");
  const Tensor x = g.input("x", f32, {8, 256});
  g.output("y", x / sum(x, {1}, {.keep_dims = true}));
  return g;
}

std::vector<float> ones_and_twos() {
  std::vector<float> x(std::size_t{8} * 256);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 2 == 0 ? 1.0f : 2.0f;
  return x;
}

}  // namespace

TEST_CASE("c api: a plan for the cpu device runs on the program's own memory, without a compiler",
          "[deploy][emulated]") {
  const Folder folder;
  const std::string path = folder / "plan";
  compile(halves_of_rows(), Device::cpu()).save(path);
  const Variable none("FUSE_CXX", "/nonexistent/c++");
  std::vector<std::vector<float>> results;
  for (const std::int64_t threads : {1, 2, 0}) {
    CpuProgram program;
    program.options.threads = threads;
    program.options.pin = threads == 2 ? 1 : 0;
    REQUIRE(program.open() == "ok");
    const char* name = nullptr;
    REQUIRE(fuse_compiler_device_name(program.device, &name) == FUSE_COMPILER_OK);
    CHECK(std::string(name) == "cpu " + runtime::cpu::this_machine().level);
    REQUIRE(program.load(path) == "ok");
    results.push_back(program.run(ones_and_twos()));
  }
  // A row of 256 adds up to 384.
  CHECK(results[0][0] == 1.0f / 384);
  CHECK(results[0][2047] == 2.0f / 384);
  CHECK((results[1] == results[0] && results[2] == results[0]));
}

TEST_CASE("c api: a plan is for its level of the cpu device, and for no other device", "[deploy][emulated]") {
  const Folder folder;
  const std::string path = folder / "plan";
  compile(halves_of_rows(), Device::cpu({.machine = "x86-64-v2"})).save(path);
  CpuProgram same, newer;
  same.options.machine = "x86-64-v2";
  REQUIRE(same.open() == "ok");
  REQUIRE(same.load(path) == "ok");
  CHECK(same.run(ones_and_twos())[1] == 2.0f / 384);
  REQUIRE(newer.open() == "ok");
  if (runtime::cpu::this_machine().level != "x86-64-v2") {
    const std::string said = newer.load(path);
    CHECK(said.starts_with("incompatible-version: " + path + " has no plan for cpu x86-64-v"));
    CHECK(said.find("machine is x86-64-v2, here x86-64-v") != std::string::npos);
    CHECK(newer.plan == nullptr);
  }
  fuse_compiler_device* emulated = nullptr;
  REQUIRE(c_answer(fuse_compiler_device_emulated(nullptr, &emulated)) == "ok");
  fuse_compiler_plan* plan = nullptr;
  CHECK(
      c_answer(fuse_compiler_plan_load(path.c_str(), emulated, &plan)).starts_with("incompatible-version: "));
  CHECK(plan == nullptr);
  fuse_compiler_device_free(emulated);
}

TEST_CASE("c api: options of the cpu device that make no sense", "[deploy]") {
  const auto refused = [](auto&& change) {
    CpuProgram program;
    change(program.options);
    const std::string said = program.open();
    CHECK(program.device == nullptr);
    return said;
  };
  using Options = fuse_compiler_cpu_options;
  CHECK(refused([](Options& o) {
          o.threads = -1;
        }).starts_with("invalid-argument: the cpu device cannot run on -1 threads"));
  CHECK(refused([](Options& o) {
          o.threads = 1025;
        }).starts_with("invalid-argument: the cpu device cannot run on 1025 threads"));
  CHECK(refused([](Options& o) { o.threads = std::int64_t{1} << 40; }) ==
        "invalid-argument: threads cannot be 1099511627776");
  CHECK(refused([](Options& o) {
          o.machine = "x86-64-v9";
        }).starts_with("unsupported: the cpu device cannot run kernels for x86-64-v9: this machine is "));
  CHECK(c_answer(fuse_compiler_device_cpu(nullptr, nullptr)) ==
        "invalid-argument: fuse_compiler_device_cpu: out is null");
}

TEST_CASE("c api: the options of the cpu device grow at their end", "[deploy]") {
  struct {
    fuse_compiler_cpu_options options;
    std::uint64_t newer;
  } given{};
  const auto opened = [&](std::size_t size) {
    given.options.struct_size = size;
    fuse_compiler_device* device = nullptr;
    const std::string said = c_answer(fuse_compiler_device_cpu(&given.options, &device));
    const std::string name = device ? device->name : said;
    fuse_compiler_device_free(device);
    return name;
  };
  given.options.threads = 1;
  given.options.machine = "x86-64-v2";
  const std::string here = "cpu " + runtime::cpu::this_machine().level;
  CHECK(opened(8) == here);  // an older program's, without the fields
  CHECK(opened(24) == here);
  CHECK(opened(32) == "cpu x86-64-v2");
  CHECK(opened(sizeof given) == "cpu x86-64-v2");
  given.newer = 1;
  CHECK(
      opened(sizeof given).starts_with("invalid-argument: fuse_compiler_cpu_options: byte 32 is of a field"));
  CHECK(opened(12).starts_with("invalid-argument: fuse_compiler_cpu_options: no version of it has the "));
  CHECK(opened(0).starts_with("invalid-argument: fuse_compiler_cpu_options: "));
}

}  // namespace fuse::test
