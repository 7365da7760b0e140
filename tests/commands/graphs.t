SPDX-License-Identifier: Apache-2.0

The files of examples/graphs are what the examples print.

    $ softmax --print-graph | cmp - examples/graphs/softmax.fuse
    $ layernorm --print-graph | cmp - examples/graphs/layernorm.fuse
    $ transformer_block --blocks 2 --hidden 64 --heads 2 --window 32 --batch 2 --print-graph |
    >   cmp - examples/graphs/transformer_block.fuse
    $ large=(--hidden 1024 --heads 16 --intermediate 4096 --vocabulary 30522)
    $ bert "${large[@]}" --layers 24 --name bert_large --print-graph | cmp - examples/graphs/bert_large.fuse
    $ bert "${large[@]}" --print-layer | cmp - examples/graphs/bert_layer.fuse

What fusec prints of a graph is the text that it was read from.

    $ fusec print examples/graphs/softmax.fuse | cmp - examples/graphs/softmax.fuse
    $ fusec print examples/graphs/layernorm.fuse | cmp - examples/graphs/layernorm.fuse
    $ fusec print examples/graphs/transformer_block.fuse | cmp - examples/graphs/transformer_block.fuse
    $ fusec print examples/graphs/bert_large.fuse | cmp - examples/graphs/bert_large.fuse
    $ fusec print examples/graphs/bert_layer.fuse | cmp - examples/graphs/bert_layer.fuse

The page of the ops is what fusec prints.

    $ fusec ops | cmp - docs/ops.md
