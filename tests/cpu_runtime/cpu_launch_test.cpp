// Launches, memory and limits of the cpu device, with kernels that are written by hand.
// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "os/temporary_folder.hpp"
#include "plan/cpu_abi.hpp"
#include "runtime/cpu/cores/machine.hpp"
#include "runtime/cpu/cpu.hpp"
#include "runtime/cpu/cpu_module.hpp"
#include "runtime/cpu/grain.hpp"
#include "runtime/device/hot_path_check.hpp"
#include "support/catch.hpp"

namespace fuse::test {
namespace {

using codegen::KernelInfo;
using codegen::KernelParam;
using runtime::Argument;
using runtime::Backend;
using runtime::Binary;

// Each block writes its number times a factor to one row, in the second kernel numbers that lay in its
// scratch memory, and in the third whether it was told to stream.
constexpr const char* kernels = R"(
extern "C" void fuse_entry_0(const fuse_cpu_call* call) {
  float* rows = (float*)call->arguments[0];
  const long long columns = (long long)call->arguments[1];
  const int factor = (int)call->arguments[2];
  for (long long row = call->first; row < call->last; ++row)
    for (long long i = 0; i < columns; ++i) rows[row * columns + i] = (float)(row * factor);
}
extern "C" void fuse_entry_1(const fuse_cpu_call* call) {
  float* rows = (float*)call->arguments[0];
  const long long columns = (long long)call->arguments[1];
  float* scratch = (float*)call->scratch;
  for (long long row = call->first; row < call->last; ++row) {
    for (long long i = 0; i < columns; ++i) scratch[i] = (float)(row + i);
    for (long long i = 0; i < columns; ++i) rows[row * columns + i] = scratch[columns - 1 - i];
  }
}
)";
constexpr const char* kernels_of_second_image = R"(
extern "C" void fuse_entry_2(const fuse_cpu_call* call) {
  int* rows = (int*)call->arguments[0];
  for (long long row = call->first; row < call->last; ++row) {
    rows[row] = call->stream;
    rows[100 + row] = (int)call->next;
  }
}
)";

