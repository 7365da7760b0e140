SPDX-License-Identifier: Apache-2.0

dist/first with the programs themselves, on the fake driver, where nothing takes time.

    $ test -e "$BIN/../lib/fake/libfake_cuda.so" || skip 'this build has no cuda device'
    $ fusec doctor >report
    $ grep '^  NVRTC compiles for ' report >arches || skip 'there is no NVRTC here'
    $ ln -s "$BIN/../lib/fake" fake
    $ mkdir -p dist/bin
    $ cp tools/bundle/first tools/bundle/machine.sh dist
    $ cp -r examples/ dist/examples
    $ echo test >dist/COMMIT
    $ printf '#!/bin/sh\nprogram=$1\nshift\nexec "%s/$program" "$@"\n' "$BIN" >dist/bin/fuse
    $ chmod +x dist/bin/fuse
    $ export FUSE_LIBCUDA=$PWD/fake/libfake_cuda.so FUSE_LIBCUBLASLT=$PWD/fake/libfake_cublaslt.so OUT=$PWD/first
    $ dist/first --only machine,probe >log
    $ grep '^latency' log
    latency                     0    ns  a load that the next one waits for, 256 MiB of lines

Its results fit the schema.

    $ fuse_bench --check first/fuse.json
    first/fuse.json: fits bench/schema.json

A driver that is older than NVRTC is told, and so is none.

    $ FAKE_CUDA_VERSION=12040 dist/first >log
    [1]
    $ grep '^machine ' log
    ...
    machine +[0-9]+ +failed: .* is of CUDA 12.4 .*older than NVRTC.* (re)
    $ if compgen -G '/dev/nvidia[0-9]*' >gpus; then skip 'there is a GPU here'; fi
    $ FUSE_LIBCUDA=/nonexistent/libcuda.so.1 dist/first >log
    [77]
    $ grep '^probe ' log
    ...
    probe +0 +skipped: no GPU: the NVIDIA driver was not found.* (re)
