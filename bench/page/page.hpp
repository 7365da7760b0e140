// docs/performance.md and its plots, from whatever results are on file. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace fuse::bench {

/// Reads ROOT/bench/results/*.json and ROOT/bench/page/page.md; writes ROOT/docs/performance.md and
/// ROOT/docs/plots/*.svg. The same files give the same bytes. Returns the exit status.
int write_page(const std::string& root);

}  // namespace fuse::bench
