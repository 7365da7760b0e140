// The binary interface between the engine and the kernels it compiles. One text, used twice: as C++ here,
// and as a string at the top of every compiled file, so that the two cannot drift apart.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// fuse_slots: the 32 values of a warp exchange; the first lane to read a reduction caches its result.
// fuse_array: where a shared array lies, and its number for the checker.
// fuse_call:  one thread (or, for a kernel without barriers, blocks first..last) to run, and the hooks.
//             `object` is a parameter's index, or ~number of a shared array. `peer` says where the block of
//             that rank has a shared array of this one. An access has `count` elements of `size` bytes.
//             `outside` is told an index that names none of `count` elements and is clamped. An op has its
//             number in costly_ops.
// clang-format off
#define FUSE_EMULATED_ABI                                                                             \
  struct fuse_slots { unsigned long long value[32]; unsigned long long result; int reduced; };        \
  struct fuse_array { char* address; long long number; };                                             \
  struct fuse_call {                                                                                  \
    void* runner;                                                                                     \
    const unsigned long long* arguments;                                                              \
    unsigned grid[3];                                                                                 \
    unsigned block[3];                                                                                \
    unsigned thread;                                                                                  \
    unsigned long long first;                                                                         \
    unsigned long long last;                                                                          \
    fuse_slots* (*exchange)(void* runner, unsigned long long bits, const char* what, int line);       \
    void (*barrier)(void* runner, int line);                                                          \
    void (*grid_barrier)(void* runner, int* counter, int line);                                       \
    void (*group_barrier)(void* runner, int* counters, unsigned blocks, int line);                    \
    void (*cluster_barrier)(void* runner, int shared_only, int line);                                 \
    void (*cluster_arrive)(void* runner, int line);                                                   \
    void (*cluster_wait)(void* runner, int line);                                                     \
    const char* (*peer)(void* runner, const char* array, long long index, long long rank, int size, int line); \
    fuse_array (*shared)(void* runner, int size, long long count, const char* name, int line);        \
    void (*begin_thread)(void* runner, unsigned long long block, unsigned thread);                    \
    void (*check_load)(void* runner, int object, long long index, int size, int count, int line);     \
    void (*check_store)(void* runner, int object, long long index, int size, int count, int line);    \
    void (*local_fault)(void* runner, const char* name, long long index, long long count, int store, int line); \
    void (*outside)(void* runner, long long index, long long count, int line);                        \
    void (*count_op)(void* runner, int number);                                                       \
  };
// clang-format on

FUSE_EMULATED_ABI

namespace fuse::runtime::emulated {

#define FUSE_EMULATED_STRING(...) #__VA_ARGS__
#define FUSE_EMULATED_EXPAND(...) FUSE_EMULATED_STRING(__VA_ARGS__)
inline constexpr std::string_view abi_text = FUSE_EMULATED_EXPAND(FUSE_EMULATED_ABI);
#undef FUSE_EMULATED_EXPAND
#undef FUSE_EMULATED_STRING
#undef FUSE_EMULATED_ABI

using Call = ::fuse_call;
using Slots = ::fuse_slots;
using Array = ::fuse_array;
using Entry = void (*)(const Call*);

}  // namespace fuse::runtime::emulated
