SPDX-License-Identifier: Apache-2.0

A directory for temporary files that is not there, or vanishes, is named by doctor and by run.

    $ problem() { fusec doctor | sed -n '/temporary.*\[io\]/,/hint:/p' || true; }
    $ run=(fusec run examples/graphs/softmax.fuse --device emulated --dim B=1)
    $ TMPDIR=/nonexistent problem
      the temporary directory [io]: the temporary directory /nonexistent (from TMPDIR) does not exist
        hint: make it, or set TMPDIR to another one
    $ TMPDIR=/nonexistent "${run[@]}"
    error: the temporary directory /nonexistent (from TMPDIR) does not exist
      hint: make it, or set TMPDIR to another one
    [1]
    $ printf '#!/bin/sh\nrm -rf "$TMPDIR"\nexit 1\n' >remover
    $ chmod +x remover
    $ mkdir vanishing
    $ TMPDIR=$PWD/vanishing FUSE_CXX=$PWD/remover "${run[@]}"
    error: $SCRATCH/vanishing/fuse-* is gone: somebody removed it while fuse used it: $SCRATCH/remover failed: (glob)
    it failed and said nothing

      hint: keep what lies in the temporary directory $SCRATCH/vanishing (from TMPDIR), or set TMPDIR to another one
    [1]

One that is noexec, full, or read-only. Each is a tmpfs in a mount namespace of its own; a plain user makes it where the
kernel allows.

    $ mkdir mount
    $ with_mount() {
    >   local -a namespace=(unshare --mount --propagation private)
    >   ((EUID == 0)) || namespace+=(--map-root-user)
    >   "${namespace[@]}" bash -c 'mount -t tmpfs -o "$1" tmpfs "$0" && shift && exec "$@"' "$PWD/mount" "$@"
    > }
    $ with_mount size=1m true || skip 'no tmpfs can be mounted here'
    $ with_mount noexec env TMPDIR="$PWD/mount" FUSE_LIBCUDA=/nonexistent fusec doctor >report
    [1]
    $ grep -A 1 '\[io\]: the temporary directory' report
      the temporary directory [io]: the temporary directory $SCRATCH/mount (from TMPDIR) is mounted noexec: kernels built there cannot be loaded
        hint: remount it with exec, or set TMPDIR to another one
    $ with_mount noexec env TMPDIR="$PWD/mount" "${run[@]}"
    error: the temporary directory $SCRATCH/mount (from TMPDIR) is mounted noexec: kernels built there cannot be loaded
      hint: remount it with exec, or set TMPDIR to another one
    [1]
    $ with_mount size=4k env TMPDIR="$PWD/mount" FUSE_LIBCUDA=/nonexistent fusec doctor >report
    [1]
    $ grep -A 1 '\[io\]: the temporary directory' report
      the temporary directory [io]: the temporary directory $SCRATCH/mount (from TMPDIR) is full: 0 bytes are free: probe of 1048576 bytes could not be written
        hint: free some room there, or set TMPDIR to another one
    $ with_mount size=4k env TMPDIR="$PWD/mount" "${run[@]}"
    error: the temporary directory $SCRATCH/mount (from TMPDIR) is full: 0 bytes are free: source0 of * bytes could not be written (glob)
      hint: free some room there, or set TMPDIR to another one
    [1]
    $ with_mount size=24k env TMPDIR="$PWD/mount" FUSE_LIBCUDA=/nonexistent fusec doctor >report
    [1]
    $ grep -A 1 '\[io\]: the temporary directory' report
      the temporary directory [io]: the temporary directory $SCRATCH/mount (from TMPDIR) is full: 0 bytes are free: probe of 1048576 bytes could not be written
        hint: free some room there, or set TMPDIR to another one
    $ with_mount size=24k env TMPDIR="$PWD/mount" "${run[@]}"
    error: the temporary directory $SCRATCH/mount (from TMPDIR) is full: 0 bytes are free: source0 of * bytes could not be written (glob)
      hint: free some room there, or set TMPDIR to another one
    [1]
    $ with_mount ro env TMPDIR="$PWD/mount" FUSE_LIBCUDA=/nonexistent fusec doctor >report
    [1]
    $ grep -A 1 '\[io\]: the temporary directory' report
      the temporary directory [io]: the temporary directory $SCRATCH/mount (from TMPDIR) cannot be written: Read-only file system
        hint: remount it with rw, or set TMPDIR to another one
    $ with_mount ro env TMPDIR="$PWD/mount" "${run[@]}"
    error: the temporary directory $SCRATCH/mount (from TMPDIR) cannot be written: Read-only file system
      hint: remount it with rw, or set TMPDIR to another one
    [1]

What cannot be kept in HOME is not kept, and a run needs no place there, nor in the source tree.

    $ with_mount ro env -u XDG_CACHE_HOME -u FUSE_CACHE_DIR FUSE_CACHE=1 HOME="$PWD/mount" fusec doctor >report
    $ grep '^  cache' report
      cache $SCRATCH/mount/.cache/fuse-compiler: does not exist; it cannot be made in $SCRATCH/mount, so nothing is kept
    $ frozen='mount --bind "$ROOT" "$ROOT" && mount -o remount,bind,ro "$ROOT" && cd "$ROOT" && ! touch x 2>/dev/null && exec "$@"'
    $ with_mount ro bash -c "$frozen" bash env HOME="$PWD/mount" "${run[@]}" --check
    ...
    output   y f32\[1, 4096] * (glob)
    check y: *: OK (glob)
    $ with_mount ro bash -c "$frozen" bash ./dev build
    dev: cannot write to $ROOT/build/release: read-only, or another user's
    [2]
