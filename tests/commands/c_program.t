SPDX-License-Identifier: Apache-2.0

needs: c_program

A program in C runs a saved plan, and needs no compiler.

    $ fusec save examples/graphs/softmax.fuse -o softmax.plan
    softmax.plan: * bytes (glob)
      for emulated h200
    $ c_program softmax.plan B=5
    y f32[5, 4096] sum 5.0000
    $ c_program softmax.plan B=0
    y f32[0, 4096] sum 0.0000
    $ FUSE_CXX=/nonexistent/c++ c_program softmax.plan B=2
    y f32[2, 4096] sum 2.0000

Each mistake has its code.

    $ c_program softmax.plan
    error: unbound: dim B has no value; %x of type f32[B, 4096] needs it
      hint: prepare({{"B", ...}})
    [1]
    $ c_program softmax.plan B=5 C=6
    error: unknown-name: graph 'softmax' has no dim 'C'
      hint: there are 'B'
    [1]
    $ c_program softmax.plan B=-1
    error: invalid-extent: dim B = -1 is outside of its range [0, 1048576]
    [1]
    $ c_program examples/graphs/softmax.fuse
    error: file-format: examples/graphs/softmax.fuse is no fuseplan of fuse
    [1]
    $ c_program none.plan
    error: io: cannot read 'none.plan': No such file or directory
    [1]
    $ c_program softmax.plan B
    error: 'B' is no DIM=VALUE
    [2]
