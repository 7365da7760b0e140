// Must not compile: libfuse's header came first.
// SPDX-License-Identifier: Apache-2.0
#ifdef LIBFUSE_3
#define FUSE_USE_VERSION 31
#include <fuse3/fuse.h>
#else
#define FUSE_USE_VERSION 26
#include <fuse/fuse.h>
#endif

#include <fuse/fuse.hpp>
