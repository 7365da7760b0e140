// Prepared::run on the reference device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "runtime/execute/executable_impl.hpp"

namespace fuse::runtime {

/// Evaluates the graph in double precision and rounds each output once. The buffers have been checked. Done
/// when it returns; outputs are written only if all of it succeeded.
Status run_reference(const ir::Graph&, const Prepared::Impl&, std::span<const BufferView> buffers) noexcept;

}  // namespace fuse::runtime
