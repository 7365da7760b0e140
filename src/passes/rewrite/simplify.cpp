// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/simplify.hpp"

#include "passes/rewrite/rewrite.hpp"

namespace fuse::ir {

Graph simplify(const Graph& graph, const SimplifyOptions& options) {
  std::vector<const algebra::Rule*> rules;
  for (const algebra::Rule& rule : algebra::rules()) {
    if (rule.keeps != algebra::Keeps::algebra || options.relaxed_rounding) rules.push_back(&rule);
  }
  return algebra::rewrite(graph, rules);
}

}  // namespace fuse::ir
