// FUSE_KEEP: emitted texts as files that debuggers and profilers show (docs/debugging.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/source.hpp"

namespace fuse::runtime {

/// Whether FUSE_KEEP names a directory. Part of what decides a binary: its lines are those of a file there.
bool keeps_text();

/// The source, which its `#line`s call by the file DIR/NAME-HASH.cu that its text was written to; as it was
/// where nothing is kept. Equal texts are one file. Throws io.
codegen::Source with_kept_text(const codegen::Source&);

}  // namespace fuse::runtime
