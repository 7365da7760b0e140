// Memory of the cpu device, and plain operations on it that the pool's threads share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/error.hpp>

#include "runtime/cpu/cores/worker_pool.hpp"

namespace fuse::runtime::cpu {

/// 256-byte aligned. A large block begins at a huge page and may be made of them. Its pages are not touched:
/// each lies near the core that writes it first. Throws out_of_memory, and invalid_argument for a negative
/// size.
void* allocate_memory(std::int64_t bytes);
void free_memory(void* address) noexcept;

/// The ranges may overlap.
Status copy_memory(WorkerPool& pool, void* to, const void* from, std::int64_t bytes) noexcept;
Status set_memory(WorkerPool& pool, void* to, int byte, std::int64_t bytes) noexcept;

}  // namespace fuse::runtime::cpu
