// The minimiser: makes a failing case small while it fails in the same way.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "fuzz/judge/execute.hpp"

namespace fuse::fuzz {

/// Runs a case in a process of its own: it may crash or hang. Call it from a process without other threads.
Outcome in_child(const Case&, unsigned seconds = 60);

struct Minimised {
  Case smallest;
  Verdict verdict = Verdict::ok;  ///< ok: the case did not fail
  std::string text;
  std::size_t ops = 0, tries = 0;
};

using Judge = std::function<Outcome(const Case&)>;
Minimised minimise(
    const Case&, const Judge& judge = [](const Case& c) { return in_child(c); },
    std::size_t most_tries = 400);

}  // namespace fuse::fuzz
