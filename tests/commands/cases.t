SPDX-License-Identifier: Apache-2.0

Graphs that showed a hole in the fusion of an earlier version, and what is made of them now.

A cache is updated in place though a GEMM reads the result, and a GEMM reads the first rows of a cache where they are.

    $ fusec explain tests/cases/kv_cache.fuse | tail -n 4
      would change: a row of the rule table for these classes; fuse's own rules have more rows than the paper's

    outputs in the memory of inputs:
    in place %5 in %old
    $ fusec plan tests/cases/kv_cache.fuse | tail -n 1
    kernels: 1  gemms: 1  barriers: 0
    $ fusec plan tests/cases/kv_prefix.fuse | grep -E '^view|^kernels'
    view %2 slice in %c at element 0, strides 262144, 64, 1
    kernels: 0  gemms: 1  barriers: 0

Layers of filters and of reversals do work in proportion to their layers.

    $ fusec plan tests/cases/recompute_fir4.fuse | grep -oE 'ends at .*|^kernels.*'
    ends at %20 pad (repeated)
    ends at %33 pad (repeated)
    ends at %46 pad (repeated)
    ends at %57 add (output)
    kernels: 3  gemms: 0  barriers: 0
    $ fusec plan tests/cases/recompute_blur4.fuse | grep -oE 'ends at .*|^kernels.*'
    ends at %12 pad (repeated)
    ends at %21 pad (repeated)
    ends at %30 pad (repeated)
    ends at %38 mul (output)
    kernels: 3  gemms: 0  barriers: 0
    $ fusec plan tests/cases/recompute_rev10.fuse | grep -oE 'ends at .*|^kernels.*'
    ends at %6 sin (repeated)
    ends at %12 sin (repeated)
    ends at %18 sin (repeated)
    ends at %24 sin (repeated)
    ends at %30 sin (output)
    kernels: 1  gemms: 0  barriers: 0
    $ fusec run tests/cases/recompute_fir4.fuse --device emulated --check | grep -o 'OK'
    OK
    $ fusec run tests/cases/recompute_rev10.fuse --device emulated --check | grep -o 'OK'
    OK
