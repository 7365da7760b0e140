SPDX-License-Identifier: Apache-2.0

doctor tells which devices work, and why others do not. Without a driver the emulated device is there.

    $ FUSE_LIBCUDA=/nonexistent/libcuda.so.1 fusec doctor >report
    $ grep '^  emulated ' report
      emulated   works: emulated h200
    $ grep '^  cuda ' report
      cuda +does not work: (no NVIDIA driver: /nonexistent/libcuda.so.1 was not found|not in this build) (re)
    $ fusec doctor --json | grep -o '"usable": true' | sort -u
    "usable": true

It tells where the cache is, and what GEMMs are made of.

    $ FUSE_CACHE=1 FUSE_CACHE_DIR=$PWD/kept fusec doctor | grep '^  cache'
      cache $SCRATCH/kept: does not exist; made when the first program is kept
    $ FUSE_CACHE=0 fusec doctor | grep '^  cache'
      cache; not used: FUSE_CACHE is 0
    $ FUSE_LIBOPENBLAS=/nonexistent fusec doctor | grep 'GEMMs of the emulated device'
        GEMMs of the emulated device are plain loops, many times slower

Without a compiler and a driver no device works.

    $ FUSE_LIBCUDA=/nonexistent/libcuda.so.1 FUSE_CXX=/nonexistent/c++ fusec doctor >report
    [1]
    $ grep -A 1 missing-compiler report
      the C++ compiler [missing-compiler]: the emulated device needs a C++ compiler; compiler: FUSE_CXX=/nonexistent/c++: not found
        hint: install g++ or clang++, or set FUSE_CXX to a compiler