std::vector<char> built(const std::string& text) {
  const TemporaryFolder folder;
  folder.write("kernels.cpp", std::string(runtime::cpu::abi_text) + text);
  const char* const chosen = std::getenv("FUSE_CXX");
  const std::string command = std::string(chosen && *chosen ? chosen : "c++") + " -O1 -fPIC -shared -o " +
                              folder.path() + "/library " + folder.path() + "/kernels.cpp";
  if (std::system(command.c_str()) != 0) return {};
  std::ifstream in(folder.path() + "/library", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

const KernelParam rows{.name = "rows", .written = true};
const KernelParam columns{.kind = KernelParam::Kind::extent, .name = "columns", .dtype = i64};
const KernelParam factor{.kind = KernelParam::Kind::extent, .name = "factor", .dtype = i32};

constexpr std::int64_t columns_of_scratch = 500;

/// The three kernels, or null without a compiler.
std::shared_ptr<const Binary> binary_of_kernels() {
  static const std::shared_ptr<const Binary> binary = []() -> std::shared_ptr<const Binary> {
    auto made = std::make_shared<Binary>();
    made->name = "by hand";
    made->maker = "c++";
    made->kernels = {{.name = "numbers", .params = {rows, columns, factor}},
                     {.name = "turned", .params = {rows, columns}, .shared_bytes = columns_of_scratch * 4},
                     {.name = "streams", .params = {rows}}};
    made->images = {{built(kernels), 2}, {built(kernels_of_second_image), 1, 2}};
    if (made->images[0].bytes.empty() || made->images[1].bytes.empty()) return nullptr;
    return made;
  }();
  if (!binary) WARN("skipped: there is no C++ compiler");
  return binary;
}

std::unique_ptr<Backend> device(int threads) {
  const Target target = cpu_target(runtime::cpu::this_machine().level);
  return runtime::make_cpu_backend({.threads = threads}, target, nullptr);
}

struct Memory {
  Memory(Backend& of, std::int64_t size) : backend(of), bytes(size), address(of.allocate(size)) {}
  ~Memory() { backend.free(address); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  Argument argument() const { return {.address = address, .bytes = bytes}; }
  float at(std::int64_t i) const { return static_cast<const float*>(address)[i]; }
  Backend& backend;
  const std::int64_t bytes;
  void* const address;
};

Argument extent(std::int64_t value) { return {.value = value}; }

TEST_CASE("every block of a launch runs once, whatever its size", "[runtime][emulated]") {
  const auto binary = binary_of_kernels();
  if (!binary) return;
  for (const int threads : {1, 2, 8}) {
    const auto backend = device(threads);
    const auto queue = backend->create_queue();
    const auto module = backend->load_binary(binary);
    for (const std::int64_t grid : {0, 1, 7, 1000, 5000}) {
      INFO(threads << " threads, " << grid << " blocks");
      const Memory memory(*backend, grid * columns_of_scratch * 4);
      REQUIRE(backend->memset(*queue, memory.address, 0, memory.bytes));
      const Argument numbers[] = {memory.argument(), extent(columns_of_scratch), extent(-3)};
      REQUIRE(backend->launch(*queue, module->function("numbers"), {grid, 1, 1}, numbers, 3));
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < grid * columns_of_scratch; ++i)
        wrong += memory.at(i) != static_cast<float>(i / columns_of_scratch * -3);
      REQUIRE(backend->launch(*queue, module->function("turned"), {1, grid, 1}, numbers, 2));
      for (std::int64_t i = 0; i < grid * columns_of_scratch; ++i) {
        const std::int64_t row = i / columns_of_scratch, column = i % columns_of_scratch;
        wrong += memory.at(i) != static_cast<float>(row + columns_of_scratch - 1 - column);
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("threads launch at once, each with scratch memory of its own", "[runtime][emulated]") {
  const auto binary = binary_of_kernels();
  if (!binary) return;
  const auto backend = device(3);
  const auto other = device(2);  // runs what the first has loaded
  const auto module = backend->load_binary(binary);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 20; ++t) {
    threads.emplace_back([&, t] {
      Backend& on = t % 5 == 0 ? *other : *backend;
      const auto queue = on.create_queue();
      constexpr std::int64_t grid = 300;
      const Memory memory(on, grid * columns_of_scratch * 4);
      const Argument arguments[] = {memory.argument(), extent(columns_of_scratch)};
      for (int round = 0; round < 10; ++round) {
        if (!on.launch(*queue, module->function("turned"), {grid, 1, 1}, arguments, 2)) ++wrong;
        for (std::int64_t i = 0; i < grid * columns_of_scratch; ++i) {
          const std::int64_t row = i / columns_of_scratch, column = i % columns_of_scratch;
          wrong += memory.at(i) != static_cast<float>(row + columns_of_scratch - 1 - column);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("launches, copies and products allocate nothing", "[runtime][emulated]") {
  const auto binary = binary_of_kernels();
  if (!binary) return;
  const auto backend = device(3);
  const auto queue = backend->create_queue();
  const auto module = backend->load_binary(binary);
  constexpr std::int64_t grid = 3000, bytes = grid * columns_of_scratch * 4;
  const Memory from(*backend, bytes), to(*backend, bytes);
  const Argument arguments[] = {from.argument(), extent(columns_of_scratch), extent(2)};
  const auto gemm = backend->prepare_gemm({.m = 200, .n = 200, .k = 200});
  const Memory workspace(*backend, gemm->workspace_bytes());
  const auto& numbers = module->function("numbers");
  const auto& turned = module->function("turned");
  const char* broken = nullptr;
  Status status;
  {
    const runtime::contract::HotPath hot(true);
    if (status) status = backend->memset(*queue, to.address, 0, bytes);  // the first starts the threads
    if (status) status = backend->launch(*queue, numbers, {grid, 1, 1}, arguments, 3);
    if (status) status = backend->launch(*queue, turned, {grid, 1, 1}, arguments, 2);
    if (status) status = backend->copy(*queue, to.address, from.address, bytes);
    if (status) status = gemm->run(*queue, to.address, to.address, from.address, workspace.address);
    broken = hot.broken();
  }
  CHECK(status);
  CHECK((broken ? std::string(broken) : std::string()) == "");
}

TEST_CASE("a launch says how large its buffers are beside the caches", "[runtime][emulated]") {
  const auto binary = binary_of_kernels();
  if (!binary) return;
  const auto backend = device(2);
  const auto queue = backend->create_queue();
  const auto module = backend->load_binary(binary);
  const runtime::cpu::Machine& machine = runtime::cpu::this_machine();
  const std::int64_t cache = runtime::cpu::last_level_share(machine.last_level_bytes, machine.cores);
  const auto stream = [&](std::int64_t bytes) {
    const Memory memory(*backend, bytes);
    const Argument argument = memory.argument();
    REQUIRE(backend->launch(*queue, module->function("streams"), {100, 1, 1}, &argument, 1));
    return static_cast<const int*>(memory.address)[99];
  };
  CHECK(stream(4096) == 0);
  CHECK(stream(cache / 2 - 4096) == 0);
  CHECK(stream(cache / 2) == 1);
  CHECK(stream(2 * cache) == 1);
  CHECK(stream(2 * cache + 4096) == 2);
}

TEST_CASE("a kernel hears which block its thread probably runs next", "[runtime][emulated]") {
  const auto binary = binary_of_kernels();
  if (!binary) return;
  for (const int threads : {1, 2, 3}) {
    const auto backend = device(threads);
    const auto queue = backend->create_queue();
    const auto module = backend->load_binary(binary);
    const Memory memory(*backend, 10 * runtime::cpu::bytes_of_chunk);
    const Argument argument = memory.argument();
    REQUIRE(backend->launch(*queue, module->function("streams"), {100, 1, 1}, &argument, 1));
    const int* const next = static_cast<const int*>(memory.address) + 100;
    for (int block = 0; block < 100; ++block) {
      const int first = block / 10 * 10;  // ten blocks are a chunk
      INFO("block " << block << " of " << threads << " threads: " << next[block]);
      // The calling thread goes forwards; the others share the chunks from the back on.
      const bool back = threads > 1 && next[block] == std::max(first - 10 * (threads - 1), 0);
      CHECK((next[block] == first + 10 || back));
    }
  }
}

TEST_CASE("a buffer of no bytes may lie anywhere", "[runtime][emulated]") {
  const auto binary = binary_of_kernels();
  if (!binary) return;
  const auto backend = device(2);
  const auto queue = backend->create_queue();
  const auto module = backend->load_binary(binary);
  const Memory memory(*backend, 64);
  const Argument none[] = {{static_cast<char*>(memory.address) + 1, 0, 0}, extent(0), extent(1)};
  CHECK(backend->launch(*queue, module->function("numbers"), {4, 1, 1}, none, 3));
}

TEST_CASE("launches that cannot be right are refused", "[runtime][emulated]") {
  const auto binary = binary_of_kernels();
  if (!binary) return;
  const auto backend = device(2);
  const auto queue = backend->create_queue(), foreign = device(1)->create_queue();
  const auto module = backend->load_binary(binary);
  const auto& numbers = module->function("numbers");
  const Memory memory(*backend, 4096);
  const Argument good[] = {memory.argument(), extent(8), extent(1)};
  const auto code = [&](runtime::Queue& on, const runtime::Function& function, runtime::Dim3 grid,
                        const Argument* arguments,
                        int count) { return backend->launch(on, function, grid, arguments, count).code(); };
  CHECK(code(*queue, numbers, {4, 1, 1}, good, 3) == ErrorCode::ok);
  CHECK(code(*foreign, numbers, {4, 1, 1}, good, 3) == ErrorCode::internal);
  CHECK(code(*queue, runtime::cpu::Kernel(), {4, 1, 1}, good, 3) == ErrorCode::internal);
  CHECK(code(*queue, numbers, {-1, 1, 1}, good, 3) == ErrorCode::invalid_argument);
  CHECK(code(*queue, numbers, {std::int64_t{1} << 40, 1 << 20, 1 << 20}, good, 3) ==
        ErrorCode::invalid_argument);
  CHECK(code(*queue, numbers, {4, 1, 1}, good, 2) == ErrorCode::invalid_argument);
  const Argument wide[] = {memory.argument(), extent(8), extent(std::int64_t{1} << 31)};
  CHECK(code(*queue, numbers, {4, 1, 1}, wide, 3) == ErrorCode::invalid_argument);
  const Argument odd[] = {{static_cast<char*>(memory.address) + 2, 128, 0}, extent(8), extent(1)};
  CHECK(code(*queue, numbers, {4, 1, 1}, odd, 3) == ErrorCode::misaligned);
  CHECK_FALSE(backend->memset(*foreign, memory.address, 0, 4));
  CHECK_FALSE(backend->copy(*queue, memory.address, memory.address, -1));

  auto cooperative = std::make_shared<Binary>(*binary);
  cooperative->kernels[0].cooperative = true;
  cooperative->kernels[2].cluster = 2;
  const auto waiting = backend->load_binary(cooperative);
  CHECK(code(*queue, waiting->function("numbers"), {4, 1, 1}, good, 3) == ErrorCode::internal);
  CHECK(code(*queue, waiting->function("streams"), {4, 1, 1}, good, 1) == ErrorCode::internal);
}

TEST_CASE("libraries that are none, or have other kernels, are refused", "[runtime][emulated]") {
  const auto binary = binary_of_kernels();
  if (!binary) return;
  const auto backend = device(1);
  const auto why = [&](const Binary& wrong) {
    try {
      backend->load_binary(std::make_shared<const Binary>(wrong));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(why(*binary).empty());
  Binary wrong = *binary;
  wrong.images[1].bytes.resize(100);
  CHECK(why(wrong).find("cannot load what c++ built") != std::string::npos);
  wrong = *binary;
  wrong.images[0].kernels = 3;
  CHECK(why(wrong).find("no entry of kernel streams") != std::string::npos);
  wrong = *binary;
  wrong.kernels.pop_back();
  CHECK(why(wrong).find("more kernels than the 2") != std::string::npos);
  wrong = *binary;
  wrong.images.pop_back();
  CHECK(why(wrong).find("have 2 kernels of 3") != std::string::npos);
  wrong = *binary;
  wrong.kernels[0].shared_bytes = std::int64_t{1} << 60;
  CHECK(why(wrong).find("scratch memory") != std::string::npos);
  CHECK_THROWS_AS(backend->load_binary(binary)->function("none"), Error);
}

TEST_CASE("memory is aligned, and large ranges are copied in parts", "[runtime]") {
  const auto backend = device(3);
  const auto queue = backend->create_queue();
  for (const std::int64_t bytes : {0, 1, 4096, (6 << 20) + 5}) {
    const Memory from(*backend, bytes), to(*backend, bytes);
    const std::uintptr_t alignment = bytes >= 4 << 20 ? 2 << 20 : 256;
    CHECK(reinterpret_cast<std::uintptr_t>(from.address) % alignment == 0);
    std::vector<unsigned char> host(static_cast<std::size_t>(bytes)), back(host.size(), 1);
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<unsigned char>(i * i >> 7);
    CHECK(backend->upload(*queue, from.address, host.data(), bytes));
    CHECK(backend->copy(*queue, to.address, from.address, bytes));
    CHECK(backend->download(*queue, back.data(), to.address, bytes));
    CHECK((back == host));
    CHECK(backend->memset(*queue, to.address, 7, bytes));
    CHECK(backend->download(*queue, back.data(), to.address, bytes));
    CHECK((back == std::vector<unsigned char>(host.size(), 7)));
    if (bytes < 5 << 20) continue;
    // Ranges that overlap are moved.
    auto* const base = static_cast<unsigned char*>(from.address);
    CHECK(backend->copy(*queue, base + 1000, base, 5 << 20));
    CHECK(std::equal(host.begin(), host.begin() + (5 << 20), base + 1000));
    for (const std::ptrdiff_t apart : {1000, 1 << 20, 1 << 19, 300'000}) {  // downwards, too
      const std::ptrdiff_t moved = 5 << 20;
      CHECK(backend->upload(*queue, base, host.data(), bytes));
      CHECK(backend->copy(*queue, base, base + apart, moved));
      CHECK(std::equal(host.begin() + apart, host.begin() + apart + moved, base));
    }
  }
  CHECK_THROWS_AS(backend->allocate(-1), Error);
  CHECK_THROWS_AS(backend->allocate(std::int64_t{1} << 60), Error);
}

TEST_CASE("the cpu device says what it is", "[runtime]") {
  const auto backend = device(2);
  CHECK(backend->report().find("2 threads") != std::string::npos);
  CHECK(backend->report().find("OpenBLAS") != std::string::npos);
  std::string fields;
  for (const runtime::Fit& fit : backend->fits()) fields += fit.field + '=' + fit.value + ';';
  CHECK(fields.find("device=cpu;") != std::string::npos);
  CHECK(fields.find("machine=" + runtime::cpu::this_machine().level) != std::string::npos);
  CHECK(fields.find("kernel interface=") != std::string::npos);
  for (const int threads : {-1, 1025}) {
    try {
      device(threads);
      FAIL("a device of " << threads << " threads");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::user);
      CHECK(error.code() == ErrorCode::invalid_argument);
    }
  }
}

TEST_CASE("a child process makes a device of its own", "[runtime]") {
  const auto backend = device(3);
  const auto queue = backend->create_queue();
  constexpr std::int64_t bytes = 8 << 20;
  const Memory memory(*backend, bytes);
  REQUIRE(backend->memset(*queue, memory.address, 1, bytes));
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = backend->memset(*queue, memory.address, 2, bytes).code() == ErrorCode::unsupported;
    const auto own = device(1);
    const auto own_queue = own->create_queue();
    const bool runs = static_cast<bool>(own->memset(*own_queue, memory.address, 2, bytes));
    ::_exit(refused && runs ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}

}  // namespace
}  // namespace fuse::test
