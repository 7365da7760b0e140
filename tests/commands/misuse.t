SPDX-License-Identifier: Apache-2.0

Wrong values of options are refused by every command that takes them.

    $ softmax=examples/graphs/softmax.fuse
    $ fusec run $softmax --profile h20
    error: unknown device profile 'h20'
      hint: known profiles: h200, h100, b200, a100, v100, l4, rtx4090, tiny3, tiny2, x86-64-v2, x86-64-v3, x86-64-v4, armv8-a
    [2]
    $ fusec run $softmax --dim C=3
    error: graph 'softmax' has no dim 'C'
      hint: there are 'B'
    [2]
    $ fusec run $softmax --dim B=-1
    error: dim B = -1 is outside of its range [0, 1048576]
      hint: give a value in the range, or declare a larger one with Graph::dim
    [2]
    $ fusec run $softmax --dim B=many
    error: --dim 'B=many': 'many' is not an integer
      hint: as in --dim B=64
    [2]
    $ fusec plan $softmax --profile h20
    error: unknown device profile 'h20'
      hint: known profiles: h200, h100, b200, a100, v100, l4, rtx4090, tiny3, tiny2, x86-64-v2, x86-64-v3, x86-64-v4, armv8-a
    [2]
    $ fusec plan $softmax --dim C=3
    error: graph 'softmax' has no dim 'C'
      hint: there are 'B'
    [2]
    $ fusec plan $softmax --dim B=-1
    error: dim B = -1 is outside of its range [0, 1048576]
      hint: give a value in the range, or declare a larger one with Graph::dim
    [2]
    $ fusec plan $softmax --dim B=many
    error: --dim 'B=many': 'many' is not an integer
      hint: as in --dim B=64
    [2]
    $ fusec stats $softmax --profile h20
    error: unknown device profile 'h20'
      hint: known profiles: h200, h100, b200, a100, v100, l4, rtx4090, tiny3, tiny2, x86-64-v2, x86-64-v3, x86-64-v4, armv8-a
    [2]
    $ fusec stats $softmax --dim C=3
    error: graph 'softmax' has no dim 'C'
      hint: there are 'B'
    [2]
    $ fusec stats $softmax --dim B=-1
    error: dim B = -1 is outside of its range [0, 1048576]
      hint: give a value in the range, or declare a larger one with Graph::dim
    [2]
    $ fusec stats $softmax --dim B=many
    error: --dim 'B=many': 'many' is not an integer
      hint: as in --dim B=64
    [2]
    $ fusec run $softmax --device tpu
    error: --device: 'tpu' is not 'auto', 'cpu', 'cuda', 'emulated' or 'reference'
      hint: fusec --help
    [2]
    $ fusec emit $softmax -o nothing --arch sm90 --cubin
    error: --arch 'sm90' is no arch
      hint: as in sm_90
    [2]

The values that an option takes are listed.

    $ fusec plan $softmax --layers 2
    error: --layers: '2' is not '1', '1,2' or '1,2,3'
      hint: fusec --help
    [2]
    $ fusec run $softmax --mode fast
    error: --mode: 'fast' is not 'streams', 'graph' or 'automatic'
      hint: fusec --help
    [2]

A seed is a number of 64 bits.

    $ fusec run $softmax --dim B=1 --seed=-1
    error: --seed: '-1' is not an integer from 0 to 18446744073709551615
      hint: fusec --help
    [2]
    $ fusec bisect $softmax --dim B=1 --seed=-1
    error: --seed: '-1' is not an integer from 0 to 18446744073709551615
      hint: fusec --help
    [2]
    $ fusec run $softmax --dim B=1 --seed=1.5
    error: --seed: '1.5' is not an integer from 0 to 18446744073709551615
      hint: fusec --help
    [2]
    $ fusec bisect $softmax --dim B=1 --seed=1.5
    error: --seed: '1.5' is not an integer from 0 to 18446744073709551615
      hint: fusec --help
    [2]
    $ fusec run $softmax --dim B=1 --seed=18446744073709551616
    error: --seed: '18446744073709551616' is not an integer from 0 to 18446744073709551615
      hint: fusec --help
    [2]
    $ fusec bisect $softmax --dim B=1 --seed=18446744073709551616
    error: --seed: '18446744073709551616' is not an integer from 0 to 18446744073709551615
      hint: fusec --help
    [2]
    $ fusec run $softmax --dim B=1 --seed=x
    error: --seed: 'x' is not an integer from 0 to 18446744073709551615
      hint: fusec --help
    [2]
    $ fusec bisect $softmax --dim B=1 --seed=x
    error: --seed: 'x' is not an integer from 0 to 18446744073709551615
      hint: fusec --help
    [2]
