SPDX-License-Identifier: Apache-2.0

fusec merge makes one tuning of several, in any order, and compiles to one plan.

    $ fusec tune examples/graphs/softmax.fuse --dim B=37 --virtual-clock --options 2 -o one >/dev/null
    $ fusec tune examples/graphs/softmax.fuse --dim B=37 --virtual-clock --options 4 -o two >/dev/null
    $ fusec merge one two two -o all
    merged 3 files
    $ fusec merge two one two -o same
    merged 3 files
    $ cmp all same
    $ grep -c '^measured {device = emulated h200 by virtual clock (h200)}$' all
    1
    $ fusec plan examples/graphs/softmax.fuse --dim B=37 --use-decisions all >by_all
    $ fusec plan examples/graphs/softmax.fuse --dim B=37 --use-decisions two >by_two
    $ cmp by_all by_two
    $ fusec merge one -o all
    merged 1 file

What cannot be merged is said with the file's name, and nothing is written.

    $ echo nothing >wrong
    $ fusec merge one wrong -o none
    error: wrong: decisions: line 1: 'nothing' does not begin a file of decisions
      hint: it begins with 'fuse decisions 4', as fusec plan --decisions writes it
    [2]
    $ fusec tune examples/graphs/softmax.fuse --dim B=37 --virtual-clock --options 2 --profile a100 -o a100 >/dev/null
    $ fusec merge one a100 -o none 2>&1 | sed 's/ {.*}/ .../'
    error: decisions for different targets: ...
      hint: only files for equal devices can be merged
    [2]
    $ fusec merge one missing -o none 2>&1 | grep -c missing
    1
    [2]
    $ fusec merge -o none
    error: FILES is required
      hint: fusec --help
    [2]
    $ test -e none
    [1]
