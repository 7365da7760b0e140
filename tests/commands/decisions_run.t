SPDX-License-Identifier: Apache-2.0

The decisions of a run have the algorithms of GEMMs and the steps, and a run by them has the same decisions.

    $ run=(fusec run examples/graphs/transformer_block.fuse --device emulated --profile tiny3 --dim B=1)
    $ "${run[@]}" --decisions first
    ...
    output   logits f32\[1, 32, 256] * (glob)
    output   loss f32\[] * (glob)
    wrote    first
    $ grep -E '^gemm [0-9a-f]{16} [{]algorithm = 0[}]$' first | cut -d ' ' -f 3- | sort -u
    {algorithm = 0}
    $ grep '^run ' first
    run [{]mode = streams, order = 0 .*, streams = 0 .*[}] (re)
    $ "${run[@]}" --use-decisions first --decisions again
    ...
    output   logits f32\[1, 32, 256] * (glob)
    output   loss f32\[] * (glob)
    wrote    again
    $ cmp first again

The mode of a run is what its decisions say.

    $ sed 's/mode = streams/mode = graph/' first >graph
    $ "${run[@]}" --use-decisions graph --decisions again >log
    $ grep -o 'mode = graph' again
    mode = graph
    $ fusec run examples/graphs/softmax.fuse --device reference --decisions first
    error: --decisions: the reference device has no steps
    [2]
