// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/driver.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "base/formatted_status.hpp"
#include "runtime/cuda/largest_cluster.hpp"

namespace fuse::runtime {
namespace {

constexpr int oldest_driver = 12;  // the CUDA major version that FUSE_CUDA_FUNCTIONS needs

struct Meaning {
  const char* text;
  const char* hint;
};

// The failures of cuInit and of making a context that a user can mend, each with its own text.
Meaning meaning_of_start_failure(CUresult result) {
  switch (static_cast<int>(result)) {
    case 2:
      return {"the GPU has no memory left for a context",
              "see nvidia-smi for the processes that hold it, end one or take another GPU"};
    case 34:
      return {"this libcuda is the toolkit's stub for linking, not a driver",
              "take the toolkit's lib/stubs directory out of LD_LIBRARY_PATH and install the NVIDIA driver"};
    case 46:
      return {"the GPU is in use by another process in exclusive mode, or unavailable",
              "see nvidia-smi for the compute mode and for the process that holds the GPU"};
    case 100:
      return {"the driver is there but this process sees no GPU",
              "check CUDA_VISIBLE_DEVICES, the container's --gpus option, and nvidia-smi"};
    case 304:
      return {"the operating system refused a call of the driver",
              "check the permissions of /dev/nvidia* and the limits of the container"};
    case 805:
    case 806:
    case 807:
    case 808:
    case 809:
      return {"the MPS server of this process did not take it",
              "see the log of nvidia-cuda-mps-control, or unset CUDA_MPS_PIPE_DIRECTORY to do without it"};
    case 802:
      return {"the system is not ready: the NVSwitch fabric has not started",
              "start nvidia-fabricmanager, of the driver's own version"};
    case 803:
      return {"libcuda and the kernel's driver module are of different versions",
              "reboot after a driver update, or give the container the host's libcuda"};
    case 804:
      return {"the forward-compatibility libcuda does not support this GPU",
              "take the cuda-compat directory out of LD_LIBRARY_PATH"};
    case 999:
      return {"the driver failed to start for a reason it does not name",
              "often the kernel module is not loaded or /dev/nvidia-uvm is missing: run nvidia-modprobe -u "
              "-c=0, or reboot; see dmesg"};
    default:
      return {"the CUDA driver did not start", "run nvidia-smi and see dmesg"};
  }
}

Error not_started(const Driver& d, const char* call, CUresult result) {
  const Meaning meaning = meaning_of_start_failure(result);
  const Status status = d.status(call, result, meaning.text);
  return Error({.kind = ErrorKind::runtime,
                .code = status.code(),
                .message = fmt::format("{} (library {})", status.message(), d.library.path()),
                .hint = meaning.hint});
}

int attribute(const Driver& d, CUdevice device, CUdevice_attribute which) {
  int value = 0;
  d.check("cuDeviceGetAttribute", d.p_cuDeviceGetAttribute(&value, which, device),
          fmt::format("attribute {}", static_cast<int>(which)));
  return value;
}

Target read_target(const Driver& d, CUdevice device) {
  const auto get = [&](CUdevice_attribute which) { return attribute(d, device, which); };
  std::array<char, 256> name{};
  d.check("cuDeviceGetName", d.p_cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device));

