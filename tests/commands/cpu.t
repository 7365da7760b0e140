SPDX-License-Identifier: Apache-2.0

Without a GPU, run takes the cores of this machine. What only the emulated device has is run there.

    $ export FUSE_LIBCUDA=/nonexistent/libcuda.so.1
    $ fusec run examples/graphs/softmax.fuse --dim B=3 --check
    device   cpu x86-64-v[234] (re)
    why      cpu: no GPU \((the NVIDIA driver was not found; .*|this build of fuse has no CUDA device)\) (re)
    dims     B = 3
    kernels  1 launched, 0 GEMMs
    ...
    check y: *: OK (glob)
    $ fusec run examples/graphs/softmax.fuse --dim B=3 --checked | sed -n 1,2p
    device   emulated h200 (checked)
    why      emulated: --checked is an option of this device
    $ fusec run examples/graphs/softmax.fuse --dim B=3 --profile tiny3 | sed -n 1,2p
    device   emulated tiny3
    why      emulated: --profile tiny3 is an option of this device
    $ fusec run examples/graphs/softmax.fuse --dim B=3 --profile x86-64-v2 --check | sed -n '1,2p;/^check/p'
    device   cpu x86-64-v2
    why      cpu: --profile x86-64-v2 is an option of this device
    check y: *: OK (glob)
    $ fusec run examples/graphs/softmax.fuse --dim B=3 --profile x86-64-v2 --device cpu | sed -n 1,2p
    device   cpu x86-64-v2
    why      cpu: asked for
    $ fusec run examples/graphs/softmax.fuse --dim B=3 --profile x86-64-v2 --checked
    error: the emulated device cannot be a x86-64-v2: it runs kernels of GPUs
      hint: Device::cpu() runs kernels of CPUs
    [2]
    $ fusec run examples/graphs/softmax.fuse --device cpu --checked
    error: --checked is of the emulated device, not of cpu
    [2]

It needs a compiler, and says so by its own name. What was saved for it needs none.

    $ FUSE_CXX=/nonexistent/c++ fusec run examples/graphs/softmax.fuse --dim B=3
    error: the cpu device needs a C++ compiler; compiler: FUSE_CXX=/nonexistent/c++: not found
      hint: install g++ or clang++, or set FUSE_CXX to a compiler
    [1]
    $ fusec save examples/graphs/softmax.fuse -o softmax.plan
    softmax.plan: * bytes (glob)
      for cpu x86-64-v[234] (re)
    $ fusec save examples/graphs/softmax.fuse -o several.plan --for x86-64-v2 --for tiny3
    several.plan: * bytes (glob)
      for cpu x86-64-v2
      for emulated tiny3
    $ fusec save examples/graphs/softmax.fuse -o softmax.plan --profile a100 | tail -n 1
      for emulated a100

bisect finds a value that the cpu device alone makes wrong. Here its compiler is at fault: it takes the least of each row.

    $ cat >peak.fuse <<'END'
    > graph @peak(%x: f32[8, 64] at main.cpp:3) -> (y: f32[8]) {
    >   %1 = exp %x : f32[8, 64] at main.cpp:4
    >   %2 = reduce_max %1 {dims = [1]} : f32[8] at main.cpp:5
    >   %3 = neg %2 : f32[8] at main.cpp:6
    >   return y = %3
    > }
    > END
    $ fusec bisect peak.fuse
    device   cpu x86-64-v[234] (re)
    every output is right: there is nothing to find
    $ cat >wrong <<'END'
    > #!/bin/sh
    > case $* in *-march=*) for file; do case $file in */source*) sed -i 's/= warp_max(/= warp_min(/' "$file" ;; esac; done ;; esac
    > exec c++ "$@"
    > END
    $ chmod +x wrong
    $ FUSE_CXX=$PWD/wrong fusec run peak.fuse --device cpu --check | grep -o 'MISMATCH: 8 of 8'
    MISMATCH: 8 of 8
    [1]
    $ FUSE_CXX=$PWD/wrong fusec bisect peak.fuse --device cpu
    device   cpu x86-64-v[234] (re)
    first wrong value: %2 = reduce_max f32[8] at main.cpp:5
      MISMATCH: 8 of 8 elements of f32\[8] beyond the bound; * (glob)
      of %1 = exp f32[8, 64] at main.cpp:4
    wrong without any pass and with one kernel per op: the op's code for cpu *, its compiler, or the machine; the emulated device is right (glob)
    [1]
    $ FUSE_CXX=$PWD/wrong fusec bisect peak.fuse --device emulated
    device   emulated h200
    every output is right: there is nothing to find
