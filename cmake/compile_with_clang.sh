#!/bin/sh
# A launcher for compiler and linker: compile_with_clang.sh CLANG GCC ARGUMENT... runs CLANG with what CMake wrote for GCC.
# So some targets of a tree are built by another compiler. SPDX-License-Identifier: Apache-2.0
clang=$1
shift 2

# CMake includes the header that is to be precompiled by its name, for which clang would read what it made before.
before=
output=
header=
for word in "$@"; do
  [ "$before" = -o ] && output=$word
  [ "$word" = c++-header ] && header=1
  before=$word
done
[ "$header" ] && rm -f "$output"

exec "$clang" -Wno-unknown-warning-option "$@"
