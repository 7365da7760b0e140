SPDX-License-Identifier: Apache-2.0

An NVRTC that is missing, damaged, or of a version that fuse does not take is named by doctor and by emit.

    $ ln -s "$BIN/../lib/fake" fake
    $ test -e fake/libfake_nvrtc.so || skip 'this build has no cuda device'
    $ problem() { fusec doctor | sed -n "/NVRTC.* \[$1\]/,/hint:/p" || true; }
    $ emit() { fusec emit --versions 1 examples/graphs/softmax.fuse -o nothing --arch sm_90 --cubin; }
    $ FUSE_LIBNVRTC=/nonexistent/libnvrtc.so problem missing-library
      NVRTC [missing-library]: NVRTC, the CUDA run-time compiler was not found; looked for
            /nonexistent/libnvrtc.so: cannot open shared object file: No such file or directory
        hint: install the CUDA toolkit's NVRTC package (cuda-nvrtc-13-0) or set CUDA_HOME to a toolkit of CUDA 12 or 13
    $ FUSE_LIBNVRTC=/nonexistent/libnvrtc.so emit
    error: NVRTC, the CUDA run-time compiler was not found; looked for
      /nonexistent/libnvrtc.so: cannot open shared object file: No such file or directory
      hint: install the CUDA toolkit's NVRTC package (cuda-nvrtc-13-0) or set CUDA_HOME to a toolkit of CUDA 12 or 13
    [1]

One that is cut short is told with its bytes; where another one stands after it, it is passed over and told too.

    $ head -c 6000 fake/libfake_nvrtc.so >libnvrtc.so
    $ FUSE_LIBNVRTC=$PWD/libnvrtc.so problem broken-install
      NVRTC [broken-install]: NVRTC, the CUDA run-time compiler is damaged or incomplete; looked for
            $SCRATCH/libnvrtc.so: cut short: 6000 bytes, its segments need * (glob)
        hint: install the CUDA toolkit's NVRTC package (cuda-nvrtc-13-0) or set CUDA_HOME to a toolkit of CUDA 12 or 13
    $ FUSE_LIBNVRTC=$PWD/libnvrtc.so emit
    error: NVRTC, the CUDA run-time compiler is damaged or incomplete; looked for
      $SCRATCH/libnvrtc.so: cut short: 6000 bytes, its segments need * (glob)
      hint: install the CUDA toolkit's NVRTC package (cuda-nvrtc-13-0) or set CUDA_HOME to a toolkit of CUDA 12 or 13
    [1]
    $ mkdir path
    $ cp libnvrtc.so path/libnvrtc.so.13
    $ LD_LIBRARY_PATH=$PWD/path fusec doctor >report || true
    $ grep 'path/libnvrtc.so.13' report
        tried libnvrtc.so.13: $SCRATCH/path/libnvrtc.so.13: cut short: 6000 bytes, its segments need * (glob)

Versions 12 and 13 are taken.

    $ export FUSE_LIBNVRTC=$PWD/fake/libfake_nvrtc.so
    $ FAKE_NVRTC_VERSION=11.8 problem incompatible-version
      NVRTC [incompatible-version]: NVRTC, the CUDA run-time compiler is of a version that fuse does not take; looked for
            $SCRATCH/fake/libfake_nvrtc.so: opened, but its version is 11.8; fuse takes 12 to 13
        hint: install the CUDA toolkit's NVRTC package (cuda-nvrtc-13-0) or set CUDA_HOME to a toolkit of CUDA 12 or 13
    $ FAKE_NVRTC_VERSION=11.8 emit
    error: NVRTC, the CUDA run-time compiler is of a version that fuse does not take; looked for
      $SCRATCH/fake/libfake_nvrtc.so: opened, but its version is 11.8; fuse takes 12 to 13
      hint: install the CUDA toolkit's NVRTC package (cuda-nvrtc-13-0) or set CUDA_HOME to a toolkit of CUDA 12 or 13
    [1]
    $ FAKE_NVRTC_VERSION=99.0 problem incompatible-version
      NVRTC [incompatible-version]: NVRTC, the CUDA run-time compiler is of a version that fuse does not take; looked for
            $SCRATCH/fake/libfake_nvrtc.so: opened, but its version is 99.0; fuse takes 12 to 13
        hint: install the CUDA toolkit's NVRTC package (cuda-nvrtc-13-0) or set CUDA_HOME to a toolkit of CUDA 12 or 13
    $ FAKE_NVRTC_VERSION=99.0 emit
    error: NVRTC, the CUDA run-time compiler is of a version that fuse does not take; looked for
      $SCRATCH/fake/libfake_nvrtc.so: opened, but its version is 99.0; fuse takes 12 to 13
      hint: install the CUDA toolkit's NVRTC package (cuda-nvrtc-13-0) or set CUDA_HOME to a toolkit of CUDA 12 or 13
    [1]

