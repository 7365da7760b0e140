// Both libraries in one file: fuse's headers first, then libfuse's with its `struct fuse` under another name.
// SPDX-License-Identifier: Apache-2.0
#include <fuse/fuse.hpp>

#define fuse libfuse_struct
#ifdef LIBFUSE_3
#define FUSE_USE_VERSION 31
#include <fuse3/fuse.h>
#else
#define FUSE_USE_VERSION 26
#include <fuse/fuse.h>
#endif
#undef fuse

#include <cstdio>

int main() {
  fuse::Graph g("one_file");
  std::printf("%s beside libfuse %d\n", g.name().c_str(), fuse_version());
}
