// The order of segments where some write over what others read (docs/in-place.md): a reader comes before.
//
// Before:  segments {%5 update of %old} {%6 sum of %5} {%7 sum of %old}
// After:   segments {%7 sum of %old} {%5 update of %old} {%6 sum of %5}
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "schedule/fusion/partition.hpp"
#include "schedule/views/in_place.hpp"

namespace fuse::schedule {

/// Notes in the partition what the chains overwrite, besides what it has noted already, and sorts its
/// segments by what has to run before what; otherwise they keep their order. Where a chain's update would
/// have to run before itself, `take_back` is called for it, which makes its segments anew, and the chain
/// leaves the list: of several, the later output's. The chains that stay are noted as taken. Each time is
/// linear in segments and what they read.
void order_overwrites(const ir::Graph&, Partition&, std::vector<UpdateChain>& chains,
                      const std::function<void(const UpdateChain&)>& take_back);

}  // namespace fuse::schedule
