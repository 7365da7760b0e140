SPDX-License-Identifier: Apache-2.0

What a program pays for including fuse, beside the four standard headers that it cannot do without: at most 8,500 lines
after the preprocessor, of which fuse's own are about 2,500. <functional> and <map> alone would be 20,000 more.

    $ lines() { printf '#include <%s>\n' "$@" | c++ -std=c++20 -I "$ROOT/include" -x c++ -E - | wc -l; }
    $ base=$(lines string vector span memory)
    $ for header in fuse/core.hpp fuse/fuse.hpp; do
    >   (($(lines $header) - base <= 8500)) || echo "$header: $(lines $header) lines, $base without it"
    > done

No public header needs anything but the standard library and other public headers.

    $ grep -hoE '^#include [<"][^>"]+' -r "$ROOT/include/fuse" | grep -vE '<([a-z_]+|std(def|int)\.h)$|<fuse/|<dlpack'
    [1]
