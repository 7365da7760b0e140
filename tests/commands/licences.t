SPDX-License-Identifier: Apache-2.0

Every file of ours that can hold a comment names its licence near its top: those that do not are shown. Goldens and graphs
are what programs print.

    $ cd "$ROOT"
    $ { ls -d dev .ci/run ./*.md CMakeLists.txt
    >   find .ci bench cmake docs examples include src tests tools -type f -not -path 'tests/golden/*' \
    >     \( -name '*.[ch]pp' -o -name '*.[ch]' -o -name '*.def' -o -name '*.sh' -o -name '*.py' -o -name '*.md' -o -name '*.t' \
    >     -o -name 'CMakeLists.txt' -o -name '*.cmake' -o -name '*.in' \); } >"$SCRATCH/files"
    $ while read -r file; do
    >   head -n 30 "$file" | grep 'SPDX-License-Identifier: Apache-2.0' >"$SCRATCH/found" || echo "$file"
    > done <"$SCRATCH/files"
    $ grep -c '\.cpp$' "$SCRATCH/files"
    [1-9][0-9][0-9]* (glob)
