SPDX-License-Identifier: Apache-2.0

What plan --dot draws of softmax: the kernel with its launch, its three passes, and how values go between them.

    $ fusec plan examples/graphs/softmax.fuse --dot softmax.dot
    wrote softmax.dot
    $ grep -o 'subgraph cluster_0 ' softmax.dot
    subgraph cluster_0
    $ grep -oF 'label="softmax_softmax_0\lr:grid c:serial c:warp32 c:lane32 c:vector4, grid B, block 1024\l"' softmax.dot
    label="softmax_softmax_0\lr:grid c:serial c:warp32 c:lane32 c:vector4, grid B, block 1024\l"
    $ grep -c 'label="pass [012]"' softmax.dot
    3

Pass 2 has exp cached for it, and pass 1 has x. A block shares the sum.

    $ grep '^  k0_0_1_n4 -> k0_0_2_n7 ' softmax.dot
      k0_0_1_n4 -> k0_0_2_n7 [color="#15803d", penwidth=1.5, style=dashed]
    $ grep '^  k0_0_0_n0 -> k0_0_1_n3 ' softmax.dot
      k0_0_0_n0 -> k0_0_1_n3 [color="#15803d", penwidth=1.5, style=dashed]
    $ grep '^  k0_0_1_n5 -> k0_0_2_n6 ' softmax.dot
      k0_0_1_n5 -> k0_0_2_n6 [color="#c2410c", penwidth=2]

The same plan gives the same picture. A segment that shares its kernel holds values of its own.

    $ fusec plan examples/graphs/bert_layer.fuse --dot first.dot
    wrote first.dot
    $ fusec plan examples/graphs/bert_layer.fuse --dot second.dot
    wrote second.dot
    $ cmp first.dot second.dot
    $ grep -E '^  k12_0_0_n[0-9]+ -> k12_0_1_n[0-9]+ .*dashed' first.dot
      k12_0_0_n116 -> k12_0_1_n120 [color="#15803d", penwidth=1.5, style=dashed]

The kernels of --baseline=xla have values in memory.

    $ fusec plan examples/graphs/softmax.fuse --baseline=xla --dot xla.dot
    wrote xla.dot
    $ grep '^  k0_0_0_n1 -> k1_0_0_n2 ' xla.dot
      k0_0_0_n1 -> k1_0_0_n2 [color="#1d4ed8", penwidth=3]

On the standard output stands what would stand in a file.

    $ fusec plan examples/graphs/softmax.fuse --dot - | cmp - softmax.dot

A picture that cannot be written, and one beside JSON, are refused.

    $ fusec plan examples/graphs/softmax.fuse --dot /proc/no/such/softmax.dot
    error: --dot '/proc/no/such/softmax.dot': the directory /proc/no/such does not exist
      hint: make it
    [2]
    $ fusec plan examples/graphs/softmax.fuse --dot x/x.dot --json
    error: --json excludes --dot
      hint: fusec --help
    [2]
    $ ls -d x
    ls: cannot access 'x': No such file or directory
    [2]
