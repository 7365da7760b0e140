#!/usr/bin/env bash
# Does what the pages tell a reader to do, in a checkout whose release build is there: bash tests/pages.sh. One line for
# each check, then 'N passed, N failed'. The indented commands, "    $ fusec ...", are left to the command tests.
#
# Commands: one shell, with a home folder of its own, runs the blocks ```sh of README.md, docs/getting-started.md and
# docs/decode.md in their order, each page from the top of the checkout. A block ```text after one is what it prints,
# where "..." stands for anything. "Save it as `NAME`" saves the block before it, "save this as `NAME`" the one behind
# it. `./dev test` is left out, since it runs this.
#
# C++: every block of README.md and docs/*.md, against the fuse that those commands installed. A block with a main is a
# program: it is run, and prints the block ```text that follows it. A comment before any other block says what is around
# it:
#   <!-- cpp -->                        declarations
#   <!-- cpp: (fuse::Graph& g) -->      statements, in a function of these parameters
#   <!-- cpp: foreign -->               code of another library, which is left alone
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
scratch=$(mktemp -d "${TMPDIR:-/tmp}/fuse-pages.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/home" "$scratch/commands" "$scratch/blocks"

passed=0 failed=0
good() { printf 'ok      %s\n' "$1"; passed=$((passed + 1)); }
bad() { printf 'FAILED  %s\n' "$1"; sed 's/^/    /' "${2:-/dev/null}"; failed=$((failed + 1)); }

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

# Commands ----------------------------------------------------------------------------------------------

# NNN.sh for each block, with what it prints in NNN.expected; all.sh runs them.
write_commands() {
  awk -v out="$scratch/commands" '
    function command(text) { print text > (out "/all.sh") }
    function save(name, saved) {
      saved = sprintf("%s/saved_%s", out, name)
      printf "%s", file > saved
      command(sprintf("cp \"%s\" \"%s\"", saved, name))
    }
    FNR == 1 { after_commands = 0; file = wanted = ""; command("cd \"$checkout\"") }
    block == "sh" && /^```$/ {
      block = ""; after_commands = 1
      command(sprintf("run_block %s %s:%d", base, FILENAME, first))
      next
    }
    block == "sh" { if (!/^\.\/dev test/) print > (base ".sh"); next }
    block == "file" && /^```$/ { block = ""; if (wanted != "") { save(wanted); wanted = "" } next }
    block == "file" { file = file $0 "\n"; next }
    block == "text" && /^```$/ { block = ""; after_commands = 0; next }
    block == "text" { print > (base ".expected"); next }
    /^```sh$/ { block = "sh"; first = FNR + 1; base = sprintf("%s/%03d", out, count++); printf "" > (base ".sh"); next }
    /^```(cpp|cmake)$/ { block = "file"; file = ""; after_commands = 0; next }
    /^```text$/ && after_commands { block = "text"; next }
    /^$/ { next }
    match($0, /Save it as `[^`]+`/) { save(substr($0, RSTART + 12, RLENGTH - 13)) }
    match($0, /save this as `[^`]+`/) { wanted = substr($0, RSTART + 14, RLENGTH - 15) }
    { after_commands = 0 }
  ' "$@"
}

run_block() {  # BASE PLACE, in the shell of all.sh
  broken=
  # shellcheck disable=SC1090
  source "$1.sh" >"$1.got" 2>"$1.log" </dev/null
  if [[ $broken ]]; then
    cat "$1.got" >>"$1.log"
    printf 'bad "%s: the commands fail" "%s"\n' "$2" "$1.log"
  elif [[ -e $1.expected ]] && ! matches "$1.expected" "$1.got"; then
    printf 'bad "%s: the commands print" "%s"\n' "$2" "$1.got"
  else
    printf 'good "%s: the commands"\n' "$2"
  fi >>"$results"
}

check_commands() {
  # shellcheck disable=SC2034  # all.sh reads it
  local results=$scratch/results checkout=$PWD
  : >"$results"
  write_commands README.md docs/getting-started.md docs/decode.md
  # What the commands change of their shell lives on: its paths are those that the C++ below is built with.
  (
    set +eu -E
    trap 'broken=1' ERR
    export HOME=$scratch/home
    unset FUSE_CACHE_DIR XDG_CACHE_HOME
    # shellcheck disable=SC1091
    source "$scratch/commands/all.sh"
    export -p >"$scratch/environment"
  ) || bad 'the shell of the commands ended' "$scratch/commands/all.sh"
  # shellcheck disable=SC1090
  source "$results"
}

# C++ ---------------------------------------------------------------------------------------------------

# One file for each block: NNN.cpp, with the lines of the page; NNN.kind; NNN.expected for a program.
write_blocks() {
  awk -v out="$scratch/blocks" '
    function close_block() {
      open = 0
      kind = has_main ? "program" : around == "" ? "unmarked" : around == "foreign" ? "foreign" : \
             around == "declarations" ? "declarations" : "statements"
      print kind > (base ".kind")
      print FILENAME ":" first > (base ".place")
      head = "#include <fuse/custom.hpp>\n#include <fuse/dlpack.hpp>\n#include <fuse/fuse.hpp>\n#include <fuse/memory.hpp>\n#include <fuse/numerics.hpp>\n#include <cstdint>\n#include <cstdio>\n#include <fstream>\n#include <iostream>\n#include <span>\n#include <string>\n#include <vector>\n"
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
    expected && /^```$/ { expected = 0; last_program = ""; next }
    expected { print > (last_program ".expected"); next }
    /^```cpp/ { open = 1; text = ""; has_main = 0; first = FNR + 1; base = sprintf("%s/%03d", out, count++); next }
    /^```text$/ && last_program != "" { expected = 1; printf "" > (last_program ".expected"); next }
    /^```/ { last_program = "" }
    /^<!-- cpp -->$/ { around = "declarations"; next }
    /^<!-- cpp: / { around = $0; sub(/^<!-- cpp: /, "", around); sub(/ -->$/, "", around); next }
    /^$/ { next }
    !open && /^    .*fuse::/ && !/fuse::(fuse|runtime)/ { print FILENAME ":" FNR > (out "/indented") }
    { if (!open) { around = ""; if (last_program != "" && /^#/) last_program = "" } }
  ' "$@"
}

run_program() {  # BASE PLACE
  if ! "${compile[@]}" "$1.cpp" "${link[@]}" -o "$1.exe" >"$1.log" 2>&1; then
    bad "$2: the program does not build" "$1.log"; return 1
  fi
  if ! (cd "$scratch" && "$1.exe") >"$1.got" 2>"$1.log"; then bad "$2: the program fails" "$1.log"; return 1; fi
  if [[ -e $1.expected ]] && ! matches "$1.expected" "$1.got"; then
    bad "$2: the program prints" "$1.got"; return 1
  fi
}

check_block() {  # BASE
  local base=$1 place
  place=$(<"$base.place")
  case $(<"$base.kind") in
    foreign) return ;;
    unmarked) bad "$place: a comment <!-- cpp ... --> has to say what is around the block"; return ;;
    program)
      run_program "$base" "$place" || return 0
      # The first programs of a reader, which take the device that is there, run on the emulated one, too.
      if [[ $place == @(README|docs/getting-started).md:* ]] && grep -q 'auto_select()' "$base.cpp"; then
        sed -i 's/auto_select()/emulated()/' "$base.cpp"
        run_program "$base" "$place, emulated" || return 0
        good "$place: the C++, emulated"
      fi ;;
    *)
      if ! "${compile[@]}" -Wno-unused -fsyntax-only "$base.cpp" >"$base.log" 2>&1; then
        bad "$place: the block does not compile" "$base.log"; return
      fi ;;
  esac
  good "$place: the C++"
}

check_blocks() {
  local -a compile link
  local kind
  # shellcheck disable=SC1091
  source "$scratch/environment"
  read -ra compile < <(pkg-config --static --cflags fuse-compiler)
  read -ra link < <(pkg-config --static --libs fuse-compiler)
  compile=(g++ -std=c++20 -Wall -Wextra -Werror "${compile[@]}")
  write_blocks README.md docs/*.md
  for kind in "$scratch"/blocks/*.kind; do check_block "${kind%.kind}"; done
  [[ ! -e $scratch/blocks/indented ]] || bad 'C++ stands in a block ```cpp, so that it is compiled' "$scratch/blocks/indented"
}

check_commands
check_blocks
printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0 && passed > 0))
