// libfuse's low-level headers declare no `struct fuse`: in any order.
// SPDX-License-Identifier: Apache-2.0
#ifdef LIBFUSE_3
#define FUSE_USE_VERSION 31
#include <fuse3/fuse_lowlevel.h>
#else
#define FUSE_USE_VERSION 26
#include <fuse/fuse_lowlevel.h>
#endif

#include <fuse/fuse.hpp>

static_assert(sizeof(fuse_lowlevel_ops) > 0 && sizeof(fuse::Status) > 0);
