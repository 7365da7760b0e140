SPDX-License-Identifier: Apache-2.0

A compiler that is missing or broken is named by doctor and by what compiles, in the same words.

    $ problem() { fusec doctor | sed -n "/emulated \[$1\]/,/hint:/p" || true; }
    $ run=("$BIN/fusec" run examples/graphs/softmax.fuse --device emulated --dim B=1)
    $ (unset FUSE_CXX; PATH=/nonexistent; "$BIN/fusec" doctor) >report
    [1]
    $ grep -A 1 missing-compiler report
      the C++ compiler [missing-compiler]: the emulated device needs a C++ compiler; compiler: FUSE_CXX is not set; c++, g++, clang++ on PATH: not found
        hint: install g++ or clang++, or set FUSE_CXX to a compiler
    $ (unset FUSE_CXX; PATH=/nonexistent; "${run[@]}")
    error: the emulated device needs a C++ compiler; compiler: FUSE_CXX is not set; c++, g++, clang++ on PATH: not found
      hint: install g++ or clang++, or set FUSE_CXX to a compiler
    [1]

A compiler that is half installed, and one whose output does not load.

    $ printf '#!/bin/sh\necho "cannot execute cc1plus" >&2\nexit 1\n' >half
    $ printf '#!/bin/sh\nfor word; do if [ "$before" = -o ]; then echo junk >"$word"; fi; before=$word; done\n' >other
    $ chmod +x half other
    $ FUSE_CXX=$PWD/half problem broken-install
      emulated [broken-install]: the C++ compiler $SCRATCH/half does not work: it cannot build 'extern "C" int one() { return 1; }':
          cannot execute cc1plus

        hint: reinstall it, or set FUSE_CXX to another one
    $ FUSE_CXX=$PWD/half "${run[@]}"
    error: the C++ compiler $SCRATCH/half does not work: it cannot build 'extern "C" int one() { return 1; }':
    cannot execute cc1plus

      hint: reinstall it, or set FUSE_CXX to another one
    [1]

    $ FUSE_CXX=/bin/true "${run[@]}"
    error: the C++ compiler /bin/true does not work: it cannot build 'extern "C" int one() { return 1; }':
    it built nothing and said nothing

      hint: reinstall it, or set FUSE_CXX to another one
    [1]

    $ FUSE_CXX=$PWD/other problem broken-install
      emulated \[broken-install]: cannot load what $SCRATCH/other built: */library: file too short (glob)
        hint: the compiler may build for another machine: set FUSE_CXX to one of this system
    $ FUSE_CXX=$PWD/other "${run[@]}"
    error: cannot load what $SCRATCH/other built: */library: file too short (glob)
      hint: the compiler may build for another machine: set FUSE_CXX to one of this system
    [1]
