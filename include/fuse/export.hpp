// What every public header needs: which functions leave the shared library.
// Public names live in the inline namespace fuse::v0, whose name is part of every symbol: it changes with the
// ABI, so that objects built against two versions never link by accident. Internal names stay outside of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @namespace fuse
/// A fusion compiler for tensor graphs.
/// @namespace fuse::v0
/// The public names, which are names of fuse, too: the namespace is inline.
/// @namespace fuse::detail
/// For the library itself.

// libfuse declares `struct fuse`, and no C++ file can have a namespace of that name beside it. FUSE_H_ alone
// might be the include guard of anyone's fuse.h.
#if (defined(_FUSE_H_) || defined(FUSE_H_)) && defined(FUSE_USE_VERSION)
#error "libfuse's <fuse.h> came before fuse-compiler's headers: use another file for it (docs/packaging.md)"
#endif

// FUSE_COMPILER_API marks one class or function, BEGIN and END enclose a list of functions.
#ifdef FUSE_COMPILER_STATIC
#define FUSE_COMPILER_API
#define FUSE_COMPILER_API_BEGIN
#define FUSE_COMPILER_API_END
#else
#define FUSE_COMPILER_API __attribute__((visibility("default")))
#define FUSE_COMPILER_API_BEGIN _Pragma("GCC visibility push(default)")
#define FUSE_COMPILER_API_END _Pragma("GCC visibility pop")
#endif
