SPDX-License-Identifier: Apache-2.0

What one process compiled, the next one finds; damage is a miss.

    $ export FUSE_CACHE=1 FUSE_CACHE_DIR=$PWD/cache
    $ fusec cache list
    $SCRATCH/cache: 0 entries, 0 bytes
    $ fusec run examples/graphs/softmax.fuse --device emulated --dim B=2
    ...
    output   y f32\[2, 4096] * (glob)

A second process needs no compiler.

    $ program=$(command -v fusec) compiler=$(command -v c++)
    $ PATH=/nonexistent FUSE_CXX=$compiler "$program" run examples/graphs/softmax.fuse --device emulated --dim B=2
    ...
    output   y f32\[2, 4096] * (glob)
    $ fusec cache list
    $SCRATCH/cache: 1 entry, * bytes (glob)
    entry             bytes  unused for              what
    * softmax for h200 (glob)
    $ fusec cache verify
    $SCRATCH/cache: 1 entry whole, 0 damaged

An entry that was changed is told, and replaced by the next process that needs it.

    $ printf x | dd of="$(echo cache/*)" bs=1 seek=200 conv=notrunc status=none
    $ fusec cache verify
    *.plan is damaged: its checksum is another (glob)
    $SCRATCH/cache: 0 entries whole, 1 damaged
    [1]
    $ fusec run examples/graphs/softmax.fuse --device emulated --dim B=2
    ...
    output   y f32\[2, 4096] * (glob)
    $ fusec cache verify
    $SCRATCH/cache: 1 entry whole, 0 damaged

A cache that is cleared has nothing left.

    $ fusec cache clear
    $SCRATCH/cache: 1 entry removed
    $ ls -A cache

FUSE_CACHE=0 turns the cache off.

    $ FUSE_CACHE=0 fusec cache list
    no cache: FUSE_CACHE is 0

A directory that others may write to is not to be trusted.

    $ chmod 777 cache
    $ fusec run examples/graphs/softmax.fuse --device emulated
    error: the cache directory $SCRATCH/cache (from FUSE_CACHE_DIR) cannot be trusted: others may write to it (mode 777)
      hint: name one that is yours alone: chmod 700, or set FUSE_CACHE=0
    [1]
