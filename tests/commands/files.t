SPDX-License-Identifier: Apache-2.0

What run writes, it reads again, and it takes B from the shape of what it reads.

    $ fusec run examples/graphs/softmax.fuse --device emulated --dim B=5 --output-dir results
    ...
    output   y f32\[5, 4096] * (glob)
    $ fusec run examples/graphs/softmax.fuse --device emulated --input x=results/y.npy --check
    ...
    output   y f32\[5, 4096] * (glob)
    check y: *: OK (glob)

A truncated .npy, an input of the wrong shape, and an unknown input are refused.

    $ head -c 2000 results/y.npy >short.npy
    $ fusec run examples/graphs/softmax.fuse --device emulated --input x=short.npy
    error: npy file 'short.npy': the data of f32[5, 4096] should take 81920 bytes and takes 1872
    [2]
    $ fusec run examples/graphs/softmax.fuse --device emulated --dim B=3 --input x=results/y.npy
    error: results/y.npy holds f32[5, 4096]; input 'x' is f32[3, 4096]
    [2]
    $ fusec run examples/graphs/softmax.fuse --device emulated --input z=results/y.npy
    error: graph 'softmax' has no input or parameter 'z'
      hint: there are 'x'
    [2]

A truncated .fuse is refused by every command, and none leaves a file.

    $ head -c 300 examples/graphs/softmax.fuse >short.fuse
    $ fusec print short.fuse
    error: short.fuse:7: column 10: unknown op ex
      hint: did you mean 'exp', 'exp2'?
    [2]
    $ fusec run short.fuse
    error: short.fuse:7: column 10: unknown op ex
      hint: did you mean 'exp', 'exp2'?
    [2]
    $ fusec plan short.fuse
    error: short.fuse:7: column 10: unknown op ex
      hint: did you mean 'exp', 'exp2'?
    [2]
    $ fusec stats short.fuse
    error: short.fuse:7: column 10: unknown op ex
      hint: did you mean 'exp', 'exp2'?
    [2]
    $ fusec emit short.fuse -o nothing
    error: short.fuse:7: column 10: unknown op ex
      hint: did you mean 'exp', 'exp2'?
    [2]
    $ ls -A nothing
    ls: cannot access 'nothing': No such file or directory
    [2]

A missing file is named.

    $ fusec run none.fuse
    error: none.fuse: the file cannot be opened
      hint: check the path and its permissions
    [2]

No output is written over the graph, or over another output.

    $ cp examples/graphs/softmax.fuse own.fuse
    $ fusec plan own.fuse --decisions ./own.fuse
    error: --decisions './own.fuse': it is the graph, which would be lost
      hint: name another file
    [2]
    $ fusec run own.fuse --dim B=2 --trace own.fuse
    error: --trace 'own.fuse': it is the graph, which would be lost
      hint: name another file
    [2]
    $ fusec save own.fuse -o own.fuse
    error: --output 'own.fuse': it is the graph, which would be lost
      hint: name another file
    [2]
    $ fusec tune own.fuse --dim B=2 --virtual-clock -o own.fuse
    error: --output 'own.fuse': it is the graph, which would be lost
      hint: name another file
    [2]
    $ fusec tune own.fuse --dim B=2 --virtual-clock -o both --picture ./both
    error: --picture './both': it is what --output names, which would be lost
      hint: name another file
    [2]
    $ cmp own.fuse examples/graphs/softmax.fuse && ls both
    ls: cannot access 'both': No such file or directory
    [2]
