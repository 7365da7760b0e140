// SPDX-License-Identifier: Apache-2.0
#include "compile/toolchains/cuda/nvrtc.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <nvrtc.h>

#include <algorithm>
#include <charconv>
#include <fuse/error.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "codegen_cuda/text/print_cuda.hpp"
#include "compile/toolchains/kept_text.hpp"
#include "os/environment.hpp"
#include "os/parallel.hpp"
#include "os/shared_library.hpp"

namespace fuse::runtime {
namespace {

constexpr std::string_view split_compile = "--split-compile=";
constexpr std::pair<int, int> first_version_that_caches{12, 9};
// A program costs about 35 ms by itself and 15 ms for each kernel (docs/compile-once.md has the figures).
constexpr std::size_t kernels_a_program = 8;

struct Nvrtc {
  SharedLibrary library;
  decltype(&nvrtcGetNumSupportedArchs) num_archs = nullptr;
  decltype(&nvrtcGetSupportedArchs) archs = nullptr;
  decltype(&nvrtcCreateProgram) create = nullptr;
  decltype(&nvrtcDestroyProgram) destroy = nullptr;
  decltype(&nvrtcCompileProgram) compile = nullptr;
  decltype(&nvrtcGetProgramLogSize) log_size = nullptr;
  decltype(&nvrtcGetProgramLog) log = nullptr;
  decltype(&nvrtcGetCUBINSize) cubin_size = nullptr;
  decltype(&nvrtcGetCUBIN) cubin = nullptr;
  decltype(&nvrtcGetErrorString) error_string = nullptr;
  SharedLibrary builtins{};
};

LibraryVersion library_version(void* handle) {
  int major = 0, minor = 0;
  const auto get = reinterpret_cast<decltype(&nvrtcVersion)>(::dlsym(handle, "nvrtcVersion"));
  if (get(&major, &minor) != NVRTC_SUCCESS) return {};
  return {major, minor};
}

// While it compiles NVRTC opens its built-ins by their bare name. A toolkit outside the loader's search path
// has them beside the library: opened first, they are found among what is loaded.
SharedLibrary open_builtins(const Nvrtc& n) {
  const auto slash = n.library.path().rfind('/');
  const auto [major, minor] = n.library.version();
  if (slash == std::string::npos || !n.library.version()) return {};
  return SharedLibrary::open(
      {.what = "NVRTC's built-ins"},
      fmt::format("{}/libnvrtc-builtins.so.{}.{}", n.library.path().substr(0, slash), major, minor));
}

Nvrtc open_nvrtc() {
  Nvrtc n;
  n.library = SharedLibrary::open(
      {.what = "NVRTC, the CUDA run-time compiler",
       .variable = Variable::libnvrtc,
       .sonames = {"libnvrtc.so.13", "libnvrtc.so.12"},
       .toolkit = true,
       .hint = "install the CUDA toolkit's NVRTC package (cuda-nvrtc-13-0) or set "
               "CUDA_HOME to a toolkit of CUDA 12 or 13",
       .needed = {"nvrtcVersion", "nvrtcCompileProgram", "nvrtcGetCUBIN", "nvrtcGetSupportedArchs"},
       .version = library_version,
       .oldest = 12,
       .newest = 13});
  n.builtins = open_builtins(n);
  n.num_archs = n.library.find<decltype(n.num_archs)>("nvrtcGetNumSupportedArchs");
  n.archs = n.library.find<decltype(n.archs)>("nvrtcGetSupportedArchs");
  n.create = n.library.find<decltype(n.create)>("nvrtcCreateProgram");
  n.destroy = n.library.find<decltype(n.destroy)>("nvrtcDestroyProgram");
  n.compile = n.library.find<decltype(n.compile)>("nvrtcCompileProgram");
  n.log_size = n.library.find<decltype(n.log_size)>("nvrtcGetProgramLogSize");
  n.log = n.library.find<decltype(n.log)>("nvrtcGetProgramLog");
  n.cubin_size = n.library.find<decltype(n.cubin_size)>("nvrtcGetCUBINSize");
  n.cubin = n.library.find<decltype(n.cubin)>("nvrtcGetCUBIN");
  n.error_string = n.library.find<decltype(n.error_string)>("nvrtcGetErrorString");
  return n;
}

// Opened once per process, and once more where FUSE_LIBNVRTC names another: NVRTC is 100 MB and has no
// per-caller state.
const Nvrtc& nvrtc() {
  static std::mutex mutex;
  static std::map<std::string, Nvrtc> tables;
  const std::string named = value_of(Variable::libnvrtc);
  const std::lock_guard lock(mutex);
  const auto found = tables.find(named);
  return found != tables.end() ? found->second : tables.emplace(named, open_nvrtc()).first->second;
}

[[noreturn]] void fail(const char* call, nvrtcResult result, const std::string& detail) {
  const bool incomplete =
      result == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;  // a part of the toolkit is missing
  throw Error({.kind = incomplete ? ErrorKind::runtime : ErrorKind::internal,
               .code = incomplete ? ErrorCode::broken_install : ErrorCode::internal,
               .message = fmt::format("{}: {} ({}){}{}", call, nvrtc().error_string(result),
                                      static_cast<int>(result), detail.empty() ? "" : "\n", detail),
               .hint = incomplete
                           ? fmt::format("libnvrtc-builtins.so.{} belongs beside {}: reinstall the CUDA "
                                         "toolkit's NVRTC package whole",
                                         to_string(nvrtc().library.version()), nvrtc().library.file())
                           : ""});
}

void check(const char* call, nvrtcResult result) {
  if (result != NVRTC_SUCCESS) fail(call, result, {});
}

/// The number right after `before` in `line`, or -1.
std::int64_t number_after(std::string_view line, std::string_view before) {
  const auto at = line.find(before);
  if (at == std::string_view::npos) return -1;
  std::int64_t value = -1;
  const char* first = line.data() + at + before.size();
  std::from_chars(first, line.data() + line.size(), value);
  return value;
}

/// The number right before `after` ("1024 bytes smem"), or -1.
std::int64_t number_before(std::string_view line, std::string_view after) {
  const auto at = line.find(after);
  if (at == std::string_view::npos) return -1;
  std::size_t first = at;
  while (first > 0 && line[first - 1] >= '0' && line[first - 1] <= '9') --first;
  std::int64_t value = -1;
  std::from_chars(line.data() + first, line.data() + at, value);
  return value;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

/// "   12 |   y[i] = zz;" for the lines around the first "file(12): error" of the log; empty without one.
std::string numbered_lines(const std::string& text, const std::string& log) {
  std::int64_t wanted = 0;
  for (std::string_view line : lines_of(log)) {
    const auto at = line.find("): error");
    const auto open = line.rfind('(', at);
    if (at == std::string_view::npos || open == std::string_view::npos) continue;
    std::from_chars(line.data() + open + 1, line.data() + at, wanted);
    break;
  }
  if (wanted <= 0) return {};
  const std::vector<std::string_view> lines = lines_of(text);
  std::string out;
  constexpr std::int64_t around = 4;
  const std::int64_t last = std::min<std::int64_t>(static_cast<std::int64_t>(lines.size()), wanted + around);
  for (std::int64_t i = std::max<std::int64_t>(1, wanted - around); i <= last; ++i) {
    out += fmt::format("{}{:5} | {}\n", i == wanted ? '>' : ' ', i, lines[static_cast<std::size_t>(i - 1)]);
  }
  return out;
}

/// One NVRTC program: destroyed on every way out.
class NvrtcProgram {
 public:
  NvrtcProgram(const std::string& text, const std::string& file) {
    check("nvrtcCreateProgram", nvrtc().create(&program_, text.c_str(), file.c_str(), 0, nullptr, nullptr));
  }
  ~NvrtcProgram() { nvrtc().destroy(&program_); }
  NvrtcProgram(const NvrtcProgram&) = delete;
  NvrtcProgram& operator=(const NvrtcProgram&) = delete;

  nvrtcResult compile(const std::vector<std::string>& options) const {
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    return nvrtc().compile(program_, static_cast<int>(pointers.size()), pointers.data());
  }
  std::string log() const {
    std::size_t size = 0;
    check("nvrtcGetProgramLogSize", nvrtc().log_size(program_, &size));
    std::string text(size, '\0');
    if (size) check("nvrtcGetProgramLog", nvrtc().log(program_, text.data()));
    while (!text.empty() && text.back() == '\0') text.pop_back();
    return text;
  }
  std::vector<char> cubin() const {
    std::size_t size = 0;
    check("nvrtcGetCUBINSize", nvrtc().cubin_size(program_, &size));
    std::vector<char> image(size);
    check("nvrtcGetCUBIN", nvrtc().cubin(program_, image.data()));
    return image;
  }

 private:
  nvrtcProgram program_ = nullptr;
};

std::string file_of(const codegen::Source& source) {
  return (source.name.empty() ? "fuse" : source.name) + ".cu";
}

void check_arch(int arch) {
  const std::vector<int> archs = nvrtc_archs();
  if (std::find(archs.begin(), archs.end(), arch) != archs.end()) return;
  std::string known;
  for (int a : archs) known += fmt::format("{}sm_{}", known.empty() ? "" : ", ", a);
  const auto [major, minor] = nvrtc_version();
  throw Error({.code = ErrorCode::unknown_arch,
               .message = fmt::format("NVRTC {}.{} does not compile for sm_{}", major, minor, arch),
               .hint = fmt::format("it knows {}; {}", known,
                                   !archs.empty() && arch > archs.back()
                                       ? "a newer CUDA toolkit may know a newer GPU"
                                       : "an older arch schedules and runs on the emulated device only")});
}

constexpr int first_arch_of_clusters = 90;

void check_clusters(const codegen::Source& source, int arch) {
  if (arch >= first_arch_of_clusters) return;
  for (const codegen::KernelInfo& kernel : source.kernels) {
    if (kernel.cluster <= 1) continue;
    throw Error(
        {.code = ErrorCode::unsupported,
         .message = fmt::format("kernel '{}' needs clusters of {} blocks, which sm_{} does not have",
                                kernel.name, kernel.cluster, arch),
         .hint = fmt::format("clusters need sm_{} or later; a plan for an older GPU has none, as with "
                             "fusec's --profile a100",
                             first_arch_of_clusters)});
  }
}

}  // namespace

std::vector<CompiledKernel> parse_ptxas_log(const std::string& log) {
  std::vector<CompiledKernel> kernels;
  bool called = false;
  for (std::string_view line : lines_of(log)) {
    constexpr std::string_view entry = "Compiling entry function '";
    if (const auto at = line.find(entry); at != std::string_view::npos) {
      const std::string_view rest = line.substr(at + entry.size());
      kernels.push_back({.name = std::string(rest.substr(0, rest.find('\'')))});
      called = false;
    }
    if (kernels.empty()) continue;
    CompiledKernel& kernel = kernels.back();
    // The functions that a kernel calls are reported after it: their spills are its own, the rest is not.
    constexpr std::string_view properties = "Function properties for ";
    if (const auto at = line.find(properties); at != std::string_view::npos) {
      called = line.substr(at + properties.size()) != kernel.name;
    }
    if (called) {
      kernel.spill_store_bytes += std::max<std::int64_t>(0, number_before(line, " bytes spill stores"));
      kernel.spill_load_bytes += std::max<std::int64_t>(0, number_before(line, " bytes spill loads"));
      continue;
    }
    const auto take = [](auto& field, std::int64_t value) {
      if (value >= 0) field = static_cast<std::remove_reference_t<decltype(field)>>(value);
    };
    take(kernel.registers, number_after(line, "Used "));
    take(kernel.spill_store_bytes, number_before(line, " bytes spill stores"));
    take(kernel.spill_load_bytes, number_before(line, " bytes spill loads"));
    take(kernel.shared_bytes, number_before(line, " bytes smem"));
    take(kernel.stack_bytes, number_before(line, " bytes stack frame"));
  }
  return kernels;
}

std::vector<std::string> nvrtc_options(int arch, std::size_t kernels, int threads) {
  std::vector<std::string> options = {"--fmad=false",
                                      "--ftz=false",
                                      "--prec-div=true",
                                      "--prec-sqrt=true",
                                      fmt::format("--gpu-architecture=sm_{}", arch),
                                      "--ptxas-options=-v",
                                      "--std=c++17"};
  if (keeps_text()) options.emplace_back("--generate-line-info");
  // Where a driver is installed, NVRTC keeps what it compiled; a cubin that it takes from there has no report
  // of ptxas. What fuse keeps has one.
  if (nvrtc_version() >= first_version_that_caches) options.emplace_back("--no-cache");
  // Last: an old NVRTC lacks it, see below.
  if (kernels > 1 && threads != 1) options.push_back(fmt::format("{}{}", split_compile, threads));
  return options;
}

namespace {

/// A text to compile and the kernels that ptxas has to report.
struct Job {
  std::string text;
  std::vector<codegen::KernelInfo> kernels;
  std::vector<std::string> options{};
};

Cubin compile_once(Job& job, const codegen::Source& source, int arch) {
  const std::string file = file_of(source);
  auto program = std::make_unique<NvrtcProgram>(job.text, file);
  nvrtcResult result = program->compile(job.options);
  if (result == NVRTC_ERROR_INVALID_OPTION && job.options.back().starts_with(split_compile)) {
    job.options.pop_back();
    program = std::make_unique<NvrtcProgram>(job.text, file);
    result = program->compile(job.options);
  }
  Cubin cubin;
  cubin.log = program->log();
  if (result != NVRTC_SUCCESS) {
    fail(fmt::format("nvrtcCompileProgram {} for sm_{}", file, arch).c_str(), result,
         cubin.log + numbered_lines(source.text(), cubin.log));
  }
  cubin.image = program->cubin();

  std::unordered_map<std::string, CompiledKernel> reported;
  for (CompiledKernel& kernel : parse_ptxas_log(cubin.log)) reported.emplace(kernel.name, std::move(kernel));
  for (const codegen::KernelInfo& kernel : job.kernels) {
    const auto at = reported.find(kernel.name);
    if (at == reported.end()) {
      throw Error({.kind = ErrorKind::internal,
                   .code = ErrorCode::internal,
                   .message = fmt::format("ptxas reported no kernel {} of {} (is it extern \"C\"?):\n{}",
                                          kernel.name, file, cubin.log)});
    }
    cubin.kernels.push_back(at->second);
    cubin.kernels.back().min_blocks_per_sm = kernel.min_blocks_per_sm;
  }
  return cubin;
}

/// Lets the kernels that spilled have more registers. Returns what it did, one line each; empty: there is no
/// more.
std::string relax(Job& job, const Cubin& cubin) {
  std::string told;
  for (std::size_t i = 0; i < job.kernels.size(); ++i) {
    codegen::KernelInfo& kernel = job.kernels[i];
    const CompiledKernel& compiled = cubin.kernels[i];
    if (!compiled.spills() || kernel.min_blocks_per_sm <= kernel.blocks_per_sm) continue;
    const int blocks = std::max(kernel.blocks_per_sm, kernel.min_blocks_per_sm / 2);
    told += fmt::format(
        "fuse: {} stores {} and loads {} spilled bytes at {} blocks per multiprocessor: for {}\n",
        kernel.name, compiled.spill_store_bytes, compiled.spill_load_bytes, kernel.min_blocks_per_sm, blocks);
    codegen::aim_at(job.text, kernel, blocks);
  }
  return told;
}

Cubin compile(Job job, const codegen::Source& source, int arch) {
  Cubin cubin = compile_once(job, source, arch);
  std::string told;
  for (std::string more = relax(job, cubin); !more.empty(); more = relax(job, cubin)) {
    told += more;
    cubin = compile_once(job, source, arch);
  }
  cubin.log = told + cubin.log;
  return cubin;
}

}  // namespace

Cubin compile_to_cubin(const codegen::Source& source, int arch, int threads) {
  nvrtc().library.require();
  check_arch(arch);
  check_clusters(source, arch);
  return compile({.text = source.text(),
                  .kernels = source.kernels,
                  .options = nvrtc_options(arch, source.kernels.size(), threads)},
                 source, arch);
}

std::vector<Cubin> compile_to_cubins(const codegen::Source& source, int arch, int threads) {
  const std::size_t most = std::max<std::size_t>(1, source.kernels.size() / kernels_a_program);
  const std::vector<codegen::SourceChunk> chunks =
      codegen::chunks(source, std::min(most, thread_count(threads)));
  std::vector<Cubin> cubins(chunks.size());
  if (chunks.size() == 1) {
    cubins[0] = compile_to_cubin(source, arch, threads);
    return cubins;
  }
  nvrtc().library.require();
  check_arch(arch);
  check_clusters(source, arch);
  parallel_for(threads, chunks.size(), [&](std::size_t i) {
    const codegen::SourceChunk& chunk = chunks[i];
    const std::string_view body = std::string_view(source.body).substr(chunk.begin, chunk.end - chunk.begin);
    // Lines count as in the whole text, which is what users see.
    std::string text =
        codegen::prelude_of(body) + fmt::format("#line {} \"{}\"\n", chunk.line, file_of(source));
    text += body;
    cubins[i] = compile({.text = std::move(text),
                         .kernels = {source.kernels.begin() + static_cast<std::ptrdiff_t>(chunk.first),
                                     source.kernels.begin() + static_cast<std::ptrdiff_t>(chunk.last)},
                         .options = nvrtc_options(arch, 1)},
                        source, arch);
  });
  return cubins;
}

const SharedLibrary& nvrtc_library() { return nvrtc().library; }

bool nvrtc_available() noexcept {
  try {
    return static_cast<bool>(nvrtc().library);
  } catch (...) {
    return false;
  }
}

std::pair<int, int> nvrtc_version() noexcept {
  if (!nvrtc_available()) return {0, 0};
  const LibraryVersion version = nvrtc().library.version();
  return {version.major, version.minor};
}

std::vector<int> nvrtc_archs() noexcept {
  try {
    int count = 0;
    if (!nvrtc_available() || nvrtc().num_archs(&count) != NVRTC_SUCCESS || count <= 0) return {};
    std::vector<int> archs(static_cast<std::size_t>(count));
    if (nvrtc().archs(archs.data()) != NVRTC_SUCCESS) return {};
    return archs;
  } catch (...) {
    return {};
  }
}

std::string nvrtc_report() {
  std::string text = nvrtc().library.report();
  if (nvrtc_available()) {
    const auto [major, minor] = nvrtc_version();
    text += fmt::format("  version {}.{}\n", major, minor);
  }
  return text;
}

}  // namespace fuse::runtime
