SPDX-License-Identifier: Apache-2.0

fuse inside of something else: its own memory and stream, and threads.

    $ embed --requests 7
    ...
    7 requests, [1-9][0-9]* allocations before them, 0 for them; .* (re)
    sums of softmax are off 1 by at most * (glob)
    $ two_streams
    ...
    results equal those of one thread
