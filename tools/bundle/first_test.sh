#!/usr/bin/env bash
# What dist/first makes of a GPU, of none, of a broken one, of failures and of what hangs, with stubs for the programs. Its
# table is tested in tests/bench/first_test.cpp. SPDX-License-Identifier: Apache-2.0
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/fuse-first-test.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
dist="$scratch/a copy"
mkdir -p "$dist/bin" "$dist/bench/peers" "$scratch/tools"
cp "$here/first" "$here/machine.sh" "$dist"
cp -r "$here/../../examples" "$dist/examples"
echo stub >"$dist/COMMIT"

# STUB_FAIL and STUB_HANG are patterns of command lines.
cat >"$dist/bin/fuse" <<'STUB'
#!/usr/bin/env bash
[[ ! $STUB_HANG || ! $* =~ $STUB_HANG ]] || sleep 1000
if [[ $STUB_FAIL && $* =~ $STUB_FAIL ]]; then echo "error: out of memory for $*" >&2 && exit 1; fi
case "$*" in
  'fuse_bench --list first') printf "$STUB_CASES" && exit ;;
  'fuse_bench --list profiled') echo 'a.f32.1' && exit ;;
  'fuse_bench --first-table '*) echo "table of $(wc -l <"$3/parts.tsv") parts" | tee "$3/first.txt" && exit ;;
  'fusec doctor') echo 'no problems' && exit ;;
  'fuse_tests '*) printf '0.001 s: one\n%s\n' 'All tests passed (9 assertions in 3 test cases)' && exit ;;
esac
case $STUB_GPU in
  none) echo 'error: the NVIDIA driver was not found; looked for' >&2 && exit 1 ;;
  old) echo 'error: the NVIDIA driver is of CUDA 12.4, older than NVRTC 13.0' >&2 && exit 1 ;;
