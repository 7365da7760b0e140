SPDX-License-Identifier: Apache-2.0

A check that cannot fail is none: a missing barrier shows in the numbers too, and wrong outputs are not written.

    $ fusec run examples/graphs/softmax.fuse --device emulated --drop-barrier 0 --check --output-dir wrong
    ...
    check y: MISMATCH: * elements of f32\[37, 4096] beyond the bound; worst at \[* (glob)
    [1]
    $ ls -A wrong
    ls: cannot access 'wrong': No such file or directory
    [2]

One row, no rows, and the reference device.

    $ fusec run examples/graphs/softmax.fuse --device emulated --dim B=1 --check
    ...
    output   y f32\[1, 4096] * (glob)
    check y: *: OK (glob)
    $ fusec run examples/graphs/softmax.fuse --device emulated --dim B=0 --check
    ...
    output   y f32[0, 4096]  no elements
    check y: no elements: OK
    $ fusec run examples/graphs/layernorm.fuse --device reference --check
    ...
    output   y bf16\[37, 1024] * (glob)
    check y: *: OK (glob)

A donated output is judged by what the last run read.

    $ cat >donated.fuse <<'END'
    > graph @h(%x: f32[4]) -> (z: f32[4]) {
    >   %1 = add %x, %x : f32[4]
    >   return z = %1 into %x
    > }
    > END
    $ fusec run donated.fuse --device emulated --runs 3 --check
    ...
    output   z f32\[4] * (glob)
    check z: *: OK (glob)
