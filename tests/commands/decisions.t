SPDX-License-Identifier: Apache-2.0

The decisions of a plan, taken back, give the same plan and the same kernels, and are refused for another GPU.

    $ plan_of() { fusec plan --versions 1 --builds 1 "examples/graphs/$1.fuse" "${@:2}"; }
    $ same_plan() {
    >   plan_of "$1" --kernels >plan && plan_of "$1" --decisions "$1.decisions" &&
    >     plan_of "$1" --kernels --use-decisions "$1.decisions" >told &&
    >     grep '^decisions: ' told && sed '/^decisions: [0-9]* of [0-9]* segments run as recorded$/,+1d' told | cmp - plan
    > }
    $ same_plan bert_large
    wrote bert_large.decisions
    decisions: 170 of 170 segments run as recorded
    $ plan_of bert_large --use-decisions bert_large.decisions --profile a100
    error: decisions: the file is for another device: it has {arch = 90, sms = 132, shared_per_sm = 233472, cluster = 16}, and a100 has {arch = 80, sms = 108, shared_per_sm = 167936, cluster = 1}
      hint: fusec plan --decisions writes a file for this one; what was measured on another device is not taken, even where unfit entries are left out
    [2]
    $ same_plan bert_layer
    wrote bert_layer.decisions
    decisions: 7 of 7 segments run as recorded
    $ plan_of bert_layer --use-decisions bert_layer.decisions --profile a100
    error: decisions: the file is for another device: * (glob)
    ...
    [2]
    $ same_plan layer_norm_backward
    wrote layer_norm_backward.decisions
    decisions: 1 of 1 segments run as recorded
    $ plan_of layer_norm_backward --use-decisions layer_norm_backward.decisions --profile a100
    error: decisions: the file is for another device: * (glob)
    ...
    [2]
    $ same_plan layernorm
    wrote layernorm.decisions
    decisions: 1 of 1 segments run as recorded
    $ plan_of layernorm --use-decisions layernorm.decisions --profile a100
    error: decisions: the file is for another device: * (glob)
    ...
    [2]
    $ same_plan softmax
    wrote softmax.decisions
    decisions: 1 of 1 segments run as recorded
    $ plan_of softmax --use-decisions softmax.decisions --profile a100
    error: decisions: the file is for another device: * (glob)
    ...
    [2]
    $ same_plan transformer_block
    wrote transformer_block.decisions
    decisions: 13 of 13 segments run as recorded
    $ plan_of transformer_block --use-decisions transformer_block.decisions --profile a100
    error: decisions: the file is for another device: * (glob)
    ...
    [2]

A kernel of halo tiles stays one with a tile that costs more than slices would. A wrong tile is refused by name.

    $ blur() { fusec plan tests/cases/recompute_blur4.fuse "$@"; }
    $ blur --decisions tiles
    wrote tiles
    $ tile() { sed "s/tile = 8 x 32/$1/" tiles >changed && blur --use-decisions changed | grep -E '^decisions|^kernels'; }
    $ tile 'tile = 1 x 1'
    decisions: 1 of 1 segments run as recorded
    kernels: 1  gemms: 0  barriers: 3
    $ tile 'tile = 64'
    error: decisions: line 17: kernel 84c6d9aa4b9ce849 cannot run so: a tile of 1 dims, and the last phase has 2
      hint: the entry means {tile = 64, phase {nest = r:grid r:warp16 r:lane32}, phase {nest = r:grid r:warp16 r:lane32}, phase {nest = r:grid r:warp16 r:lane32}, phase {nest = r:grid r:warp16 r:lane32}}; fusec nests lists nests of the kernel, docs/decisions.md what may stand beside them
    [1]
    $ tile 'tile = 8 x'
    error: decisions: line 17: an extent of a tile is ''
      hint: an extent of a tile takes a number from 1 to 1048576
    [1]
    $ tile 'slices = 1'
    error: decisions: line 17: kernel 84c6d9aa4b9ce849 cannot run so: 52272 bytes of shared memory, of 49152
      hint: the entry means {slices = 1, phase {nest = r:grid r:warp16 r:lane32}, phase {nest = r:grid r:warp16 r:lane32}, phase {nest = r:grid r:warp16 r:lane32}, phase {nest = r:grid r:warp16 r:lane32}}; fusec nests lists nests of the kernel, docs/decisions.md what may stand beside them
    [1]
    $ sed 's/^tile \(.*\) yes/tile \1 no/' tiles >slices && blur --use-decisions slices --skip-unfit-decisions | grep -c 'tile ='
    0
    [1]

A value that is none names its line, and a file that is not there is named.

    $ sed -E 's/register_cache = [0-9]+/register_cache = 333/' transformer_block.decisions >bad
    $ plan_of transformer_block --use-decisions bad
    error: decisions: line 59: register_cache is '333'
      hint: register_cache takes a number from 0 to 255
    [2]
    $ plan_of transformer_block --use-decisions nothing.decisions
    error: cannot read 'nothing.decisions': No such file or directory
    [2]
