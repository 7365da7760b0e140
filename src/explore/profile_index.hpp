// ProfileIndex: what is known of decisions that were explored (Astra, 4.6). A decision that was measured
// once is not measured again, unless what it was measured in counts and is another: the context is part of
// the key then.
//
//   kernel 01cc6a045b695722                     -> option 3
//   streams of epoch 2 | merged GEMMs = 1       -> option 0       in the other context: a miss
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fuse::explore {

struct Known {
  int best = 0;
  std::vector<double> seconds{};  ///< the median for each option; 0: no sample said
};

class ProfileIndex {
 public:
  /// Null for a miss.
  const Known* find(const std::string& decision, const std::string& context) const {
    const auto found = known_.find({decision, context});
    return found == known_.end() ? nullptr : &found->second;
  }
  void insert(const std::string& decision, const std::string& context, Known known) {
    known_.insert_or_assign({decision, context}, std::move(known));
  }
  std::size_t size() const { return known_.size(); }

 private:
  std::map<std::pair<std::string, std::string>, Known> known_{};
};

}  // namespace fuse::explore