esac
echo 'device   cuda:0 Stub (sm_90)'
if [[ $* == *' --check '* ]]; then echo "check y: $STUB_CHECK"; fi
STUB
cat >"$scratch/tools/compute-sanitizer" <<'STUB'
#!/usr/bin/env bash
"${@:5}" || exit
if [[ $* == *--drop-barrier* && $STUB_RACE ]]; then echo 'RACECHECK SUMMARY: 2 hazards displayed' && exit 97; fi
if [[ $2 == racecheck ]]; then echo 'RACECHECK SUMMARY: 0 hazards displayed'; else echo "ERROR SUMMARY: 0 errors"; fi
STUB
cat >"$scratch/tools/ncu" <<'STUB'
#!/usr/bin/env bash
if [[ $STUB_NCU ]]; then echo "==ERROR== $STUB_NCU"; else echo '"Metric Name","Metric Unit","Metric Value"'; fi
exit 1
STUB
cat >"$scratch/tools/nvidia-smi" <<'STUB'
#!/usr/bin/env bash
echo "Stub, 580.1, $STUB_SMI"
STUB
cat >"$scratch/tools/python3" <<'STUB'
#!/usr/bin/env bash
[[ $1 != -c ]] || exit "$STUB_NO_TORCH"
echo 'a.f32.1   torch.eager   ok   1.00 us'
STUB
chmod +x "$dist/bin/fuse" "$scratch"/tools/*
cp -r "$dist" "$scratch/other"

passed=0 failed=0
report() {  # 0|1 WHAT
  if (($1 == 0)); then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED: %s\n' "$2"
    cat "$scratch/out" "$scratch/results/parts.tsv"
  fi
}
# expect STATUS WHAT PARTS [NAME=VALUE...] [OPTION...]: PARTS are those that did not pass, and how they ended.
expect() {
  local status=$1 what=$2 parts=$3 got=0 ended
  local -a set=() options=()
  shift 3
  for word in "$@"; do
    if [[ $word == [A-Z]*=* ]]; then set+=("$word"); else options+=("$word"); fi
  done
  env STUB_GPU=works STUB_CHECK=OK STUB_CASES='a.f32.1\nb.f32.2\n' STUB_FAIL= STUB_HANG= STUB_RACE=yes STUB_NCU= STUB_NO_TORCH=0 STUB_SMI='Default, [N/A]' OUT="$scratch/results" \
    FUSE_LIBCUDA=stub FUSE_LIBNVRTC=stub FUSE_LIBCUBLASLT=stub PATH="$scratch/tools:$PATH" "${set[@]}" \
    timeout 60 bash "$dist/first" "${options[@]}" >"$scratch/out" 2>&1 </dev/null || got=$?
  ended=$(awk -F'\t' '$2 != "passed" { printf "%s%s %s", n++ ? ", " : "", $1, $2 }' "$scratch/results/parts.tsv")
  report "$([[ $got == "$status" && $ended == "$parts" ]] && grep -q 'table of 9 parts' "$scratch/out" && echo 0 || echo 1)" \
    "$what: status $got, '$ended', not $status, '$parts'"
}
tells() {  # PART TEXT: the line of the part has it
  report "$(grep "^$1"$'\t' "$scratch/results/parts.tsv" | grep -qF -- "$2" && echo 0 || echo 1)" "$1 tells '$2'"
}
all() {  # OUTCOME PART...: as expect has it
  local outcome=$1 text='' part
  shift
  for part in "$@"; do text+="${text:+, }$part $outcome"; done
  printf '%s' "$text"
}
gpu_parts=(graphs tests ladder cases torch ncu sanitizers probe)

expect 0 'all is well' ''
tells graphs '8 of 8'
tells tests '3 test cases'
tells cases '2 of 2'
tells sanitizers '5 of 5'
report "$(($(find "$scratch/results" -type f | wc -l) > 8))" 'at most 8 files'
expect 1 'one graph and one case fail' 'graphs failed, cases failed' 'STUB_FAIL=layernorm.*--mode graph|filter b.f32.2'
tells graphs '1 of 8: layernorm, graph: status 1: error: out of memory'
tells cases '1 of 2: b.f32.2: status 1: error: out of memory'
expect 1 'a graph that was not checked' 'graphs failed' STUB_CHECK=
tells graphs '8 of 8: softmax, streams'
expect 1 'no cases' 'cases failed' STUB_CASES=
tells cases 'it did nothing'
expect 1 'a planted race goes unseen' 'sanitizers failed' STUB_RACE=
tells sanitizers 'a planted race was not found'
expect 1 'a hanging ladder does not stop what follows' 'ladder failed' STUB_HANG='filter ladder' --seconds 240
tells ladder 'ladder: stopped: its time was over'
expect 1 'a part whose time was over tells what was not run' 'graphs failed' STUB_HANG='softmax.fuse.*--mode' --seconds 180
tells graphs '8 of 8: softmax, streams: stopped'
expect 0 'no counters, no PyTorch' 'torch skipped, ncu skipped' STUB_NO_TORCH=1 STUB_NCU=ERR_NVGPUCTRPERM
tells torch 'python3 has no module torch'
tells ncu 'ERR_NVGPUCTRPERM'
expect 1 'ncu fails otherwise' 'ncu failed' STUB_NCU='no such metric'
expect 0 'exclusive mode and MIG are told' '' STUB_SMI='Exclusive_Process, Enabled, 500 W'
tells machine 'exclusive mode'
tells machine 'MIG'
expect 1 'a driver older than NVRTC' "machine failed, $(all skipped "${gpu_parts[@]}")" STUB_GPU=old
tells machine 'older than NVRTC 13.0'
tells probe 'the GPU does not work: the NVIDIA driver is of CUDA 12.4'
expect 0 'beside another bundle' "$(all skipped tests ncu sanitizers)" --compare "$scratch/other"
tells cases '4 of 4'
tells ncu 'left out: --compare needs its time'
expect 0 'some parts only' "$(all skipped machine graphs tests cases torch ncu sanitizers)" --only ladder,probe
if compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
  echo 'skipped: what first says without a GPU, for there is one'
else
  expect 77 'no GPU' "$(all skipped machine "${gpu_parts[@]}")" STUB_GPU=none
  tells ladder 'no GPU: the NVIDIA driver was not found'
fi
for wrong in --fast '--seconds x' "--compare $scratch/none" '--only none'; do
  # shellcheck disable=SC2086  # an option and its value
  report "$(bash "$dist/first" $wrong >"$scratch/out" 2>&1; (($? == 2)) && echo 0 || echo 1)" "first $wrong is refused"
done
printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
