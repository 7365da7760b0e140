// The graphs that plan_scaling plans. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <fuse/graph.hpp>
#include <string_view>
#include <vector>

namespace fuse::bench {

struct Family {
  std::string_view name;
  Graph (*make)(std::size_t ops);  ///< at least so many ops
};

/// Equal layers; layers of which no two are equal; dense skip connections; one value with up to 10,000 users.
const std::vector<Family>& families();

/// A transformer of so many equal layers, each with parameters of its own.
Graph transformer(int layers);

}  // namespace fuse::bench
