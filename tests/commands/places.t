SPDX-License-Identifier: Apache-2.0

Where results are to go is tried before the work: these runs would need a compiler, and do not come to miss it.

    $ export FUSE_CXX=/nonexistent/c++
    $ softmax=examples/graphs/softmax.fuse
    $ run=(fusec run $softmax --device emulated --dim B=1)
    $ "${run[@]}" --output-dir /proc/no/such
    error: --output-dir '/proc/no/such': it cannot be made: No such file or directory
    [2]
    $ fusec emit $softmax -o /proc/no/such
    error: --output '/proc/no/such': it cannot be made: No such file or directory
    [2]
    $ "${run[@]}" --output-dir $softmax
    error: --output-dir 'examples/graphs/softmax.fuse': it cannot be made: Not a directory
    [2]
    $ fusec emit $softmax -o $softmax
    error: --output 'examples/graphs/softmax.fuse': it cannot be made: Not a directory
    [2]
    $ "${run[@]}" --output-dir $softmax/below
    error: --output-dir 'examples/graphs/softmax.fuse/below': it cannot be made: Not a directory
    [2]
    $ fusec emit $softmax -o $softmax/below
    error: --output 'examples/graphs/softmax.fuse/below': it cannot be made: Not a directory
    [2]
    $ "${run[@]}" --output-dir -
    error: --output-dir '-': what is written there is no text
      hint: write ./- for a name of one -
    [2]
    $ fusec emit $softmax -o -
    error: --output '-': what is written there is no text
      hint: write ./- for a name of one -
    [2]

A directory that can be made is none of it. Then the compiler is missed, and neither the directory nor the one above it is made.

    $ "${run[@]}" --output-dir made/here
    error: the emulated device needs a C++ compiler; compiler: FUSE_CXX=/nonexistent/c++: not found
      hint: install g++ or clang++, or set FUSE_CXX to a compiler
    [1]
    $ ls -d made
    ls: cannot access 'made': No such file or directory
    [2]

A trace, a plan and a picture are files: their directory has to be there.

    $ "${run[@]}" --trace nope/t.json
    error: --trace 'nope/t.json': the directory $SCRATCH/nope does not exist
      hint: make it
    [2]
    $ fusec save $softmax -o nope/t.json
    error: --output 'nope/t.json': the directory $SCRATCH/nope does not exist
      hint: make it
    [2]
    $ fusec plan $softmax --dot nope/t.json
    error: --dot 'nope/t.json': the directory $SCRATCH/nope does not exist
      hint: make it
    [2]
    $ "${run[@]}" --trace .
    error: --trace '.': it is there and is not a regular file
    [2]
    $ fusec save $softmax -o .
    error: --output '.': it is there and is not a regular file
    [2]
    $ fusec plan $softmax --dot .
    error: --dot '.': it is there and is not a regular file
    [2]
    $ "${run[@]}" --trace /proc/t.json
    error: --trace '/proc/t.json': No such file or directory
    [2]
    $ fusec save $softmax -o /proc/t.json
    error: --output '/proc/t.json': No such file or directory
    [2]
    $ fusec plan $softmax --dot /proc/t.json
    error: --dot '/proc/t.json': No such file or directory
    [2]
    $ "${run[@]}" --trace -
    error: --trace '-': what is written there is no text
      hint: write ./- for a name of one -
    [2]
    $ fusec save $softmax -o -
    error: --output '-': what is written there is no text
      hint: write ./- for a name of one -
    [2]

The directory of a file is not made, and no file has the name -.

    $ ls -d nope ./-
    ls: cannot access 'nope': No such file or directory
    ls: cannot access './-': No such file or directory
    [2]
