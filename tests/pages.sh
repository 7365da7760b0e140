#!/usr/bin/env bash
# Builds every block of C++ on the pages. Usage: tests/pages.sh COMPILER [FLAG...] -- [LIBRARY...]: what compiles a
# program with fuse, and what links it.
# A block with a main is a program: it is run, and prints the block ```text that follows it, where "..." stands for
# anything. A comment before any other block says what is around it:
#   <!-- cpp -->                        declarations
#   <!-- cpp: (fuse::Graph& g) -->      statements, in a function of these parameters
#   <!-- cpp: foreign -->               code of another library, which is left alone
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
compile=()
while (($#)) && [[ $1 != -- ]]; do compile+=("$1"); shift; done
shift
link=("$@")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# One file for each block: NNN.cpp, with the lines of the page; NNN.kind; NNN.expected for a program.
awk -v out="$scratch" '
  function close_block() {
    open = 0
    kind = has_main ? "program" : around == "" ? "unmarked" : around == "foreign" ? "foreign" : \
           around == "declarations" ? "declarations" : "statements"
    print kind > (base ".kind")
    print FILENAME ":" first > (base ".place")
    head = "#include <fuse/fuse.hpp>\n#include <cstdint>\n#include <cstdio>\n#include <iostream>\n#include <span>\n#include <string>\n#include <vector>\n"
    line = "#line " first " \"" FILENAME "\"\n"
    if (kind == "program") printf "%s%s", line, text > (base ".cpp")
    if (kind == "declarations") printf "%s%s%s", head, line, text > (base ".cpp")
    if (kind == "statements") printf "%s[[maybe_unused]] static void block%s {\n%s%s}\n", head, around, line, text > (base ".cpp")
    last_program = kind == "program" ? base : ""
    around = ""
  }
  FNR == 1 { around = ""; last_program = "" }
  open && /^```$/ { close_block(); next }
  open { text = text $0 "\n"; if (/int main\(/) has_main = 1; next }
  expected && /^```$/ { expected = 0; next }
  expected { print > (last_program ".expected"); next }
  /^```cpp/ { open = 1; text = ""; has_main = 0; first = FNR + 1; base = sprintf("%s/%03d", out, count++); next }
  /^```text$/ && last_program != "" { expected = 1; printf "" > (last_program ".expected"); next }
  /^<!-- cpp -->$/ { around = "declarations"; next }
  /^<!-- cpp: / { around = $0; sub(/^<!-- cpp: /, "", around); sub(/ -->$/, "", around); next }
  /^$/ { next }
  { if (!open) { around = ""; if (last_program != "" && /^#/) last_program = "" } }
' README.md docs/*.md

# Whether a text is what is expected; "..." in a line of it stands for anything.
matches() {  # EXPECTED GOT
  local pattern line got file
  for file in "$1" "$2"; do
    awk '{ sub(/ +$/, ""); print }' "$file" >"$file.lines"
    mv "$file.lines" "$file"
  done
  while IFS= read -r line <&3 && IFS= read -r got <&4; do
    pattern=$(sed -e 's/[][\\*?]/\\&/g' -e 's/\.\.\./*/g' <<<"$line")
    # shellcheck disable=SC2053
    [[ $got == $pattern ]] || return 1
  done 3<"$1" 4<"$2"
  [[ $(wc -l <"$1") == $(wc -l <"$2") ]]
}

failed=0
passed=0
bad() { printf 'FAILED  %s: %s\n' "$place" "$1"; sed 's/^/    /' "${2:-/dev/null}"; failed=$((failed + 1)); }
for file in "$scratch"/*.kind; do
  base=${file%.kind}
  place=$(<"$base.place")
  case $(<"$file") in
    foreign) continue ;;
    unmarked) bad 'a comment <!-- cpp ... --> has to say what is around the block'; continue ;;
    program)
      if ! "${compile[@]}" "$base.cpp" "${link[@]}" -o "$base.exe" >"$base.log" 2>&1; then
        bad 'it does not build' "$base.log"; continue
      fi
      if ! (cd "$scratch" && "$base.exe") >"$base.got" 2>"$base.log"; then bad 'it fails' "$base.log"; continue; fi
      if [[ -e $base.expected ]] && ! matches "$base.expected" "$base.got"; then
        bad 'it prints' "$base.got"; continue
      fi ;;
    *)
      if ! "${compile[@]}" -Wno-unused -fsyntax-only "$base.cpp" >"$base.log" 2>&1; then bad 'it does not compile' "$base.log"; continue; fi ;;
  esac
  passed=$((passed + 1))
done
printf 'pages: %d blocks of C++ passed, %d failed\n' "$passed" "$failed"
((failed == 0))