Built-ins that are missing are told with where they belong.

    $ FAKE_NVRTC_FAIL=7 problem broken-install
      NVRTC \[broken-install]: nvrtcCompileProgram doctor.cu for sm_*: NVRTC_ERROR_OF_THE_FAKE (7) (glob)
          nvrtc: error: failed to open libnvrtc-builtins.so.13.0.* (glob)

        hint: libnvrtc-builtins.so.13.0 belongs beside */libfake_nvrtc.so: reinstall the CUDA toolkit's NVRTC package whole (glob)
    $ FAKE_NVRTC_FAIL=7 emit
    error: nvrtcCompileProgram softmax.cu for sm_90: NVRTC_ERROR_OF_THE_FAKE (7)
    nvrtc: error: failed to open libnvrtc-builtins.so.13.0.Compiling entry function 'softmax_softmax_0' for 'sm_90'

      hint: libnvrtc-builtins.so.13.0 belongs beside */libfake_nvrtc.so: reinstall the CUDA toolkit's NVRTC package whole (glob)
    [1]

A text compiles, and compiles again: the report of ptxas is no matter of a cache.

    $ mkdir nvrtc_cache
    $ export FAKE_NVRTC_CACHE=$PWD/nvrtc_cache
    $ FAKE_NVRTC_VERSION=12.4 emit
    kernel             threads  shared bytes  barriers  registers  spill bytes
    softmax_softmax_0     1024             0         2          0            0
    wrote nothing/softmax.cu and nothing/softmax.cubin (sm_90)
    $ FAKE_NVRTC_VERSION=12.4 emit
    kernel             threads  shared bytes  barriers  registers  spill bytes
    softmax_softmax_0     1024             0         2          0            0
    wrote nothing/softmax.cu and nothing/softmax.cubin (sm_90)
    $ FAKE_NVRTC_VERSION=12.9 emit
    kernel             threads  shared bytes  barriers  registers  spill bytes
    softmax_softmax_0     1024             0         2          0            0
    wrote nothing/softmax.cu and nothing/softmax.cubin (sm_90)
    $ FAKE_NVRTC_VERSION=12.9 emit
    kernel             threads  shared bytes  barriers  registers  spill bytes
    softmax_softmax_0     1024             0         2          0            0
    wrote nothing/softmax.cu and nothing/softmax.cubin (sm_90)
    $ FAKE_NVRTC_VERSION=13.0 emit
    kernel             threads  shared bytes  barriers  registers  spill bytes
    softmax_softmax_0     1024             0         2          0            0
    wrote nothing/softmax.cu and nothing/softmax.cubin (sm_90)
    $ FAKE_NVRTC_VERSION=13.0 emit
    kernel             threads  shared bytes  barriers  registers  spill bytes
    softmax_softmax_0     1024             0         2          0            0
    wrote nothing/softmax.cu and nothing/softmax.cubin (sm_90)
