SPDX-License-Identifier: Apache-2.0

needs: script

On a terminal, progress is shown until results come, and is cleared before them.

    $ printf '#!/bin/sh\nsleep 3\nexec "%s" "$@"\n' "$(command -v c++)" >slow
    $ chmod +x slow
    $ FUSE_CXX=./slow script -qec 'fusec run examples/graphs/softmax.fuse --device emulated --dim B=1' log </dev/null >shown
    $ grep -c 'compiling for emulated h200 ... 2 s' shown
    1
    $ grep -cP 's\r\x1b\[Kdevice   emulated h200\r?$' shown
    1
