// The binary interface between the cpu device and its kernels. One text, used twice: as C++ here, and as a
// string at the top of every compiled file, so that the two cannot drift apart.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// fuse_cpu_call: blocks first .. last of a kernel, to be run by the calling thread.
//   arguments  buffers as addresses, extents as values, in the order of the kernel's parameters
//   scratch    memory of the calling thread alone: KernelInfo::shared_bytes, aligned to 64 bytes
//   stream     1: the launch moves more than half of its share of the last-level cache, 2: more than twice.
//              Results may go past the caches then; the caller fences afterwards
//   next       the block that this thread probably runs after these: what it reads may be prefetched
// clang-format off
#define FUSE_CPU_ABI                     \
  struct fuse_cpu_call {                 \
    const unsigned long long* arguments; \
    long long first;                     \
    long long last;                      \
    char* scratch;                       \
    int stream;                          \
    long long next;                      \
  };
// clang-format on

FUSE_CPU_ABI

namespace fuse::runtime::cpu {

#define FUSE_CPU_STRING(...) #__VA_ARGS__
#define FUSE_CPU_EXPAND(...) FUSE_CPU_STRING(__VA_ARGS__)
inline constexpr std::string_view abi_text = FUSE_CPU_EXPAND(FUSE_CPU_ABI);
#undef FUSE_CPU_EXPAND
#undef FUSE_CPU_STRING
#undef FUSE_CPU_ABI

using Call = ::fuse_cpu_call;
using Entry = void (*)(const Call*);

}  // namespace fuse::runtime::cpu
