SPDX-License-Identifier: Apache-2.0

A command that prints what is expected passes. Lines with (re), (glob) and ... stand for more than themselves.

    $ cat >good.t <<'END'
    > Numbers.
    >
    >     $ seq 9
    >     1
    >     ...
    >     5
    >     [67] (re)
    >     7
    >     * (glob)
    >     ...
    >     $ x=1; (exit 3)
    >     [3]
    >     $ echo "$x"; printf '\nb'
    >     1
    >
    >     b
    > END
    $ command_tests good.t
    ok      good.t (3 passed, * s) (glob)
    3 passed, 0 failed

A line of progress, which a busy machine alone prints, is left out.

    $ printf 'Slow.\n\n    $ echo "compiling ... 20 s"; echo done\n    done\n' >slow.t
    $ command_tests slow.t
    ok      slow.t (1 passed, * s) (glob)
    1 passed, 0 failed

One that prints something else, or ends otherwise, fails, and so does the run.

    $ sed 's/5$/50/; s/\[3\]/[4]/' good.t >bad.t
    $ command_tests bad.t
    FAILED  bad.t:3: $ seq 9
                1
                ...
              - 50
              + 5
                [67] (re)
                7
                * (glob)
                ...
    FAILED  bad.t:11: $ x=1; (exit 3)
              exit status 3, not 4
    1 passed, 2 failed
    [1]

What it prints is written into the file, and all else stays as it was.

    $ command_tests --update bad.t
    renewed bad.t:3: $ seq 9
                1
                ...
              - 50
              + 5
                [67] (re)
                7
                * (glob)
                ...
    renewed bad.t:11: $ x=1; (exit 3)
              exit status 3, not 4
    2 renewed
    3 passed, 0 failed
    $ cmp good.t bad.t

A mistake in the syntax of a command ends it alone; one that ends bash fails what stands after it.

    $ printf '    $ if fi\n    ...\n    [2]\n    $ echo a\n    a\n    $ exit 0\n    $ echo b\n' >ends.t
    $ command_tests ends.t
    FAILED  ends.t:6: $ exit 0
              did not end: bash ended before it
    FAILED  ends.t:7: $ echo b
              did not end: bash ended before it
    2 passed, 2 failed
    [1]

A command that hangs is ended with its file. A file without commands fails, and so does a run of no files.

    $ printf '    $ sleep 100\n' >hangs.t
    $ command_tests --seconds 1 hangs.t
    FAILED  hangs.t:1: $ sleep 100
              did not end: the file has 1 seconds
    0 passed, 1 failed
    [1]
    $ echo 'Nothing.' >empty.t
    $ command_tests empty.t
    FAILED  empty.t: it has no commands
    0 passed, 1 failed
    [1]
    $ command_tests --without empty empty.t
    0 passed, 0 failed
    [1]

What the machine lacks is told, and skipped.

    $ { echo 'needs: no_such_program'; echo; cat good.t; } >needs.t
    $ command_tests needs.t good.t
    skipped needs.t: there is no program 'no_such_program'
    ok      good.t (3 passed, * s) (glob)
    3 passed, 0 failed
    $ printf "    \$ echo a\n    a\n    \$ skip 'it rains'\n    \$ echo b\n" >skips.t
    $ command_tests skips.t
    skipped skips.t from line 3 on: it rains
    ok      skips.t (1 passed, * s) (glob)
    1 passed, 0 failed

A page shows excerpts: its lines may be broken, and ... stands for anything.

    $ cat >page.md <<'END'
    > A page.
    >
    >     $ seq -s ' ' 9    # exits 0
    >     1 2
    >     3 ... 6
    >
    > <!-- not run: it is a wish -->
    >
    >     $ rm -rf /
    >
    > Below that, one that fails.
    >
    >     $ seq 3 && (exit 1)    # exits 2
    >     3 1
    > END
    $ command_tests page.md
    FAILED  page.md:13: $ seq 3 && (exit 1)    # exits 2
              exit status 1, not 2
              - 3 1
              + 1
              + 2
              + 3
    1 passed, 1 failed
    [1]
    $ command_tests --jobs many
    error: --jobs: 'many' is not a number from 1 on
    ...
    [2]
