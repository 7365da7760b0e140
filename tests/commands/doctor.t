SPDX-License-Identifier: Apache-2.0

doctor tells which devices work, and why others do not. Without a driver the emulated and the cpu device are there.

    $ FUSE_LIBCUDA=/nonexistent/libcuda.so.1 fusec doctor >report
    $ grep '^  emulated ' report
      emulated   works: emulated h200
    $ grep '^  cpu  ' report
      cpu        works: cpu x86-64-v* (glob)
    $ grep '^  cuda ' report
      cuda +does not work: (no NVIDIA driver: /nonexistent/libcuda.so.1 was not found|not in this build) (re)
    $ fusec doctor --json | grep -o '"usable": true' | sort -u
    "usable": true

Of the cpu device it tells the level, the threads, the caches, the compiler and the library of GEMMs.

    $ sed -n '/^the cpu device$/,/^$/p' report >cpu
    $ grep -E 'x86-64-v[234], [0-9]+ threads?$' cpu
      * (glob)
    $ grep -oE 'caches: [1-9][0-9]* KiB' cpu | sed 's/[0-9]\+/N/'
    caches: N KiB
    $ grep -c '^  compiler: .*c++' cpu
    1
    $ grep -ci openblas cpu
    [1-9][0-9]* (re)
    $ fusec doctor --json | grep -E '"(opens|level)"'
    ...

It tells where the cache is, and what GEMMs are made of.

    $ FUSE_CACHE=1 FUSE_CACHE_DIR=$PWD/kept fusec doctor | grep '^  cache'
      cache $SCRATCH/kept: does not exist; made when the first program is kept
    $ FUSE_CACHE=0 fusec doctor | grep '^  cache'
      cache; not used: FUSE_CACHE is 0
    $ FUSE_LIBOPENBLAS=/nonexistent fusec doctor | grep 'GEMMs of the emulated device'
        GEMMs of the emulated device are plain loops, many times slower

Without a compiler and a driver no device works; the cpu device runs saved plans.

    $ FUSE_LIBCUDA=/nonexistent/libcuda.so.1 FUSE_CXX=/nonexistent/c++ fusec doctor >report
    [1]
    $ grep -A 1 missing-compiler report
      the C++ compiler [missing-compiler]: the emulated device needs a C++ compiler; compiler: FUSE_CXX=/nonexistent/c++: not found
        hint: install g++ or clang++, or set FUSE_CXX to a compiler
    $ grep '^  cpu  ' report
      cpu        does not work: the C++ compiler is at fault; saved plans run
