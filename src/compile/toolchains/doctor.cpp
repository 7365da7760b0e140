// SPDX-License-Identifier: Apache-2.0
#include "compile/toolchains/doctor.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fuse/graph.hpp>
#include <fuse/session.hpp>
#include <span>

#include "compile/cache/disk_cache.hpp"
#include "runtime/device/host_gemm.hpp"
#if FUSE_COMPILER_HAS_EMULATED
#include "compile/toolchains/host_compiler.hpp"
#endif

namespace fuse::runtime {
namespace {

// y = x * x + 1 or x @ x, of two by two.
void run_small_graph(const Device& device, bool gemm) {
  Graph graph("doctor");
  const Tensor x = graph.input("x", f32, {2, 2});
  graph.output("y", gemm ? matmul(x, x) : x * x + 1.0f);
  Session session(compile(graph, device));
  const std::vector<float> data = {1, 2, 3, 4};
  const std::vector<float> expected =
      gemm ? std::vector<float>{7, 10, 15, 22} : std::vector<float>{2, 5, 10, 17};
  session.set("x", std::as_bytes(std::span(data)));
  session.run();
  std::vector<float> result(4);
  session.get("y", std::as_writable_bytes(std::span(result)));
  if (result == expected) return;
  throw Error(
      {.kind = ErrorKind::internal,
       .code = ErrorCode::internal,
       .message = fmt::format("{} computed {}, {}, {}, {} of {}, not {}, {}, {}, {}", device.name(),
                              result[0], result[1], result[2], result[3], gemm ? "x @ x" : "x * x + 1",
                              expected[0], expected[1], expected[2], expected[3]),
       .hint = "please report it, with what `fusec doctor` prints"});
}

void diagnose_openblas(Diagnosis& d) {
  LibraryFinding finding = describe(openblas_library());
  finding.version = openblas_config();
  if (!openblas_used()) finding.note = "GEMMs of the emulated device are plain loops, many times slower";
  d.libraries.push_back(std::move(finding));
}

// The directory and the compiler are tried separately, so that both are reported where both are at fault.
void diagnose_emulated([[maybe_unused]] Diagnosis& d) {
#if FUSE_COMPILER_HAS_EMULATED
  const emulated::HostCompiler compiler;
  d.compiler = {.path = compiler.path(), .version = {}, .looked_for = compiler.report()};
  const bool room = check(d, "the temporary directory", [&] {
    TemporaryFolder().write("probe", std::string(std::size_t{1} << 20, ' '));
    d.compiler.version = compiler.version();
  });
  const bool found = check(d, "the C++ compiler", [&] { compiler.require(); });
  if (room && found) {
    try_device(d, "emulated", [] { return Device::emulated(); });
  } else {
    d.devices.push_back({"emulated", false, d.problems.back().where + " is at fault"});
  }
#else
  d.devices.push_back({"emulated", false, "not in this build"});
#endif
}

std::string note_of_cache(const std::string& directory, const DirectoryState& state) {
  if (state.exists) return state.writable ? "what was compiled is kept there" : "nothing new is kept there";
  std::filesystem::path above(directory);
  std::error_code ignored;
  while (above.has_relative_path() && !std::filesystem::exists(above, ignored)) above = above.parent_path();
  if (directory_state(above.string()).writable) return "made when the first program is kept";
  return "it cannot be made in " + above.string() + ", so nothing is kept";
}

void diagnose_cache(Diagnosis& d) {
  DirectoryFinding finding{"cache", ""};
  check(d, "the cache directory", [&] {
    const DiskCache cache = DiskCache::open();
    finding.path = cache.directory();
    finding.state = directory_state(finding.path);
    finding.note =
        finding.path.empty() ? "not used: " + cache.unused() : note_of_cache(finding.path, finding.state);
  });
  d.directories.push_back(std::move(finding));
}

}  // namespace

bool Diagnosis::usable() const {
  for (const DeviceFinding& device : devices) {
    if (device.works && device.name != to_string(DeviceKind::reference)) return true;
  }
  return false;
}

LibraryFinding describe(const SharedLibrary& library) {
  return {.name = library.what(),
          .found = static_cast<bool>(library),
          .version = library.version() ? to_string(library.version()) : "",
          .file = library.file(),
          .tried = library.tried()};
}

void try_device(Diagnosis& d, const std::string& name, Device (*open)()) {
  DeviceFinding finding{name, false, "a small graph failed"};
  const bool kernel = check(d, name, [&] {
    const Device device = open();
    finding.detail = device.name() + ", but a small graph failed";
    run_small_graph(device, false);
  });
  finding.works = kernel && check(d, name, [&] { run_small_graph(open(), true); });
  if (finding.works) finding.detail = open().name();
  d.devices.push_back(std::move(finding));
}

Diagnosis diagnose() {
  Diagnosis d;
  d.version = FUSE_COMPILER_VERSION;
  d.directories.push_back({"temporary", temporary_directory(), directory_state(temporary_directory()),
                           "kernels of the cpu and the emulated device are built there"});
  diagnose_cache(d);
  try_device(d, "reference", [] { return Device::reference(); });
  diagnose_emulated(d);
#if FUSE_COMPILER_HAS_CUDA
  diagnose_cuda(d);
#else
  d.devices.push_back({"cuda", false, "not in this build"});
#endif
  diagnose_openblas(d);
  return d;
}

}  // namespace fuse::runtime
