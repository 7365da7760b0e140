SPDX-License-Identifier: Apache-2.0

stats counts what kernels move on the checked device.

    $ fusec stats examples/graphs/softmax.fuse --json --profile tiny3 | grep ratio_
      "ratio_requested": null,
      "ratio_sectors": null,
        "ratio_requested": 1.0,
        "ratio_sectors": 1.0
    $ fusec stats examples/graphs/layernorm.fuse --json --profile tiny3 | grep ratio_
      "ratio_requested": null,
      "ratio_sectors": null,
        "ratio_requested": 2.8461538461538463,
        "ratio_sectors": 4.743589743589744
    $ fusec stats examples/graphs/transformer_block.fuse --json --profile tiny3 | grep ratio_
      "ratio_requested": null,
      "ratio_sectors": null,
        "ratio_requested": 1.7517877046635553,
        "ratio_sectors": 1.597752454435798

Large rows are told apart from small values.

    $ fusec stats examples/graphs/softmax.fuse --dim B=128
    ...
    1 MB and more  2097152  2097152      2097152       2097152  4194304            1.000          1.000
    ...
