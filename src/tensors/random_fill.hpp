// Random tensors that depend on nothing but (seed, name, index): the same on every platform, whatever the
// order or number of threads that fill them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "tensors/host_tensor.hpp"

namespace fuse::runtime {

/// Floats: uniform in [low, high), rounded to the dtype; a draw that rounds out of the interval is drawn
/// again
/// (`low` itself, rounded, where the dtype has nothing inside). Integers: uniform over those of the dtype in
/// [low, high). Bools: fair, whatever the bounds. low == high fills with that value.
/// Throws invalid_argument for bounds that are not finite, not ordered, beyond the dtype, or hold no integer.
void random_fill(HostTensor& tensor, std::uint64_t seed, std::string_view name, double low, double high);

/// Floats: normal with mean 0, rounded to the dtype (Box-Muller on std::log and std::cos, so the last bit of
/// a double may differ between math libraries). Throws dtype_mismatch for integers and bools,
/// invalid_argument for a deviation that is negative or not finite.
void random_fill_normal(HostTensor& tensor, std::uint64_t seed, std::string_view name, double stddev);

}  // namespace fuse::runtime
