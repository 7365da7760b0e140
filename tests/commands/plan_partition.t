SPDX-License-Identifier: Apache-2.0

How graphs are cut: the cases of the papers, by the flags that select them.

Layer 1 makes the groups of the paper.

    $ fusec plan tests/papers/apollo_fig3.fuse --layers 1
    ...
    group 0 reduction {%3 %4 %5 %6} form y(128, 1024)
    group 1 element_wise {%7}
    group 2 broadcast {%8 %9}
    ...
    kernels: 3  gemms: 0  barriers: 1
    $ fusec plan tests/papers/apollo_fig3.fuse --layers 1 --json | grep '"class"'
          "class": "reduction",
          "class": "element_wise",
          "class": "broadcast",

Layer 2 stitches them.

    $ fusec plan tests/papers/apollo_fig3.fuse --layers 1,2
    ...
    group 0 reduction {%3 %4 %5 %6 %7 %8 %9} form y(128, 1024)
    ...
    kernels: 1  gemms: 0  barriers: 1

The baselines make as many kernels as the compilers that they stand for.

    $ fusec plan tests/papers/astitch_fig7.fuse --baseline=xla | tail -n 1
    kernels: 4  gemms: 0  barriers: 1
    $ fusec plan tests/papers/astitch_fig7.fuse --baseline=tvm | tail -n 1
    kernels: 3  gemms: 0  barriers: 1
    $ fusec plan tests/papers/astitch_fig7.fuse --baseline=one-op | tail -n 1
    kernels: 10  gemms: 0  barriers: 1

A plan tells where stages end, and what scheme carries each value.

    $ fusec plan examples/graphs/softmax.fuse
    ...
    segment 0 kernel {%1 %2 %3 %4 %5 %6 %7} reads {%x} stages %1 reduce_max | %5 reduce_sum | %7 div ends at %7 div (output)
    ...
    $ fusec plan tests/papers/astitch_fig7.fuse --schemes=astitch --profile v100
    ...
      schemes regional %6, global %8 %11, independent %13
    ...
    $ fusec plan tests/papers/astitch_fig7.fuse --schemes=astitch --profile v100 --json | grep '"scheme"'
              "scheme": "local",
              "scheme": "local",
              "scheme": "regional",
              "scheme": "local",
              "scheme": "global",
              "scheme": "local",
              "scheme": "local",
              "scheme": "global",
              "scheme": "local",
              "scheme": "independent",
    $ fusec plan tests/papers/astitch_fig7.fuse --stitch no-merge
    ...
    segment 0 kernel * stages %6 reduce_sum || %8 pow || %11 reduce_sum || %13 mul ends at %13 mul (output) (glob)
    ...

Why a value is stored is explained.

    $ fusec explain tests/papers/apollo_fig5_forms.fuse --partition=apollo --edge %1 %4
    %1 reduce_sum : f32[128]  segment 0 -> segment 1
      canonical-form, rule 8, producer = y, consumer = x
      stores and loads 512 bytes (512 here)
      would change: reductions in the same form, or fuse's own rules, where a scheme carries the value
    $ fusec explain examples/graphs/softmax.fuse --stitch mapping
    graph softmax for h200
    groups: 1  segments: 3  edges between segments: 3
    group 0 is split at %1 %5 %7 (scheme-unavailable)

    %1 reduce_max : f32[B]  segment 0 -> segment 1
      of softmax at 01_softmax.cpp:23
      scheme-unavailable, ends at = reduction
      stores and loads 4 * B bytes (148 here)
      would change: a stitching scheme that carries the value inside one kernel

    %1 reduce_max : f32[B]  segment 0 -> segment 2
      of softmax at 01_softmax.cpp:23
      scheme-unavailable, ends at = reduction
      stores and loads 4 * B bytes (148 here)
      would change: a stitching scheme that carries the value inside one kernel

    %5 reduce_sum : f32[B]  segment 1 -> segment 2
      of softmax at 01_softmax.cpp:23
      scheme-unavailable, ends at = reduction
      stores and loads 4 * B bytes (148 here)
      would change: a stitching scheme that carries the value inside one kernel
    $ fusec explain examples/graphs/softmax.fuse --edge %77 1
    error: --edge %77: no segment computes a value of that name
      hint: a segment's number, or a value's name as fusec plan prints it: %5
    [2]
    $ fusec explain examples/graphs/softmax.fuse --edge 0 3 --stitch mapping
    error: --edge 3: there are 3 segments
    [2]
    $ fusec plan examples/graphs/softmax.fuse --layers 2
    error: --layers: '2' is not '1', '1,2' or '1,2,3'
      hint: fusec --help
    [2]
