#!/usr/bin/env bash
# Checks of the programs: bash tests/run_tools.sh BIN_DIRECTORY. One line a check, then 'N passed, N failed'.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail

if (($# != 1)) || [[ ! -x $1/fusec ]]; then
  echo 'usage: run_tools.sh DIRECTORY (with fusec and the examples)' >&2
  exit 2
fi
bin=$(cd "$1" && pwd)
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." || exit 2
fusec=$bin/fusec
graphs=(softmax layernorm transformer_block)
bert_large=(--hidden 1024 --heads 16 --intermediate 4096 --vocabulary 30522)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/fuse-tools.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

export FUSE_CACHE=0  # but where the cache is tested

passed=0 failed=0
report() {  # 0|1 WHAT [WHY]
  if (($1 == 0)); then
    passed=$((passed + 1))
    printf 'ok      %s\n' "$2"
  else
    failed=$((failed + 1))
    printf 'FAILED  %s%s\n' "$2" "${3:+: $3}"
    sed 's/^/          /' "$scratch/out" "$scratch/err"
  fi
}

# expect STATUS PATTERN WHAT COMMAND...: the exit status, and a line of the output that matches.
expect() {
  local status=$1 pattern=$2 what=$3 got=0
  shift 3
  "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || got=$?
  # shellcheck disable=SC2053  # the status may be a pattern
  if [[ $got != $status ]]; then
    report 1 "$what" "status $got, not $status"
  elif ! cat "$scratch/out" "$scratch/err" | grep -qE -- "$pattern"; then
    report 1 "$what" "no line matches '$pattern'"
  else
    report 0 "$what"
  fi
}

same() {  # WHAT FILE FILE
  if cmp -s "$2" "$3"; then report 0 "$1"; else report 1 "$1" "$2 and $3 differ"; fi
}

absent() {  # WHAT DIRECTORY: nothing was left there
  if [[ -z $(ls -A "$2" 2>/dev/null) ]]; then report 0 "$1"; else report 1 "$1" "$2 is not empty"; fi
}

# Every file of ours that can hold a comment names its licence near its top. Goldens and graphs are what programs print.
check_licences() {
  local file
  : >"$scratch/err"
  while IFS= read -r file; do
    head -n 30 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$file"
  done >"$scratch/out" < <(
    ls -d dev .ci/run ./*.md CMakeLists.txt
    find .ci bench cmake docs examples include src tests tools -type f -not -path 'tests/golden/*' \
      \( -name '*.[ch]pp' -o -name '*.[ch]' -o -name '*.def' -o -name '*.sh' -o -name '*.py' -o -name '*.md' \
      -o -name 'CMakeLists.txt' -o -name '*.cmake' -o -name '*.in' \))
  report "$([[ -s $scratch/out ]] && echo 1 || echo 0)" 'every file names its licence (SPDX)' 'these do not'
}

# The graphs are those that the examples build, and print is the inverse of parse.
check_graphs() {
  "$bin/softmax" --print-graph >"$scratch/softmax.fuse"
  "$bin/layernorm" --print-graph >"$scratch/layernorm.fuse"
  "$bin/transformer_block" --blocks 2 --hidden 64 --heads 2 --window 32 --batch 2 --print-graph \
    >"$scratch/transformer_block.fuse"
  "$bin/bert" "${bert_large[@]}" --layers 24 --name bert_large --print-graph >"$scratch/bert_large.fuse"
  "$bin/bert" "${bert_large[@]}" --print-layer >"$scratch/bert_layer.fuse"
  local graph
  for graph in "${graphs[@]}" bert_large bert_layer; do
    same "examples/graphs/$graph.fuse is what the example prints" \
      "examples/graphs/$graph.fuse" "$scratch/$graph.fuse"
    "$fusec" print "examples/graphs/$graph.fuse" >"$scratch/printed.fuse" 2>"$scratch/err"
    same "print of $graph gives its text back" "examples/graphs/$graph.fuse" "$scratch/printed.fuse"
  done
}

# BERT-large is planned and never run here: its GEMMs are merged unless asked otherwise.
check_merging() {
  expect 0 '^kernels: [0-9]+  gemms: 145  setup: 24  ' 'plan merges the GEMMs of bert_large' \
    "$fusec" plan examples/graphs/bert_large.fuse
  expect 0 '^kernels: [0-9]+  gemms: 193  barriers' 'plan --no-gemm-merge does not' \
    "$fusec" plan examples/graphs/bert_large.fuse --no-gemm-merge
  expect 0 'check y: .*OK$' 'run bert_layer, its weights packed' \
    "$fusec" run examples/graphs/bert_layer.fuse --device emulated --dim B=1 --dim S=3 --check
  expect 0 'check y: .*OK$' 'run bert_layer --no-gemm-merge' \
    "$fusec" run examples/graphs/bert_layer.fuse --device emulated --dim B=1 --dim S=3 --check --no-gemm-merge
}

# The architecture page follows one tensor through what the tools print: its dumps are those of today.
check_page() {
  local page=docs/architecture.md graph=examples/graphs/layernorm.fuse kernel=layernorm_layer_norm_0
  {
    "$fusec" print "$graph"
    "$fusec" plan "$graph" | sed '1d;/^kernel  /,$d'
    "$fusec" plan "$graph" --kernels | sed -n "/^kernel @$kernel/,/^}/p"
    "$fusec" emit "$graph" -o "$scratch/page" >/dev/null
    sed -n "/^FUSE_KERNEL.* $kernel(/,/^}/p" "$scratch/page/layernorm.cu"
  } >"$scratch/out" 2>"$scratch/err"
  local missing
  missing=$(sed -n 's/^\(.\)/    \1/p' "$scratch/out" | grep -vFx -f "$page" | head -n 1)
  : >"$scratch/out"
  report "$([[ -z $missing ]] && echo 0 || echo 1)" "$page shows what the tools print" "no line '$missing'"
}

# How graphs are cut: the papers' cases by the flags that select them.
check_partition() {
  local papers=tests/papers
  expect 0 '^group 0 reduction \{%3 %4 %5 %6\} form y\(128, 1024\)$' 'plan --layers 1 groups as the paper says' \
    "$fusec" plan $papers/apollo_fig3.fuse --layers 1
  expect 0 '^group 0 reduction \{%3 %4 %5 %6 %7 %8 %9\}' 'plan --layers 1,2 stitches them' \
    "$fusec" plan $papers/apollo_fig3.fuse --layers 1,2
  expect 0 '"class": "broadcast"' 'plan --json has groups' "$fusec" plan $papers/apollo_fig3.fuse --layers 1 --json
  expect 0 '^kernels: 4 ' 'plan --baseline=xla' "$fusec" plan $papers/astitch_fig7.fuse --baseline=xla
  expect 0 '^kernels: 3 ' 'plan --baseline=tvm' "$fusec" plan $papers/astitch_fig7.fuse --baseline=tvm
  expect 0 '^kernels: 10 ' 'plan --baseline=one-op' "$fusec" plan $papers/astitch_fig7.fuse --baseline=one-op
  expect 0 'canonical-form, rule 8, producer = y, consumer = x' 'explain --edge names the reason' \
    "$fusec" explain $papers/apollo_fig5_forms.fuse --partition=apollo --edge %1 %4
  expect 0 'scheme-unavailable' 'explain' "$fusec" explain examples/graphs/softmax.fuse --stitch mapping
  expect 0 'stages %1 reduce_max [|] %5 reduce_sum [|] %7 div ends' 'plan stitches' "$fusec" plan examples/graphs/softmax.fuse
  expect 0 '^  schemes regional %6, global %8 %11, independent %13$' 'plan --schemes=astitch: the schemes of Fig. 7' \
    "$fusec" plan $papers/astitch_fig7.fuse --schemes=astitch --profile v100
  expect 0 '"scheme": "regional"' 'plan --schemes=astitch --json' \
    "$fusec" plan $papers/astitch_fig7.fuse --schemes=astitch --profile v100 --json
  expect 0 'stages %6 reduce_sum [|][|] %8 pow [|][|] %11 reduce_sum [|][|] %13 mul ends' 'plan --stitch no-merge' \
    "$fusec" plan $papers/astitch_fig7.fuse --stitch no-merge
  expect 2 'no segment computes' 'explain --edge of no value' "$fusec" explain examples/graphs/softmax.fuse --edge %77 1
  expect 2 'there are 3 segments' 'explain --edge of no segment' "$fusec" explain examples/graphs/softmax.fuse --edge 0 3 --stitch mapping
  expect 2 'layers' 'plan --layers of nonsense' "$fusec" plan examples/graphs/softmax.fuse --layers 2
}

# What a picture shows, with graphviz's version taken out of it: the lines of its labels, and its edges.
shown_in_dot() {
  grep -v 'style=invis' "$1" | grep -oE 'label="([^"\\]|\\.)*"' | sed 's/^label="//; s/"$//; s/\\[nl]/\n/g' | sed '/^$/d'
  grep -v 'style=invis' "$1" | sed -nE 's/^  ([a-z0-9_]+) -> ([a-z0-9_]+) \[.*/\1->\2/p'
}
shown_in_svg() {
  sed -nE 's/^<text [^>]*>(.*)<\/text>/\1/p; s/^<title>(.*)<\/title>/\1/p' "$1" |
    sed 's/&#45;/-/g; s/&gt;/>/g; s/&#160;/ /g'
}

# The plan as a picture; the pages' pictures are those of today.
check_pictures() {
  local graph file=$scratch/softmax.dot missing
  expect 0 '^wrote .*softmax\.dot$' 'plan --dot' "$fusec" plan examples/graphs/softmax.fuse --dot "$file"
  expect 0 '^  subgraph cluster_0 ' 'the picture has the kernel' cat "$file"
  expect 0 'label="softmax_softmax_0\\lr:grid c:serial c:warp32 c:lane32 c:vector4, grid B, block 1024\\l"' 'and its launch' cat "$file"
  expect 0 '^3$' 'and its three passes' grep -c 'label="pass [012]"' "$file"
  expect 0 '^  k0_0_1_n4 -> k0_0_2_n7 .*dashed' 'and that exp is held to pass 2' cat "$file"
  expect 0 '^  k0_0_0_n0 -> k0_0_1_n3 .*dashed' 'and x to pass 1' cat "$file"
  expect 0 '^  k0_0_1_n5 -> k0_0_2_n6 .*c2410c' 'and that a block shares the sum' cat "$file"
  "$fusec" plan examples/graphs/bert_layer.fuse --dot "$scratch/first.dot" >"$scratch/out" 2>"$scratch/err"
  "$fusec" plan examples/graphs/bert_layer.fuse --dot "$scratch/second.dot" >"$scratch/out" 2>"$scratch/err"
  same 'the picture of bert_layer is the same twice' "$scratch/first.dot" "$scratch/second.dot"
  expect 0 '^  k12_0_0_n[0-9]+ -> k12_0_1_n[0-9]+ .*dashed' 'a segment that shares its kernel holds values of its own' \
    cat "$scratch/first.dot"
  "$fusec" plan examples/graphs/softmax.fuse --baseline=xla --dot "$scratch/xla.dot" >"$scratch/out" 2>"$scratch/err"
  expect 0 '^  k0_0_0_n1 -> k1_0_0_n2 .*penwidth=3' 'the picture of --baseline=xla has values in memory' \
    cat "$scratch/xla.dot"
  expect 0 '^  subgraph cluster_0 ' 'plan --dot - writes to the standard output' \
    "$fusec" plan examples/graphs/softmax.fuse --dot -
  same 'and what it writes to a file' "$scratch/out" "$file"
  expect 2 '^error: .*no/such' 'a picture that cannot be written' \
    "$fusec" plan examples/graphs/softmax.fuse --dot /proc/no/such/softmax.dot
  expect 2 '^error: .*--json' 'a picture is no JSON' \
    "$fusec" plan examples/graphs/softmax.fuse --dot "$scratch/x/x.dot" --json
  absent 'and is not written' "$scratch/x"
  file=$scratch/plan_bert_layer.svg
  expect 0 '^wrote .*plan_bert_layer\.svg$' 'plan --picture' \
    "$fusec" plan examples/graphs/bert_layer.fuse --picture "$file"
  same 'docs/plots/plan_bert_layer.svg is of today (./dev report)' docs/plots/plan_bert_layer.svg "$file"
  "$fusec" plan examples/graphs/bert_layer.fuse --picture - >"$scratch/out.svg" 2>"$scratch/err"
  same 'plan --picture - is the same on the standard output' "$file" "$scratch/out.svg"
  expect 2 '^error: .*no/such' 'ops becoming kernels that cannot be written' \
    "$fusec" plan examples/graphs/softmax.fuse --picture /proc/no/such/softmax.svg
  "$fusec" plan examples/graphs/softmax.fuse --picture "$file" >"$scratch/out" 2>"$scratch/err"
  expect 0 '>softmax: 7 ops become 1 kernel<' 'its title counts ops and kernels' cat "$file"
  expect 0 '^2$' 'it has both reductions' grep -c '>reduce_' "$file"
  local -a options
  for graph in examples/graphs/softmax examples/graphs/layer_norm_backward tests/papers/astitch_fig7; do
    options=()
    [[ $graph == *fig7 ]] && options=(--schemes=astitch --profile v100)
    local path=$graph.fuse
    graph=${graph##*/}
    "$fusec" plan "$path" "${options[@]}" --dot "$scratch/$graph.dot" >"$scratch/out" 2>"$scratch/err"
    shown_in_svg "docs/plots/stitch_$graph.svg" >"$scratch/svg"
    missing=$(shown_in_dot "$scratch/$graph.dot" | grep -vFx -f "$scratch/svg" | head -n 1)
    report "$([[ -z $missing && -s $scratch/svg ]] && echo 0 || echo 1)" \
      "docs/plots/stitch_$graph.svg is of today (./dev report)" "it has no '$missing'"
  done
  if ! command -v dot >/dev/null; then
    echo 'skipped dot -Tsvg: no graphviz here'
    return
  fi
  for graph in softmax layer_norm_backward first xla; do
    expect 0 '</svg>' "dot draws the picture of $graph" dot -Tsvg "$scratch/$graph.dot"
    [[ ! -s $scratch/err ]]
    report $? 'and has nothing to say'
  done
}

check_ops() {
  "$fusec" ops >"$scratch/ops.md" 2>"$scratch/err"
  same 'docs/ops.md is what fusec ops prints' docs/ops.md "$scratch/ops.md"
}

# Every graph runs right and free of faults; each of its barriers is needed, and its loss is found.
check_runs() {
  local graph profile file k count
  for graph in "${graphs[@]}"; do
    file=examples/graphs/$graph.fuse
    for profile in h200 tiny3; do
      expect 0 '^check .*: OK$' "run $graph on $profile, checked" \
        "$fusec" run "$file" --device emulated --profile "$profile" --checked --check
      count=$("$fusec" plan "$file" --profile "$profile" | sed -n 's/^kernels: .*barriers: \([0-9]*\)$/\1/p')
      if [[ -z $count ]]; then
        report 1 "plan $graph on $profile tells the number of barriers"
        continue
      fi
      for ((k = 0; k < count; k++)); do
        expect 1 "^error: .*kernel '${graph}[a-z0-9_]*'.* line [0-9]+ \\(%[0-9]+ [a-z_]+, [a-z0-9_.]+\\)" \
          "run $graph on $profile without barrier $k is a fault" \
          "$fusec" run "$file" --device emulated --profile "$profile" --checked --drop-barrier "$k"
      done
      expect 2 'barriers for' "run $graph on $profile has no barrier $count" \
        "$fusec" run "$file" --device emulated --profile "$profile" --checked --drop-barrier "$count"
    done
  done
  # A check that cannot fail is none: without checked mode, the missing barrier shows in the numbers.
  expect 1 '^check y: MISMATCH: .*worst at \[' 'run softmax without a barrier is a mismatch' \
    "$fusec" run examples/graphs/softmax.fuse --device emulated --drop-barrier 0 --check \
    --output-dir "$scratch/wrong"
  absent 'and its outputs are not written' "$scratch/wrong"
  expect 0 'OK$' 'run softmax of one row' \
    "$fusec" run examples/graphs/softmax.fuse --device emulated --dim B=1 --check
  expect 0 'no elements' 'run softmax of no rows' \
    "$fusec" run examples/graphs/softmax.fuse --device emulated --dim B=0 --check
  expect 0 'check y: .*OK$' 'run layernorm on the reference device' \
    "$fusec" run examples/graphs/layernorm.fuse --device reference --check
  printf 'graph @h(%%x: f32[4]) -> (z: f32[4]) {\n  %%1 = add %%x, %%x : f32[4]\n  return z = %%1 into %%x\n}\n' \
    >"$scratch/donated.fuse"
  expect 0 '^check z: .*OK$' 'run --check judges a donated output by what the last run read' \
    "$fusec" run "$scratch/donated.fuse" --device emulated --runs 3 --check
}

# Roundings change by opt-in only.
check_rounding() {
  local file=$scratch/third.fuse
  cat >"$file" <<'EOF'
graph @third(%x: f32[8]) -> (y: f32[8]) {
  %1 = constant {value = 0x1.8p+1} : f32[8]
  %2 = div %x, %1 : f32[8]
  return y = %2
}
EOF
  expect 0 ' = div ' 'x / 3 is a quotient' "$fusec" plan "$file" --kernels
  expect 0 ' = mul ' 'x / 3 is a product with --relaxed-rounding' "$fusec" plan "$file" --kernels --relaxed-rounding
  expect 0 '^check y: .*: OK$' 'the product is near the quotient' \
    "$fusec" run "$file" --device emulated --relaxed-rounding --check
}

# Every command that a page shows does what it says: '    $ COMMAND', with '# exits 1' where it is to fail.
check_commands() {  # PAGE
  local line command status
  mkdir -p "$scratch/page"
  ln -sfn "$PWD/examples" "$scratch/page/examples"
  while IFS= read -r line; do
    command=${line%%#*} status=0
    [[ $line == *'# exits 1'* ]] && status=1
    if [[ $command == *' gdb '* ]] && ! command -v gdb >/dev/null; then
      printf 'skipped %s: no gdb\n' "${command:0:60}"
      continue
    fi
    expect "$status" '^at the page$' "$1: ${command:0:90}" env -u FUSE_CACHE "FUSE_CACHE_DIR=$scratch/page/cache" "PATH=$bin:$PATH" \
      bash -c "cd '$scratch/page' && echo at the page && $command"
    case $command in
      *' gdb '*) grep -qE 'softmax-[0-9a-f]{16}[.]cu:[0-9]+' "$scratch/out"
        report $? 'gdb stops in the emitted text' 'it shows no line of it' ;;
      *'fusec run repros/'*) grep -q "of 02_layernorm.cpp:27 failed: .* (%x input)" "$scratch/err"
        report $? 'a planted access out of bounds is traced to its op and line' 'its repro does not tell them' ;;
      *'fusec bisect'*) grep -q 'transformer.hpp:49' "$scratch/out" && grep -q 'made wrong by the graph pass simplify' "$scratch/out"
        report $? 'a planted wrong rewrite is traced to its op, line and pass' 'it is not told' ;;
      *--check-numerics*) grep -q '^numerics %2 = log f32.4. at main.cpp:5 has NaN at element ' "$scratch/out"
        report $? 'the op that makes a NaN is named' 'it is not told' ;;
    esac
  done < <(sed -n 's/^    \$ //p' "$1")
  rm -rf "$scratch/page"
}

# What one process compiled, the next one finds; damage is a miss.
check_cache() {
  local cache=(env FUSE_CACHE=1 "FUSE_CACHE_DIR=$scratch/cache") entry
  expect 0 ': 0 entries' 'cache: nothing is there' "${cache[@]}" "$fusec" cache list
  expect 0 'y f32' 'cache: a first process' "${cache[@]}" "$fusec" run examples/graphs/softmax.fuse --dim B=2
  expect 0 'y f32' 'cache: a second one needs no compiler' "${cache[@]}" PATH=/nonexistent FUSE_CXX="$(command -v c++)" \
    "$fusec" run examples/graphs/softmax.fuse --dim B=2
  expect 0 'softmax for h200' 'cache: list' "${cache[@]}" "$fusec" cache list
  expect 0 '1 entry whole, 0 damaged' 'cache: verify' "${cache[@]}" "$fusec" cache verify
  entry=$(ls "$scratch/cache")
  printf 'x' | dd of="$scratch/cache/$entry" bs=1 seek=200 conv=notrunc 2>/dev/null
  expect 1 'is damaged: its checksum is another' 'cache: verify of a damaged entry' "${cache[@]}" "$fusec" cache verify
  expect 0 'y f32' 'cache: a damaged entry is a miss' "${cache[@]}" "$fusec" run examples/graphs/softmax.fuse --dim B=2
  expect 0 '1 entry whole, 0 damaged' 'cache: and is replaced' "${cache[@]}" "$fusec" cache verify
  expect 0 '1 entry removed' 'cache: clear' "${cache[@]}" "$fusec" cache clear
  absent 'cache: clear leaves nothing' "$scratch/cache"
  expect 0 'FUSE_CACHE is 0' 'cache: off' env FUSE_CACHE=0 "$fusec" cache list
  chmod 777 "$scratch/cache"
  expect 1 'cannot be trusted: others may write to it' 'cache: a directory that others may write to' \
    "${cache[@]}" "$fusec" run examples/graphs/softmax.fuse
}

check_files() {
  local file=examples/graphs/softmax.fuse out=$scratch/results
  expect 0 '^output +y f32\[5, 4096\]' 'run writes its outputs' \
    "$fusec" run "$file" --device emulated --dim B=5 --output-dir "$out"
  expect 0 '^output +y f32\[5, 4096\]' 'run reads an input, and B from its shape' \
    "$fusec" run "$file" --device emulated --input "x=$out/y.npy" --check
  head -c 2000 "$out/y.npy" >"$scratch/short.npy"
  expect 2 '^error: .*short\.npy.*f32\[5, 4096\].*takes' 'a truncated .npy is refused' \
    "$fusec" run "$file" --device emulated --input "x=$scratch/short.npy"
  expect 2 "^error: .*input 'x' is f32\[3, 4096\]" 'an input of the wrong shape is refused' \
    "$fusec" run "$file" --device emulated --dim B=3 --input "x=$out/y.npy"
  expect 2 "^error: .*no input or parameter 'z'" 'an unknown input is refused' \
    "$fusec" run "$file" --device emulated --input "z=$out/y.npy"
  head -c 300 "$file" >"$scratch/short.fuse"
  local command
  for command in print run plan stats; do
    expect 2 '^error: .*short\.fuse:[0-9]+: ' "$command refuses a truncated .fuse" \
      "$fusec" "$command" "$scratch/short.fuse"
  done
  expect 2 '^error: .*short\.fuse:[0-9]+: ' 'emit refuses a truncated .fuse' \
    "$fusec" emit "$scratch/short.fuse" -o "$scratch/nothing"
  absent 'emit that failed left no file' "$scratch/nothing"
  expect 2 '^error: .*cannot be opened' 'a missing file is named' "$fusec" run "$scratch/none.fuse"
}

# Where results are to go is tried before the work: no compiler is missed.
check_places() {
  local file=examples/graphs/softmax.fuse no_compiler=(env FUSE_CACHE=0 FUSE_CXX=/nonexistent/c++) place
  local -a run=("${no_compiler[@]}" "$fusec" run "$file" --device emulated --dim B=1)
  for place in /proc/no/such "$file" "$file/below" -; do
    expect 2 "^error: --output-dir '$place': " "run: results cannot be written to $place" "${run[@]}" --output-dir "$place"
    expect 2 "^error: --output '$place': " "emit: text cannot be written to $place" "$fusec" emit "$file" -o "$place"
  done
  expect 1 'needs a C\+\+ compiler' 'run: a directory that can be made is none of it' "${run[@]}" --output-dir "$scratch/made/here"
  absent 'and is not made yet' "$scratch/made"
  [[ ! -e $scratch/made ]]
  report $? 'nor the one above it'
  for place in "$scratch/nope/t.json" "$scratch" /proc/t.json -; do
    expect 2 "^error: --trace '$place': " "run: a trace cannot be written to $place" "${run[@]}" --trace "$place"
    expect 2 "^error: --output '$place': " "save: a plan cannot be written to $place" "$fusec" save "$file" -o "$place"
    [[ $place == - ]] ||
      expect 2 "^error: --dot '$place': " "plan: a picture cannot be written to $place" "$fusec" plan "$file" --dot "$place"
  done
  [[ ! -e $scratch/nope && ! -e ./- ]]
  report $? 'a directory of a file is not made'
}

# On a terminal, progress goes before results come.
check_progress() {
  if ! script -qec true /dev/null >"$scratch/out" 2>"$scratch/err"; then
    echo 'skipped progress on a terminal: no program script'
    return
  fi
  # shellcheck disable=SC2016
  printf '#!/bin/sh\nsleep 3\nexec "%s" "$@"\n' "$(command -v c++)" >"$scratch/slow"
  chmod +x "$scratch/slow"
  FUSE_CACHE=0 FUSE_CXX=$scratch/slow script -qec "'$fusec' run examples/graphs/softmax.fuse --device emulated --dim B=1" \
    /dev/null </dev/null >"$scratch/out" 2>"$scratch/err"
  grep -q 'compiling for emulated h200 ... 2 s' "$scratch/out"
  report $? 'a terminal shows progress'
  grep -qP 's\r\x1b\[Kdevice   emulated h200\r?$' "$scratch/out"
  report $? 'and it is cleared before the results'
}

check_misuse() {
  local file=examples/graphs/softmax.fuse command
  for command in run plan stats; do
    expect 2 "^error: unknown device profile 'h20'" "$command refuses an unknown profile" \
      "$fusec" "$command" "$file" --profile h20
    expect 2 "^error: .*has no dim 'C'" "$command refuses an unknown dim" \
      "$fusec" "$command" "$file" --dim C=3
    expect 2 'outside of its range' "$command refuses a dim out of range" \
      "$fusec" "$command" "$file" --dim B=-1
    expect 2 'is not an integer' "$command refuses a dim that is no number" \
      "$fusec" "$command" "$file" --dim B=many
  done
  local -a directory
  expect 0 '^Usage: fusec doctor' 'doctor has a help' "$fusec" doctor --help
  for command in print run plan emit stats; do
    directory=()
    if [[ $command == emit ]]; then directory=(-o "$scratch/nothing"); fi
    expect 2 '^error: .*--bogus' "$command refuses an unknown option" \
      "$fusec" "$command" "$file" --bogus "${directory[@]}"
    expect 0 "^Usage: fusec $command" "$command has a help" "$fusec" "$command" --help
  done
  expect 2 '^error: ' 'fusec without a command is refused' "$fusec"
  expect 2 "^  hint: did you mean 'run'" 'a misspelt command is told' "$fusec" rum "$file"
  expect 2 "^  hint: did you mean '--profile'" 'a misspelt option is told' "$fusec" plan "$file" --proflie h200
  expect 2 "^error: fusec plan takes no argument 'more.fuse' there" 'an argument too many is told' \
    "$fusec" plan "$file" more.fuse
  expect 2 "^error: --layers: '2' is not '1', '1,2' or '1,2,3'$" 'the values of an option are listed' \
    "$fusec" plan "$file" --layers 2
  expect 2 "^error: --mode: 'fast' is not 'streams', 'graph' or 'automatic'$" 'and those of another' \
    "$fusec" run "$file" --mode fast
  local value
  for value in -1 1.5 18446744073709551616 x; do
    for command in run bisect; do
      expect 2 "^error: --seed: '$value' is not an integer from 0 to 18446744073709551615$" "$command --seed '$value' is refused" \
        "$fusec" "$command" "$file" --dim B=1 --seed="$value"
    done
  done
  expect 2 '^error: .*tpu' 'an unknown device is refused' "$fusec" run "$file" --device tpu
  expect 2 "^error: --arch 'sm90' is no arch" 'emit refuses what is no arch' \
    "$fusec" emit "$file" -o "$scratch/nothing" --arch sm90 --cubin
}

check_decisions() {
  local graph text=$scratch/decisions
  for graph in examples/graphs/*.fuse; do
    graph=$(basename "$graph" .fuse)
    "$fusec" plan "examples/graphs/$graph.fuse" --kernels >"$scratch/plan" 2>&1
    expect 0 '^wrote ' "decisions of $graph" "$fusec" plan "examples/graphs/$graph.fuse" --decisions "$text"
    "$fusec" plan "examples/graphs/$graph.fuse" --kernels --use-decisions "$text" >"$scratch/told" 2>&1
    sed '/^decisions: [0-9]* of [0-9]* segments run as recorded$/,+1d' "$scratch/told" >"$scratch/again"
    cmp -s "$scratch/plan" "$scratch/again" && ! cmp -s "$scratch/told" "$scratch/again"
    report $? "and taken back they give the same plan and kernels"
    expect 2 '^error: decisions: the file is for another GPU' 'and are refused for another GPU' \
      "$fusec" plan "examples/graphs/$graph.fuse" --use-decisions "$text" --profile a100
  done
  # The sixth line that is printed has the fastest nest, behind what is chosen.
  local nest softmax=examples/graphs/softmax.fuse
  nest=$("$fusec" nests $softmax --count 1 | sed -n '6s/^ *[0-9.]*  //p')
  "$fusec" plan $softmax --decisions - | sed "s/^\(kernel [0-9a-f]*\) .*/\1 $nest/" >"$text.nest"
  expect 0 "choices $nest" 'a nest that fusec nests printed runs' "$fusec" plan $softmax --use-decisions "$text.nest"
  expect 0 '^[1-9][0-9]* legal nests of [1-9][0-9]* structures were tried$' 'nests of a segment' \
    "$fusec" nests examples/graphs/transformer_block.fuse --segment 2 --count 0 --profile tiny3
  expect 2 "^error: --segment 1: the graph has 1 segment, 0" 'nests of a segment that is not there' "$fusec" nests $softmax --segment 1
  sed -E 's/hold = [0-9]+/register_cache = 333/' "$text" >"$text.bad"
  expect 2 "^error: decisions: line [0-9]+: hold is '333'" 'a bad value names its line' \
    "$fusec" plan "examples/graphs/$graph.fuse" --use-decisions "$text.bad"
  expect 2 "^error: .*nothing.decisions" 'a file of decisions that is not there' \
    "$fusec" plan "examples/graphs/$graph.fuse" --use-decisions "$scratch/nothing.decisions"
  local run=(run examples/graphs/transformer_block.fuse --device emulated --profile tiny3 --dim B=1)
  expect 0 '^wrote ' 'run --decisions' "$fusec" "${run[@]}" --decisions "$text.run"
  expect 0 '^gemm [0-9a-f]{16} [{]algorithm = 0[}]$' 'has the algorithms of GEMMs' cat "$text.run"
  expect 0 '^run [{]mode = streams, order = 0 .*, streams = 0 .*[}]$' 'and the steps of the run' cat "$text.run"
  expect 0 '^wrote ' 'and a run by them' "$fusec" "${run[@]}" --use-decisions "$text.run" --decisions "$text.again"
  cmp -s "$text.run" "$text.again"
  report $? 'has the same decisions'
  sed 's/mode = streams/mode = graph/' "$text.run" >"$text.graph"
  "$fusec" "${run[@]}" --use-decisions "$text.graph" --decisions "$text.again" >/dev/null
  expect 0 'mode = graph' 'run takes the mode of decisions' cat "$text.again"
  expect 2 'the reference device has no steps' 'run --decisions on the reference device' \
    "$fusec" run $softmax --device reference --decisions "$text.run"
}

check_emit() {
  local graph out=$scratch/emitted
  expect 0 "wrote .*softmax\.cu" 'emit writes the CUDA text' \
    "$fusec" emit examples/graphs/softmax.fuse -o "$out"
  grep -q '__global__' "$out/softmax.cu" 2>/dev/null
  report $? 'the text has kernels'
  FUSE_LIBNVRTC=/nonexistent/libnvrtc.so expect 1 '^error: .*(NVRTC|nvrtc)' 'emit without NVRTC says so' \
    "$fusec" emit examples/graphs/softmax.fuse -o "$scratch/nothing" --cubin
  absent 'and leaves no file' "$scratch/nothing"
  "$fusec" emit examples/graphs/softmax.fuse -o "$out" --arch sm_90 --cubin >"$scratch/out" 2>"$scratch/err"
  if grep -qE 'NVRTC was not found|does not use NVRTC' "$scratch/err"; then
    echo 'skipped emit --cubin: no NVRTC here'
    return
  fi
  for graph in "${graphs[@]}"; do
    expect 0 "wrote .*$graph\.cubin \(sm_90\)" "emit $graph for sm_90" \
      "$fusec" emit "examples/graphs/$graph.fuse" -o "$out" --arch sm_90 --cubin
    # The last column is the spilled bytes.
    awk 'NR > 1 && !/^wrote/ { rows++; if ($NF != 0) bad = 1 } END { exit bad || !rows }' "$scratch/out"
    report $? "no register of $graph spills"
    [[ $(head -c 4 "$out/$graph.cubin" | tail -c 3) == ELF ]]
    report $? "$graph.cubin is an ELF file"
  done
  expect 2 '^error: .*does not compile for sm_1$' 'emit refuses an unknown arch' \
    "$fusec" emit examples/graphs/softmax.fuse -o "$scratch/nothing" --arch sm_1 --cubin
  absent 'and leaves no file either' "$scratch/nothing"
  sed 's/4096/131072/g; s/hint 37/hint 512/' examples/graphs/softmax.fuse >"$scratch/long_rows.fuse"
  expect 2 "^error: kernel 'softmax_softmax_0' needs clusters of 8 blocks, which sm_80 does not have" \
    'emit refuses clusters on an older GPU' \
    "$fusec" emit "$scratch/long_rows.fuse" -o "$scratch/nothing" --profile h200 --arch sm_80 --cubin
  expect 0 'softmax\.cubin \(sm_80\)' 'emit does as its hint says' \
    "$fusec" emit "$scratch/long_rows.fuse" -o "$out" --profile a100 --arch sm_80 --cubin
}

check_stats() {
  local graph
  for graph in "${graphs[@]}"; do
    expect 0 '"ratio_requested"' "stats of $graph" \
      "$fusec" stats "examples/graphs/$graph.fuse" --json --profile tiny3
  done
  expect 0 '^1 MB and more +[1-9][0-9]* +[1-9]' 'stats of large rows' \
    "$fusec" stats examples/graphs/softmax.fuse --dim B=128
}

# A graph that branches has steps beside each other on streams.
check_trace() {
  expect 0 '^trace .* on [2-9] streams, .* by the cost model' 'a trace of transformer_block' \
    "$fusec" run examples/graphs/transformer_block.fuse --stitch mapping --device emulated --trace "$scratch/t.json"
  expect 0 '"stream 1"' 'the trace has streams as rows' cat "$scratch/t.json"
  expect 0 '"group [0-9]+: .* in block' 'the trace has groups of several steps' cat "$scratch/t.json"
  expect 0 '"by host clock"' 'the trace has the run as it was' cat "$scratch/t.json"
  expect 2 'no/such' 'a trace that cannot be written' \
    "$fusec" run examples/graphs/softmax.fuse --dim B=1 --device emulated --trace /proc/no/such/t.json
  expect 2 'reference device has no steps' 'a trace of the reference device' \
    "$fusec" run examples/graphs/softmax.fuse --dim B=1 --device reference --trace "$scratch/t.json"
}

check_examples() {
  local small=(--blocks 1 --hidden 32 --heads 2 --window 32 --batch 2) dtype
  expect 0 'sums are off 1' 'example softmax' "$bin/softmax"
  expect 0 'equal the reference' 'example layernorm' "$bin/layernorm"
  expect 0 '__global__' 'example layernorm --source' "$bin/layernorm" --source
  expect 0 'op by op +OK$' 'example transformer_block' "$bin/transformer_block"
  expect 0 '13 GEMMs, .*one by one 17, .*OK$' 'example bert' "$bin/bert"
  expect 2 '^error: .*multiple of --heads' 'bert refuses heads that do not divide' "$bin/bert" --hidden 30 --heads 4
  for dtype in f32 f16 bf16; do
    expect 0 'op by op +OK$' "example transformer_block in $dtype, checked" \
      "$bin/transformer_block" "${small[@]}" --dtype "$dtype" --device emulated --profile tiny3 --checked
  done
  "$bin/transformer_block" "${small[@]}" --seed 7 --save-weights "$scratch/w.safetensors" |
    grep '^loss  ' >"$scratch/drawn"
  "$bin/transformer_block" "${small[@]}" --weights "$scratch/w.safetensors" |
    grep '^loss  ' >"$scratch/loaded"
  same 'transformer_block: saved weights give the same loss' "$scratch/drawn" "$scratch/loaded"
  expect 2 '^error: .*multiple of --heads' 'transformer_block refuses heads that do not divide' \
    "$bin/transformer_block" --hidden 30 --heads 4
  expect 2 '^error: unknown option --bogus' 'examples refuse unknown options' "$bin/softmax" --bogus
}

# fuse inside of something else: own memory and stream, threads, a program in C.
check_embedding() {
  local plan=$scratch/softmax.plan
  expect 0 '^7 requests, [1-9][0-9]* allocations before them, 0 for them' 'example embed' "$bin/embed" --requests 7
  expect 0 '^results equal those of one thread$' 'example two_streams' "$bin/two_streams"
  if [[ ! -x $bin/c_program ]]; then
    echo 'skipped c_program: this build has none (a bundle, or no C compiler)'
    return
  fi
  "$fusec" save examples/graphs/softmax.fuse -o "$plan" >"$scratch/out" 2>"$scratch/err"
  expect 0 '^y f32\[5, 4096\] sum 5\.0000$' 'example c_program' "$bin/c_program" "$plan" B=5
  expect 0 '^y f32\[0, 4096\] sum 0\.0000$' 'example c_program without rows' "$bin/c_program" "$plan" B=0
  FUSE_CXX=/nonexistent/c++ expect 0 'sum 2\.0000$' 'example c_program needs no compiler' "$bin/c_program" "$plan" B=2
  expect 1 '^error: unbound: dim B has no value' 'c_program: a dim without a value' "$bin/c_program" "$plan"
  expect 1 '^error: unknown-name: ' 'c_program: a dim that is none' "$bin/c_program" "$plan" B=5 C=6
  expect 1 '^error: invalid-extent: ' 'c_program: a dim out of range' "$bin/c_program" "$plan" B=-1
  expect 1 '^error: file-format: .*is no fuseplan of fuse' 'c_program: a file that is no plan' \
    "$bin/c_program" examples/graphs/softmax.fuse
  expect 1 '^error: io: ' 'c_program: no file' "$bin/c_program" "$scratch/none.plan"
  expect 2 "^error: 'B' is no DIM=VALUE" 'c_program refuses what is no dim' "$bin/c_program" "$plan" B
}

# shellcheck source=tests/run_tools_machine.sh
source tests/run_tools_machine.sh

# dist/check leaves [device] and [emulated] out where there is no compiler; and its own logic and that of
# dist/first, with stubs.
check_bundle() {
  FUSE_CXX=/nonexistent/c++ expect 0 'All tests passed' 'tests without [device] and [emulated] need no compiler' \
    "$bin/fuse_tests" '~[device]~[emulated]~[nvrtc]~[.]'
  expect 0 'passed, 0 failed' 'dist/check with stubs for the programs' bash tools/bundle/check_test.sh
  expect 0 'passed, 0 failed' 'dist/first with stubs for the programs' bash tools/bundle/first_test.sh
}

# dist/first with the programs themselves, on the fake driver, where nothing takes time.
check_first() {
  local dist=$scratch/dist fake=$bin/../lib/fake
  if [[ ! -e $fake/libfake_cuda.so ]] || ! "$fusec" doctor | grep -q '^  NVRTC compiles for '; then
    echo 'skipped dist/first on the fake driver: no cuda device in this build, or no NVRTC'
    return
  fi
  mkdir -p "$dist/bin"
  cp tools/bundle/first tools/bundle/machine.sh "$dist"
  cp -r examples "$dist"
  echo test >"$dist/COMMIT"
  # shellcheck disable=SC2016
  printf '#!/bin/sh\nprogram=$1\nshift\nexec "%s/$program" "$@"\n' "$bin" >"$dist/bin/fuse"
  chmod +x "$dist/bin/fuse"
  local -a first=(env "FUSE_LIBCUDA=$fake/libfake_cuda.so" "FUSE_LIBCUBLASLT=$fake/libfake_cublaslt.so" "OUT=$scratch/first")
  expect 0 '^latency +0 +ns ' 'first: the probe on the fake driver' "${first[@]}" "$dist/first" --only machine,probe
  expect 0 'fits bench/schema.json' 'first: its results fit the schema' "$bin/fuse_bench" --check "$scratch/first/fuse.json"
  expect 1 '^machine +[0-9]+ +failed: .* is of CUDA 12.4 .*older than NVRTC' 'first: a driver older than NVRTC' \
    "${first[@]}" FAKE_CUDA_VERSION=12040 "$dist/first"
  if compgen -G '/dev/nvidia[0-9]*' >/dev/null; then return; fi
  expect 77 '^probe +0 +skipped: no GPU: the NVIDIA driver was not found' 'first: no driver' \
    "${first[@]}" FUSE_LIBCUDA=/nonexistent/libcuda.so.1 "$dist/first"
}

# What the scripts of bench/peers write fits the schema, whether or not their frameworks are installed, and one that
# ends at once leaves the cases that it had finished.
check_peers() {
  local peer
  local -x PYTHONDONTWRITEBYTECODE=1
  if ! command -v python3 >/dev/null; then
    echo 'skipped bench/peers: no python3'
    return
  fi
  for peer in torch_peer jax_peer; do
    python3 "bench/peers/$peer.py" --device cpu --filter bias_gelu --json "$scratch/$peer.json" >/dev/null 2>&1
    expect 0 'fits bench/schema.json' "bench/peers/$peer.py writes by the schema" \
      "$bin/fuse_bench" --check "$scratch/$peer.json"
  done
  expect 2 "there is no peer 'numpy'; there are torch.eager" 'torch_peer.py refuses an unknown peer' \
    python3 bench/peers/torch_peer.py --peers numpy
  expect 2 "argument --filter: 'bf16,' has an empty part" 'torch_peer.py refuses an empty part of a filter' \
    python3 bench/peers/torch_peer.py --filter bf16,
  expect 9 '^bias_gelu' 'a peer ends at once' env PYTHONPATH=bench/peers python3 -c '
import os, harness
results = harness.Results("peer", harness.arguments("peer", ("a", "b")))
results.add(results.wanted[0], "a")
os._exit(9)' --device cpu --filter bias_gelu --json "$scratch/killed.json"
  expect 0 'fits bench/schema.json' 'and leaves a whole file' "$bin/fuse_bench" --check "$scratch/killed.json"
  grep -q '"by": "a"' "$scratch/killed.json"
  report $? 'with what it had finished'
}

# tests/oracle without its packages: every op has an entry, its parser reads what fuse prints, fuse_fuzz writes for it.
check_oracle() {
  local op
  : >"$scratch/out"
  "$fusec" ops | sed -n 's/^| `\([a-z0-9_]*\)`.*/\1/p' | grep -vE '^(input|parameter)$' >"$scratch/ops"
  while IFS= read -r op; do
    grep -q "^    \"$op\": " tests/oracle/torch_ops.py || echo "no entry for $op"
  done <"$scratch/ops" >"$scratch/err"
  [[ -s $scratch/ops && ! -s $scratch/err ]]
  report $? 'tests/oracle/torch_ops.py has every op'
  expect 0 '^done ok' 'fuse_fuzz writes what a program answers' "$bin/fuse_fuzz" --seed 7 --answers 3 --count 1
  if ! command -v python3 >/dev/null; then
    echo 'skipped the parser of tests/oracle: no python3'
    return
  fi
  # shellcheck disable=SC2016
  expect 0 '^%5 softmax$' 'tests/oracle reads graphs' env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/oracle python3 -c '
import glob, fuse_text
for path in glob.glob("examples/graphs/*.fuse") + glob.glob("tests/fuzz/corpus/*.fuse"):
    graph = fuse_text.parse(open(path, encoding="utf-8").read())
    if path.endswith("/softmax.fuse"): print(graph.ops[4].result, "softmax")
    assert all(value in {op.result for op in graph.ops} | set(graph.inputs) for _, value in graph.outputs), path'
}

checks=(licences graphs merging page ops partition pictures runs rounding files cache deploy debugging misuse places progress
  decisions emit stats trace examples embedding doctor compilers libraries directories peers oracle bundle first)
check_deploy() { check_commands docs/deploy.md; }
check_debugging() { check_commands docs/debugging.md; }
for check in "${checks[@]}"; do
  [[ " ${FUSE_TOOLS_WITHOUT:-} " == *" $check "* ]] || "check_$check"  # for mutants, which leave out what runs none of them
done
printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0 && passed > 0))
