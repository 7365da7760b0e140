// What the tests of facts share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/fuse.hpp>
#include <string>

#include "analysis/facts.hpp"
#include "analysis/guards.hpp"
#include "base/access.hpp"
#include "ir/text/print.hpp"
#include "support/catch.hpp"

namespace fuse::test {

/// The whole text of the Error that `action` throws.
template <class F>
std::string facts_error_of(F&& action) {
  try {
    action();
  } catch (const Error& error) {
    return std::string(to_string(error.code())) + ": " + error.what();
  }
  return "no error";
}

inline analysis::Facts facts_of(const Graph& graph) { return analysis::facts_of(ir_of(graph)); }

/// What ops of a graph behind canonical_dims need and its assumptions do not prove: nothing, if passes lose
/// no facts.
inline std::size_t unproven_needs(const ir::Graph& graph) {
  std::size_t count = 0;
  for (const ir::Guard& guard : analysis::guards_of(graph)) count += !guard.needed_by.empty();
  return count;
}

}  // namespace fuse::test
