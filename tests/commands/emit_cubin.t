SPDX-License-Identifier: Apache-2.0

NVRTC makes cubins. Their kernels spill no register (the last column).

    $ fusec doctor | grep '^  NVRTC compiles for ' >arches || skip 'there is no NVRTC here'
    $ spills() { awk '!/^(build|kernel|wrote) / { ++rows; if ($NF != 0) print } END { exit !rows }' log; }
    $ emit() {
    >   fusec emit "examples/graphs/$1.fuse" -o out --arch sm_90 --cubin >log && spills && tail -n 1 log &&
    >     head -c 4 "out/$1.cubin" | tail -c 3
    > }
    $ emit softmax
    wrote out/softmax.cu and out/softmax.cubin (sm_90)
    ELF
    $ emit layernorm
    wrote out/layernorm.cu and out/layernorm.cubin (sm_90)
    ELF
    $ emit transformer_block
    wrote out/transformer_block.cu and out/transformer_block.cubin (sm_90)
    ELF

An arch that NVRTC does not know is refused, and so are clusters on a GPU that has none; what the hint says works.

    $ fusec emit examples/graphs/softmax.fuse -o nothing --arch sm_1 --cubin
    error: NVRTC * does not compile for sm_1 (glob)
      hint: it knows * (glob)
    [2]
    $ ls -A nothing
    ls: cannot access 'nothing': No such file or directory
    [2]
    $ sed 's/4096/131072/g; s/hint 37/hint 512/' examples/graphs/softmax.fuse >long_rows.fuse
    $ fusec emit --versions 1 long_rows.fuse -o nothing --profile h200 --arch sm_80 --cubin
    error: kernel 'softmax_softmax_0' needs clusters of 8 blocks, which sm_80 does not have
      hint: clusters need sm_90 or later; a plan for an older GPU has none, as with fusec's --profile a100
    [2]
    $ fusec emit long_rows.fuse -o out --profile a100 --arch sm_80 --cubin
    ...
    wrote out/softmax.cu and out/softmax.cubin (sm_80)