  Target t;
  t.name = name.data();
  t.arch = get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
           get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  t.sms = get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  t.warp_size = get(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  t.max_threads_per_block = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  t.max_threads_per_sm = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  t.max_blocks_per_sm = get(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  t.registers_per_sm = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  t.shared_per_block = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  t.shared_per_block_optin = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  t.shared_per_sm = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  t.shared_reserved = get(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  const Architecture of_arch = architecture(t.arch);
  t.shared_unit = of_arch.shared_unit;
  t.l2_bytes = get(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);

  t.max_cluster = get(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0 ? 1 : portable_cluster;

  // Rates are kHz; memory moves two words per clock. A copy reaches about 0.88 of the pins' rate (4.3 of 4.9
  // TB/s on an H200). A driver that names no rate leaves the default.
  const double memory_hz = 1e3 * get(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  const double bus_bytes = get(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8.0;
  if (memory_hz > 0 && bus_bytes > 0) t.bandwidth = 0.88 * 2 * memory_hz * bus_bytes;
  const double core_hz = 1e3 * get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  if (core_hz > 0) t.flops_f32 = 2.0 * of_arch.f32_lanes * t.sms * core_hz;
  return t;
}

}  // namespace

SharedLibrary open_driver_library(const CudaLibraries& libraries) {
  // Never libcuda.so without the number: that name is the toolkit's stub.
  return SharedLibrary::open({.what = "the NVIDIA driver",
                              .variable = Variable::libcuda,
                              .sonames = {"libcuda.so.1"},
                              .hint = "install the NVIDIA driver (Debian: nvidia-driver, libcuda1), of CUDA "
                                      "12.0 or newer, or use the emulated device",
                              .needed = {"cuInit", "cuDriverGetVersion"}},
                             libraries.cuda);
}

void check_driver_covers(const Driver& driver, const SharedLibrary& library) {
  const LibraryVersion have = driver.cuda_version(), need = library.version();
  if (!need || have.major >= need.major) return;
  throw Error({.kind = ErrorKind::runtime,
               .code = ErrorCode::incompatible_version,
               .message = fmt::format("the NVIDIA driver is of CUDA {} ({}), older than {} {} ({}): it does "
                                      "not run what a newer major version makes",
                                      to_string(have), driver.library.path(), library.what(), to_string(need),
                                      library.path()),
               .hint = fmt::format("update the driver to one of CUDA {0}.0 or newer, or install the CUDA {1} "
                                   "toolkit in place of CUDA {0}'s",
                                   need.major, have.major)});
}

std::shared_ptr<Driver> Driver::open(const CudaLibraries& libraries) {
  auto driver = std::make_shared<Driver>();
  driver->library = open_driver_library(libraries);
  driver->library.require();
#define FUSE_CUDA_REQUIRE(name) \
  driver->p_##name = driver->library.get<decltype(driver->p_##name)>(FUSE_CUDA_NAME(name));
#define FUSE_CUDA_FIND(name) \
  driver->p_##name = driver->library.find<decltype(driver->p_##name)>(FUSE_CUDA_NAME(name));
  FUSE_CUDA_FUNCTIONS(FUSE_CUDA_REQUIRE)
  FUSE_CUDA_OPTIONAL_FUNCTIONS(FUSE_CUDA_FIND)
  FUSE_CUDA_FIND(cuEventElapsedTime)
  auto& elapsed = driver->p_cuEventElapsedTime;
  if (!elapsed) {
    elapsed = driver->library.get<std::remove_reference_t<decltype(elapsed)>>("cuEventElapsedTime");
  }
#undef FUSE_CUDA_REQUIRE
#undef FUSE_CUDA_FIND
  return driver;
}

std::shared_ptr<const Driver> Driver::load(const CudaLibraries& libraries) {
  auto driver = open(libraries);
  if (const CUresult result = driver->p_cuInit(0); result != CUDA_SUCCESS) {
    throw not_started(*driver, "cuInit", result);
  }
  driver->check("cuDriverGetVersion", driver->p_cuDriverGetVersion(&driver->version));
  if (driver->cuda_version().major >= oldest_driver) return driver;
  throw Error(
      {.kind = ErrorKind::runtime,
       .code = ErrorCode::incompatible_version,
       .message = fmt::format("the NVIDIA driver ({}) is of CUDA {}; fuse takes {}.0 and newer",
                              driver->library.path(), to_string(driver->cuda_version()), oldest_driver),
       .hint = "update the NVIDIA driver, or use the emulated device"});
}

thread_local CUresult Driver::last_failure = CUDA_SUCCESS;

Status Driver::failure(const char* call, CUresult result, std::string_view detail) const noexcept {
  last_failure = result;
  const char* name = nullptr;
  const char* text = nullptr;
  if (p_cuGetErrorName(result, &name) != CUDA_SUCCESS || !name) {
    name =
        result == CUDA_ERROR_STUB_LIBRARY ? "CUDA_ERROR_STUB_LIBRARY" : "CUDA error";  // the stub names none
  }
  if (p_cuGetErrorString(result, &text) != CUDA_SUCCESS || !text) text = "unknown to this driver";
  const ErrorCode code = result == CUDA_ERROR_OUT_OF_MEMORY ? ErrorCode::out_of_memory : ErrorCode::driver;
  return fuse::status(code, "{}: {} ({}): {}{}{}", call, name, static_cast<int>(result), text,
                      detail.empty() ? "" : ": ", detail);
}

namespace {

// A property of the process, as its id is, and cheaper to ask for.
std::atomic<unsigned> forks = 0;

unsigned count_forks() {
  static const int watched =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  if (watched != 0) throw std::bad_alloc();  // its only failure
  return forks.load(std::memory_order_relaxed);
}

}  // namespace

CudaContext::CudaContext(std::shared_ptr<const Driver> driver, int ordinal)
    : driver_(std::move(driver)), ordinal_(ordinal), forks_(count_forks()) {
  const Driver& d = *driver_;
  int count = 0;
  d.check("cuDeviceGetCount", d.p_cuDeviceGetCount(&count));
  if (ordinal < 0 || ordinal >= count) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("there is no CUDA device {}: this process sees {}", ordinal, count),
                 .hint =
                     "devices count from 0; CUDA_VISIBLE_DEVICES hides the others; of a GPU in MIG mode a "
                     "process sees one instance, and none where none was made (nvidia-smi -L lists them)"});
  }
  d.check("cuDeviceGet", d.p_cuDeviceGet(&device_, ordinal));
  target_ = read_target(d, device_);
  if (const CUresult result = d.p_cuDevicePrimaryCtxRetain(&context_, device_); result != CUDA_SUCCESS)
    throw not_started(d, "cuDevicePrimaryCtxRetain", result);
  if (target_.max_cluster == 1) return;
  cluster_status_ =
      run_apart([&](const Driver&) { return largest_cluster(d, target_, target_.max_cluster); });
  if (cluster_status_ || cluster_status_.code() == ErrorCode::unsupported) return;
  d.p_cuDevicePrimaryCtxRelease(device_);  // no destructor will
  cluster_status_.throw_if_failed();
}

namespace {

// What ends a context by the words of cuda.h. By their numbers: the oldest headers lack some of the names.
constexpr std::array last_errors = {
    214,  // an ECC error that cannot be corrected
    220,  // the same of NVLink
    226,  // an exception that the GPU contained
    700,  // an illegal address
    702,  // a kernel that ran into the timeout
    709,  // the context was destroyed
    710,  // an assertion of device code
    714,  // a stack error
    715,  // an illegal instruction
    716,  // a misaligned address
    717,  // an invalid address space
    718,  // an invalid program counter
    719,  // a launch that failed
    721,  // tensor memory that a kernel left allocated
    810,  // the MPS server ended this client
    911,  // an error of a device outside of CUDA
};

}  // namespace

thread_local const CudaContext* CudaContext::entered_ = nullptr;

bool CudaContext::forked() const noexcept { return forks.load(std::memory_order_relaxed) != forks_; }

Status CudaContext::after_fork() const noexcept {
  return {
      ErrorCode::driver,
      "this process was forked from the one that opened the GPU, whose context it does not have: open the "
      "device after the fork"};
}

void CudaContext::note_failure() const noexcept {
  const CUresult by = std::exchange(Driver::last_failure, CUDA_SUCCESS);
  if (std::find(last_errors.begin(), last_errors.end(), static_cast<int>(by)) != last_errors.end())
    dead_.store(by, std::memory_order_relaxed);
}

Status CudaContext::after_death() const noexcept {
  const CUresult by = dead_.load(std::memory_order_relaxed);
  const char* name = nullptr;
  if (driver_->p_cuGetErrorName(by, &name) != CUDA_SUCCESS || !name) name = "CUDA error";
  return fuse::status(ErrorCode::driver,
                      "the GPU's context ended by {} ({}) of earlier work: nothing runs in this process "
                      "any more (FUSE_SYNC=1 names the step)",
                      name, static_cast<int>(by));
}

Status CudaContext::enter() const noexcept {
  if (dead_.load(std::memory_order_relaxed) != CUDA_SUCCESS) return after_death();
  if (forked()) return after_fork();
  const CUresult pushed = driver_->p_cuCtxPushCurrent(context_);
  if (pushed != CUDA_SUCCESS) return driver_->status("cuCtxPushCurrent", pushed);
  entered_ = this;
  return Status();
}

Status CudaContext::leave() const noexcept {
  entered_ = nullptr;
  CUcontext popped = nullptr;
  return driver_->status("cuCtxPopCurrent", driver_->p_cuCtxPopCurrent(&popped));
}

CudaContext::~CudaContext() {
  if (!forked()) driver_->p_cuDevicePrimaryCtxRelease(device_);
}

}  // namespace fuse::runtime
