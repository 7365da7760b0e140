SPDX-License-Identifier: Apache-2.0

The tests without [device] and [emulated] need no compiler: dist/check leaves those out where there is none.

    $ FUSE_CXX=/nonexistent/c++ fuse_tests '~[device]~[emulated]~[nvrtc]~[.]' | grep 'All tests passed'
    All tests passed (* (glob)
