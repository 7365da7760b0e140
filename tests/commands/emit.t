SPDX-License-Identifier: Apache-2.0

emit writes the CUDA text, and needs no NVRTC for it.

    $ fusec emit examples/graphs/softmax.fuse -o out
    kernel             threads  shared bytes  barriers
    softmax_softmax_0      192            48         2
    softmax_softmax_1      128            32         2
    softmax_softmax_2     1024           256         2
    wrote out/softmax.cu
    $ grep -c __global__ out/softmax.cu
    1

A cubin needs it, and without it no file is left.

    $ FUSE_LIBNVRTC=/nonexistent/libnvrtc.so fusec emit examples/graphs/softmax.fuse -o nothing --cubin
    error: .*NVRTC.* (re)
    ...
    [1]
    $ ls -A nothing
    ls: cannot access 'nothing': No such file or directory
    [2]
