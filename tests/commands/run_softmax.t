SPDX-License-Identifier: Apache-2.0

The graph runs right and free of faults on the checked device, in small and in large profiles. Each of its barriers is
needed: without it, a fault is found.

    $ run=(fusec run --versions 1 examples/graphs/softmax.fuse --device emulated --profile h200 --checked)
    $ "${run[@]}" --check
    ...
    output   y f32\[37, 4096] * (glob)
    check y: *: OK (glob)
    $ "${run[@]}" --drop-barrier 0
    ...
    error: .*kernel 'softmax[a-z0-9_]*'.* line [0-9]+ \(%[0-9]+ [a-z_]+, [a-z0-9_.]+\).* (re)
    [1]
    $ "${run[@]}" --drop-barrier 1
    ...
    error: .*kernel 'softmax[a-z0-9_]*'.* line [0-9]+ \(%[0-9]+ [a-z_]+, [a-z0-9_.]+\).* (re)
    [1]
    $ "${run[@]}" --drop-barrier 2
    error: fault barrier.2: the kernels of graph 'softmax' have 2 barriers for h200
      hint: 0 to 1
    [2]

    $ run=(fusec run --versions 1 examples/graphs/softmax.fuse --device emulated --profile tiny3 --checked)
    $ "${run[@]}" --check
    ...
    output   y f32\[37, 4096] * (glob)
    check y: *: OK (glob)
    $ "${run[@]}" --drop-barrier 0
    ...
    error: .*kernel 'softmax[a-z0-9_]*'.* line [0-9]+ \(%[0-9]+ [a-z_]+, [a-z0-9_.]+\).* (re)
    [1]
    $ "${run[@]}" --drop-barrier 1
    ...
    error: .*kernel 'softmax[a-z0-9_]*'.* line [0-9]+ \(%[0-9]+ [a-z_]+, [a-z0-9_.]+\).* (re)
    [1]
    $ "${run[@]}" --drop-barrier 2
    error: fault barrier.2: the kernels of graph 'softmax' have 2 barriers for tiny3
      hint: 0 to 1
    [2]
