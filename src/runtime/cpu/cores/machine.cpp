// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/cores/machine.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <system_error>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace fuse::runtime::cpu {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string architecture_name() {
  utsname machine{};
  return ::uname(&machine) == 0 ? machine.machine : "unknown";
}

/// The caches of the first core, as Linux lists them.
void read_caches(Machine& machine) {
  std::int64_t last = 0;
  for (int i = 0; i < 8; ++i) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + '/';
    const std::string level = first_line(folder + "level"), type = first_line(folder + "type");
    const std::int64_t bytes = cache_bytes(first_line(folder + "size"));
    if (bytes == 0 || type == "Instruction") continue;
    if (level == "1") machine.l1d_bytes = bytes;
    if (level == "2") machine.l2_bytes = bytes;
    last = std::max(last, bytes);
  }
#ifdef _SC_LEVEL1_DCACHE_SIZE
  // Containers may hide that folder.
  if (last == 0) {
    const long first = sysconf(_SC_LEVEL1_DCACHE_SIZE), second = sysconf(_SC_LEVEL2_CACHE_SIZE),
               third = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (first > 0) machine.l1d_bytes = first;
    if (second > 0) machine.l2_bytes = second;
    last = std::max({first, second, third, 0L});
  }
#endif
  if (last > 0) machine.last_level_bytes = last;
}

#if defined(__x86_64__)
/// clang 16 has no names for these.
bool has_f16c_movbe_and_lzcnt() {
  constexpr unsigned extended = 0x80000001, f16c = 1u << 29, movbe = 1u << 22, lzcnt = 1u << 5;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & f16c) == 0 || (c & movbe) == 0) return false;
  return __get_cpuid(extended, &a, &b, &c, &d) && (c & lzcnt) != 0;
}
#endif

std::string feature_level() {
#if defined(__x86_64__)
  // The levels by the features that tell them apart: not every compiler knows the names of the levels.
  __builtin_cpu_init();
  const bool v2 = __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") &&
                  __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                  has_f16c_movbe_and_lzcnt();
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? "x86-64-v4" : v3 ? "x86-64-v3" : v2 ? "x86-64-v2" : "x86-64";
#elif defined(__aarch64__)
  return "armv8-a";
#else
  return architecture_name();
#endif
}

std::string model_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t at = line.find_first_not_of(" \t", line.find(':') + 1);
    if (line.find(':') != std::string::npos && at != std::string::npos) return line.substr(at);
  }
  return architecture_name();  // ARM's Linux names no models
}

Machine read_machine() {
  Machine machine;
  const std::size_t allowed = allowed_cores().size();
  machine.cores = std::max(1, static_cast<int>(allowed ? allowed : std::thread::hardware_concurrency()));
  read_caches(machine);
  machine.level = feature_level();
  machine.model = model_name();
  return machine;
}

}  // namespace

std::int64_t cache_bytes(const std::string& text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || value < 0 || value >= std::int64_t{1} << 32) return 0;
  if (rest == end) return value;
  if (rest + 1 != end) return 0;
  if (*rest == 'K') return value << 10;
  if (*rest == 'M') return value << 20;
  if (*rest == 'G') return value << 30;
  return 0;
}

std::vector<int> allowed_cores() {
  std::vector<int> cores;
#ifdef __linux__
  // The kernel refuses a set that is smaller than its own.
  for (int most = 1024; most <= 1 << 16; most *= 2) {
    std::vector<cpu_set_t> set(static_cast<std::size_t>(most) / (8 * sizeof(cpu_set_t)));
    const std::size_t bytes = set.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, set.data()) != 0) continue;
    for (int core = 0; core < most; ++core) {
      if (CPU_ISSET_S(static_cast<std::size_t>(core), bytes, set.data())) cores.push_back(core);
    }
    break;
  }
#endif
  return cores;
}

const Machine& this_machine() {
  static const Machine machine = read_machine();
  return machine;
}

}  // namespace fuse::runtime::cpu
