SPDX-License-Identifier: Apache-2.0

plan --picture draws ops that become kernels. The picture of the pages is of today; ./dev report draws it again.

    $ fusec plan examples/graphs/bert_layer.fuse --picture plan_bert_layer.svg
    wrote plan_bert_layer.svg
    $ cmp docs/plots/plan_bert_layer.svg plan_bert_layer.svg
    $ fusec plan examples/graphs/bert_layer.fuse --picture - | cmp - plan_bert_layer.svg
    $ fusec plan examples/graphs/softmax.fuse --picture /proc/no/such/softmax.svg
    error: --picture '/proc/no/such/softmax.svg': the directory /proc/no/such does not exist
      hint: make it
    [2]

Its title counts ops and kernels, and it has both reductions.

    $ fusec plan examples/graphs/softmax.fuse --picture softmax.svg
    wrote softmax.svg
    $ grep -o '>softmax: [0-9]* ops[^<]*<' softmax.svg
    >softmax: 7 ops become 1 kernel<
    $ grep -o '>reduce_[a-z]*' softmax.svg
    >reduce_max
    >reduce_sum
