SPDX-License-Identifier: Apache-2.0

tests/oracle has an entry for every op: what it lacks is shown.

    $ fusec ops | sed -n 's/^| `\([a-z0-9_]*\)`.*/\1/p' | grep -vE '^(input|parameter)$' >ops
    $ grep -c . ops
    75
    $ sed -n 's/^    "\([a-z0-9_]*\)": .*/\1/p' tests/oracle/torch_ops.py >entries
    $ grep -vFx -f entries ops
    [1]

fuse_fuzz writes what a program of its own answers.

    $ fuse_fuzz --seed 7 --answers 3 --count 1 | grep '^done'
    done ok
