#!/usr/bin/env bash
# What dist/check makes of a GPU, of none, of a broken one and of failures, with stubs for the programs.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/fuse-check-test.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
dist="$scratch/a copy"
mkdir -p "$dist/bin" "$dist/examples" "$scratch/tools"
cp "$here/check" "$here/machine.sh" "$dist"
cp -r "$here/../../examples/graphs" "$dist/examples"
echo stub >"$dist/COMMIT"

cat >"$dist/bin/fuse" <<'STUB'
#!/usr/bin/env bash
case "$*" in
  'fusec --version') echo 'fusec stub' && exit ;;
  'fuse_tests --help') echo ' --list-test-names-only' && exit ;;
  'fuse_tests --list-test-names-only '*) printf 'a\nb\nc\n' && exit 3 ;;
  'fuse_tests '*) echo "$STUB_TESTS" && [[ $STUB_TESTS == All* ]] && exit ;;
  *layernorm*--dim*) echo 'device   cuda:0 Stub (sm_90)' && echo "check y: $STUB_CHECK" ;;
esac
case $STUB_GPU in
  none) echo 'error: the NVIDIA driver was not found; looked for' >&2 && exit 1 ;;
  broken) echo 'error: cuInit: CUDA_ERROR_UNKNOWN (999)' >&2 && exit 1 ;;
esac
echo 'device   cuda:0 Stub (sm_90)'
echo 'check y: largest error 0: OK'
[[ $* != *layernorm*--dim* || $STUB_CHECK == *OK ]]
STUB
cat >"$scratch/tools/compute-sanitizer" <<'STUB'
#!/usr/bin/env bash
"${@:5}" || exit
if [[ $* == *--drop-barrier* && $STUB_RACE ]]; then echo 'RACECHECK SUMMARY: 2 hazards displayed' && exit 97; fi
if [[ $2 == racecheck ]]; then echo 'RACECHECK SUMMARY: 0 hazards displayed'; else echo "ERROR SUMMARY: 0 errors"; fi
STUB
chmod +x "$dist/bin/fuse" "$scratch/tools/compute-sanitizer"

passed=0 failed=0
# expect STATUS LAST_LINE WHAT [NAME=VALUE...] [--sanitizer]
expect() {
  local status=$1 last=$2 what=$3 got=0
  local -a set=() options=()
  shift 3
  for word in "$@"; do
    if [[ $word == --* ]]; then options+=("$word"); else set+=("$word"); fi
  done
  env STUB_GPU=works STUB_CHECK=OK STUB_RACE=yes STUB_TESTS='All tests passed (9 assertions in 3 test cases)' \
    FUSE_LIBCUDA=stub FUSE_LIBNVRTC=stub FUSE_LIBCUBLASLT=stub FUSE_CXX=bash PATH="$scratch/tools:$PATH" "${set[@]}" \
    bash "$dist/check" "${options[@]}" >"$scratch/out" 2>&1 </dev/null || got=$?
  if ((got == status)) && [[ $(tail -n 1 "$scratch/out") == "$last" ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf "FAILED: %s: status %d, not %d, or the last line is not '%s'\n" "$what" "$got" "$status" "$last"
    cat "$scratch/out"
  fi
}

# 3 tests of each kind, 3 graphs with 6 extents each, 5 examples.
expect 0 'check: 29 passed, 0 failed, 0 skipped on Stub' 'all is well'
expect 0 'check: 26 passed, 0 failed, 0 skipped on Stub' 'only what needs a GPU' --device-only
expect 0 'check: 29 passed, 0 failed, 0 skipped on Stub' 'no compiler' FUSE_CXX=no-such-compiler
expect 1 'check: 24 passed, 5 failed, 0 skipped on Stub' 'results of one graph are wrong' STUB_CHECK=MISMATCH
expect 1 'check: 27 passed, 4 failed, 0 skipped on Stub' 'tests fail' \
  STUB_TESTS='test cases: 4 | 2 passed | 2 failed'
expect 1 'check: 23 passed, 2 failed, 0 skipped on Stub' 'the tests crash' STUB_TESTS='Segmentation fault'
expect 1 'check: 3 passed, 1 failed, 0 skipped, no GPU' 'a GPU that does not work' STUB_GPU=broken
expect 0 'sanitizer: 41 passed, 0 failed, 0 skipped on Stub' 'sanitizers find nothing' --sanitizer
expect 1 'sanitizer: 40 passed, 1 failed, 0 skipped on Stub' 'a planted race goes unseen' --sanitizer STUB_RACE=
if command -v compute-sanitizer >/dev/null || compgen -G '/usr/local/cuda*/*/compute-sanitizer' >/dev/null; then
  echo 'skipped: what check says without compute-sanitizer, for there is one'
else
  expect 77 'sanitizer: 0 passed, 0 failed, 4 skipped on Stub' 'no compute-sanitizer' --sanitizer PATH="$PATH"
fi
if compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
  echo 'skipped: what check says without a GPU, for there is one'
else
  expect 77 'check: 3 passed, 0 failed, 26 skipped, no GPU' 'no GPU' STUB_GPU=none
  expect 1 'check: 0 passed, 1 failed, 26 skipped, no GPU' 'no GPU, and the tests crash' STUB_GPU=none STUB_TESTS=
  expect 77 'sanitizer: 0 passed, 0 failed, 4 skipped, no GPU' 'no GPU for the sanitizers' STUB_GPU=none --sanitizer
fi
printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
