// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/host_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/formatted_status.hpp"

namespace fuse::runtime::cpu {
namespace {

constexpr std::int64_t small_alignment = 256, huge_page = 2 << 20, least_huge = 4 << 20;
// One core moves some 10 GB/s: below this, others come too late to help.
constexpr std::int64_t least_shared = 4 << 20, bytes_of_copy = 1 << 20;

std::int64_t bytes_of_machine() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::int64_t>(pages) * page : std::int64_t{1} << 40;
}

[[noreturn]] void no_memory(std::int64_t bytes) {
  throw Error({.kind = ErrorKind::runtime,
               .code = ErrorCode::out_of_memory,
               .message = fmt::format("the cpu device cannot allocate {} bytes", bytes)});
}

Status negative_bytes(const char* what, std::int64_t bytes) noexcept {
  return status(ErrorCode::invalid_argument, "{} of {} bytes", what, bytes);
}

bool ranges_overlap(const char* a, const char* b, std::int64_t bytes) {
  const auto x = reinterpret_cast<std::uintptr_t>(a), y = reinterpret_cast<std::uintptr_t>(b);
  return (x > y ? x - y : y - x) < static_cast<std::uintptr_t>(bytes);
}

/// Calls part(offset, bytes) for all parts of a range.
template <class Part>
Status in_parts(WorkerPool& pool, std::int64_t bytes, const Part& part) noexcept {
  return pool.run((bytes - 1) / bytes_of_copy + 1, [&](std::int64_t i, int) noexcept {
    const std::int64_t offset = i * bytes_of_copy;
    part(offset, static_cast<std::size_t>(std::min(bytes_of_copy, bytes - offset)));
  });
}

}  // namespace

void* allocate_memory(std::int64_t bytes) {
  if (bytes < 0) {
    throw Error(
        {.code = ErrorCode::invalid_argument, .message = fmt::format("an allocation of {} bytes", bytes)});
  }
  static const std::int64_t most = bytes_of_machine();
  if (bytes > most) no_memory(bytes);
  const bool huge = bytes >= least_huge;
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  void* address = nullptr;
  if (posix_memalign(&address, static_cast<std::size_t>(huge ? huge_page : small_alignment), size) != 0)
    no_memory(bytes);
#ifdef MADV_HUGEPAGE
  if (huge) static_cast<void>(madvise(address, size, MADV_HUGEPAGE));  // a wish: without them it is slower
#endif
  return address;
}

void free_memory(void* address) noexcept { std::free(address); }

Status copy_memory(WorkerPool& pool, void* to, const void* from, std::int64_t bytes) noexcept {
  if (bytes < 0) return negative_bytes("a copy", bytes);
  if (bytes == 0) return {};
  auto* const target = static_cast<char*>(to);
  const auto* const source = static_cast<const char*>(from);
  if (bytes < least_shared || ranges_overlap(target, source, bytes)) {
    std::memmove(to, from, static_cast<std::size_t>(bytes));
    return {};
  }
  return in_parts(pool, bytes, [&](std::int64_t offset, std::size_t size) noexcept {
    std::memcpy(target + offset, source + offset, size);
  });
}

Status set_memory(WorkerPool& pool, void* to, int byte, std::int64_t bytes) noexcept {
  if (bytes < 0) return negative_bytes("a memset", bytes);
  if (bytes == 0) return {};
  auto* const target = static_cast<char*>(to);
  if (bytes < least_shared) {
    std::memset(to, byte, static_cast<std::size_t>(bytes));
    return {};
  }
  return in_parts(pool, bytes, [&](std::int64_t offset, std::size_t size) noexcept {
    std::memset(target + offset, byte, size);
  });
}

}  // namespace fuse::runtime::cpu
