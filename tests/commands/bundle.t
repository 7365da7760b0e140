SPDX-License-Identifier: Apache-2.0

The logic of dist/check and dist/first, with stubs for the programs.

    $ bash tools/bundle/check_test.sh | tail -n 1
    13 passed, 0 failed
    $ bash tools/bundle/first_test.sh | tail -n 1
    39 passed, 0 failed

The one program of a bundle has each source once: else its build would end in a linker's error.

    $ cmake -S "$(dirname "$(readlink -f tools)")" --preset bundle -DFUSE_COMPILER_CUDA=AUTO -B configured 2>&1 | tail -n 1 | cut -d: -f1
    -- Build files have been written to
