#!/usr/bin/env bash
# fuse on AArch64: built by Debian's cross compiler, and run under qemu-user. SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

usage() {
  cat <<'TEXT'
usage: tests/aarch64.sh [BUILD]

Builds fusec, fuse_fuzz and two applications for AArch64 in BUILD (build/aarch64 unless given), and runs them under
qemu-user: graphs on the cpu device against the reference, generated programs, and saved plans by the library that
cannot compile. It takes about ten minutes, and is no part of ./dev test. What it needs on Debian, as root:

    dpkg --add-architecture arm64 && apt-get update
    apt-get install g++-aarch64-linux-gnu qemu-user libfmt-dev:arm64 libboost-context-dev:arm64
TEXT
}
case ${1:-} in
  -h | --help) usage; exit 0 ;;
  -*) usage >&2; exit 2 ;;
esac
for program in aarch64-linux-gnu-g++ qemu-aarch64 cmake ninja; do
  command -v "$program" >/dev/null || { printf 'aarch64.sh: there is no %s\n\n' "$program" >&2; usage >&2; exit 2; }
done

build=${1:-build/aarch64}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/fuse-aarch64.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# Nothing is measured here, and most of the time is that of the cross compiler.
cmake -S tests/consumers/add_subdirectory -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64.cmake" \
  -DFUSE_SOURCE_DIR="$PWD" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DCMAKE_UNITY_BUILD=ON -DFUSE_COMPILER_WERROR=ON \
  -DFUSE_COMPILER_CUDA=OFF -DFUSE_COMPILER_BUILD_TOOLS=ON -DFUSE_COMPILER_BUILD_TESTS=ON
cmake --build "$build" --target fusec fuse_fuzz consumer save_plan run_plan
fusec=$(find "$build" -name fusec -type f) fuzz=$(find "$build" -name fuse_fuzz -type f)

# The compiler of the kernels runs on this machine, as the emulated program asks for it.
emulated() { FUSE_CACHE=0 FUSE_CXX=aarch64-linux-gnu-g++ qemu-aarch64 "$@"; }
bare() { env -i PATH=/nonexistent FUSE_CXX=/nonexistent TMPDIR="$scratch" "$(command -v qemu-aarch64)" "$@"; }

passed=0 failed=0
check() {  # WHAT COMMAND...
  local what=$1 begin=$SECONDS status=0
  shift
  "$@" >"$scratch/log" 2>&1 </dev/null || status=$?
  if ((status == 0)); then
    passed=$((passed + 1))
    printf 'ok      %s (%d s)\n' "$what" $((SECONDS - begin))
  else
    failed=$((failed + 1))
    printf 'FAILED  %s: status %d\n' "$what" "$status"
    sed 's/^/          /' "$scratch/log"
  fi
}
runs_alike() {  # GRAPH
  local wanted
  wanted=$(emulated "$build/save_plan" "$1" "$scratch/plan" cpu) || return
  [[ $wanted == "$(bare "$build/run_plan" "$scratch/plan" cpu)" ]]
}

generated_programs() {  # each alone: under qemu-user a program cannot start itself again
  local i
  for ((i = 0; i < 60; ++i)); do emulated "$fuzz" --device cpu --seed 8 --index "$i" || return; done
}

check 'the device is cpu armv8-a' bash -c "$(declare -f emulated); emulated '$fusec' doctor | grep -F armv8-a"
for graph in softmax layernorm layer_norm_backward transformer_block; do
  check "$graph on the cpu device, against the reference" \
    emulated "$fusec" run --device cpu --check "examples/graphs/$graph.fuse"
done
for graph in softmax layernorm transformer_block; do
  check "a saved $graph runs where there is no compiler, with the same bits" runs_alike "examples/graphs/$graph.fuse"
done
check 'an application that has fuse in its build' emulated "$build/consumer"
check '60 generated programs on the cpu device' generated_programs

printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
