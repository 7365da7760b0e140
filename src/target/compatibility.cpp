// SPDX-License-Identifier: Apache-2.0
#include "target/compatibility.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fuse::runtime {

std::vector<Fit> fits_of(const Target& target) {
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  return {{"fuse", FUSE_COMPILER_VERSION},
          {"arch", fmt::format("sm_{}", target.arch)},
          {"multiprocessors", number(target.sms)},
          {"threads a warp", number(target.warp_size)},
          {"threads a block", number(target.max_threads_per_block)},
          {"threads a multiprocessor", number(target.max_threads_per_sm)},
          {"blocks a multiprocessor", number(target.max_blocks_per_sm)},
          {"registers a multiprocessor", number(target.registers_per_sm)},
          {"shared bytes a block", number(target.shared_per_block)},
          {"shared bytes a block by opting in", number(target.shared_per_block_optin)},
          {"shared bytes a multiprocessor", number(target.shared_per_sm)},
          {"shared bytes a block that the driver takes", number(target.shared_reserved)},
          {"blocks a cluster", number(target.max_cluster)},
          {"argument bytes", number(static_cast<std::int64_t>(target.argument_bytes))}};
}

std::string differences(const std::vector<Fit>& made_for, const std::vector<Fit>& here) {
  const auto find = [](const std::vector<Fit>& list, const std::string& field) {
    return std::find_if(list.begin(), list.end(), [&](const Fit& fit) { return fit.field == field; });
  };
  std::string text;
  const auto add = [&](const std::string& line) { text += (text.empty() ? "" : "; ") + line; };
  for (const Fit& fit : made_for) {
    const auto own = find(here, fit.field);
    if (own == here.end()) {
      add(fmt::format("{} is {}, here there is none", fit.field, fit.value));
    } else if (own->value != fit.value) {
      add(fmt::format("{} is {}, here {}", fit.field, fit.value, own->value));
    }
  }
  for (const Fit& fit : here) {
    if (find(made_for, fit.field) == made_for.end()) {
      add(fmt::format("{} is not stated, here {}", fit.field, fit.value));
    }
  }
  return text;
}

}  // namespace fuse::runtime
