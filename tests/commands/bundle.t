SPDX-License-Identifier: Apache-2.0

The logic of dist/check and dist/first, with stubs for the programs.

    $ bash tools/bundle/check_test.sh | tail -n 1
    13 passed, 0 failed
    $ bash tools/bundle/first_test.sh | tail -n 1
    39 passed, 0 failed
