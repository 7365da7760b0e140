// The reference device's memory and queues. It launches nothing: it evaluates graphs (runtime/reference/).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/device/backend.hpp"

namespace fuse::runtime {

/// Host memory; queues work at once. load, launch and prepare_gemm are internal errors.
std::unique_ptr<Backend> make_reference_backend();

}  // namespace fuse::runtime
