SPDX-License-Identifier: Apache-2.0

needs: c_program

A program in C runs a saved plan, and needs no compiler.

    $ fusec save examples/graphs/softmax.fuse -o softmax.plan --cpu
    softmax.plan: * bytes (glob)
      for cpu x86-64-v* (glob)
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
      hint: give a value in the range, or declare a larger one with Graph::dim
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

A plan for the emulated device alone runs there, and one for neither is refused twice.

    $ fusec save examples/graphs/softmax.fuse -o emulated.plan --for h200
    emulated.plan: * bytes (glob)
      for emulated h200
    $ c_program emulated.plan B=2
    y f32[2, 4096] sum 2.0000
    $ fusec save examples/graphs/softmax.fuse -o other.plan --for v100 >/dev/null
    $ c_program other.plan B=2
    other.plan has no plan for cpu x86-64-v* (glob)
    plan 0: *; device is emulated, here cpu; * (glob)
      hint: compile the graph for this device, and save it into the file too
    error: incompatible-version: other.plan has no plan for emulated h200
    plan 0: arch is sm_70, here sm_90; multiprocessors is 80, here 132; * (glob)
      hint: compile the graph for this device, and save it into the file too
    [1]

A plan may be for machines of another level.

    $ fusec save examples/graphs/softmax.fuse -o v2.plan --for x86-64-v2
    v2.plan: * bytes (glob)
      for cpu x86-64-v2
    $ fusec save examples/graphs/softmax.fuse -o none.plan --for x86-64-v7
    error: unknown device profile 'x86-64-v7'
      hint: known profiles: h200, h100, b200, a100, v100, l4, rtx4090, tiny3, tiny2, x86-64-v2, x86-64-v3, x86-64-v4, armv8-a
    [2]
