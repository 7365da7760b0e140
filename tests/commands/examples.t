SPDX-License-Identifier: Apache-2.0

The examples run, and what they compare is right.

    $ softmax
    ...
    1 kernels for 37 rows of 4096; sums are off 1 by at most * (glob)
    $ layernorm
    ...
     1 rows: 1024 of 1024 elements equal the reference, largest relative difference 0
    37 rows: * elements equal the reference, * (glob)
    64 rows: * elements equal the reference, * (glob)
    $ layernorm --source | grep -cE '__global__|^FUSE_CPU_KERNEL'
    1
    $ bert
    ...
    B = 1, S =  7: 13 GEMMs, off by *; one by one 17, off by *  OK (glob)
    B = 3, S = 16: 13 GEMMs, off by *; one by one 17, off by *  OK (glob)
    $ explore --batch 2 --steps 40 --picture steps.svg | grep -c '^loss     '
    1
    $ grep -c '<circle' steps.svg
    40
