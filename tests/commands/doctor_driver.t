SPDX-License-Identifier: Apache-2.0

A driver that is too old, and a GPU that NVRTC does not know, are named by doctor and by run.

    $ ln -s "$BIN/../lib/fake" fake
    $ test -e fake/libfake_cuda.so || skip 'this build has no cuda device'
    $ export FUSE_LIBCUDA=$PWD/fake/libfake_cuda.so FUSE_LIBNVRTC=$PWD/fake/libfake_nvrtc.so
    $ export FUSE_LIBCUBLASLT=$PWD/fake/libfake_cublaslt.so
    $ problem() { fusec doctor | sed -n "/\[$1\]/,/hint:/p" || true; }
    $ run=(fusec run examples/graphs/softmax.fuse --device cuda --dim B=1)
    $ FAKE_CUDA_VERSION=11080 problem incompatible-version
      the NVIDIA driver [incompatible-version]: the NVIDIA driver ($SCRATCH/fake/libfake_cuda.so) is of CUDA 11.8; fuse takes 12.0 and newer
        hint: update the NVIDIA driver, or use the emulated device
    $ FAKE_CUDA_VERSION=11080 "${run[@]}"
    error: the NVIDIA driver ($SCRATCH/fake/libfake_cuda.so) is of CUDA 11.8; fuse takes 12.0 and newer
      hint: update the NVIDIA driver, or use the emulated device
    [1]
    $ FAKE_CUDA_VERSION=12040 problem incompatible-version
      driver against NVRTC [incompatible-version]: the NVIDIA driver is of CUDA 12.4 ($SCRATCH/fake/libfake_cuda.so), older than NVRTC, the CUDA run-time compiler 13.0 ($SCRATCH/fake/libfake_nvrtc.so): it does not run what a newer major version makes
        hint: update the driver to one of CUDA 13.0 or newer, or install the CUDA 12 toolkit in place of CUDA 13's
      driver against cuBLASLt [incompatible-version]: the NVIDIA driver is of CUDA 12.4 ($SCRATCH/fake/libfake_cuda.so), older than cuBLASLt 13.0 ($SCRATCH/fake/libfake_cublaslt.so): it does not run what a newer major version makes
        hint: update the driver to one of CUDA 13.0 or newer, or install the CUDA 12 toolkit in place of CUDA 13's
    $ FAKE_CUDA_VERSION=12040 "${run[@]}"
    error: the NVIDIA driver is of CUDA 12.4 ($SCRATCH/fake/libfake_cuda.so), older than NVRTC, the CUDA run-time compiler 13.0 ($SCRATCH/fake/libfake_nvrtc.so): it does not run what a newer major version makes
      hint: update the driver to one of CUDA 13.0 or newer, or install the CUDA 12 toolkit in place of CUDA 13's
    [1]
    $ FAKE_CUDA_ARCH=70 problem unknown-arch
      NVRTC [unknown-arch]: NVRTC 13.0 does not compile for sm_70
        hint: it knows sm_75, sm_90, sm_120; an older arch schedules and runs on the emulated device only
    $ FAKE_CUDA_ARCH=70 "${run[@]}"
    error: NVRTC 13.0 does not compile for sm_70
      hint: it knows sm_75, sm_90, sm_120; an older arch schedules and runs on the emulated device only
    [2]

A cuBLASLt that is missing, damaged, or of a version that fuse does not take is named by doctor and by a graph with a GEMM.

    $ cat >matmul.fuse <<'END'
    > graph @matmul(%x: f32[2, 2]) -> (y: f32[2, 2]) {
    >   %1 = matmul %x, %x : f32[2, 2]
    >   return y = %1
    > }
    > END
    $ run=(fusec run matmul.fuse --device cuda)
    $ FUSE_LIBCUBLASLT=/nonexistent/libcublasLt.so problem missing-library
      cuBLASLt [missing-library]: cuBLASLt was not found; looked for
            /nonexistent/libcublasLt.so: cannot open shared object file: No such file or directory
        hint: install the CUDA toolkit's cuBLAS package (libcublas-13-0) or set CUDA_HOME to a toolkit of CUDA 12 or 13
    $ FUSE_LIBCUBLASLT=/nonexistent/libcublasLt.so "${run[@]}"
    error: cuBLASLt was not found; looked for
      /nonexistent/libcublasLt.so: cannot open shared object file: No such file or directory
      hint: install the CUDA toolkit's cuBLAS package (libcublas-13-0) or set CUDA_HOME to a toolkit of CUDA 12 or 13
    [1]
    $ head -c 6000 fake/libfake_cublaslt.so >libcublasLt.so
    $ FUSE_LIBCUBLASLT=$PWD/libcublasLt.so problem broken-install
      cuBLASLt [broken-install]: cuBLASLt is damaged or incomplete; looked for
            $SCRATCH/libcublasLt.so: cut short: 6000 bytes, its segments need * (glob)
        hint: install the CUDA toolkit's cuBLAS package (libcublas-13-0) or set CUDA_HOME to a toolkit of CUDA 12 or 13
    $ FUSE_LIBCUBLASLT=$PWD/libcublasLt.so "${run[@]}"
    error: cuBLASLt is damaged or incomplete; looked for
      $SCRATCH/libcublasLt.so: cut short: 6000 bytes, its segments need * (glob)
      hint: install the CUDA toolkit's cuBLAS package (libcublas-13-0) or set CUDA_HOME to a toolkit of CUDA 12 or 13
    [1]
    $ FAKE_CUBLASLT_VERSION=111103 problem incompatible-version
      cuBLASLt [incompatible-version]: cuBLASLt is of a version that fuse does not take; looked for
            $SCRATCH/fake/libfake_cublaslt.so: opened, but its version is 11.11; fuse takes 12 to 13
        hint: install the CUDA toolkit's cuBLAS package (libcublas-13-0) or set CUDA_HOME to a toolkit of CUDA 12 or 13
    $ FAKE_CUBLASLT_VERSION=111103 "${run[@]}"
    error: cuBLASLt is of a version that fuse does not take; looked for
      $SCRATCH/fake/libfake_cublaslt.so: opened, but its version is 11.11; fuse takes 12 to 13
      hint: install the CUDA toolkit's cuBLAS package (libcublas-13-0) or set CUDA_HOME to a toolkit of CUDA 12 or 13
    [1]
    $ export FAKE_CUDA_VERSION=12040 FAKE_NVRTC_VERSION=12.4
    $ problem incompatible-version
      driver against cuBLASLt [incompatible-version]: the NVIDIA driver is of CUDA 12.4 ($SCRATCH/fake/libfake_cuda.so), older than cuBLASLt 13.0 ($SCRATCH/fake/libfake_cublaslt.so): it does not run what a newer major version makes
        hint: update the driver to one of CUDA 13.0 or newer, or install the CUDA 12 toolkit in place of CUDA 13's
    $ "${run[@]}"
    error: the NVIDIA driver is of CUDA 12.4 ($SCRATCH/fake/libfake_cuda.so), older than cuBLASLt 13.0 ($SCRATCH/fake/libfake_cublaslt.so): it does not run what a newer major version makes
      hint: update the driver to one of CUDA 13.0 or newer, or install the CUDA 12 toolkit in place of CUDA 13's
    [1]
