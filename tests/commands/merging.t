SPDX-License-Identifier: Apache-2.0

BERT-large is planned and never run here. Its GEMMs are merged unless the user asks otherwise.

    $ fusec plan examples/graphs/bert_large.fuse | tail -n 1
    kernels: 15  gemms: 145  setup: 24  barriers: 8
    $ fusec plan examples/graphs/bert_large.fuse --no-gemm-merge | tail -n 1
    kernels: 15  gemms: 193  barriers: 8

One layer of it runs right, with its weights packed and without.

    $ fusec run examples/graphs/bert_layer.fuse --device emulated --dim B=1 --dim S=3 --check
    ...
    output   y bf16\[1, 3, 1024] * (glob)
    check y: *: OK (glob)
    $ fusec run examples/graphs/bert_layer.fuse --device emulated --dim B=1 --dim S=3 --check --no-gemm-merge
    ...
    output   y bf16\[1, 3, 1024] * (glob)
    check y: *: OK (glob)
