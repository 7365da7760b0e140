SPDX-License-Identifier: Apache-2.0

A command that is missing, misspelt, or given too much is told.

    $ fusec
    error: A subcommand is required
      hint: fusec --help
    [2]
    $ fusec rum examples/graphs/softmax.fuse
    error: fusec has no command 'rum'
      hint: did you mean 'run'?
    [2]
    $ fusec plan examples/graphs/softmax.fuse --proflie h200
    error: fusec plan has no option '--proflie'
      hint: did you mean '--profile'?
    [2]
    $ fusec plan examples/graphs/softmax.fuse more.fuse
    error: fusec plan takes no argument 'more.fuse' there
      hint: fusec plan --help
    [2]

Every command refuses an option that it does not know, and has a help.

    $ fusec print examples/graphs/softmax.fuse --bogus
    error: fusec print has no option '--bogus'
      hint: fusec print --help
    [2]
    $ fusec print --help | grep '^Usage'
    Usage: fusec print [OPTIONS] FILE
    $ fusec run examples/graphs/softmax.fuse --bogus
    error: fusec run has no option '--bogus'
      hint: fusec run --help
    [2]
    $ fusec run --help | grep '^Usage'
    Usage: fusec run [OPTIONS] FILE
    $ fusec plan examples/graphs/softmax.fuse --bogus
    error: fusec plan has no option '--bogus'
      hint: fusec plan --help
    [2]
    $ fusec plan --help | grep '^Usage'
    Usage: fusec plan [OPTIONS] FILE
    $ fusec emit examples/graphs/softmax.fuse --bogus -o nothing
    error: fusec emit has no option '--bogus'
      hint: fusec emit --help
    [2]
    $ fusec emit --help | grep '^Usage'
    Usage: fusec emit [OPTIONS] FILE
    $ fusec stats examples/graphs/softmax.fuse --bogus
    error: fusec stats has no option '--bogus'
      hint: fusec stats --help
    [2]
    $ fusec stats --help | grep '^Usage'
    Usage: fusec stats [OPTIONS] FILE
    $ fusec doctor --help | grep '^Usage'
    Usage: fusec doctor [OPTIONS]
    $ softmax --bogus
    error: unknown option --bogus; see --help
    [2]
    $ bert --hidden 30 --heads 4
    error: --hidden must be a multiple of --heads
    [2]
    $ transformer_block --hidden 30 --heads 4
    error: --hidden must be a multiple of --heads
    [2]
