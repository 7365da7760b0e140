SPDX-License-Identifier: Apache-2.0

The graph runs right and free of faults on the checked device, in small and in large profiles. Each of its barriers is
needed: without it, a fault is found.

    $ run=(fusec run --versions 1 examples/graphs/transformer_block.fuse --device emulated --profile h200 --checked)
    $ "${run[@]}" --check
    ...
    output   logits f32\[2, 32, 256] * (glob)
    output   loss f32\[] * (glob)
    check logits: *: OK (glob)
    check loss: *: OK (glob)
    $ "${run[@]}" --drop-barrier 0
    ...
    error: .*kernel 'transformer_block[a-z0-9_]*'.* line [0-9]+ \(%[0-9]+ [a-z_]+, [a-z0-9_.]+\).* (re)
    [1]
    $ "${run[@]}" --drop-barrier 1
    ...
    error: .*kernel 'transformer_block[a-z0-9_]*'.* line [0-9]+ \(%[0-9]+ [a-z_]+, [a-z0-9_.]+\).* (re)
    [1]
    $ "${run[@]}" --drop-barrier 2
    ...
    error: .*kernel 'transformer_block[a-z0-9_]*'.* line [0-9]+ \(%[0-9]+ [a-z_]+, [a-z0-9_.]+\).* (re)
    [1]
    $ "${run[@]}" --drop-barrier 3
    error: fault barrier.3: the kernels of graph 'transformer_block' have 3 barriers for h200
      hint: 0 to 2
    [2]

    $ run=(fusec run --versions 1 examples/graphs/transformer_block.fuse --device emulated --profile tiny3 --checked)
    $ "${run[@]}" --check
    ...
    output   logits f32\[2, 32, 256] * (glob)
    output   loss f32\[] * (glob)
    check logits: *: OK (glob)
    check loss: *: OK (glob)
    $ "${run[@]}" --drop-barrier 0
    error: fault barrier.0: the kernels of graph 'transformer_block' have 0 barriers for tiny3
    [2]
