# shellcheck shell=bash
# Checks of bad machines, sourced by run_tools.sh: what is missing, damaged, too old, full or read-only is named by
# fusec doctor and by what compiles. SPDX-License-Identifier: Apache-2.0

# fusec, bin, scratch, expect and report are those of run_tools.sh.
# shellcheck disable=SC2154
softmax=examples/graphs/softmax.fuse

# both WHAT CODE PATTERN COMMAND...: doctor names it with its code, and the command fails of it. $env is set for both.
both() {
  local what=$1 code=$2 pattern=$3
  shift 3
  expect '[01]' "\\[$code\\]: .*$pattern" "doctor: $what" env "${env[@]}" "$fusec" doctor
  expect 1 "^(error: )?.*$pattern" "${1##*/} $2: $what" env "${env[@]}" "$@"
}

check_doctor() {
  local -a env=(FUSE_LIBCUDA=/nonexistent/libcuda.so.1)
  expect 0 '^  emulated +works: emulated h200' 'doctor: the emulated device works' \
    env "${env[@]}" "$fusec" doctor
  grep -qE '^  cuda +does not work: (no NVIDIA driver: /nonexistent/libcuda.so.1 was not found|not in this build)$' \
    "$scratch/out"
  report $? 'doctor: without a driver it says so'
  expect 0 '"usable": true' 'doctor --json' "$fusec" doctor --json
  expect 0 "^  cache $scratch/kept: does not exist; made when the first program is kept" 'doctor: the cache directory' \
    env FUSE_CACHE=1 "FUSE_CACHE_DIR=$scratch/kept" "$fusec" doctor
  expect 0 '^  cache; not used: FUSE_CACHE is 0' 'doctor: no cache' env FUSE_CACHE=0 "$fusec" doctor
  expect 0 '^    GEMMs of the emulated device are plain loops' 'doctor: no OpenBLAS' \
    env FUSE_LIBOPENBLAS=/nonexistent "$fusec" doctor
  expect 1 'missing-compiler' 'doctor: without a compiler and a driver no device works' \
    env "${env[@]}" FUSE_CXX=/nonexistent/c++ "$fusec" doctor
}

check_compilers() {
  local -a run=("$fusec" run "$softmax" --device emulated --dim B=1) env
  env=(PATH=/nonexistent)
  # env itself is on PATH, so it is named by its path
  expect 1 '\[missing-compiler\]: .*not found' 'doctor: no C++ compiler' /usr/bin/env "${env[@]}" "$fusec" doctor
  expect 1 '^error: .*needs a C\+\+ compiler' 'run: no C++ compiler' /usr/bin/env "${env[@]}" "${run[@]}"
  printf '#!/bin/sh\necho "cannot execute cc1plus" >&2\nexit 1\n' >"$scratch/half"
  # shellcheck disable=SC2016
  printf '#!/bin/sh\nfor last; do :; done\n[ "$last" = --version ] || echo junk >"$last"\n' >"$scratch/other"
  chmod +x "$scratch/half" "$scratch/other"
  env=("FUSE_CXX=$scratch/half")
  both 'a compiler half installed' broken-install 'C\+\+ compiler .*/half does not work' "${run[@]}"
  env=("FUSE_CXX=$scratch/other")
  both 'a compiler whose output does not load' broken-install 'cannot load what .*/other built' "${run[@]}"
}

check_libraries() {
  local fake=$bin/../lib/fake
  if [[ ! -e $fake/libfake_nvrtc.so ]]; then
    echo 'skipped libraries of CUDA: this build has no cuda device'
    return
  fi
  local -a env emit=("$fusec" emit "$softmax" -o "$scratch/nothing" --arch sm_90 --cubin)
  local -a run=("$fusec" run "$softmax" --device cuda --dim B=1)
  env=(FUSE_LIBNVRTC=/nonexistent/libnvrtc.so)
  both 'no NVRTC' missing-library 'NVRTC, the CUDA run-time compiler was not found' "${emit[@]}"
  head -c 6000 "$fake/libfake_nvrtc.so" >"$scratch/libnvrtc.so"
  env=("FUSE_LIBNVRTC=$scratch/libnvrtc.so")
  both 'NVRTC cut short' broken-install 'NVRTC.* is damaged or incomplete' "${emit[@]}"
  grep -q 'cut short: 6000 bytes, its segments need' "$scratch/err"
  report $? 'and by how much'
  mkdir -p "$scratch/path"
  cp "$scratch/libnvrtc.so" "$scratch/path/libnvrtc.so.13"
  expect '[01]' 'tried libnvrtc.so.13: .*/path/libnvrtc.so.13: cut short' \
    'doctor: one cut short in LD_LIBRARY_PATH is passed over, and told' \
    env "LD_LIBRARY_PATH=$scratch/path" "$fusec" doctor
  local version
  for version in 11.8 99.0; do
    env=("FUSE_LIBNVRTC=$fake/libfake_nvrtc.so" "FAKE_NVRTC_VERSION=$version")
    both "NVRTC $version" incompatible-version 'NVRTC.* is of a version that fuse does not take' "${emit[@]}"
    grep -q "its version is $version; fuse takes 12 to 13" "$scratch/err"
    report $? "and which versions fuse takes, not $version"
  done
  env=("FUSE_LIBNVRTC=$fake/libfake_nvrtc.so" FAKE_NVRTC_FAIL=7)
  both 'NVRTC without its built-ins' broken-install 'nvrtcCompileProgram' "${emit[@]}"
  grep -q 'hint: libnvrtc-builtins.so.13.0 belongs beside .*libfake_nvrtc.so' "$scratch/err"
  report $? 'and where they belong'
  mkdir -p "$scratch/nvrtc_cache"
  for version in 12.4 12.9 13.0; do
    env=("FUSE_LIBNVRTC=$fake/libfake_nvrtc.so" "FAKE_NVRTC_VERSION=$version" "FAKE_NVRTC_CACHE=$scratch/nvrtc_cache")
    expect 0 'softmax_softmax_0' "NVRTC $version compiles a text" env "${env[@]}" "${emit[@]}"
    expect 0 'softmax_softmax_0' "NVRTC $version compiles it again: ptxas's report is no matter of a cache" \
      env "${env[@]}" "${emit[@]}"
  done

  local -a gpu=("FUSE_LIBCUDA=$fake/libfake_cuda.so" "FUSE_LIBNVRTC=$fake/libfake_nvrtc.so"
    "FUSE_LIBCUBLASLT=$fake/libfake_cublaslt.so")
  env=("${gpu[@]}" FAKE_CUDA_VERSION=11080)
  both 'a driver of CUDA 11' incompatible-version 'the NVIDIA driver .* is of CUDA 11.8; fuse takes 12.0 and newer' "${run[@]}"
  env=("${gpu[@]}" FAKE_CUDA_VERSION=12040)
  both 'a driver older than NVRTC' incompatible-version \
    'the NVIDIA driver is of CUDA 12.4 .*older than NVRTC.* 13.0' "${run[@]}"
  env=("${gpu[@]}" FAKE_CUDA_ARCH=70)
  expect '[01]' '\[unknown-arch\]: NVRTC 13.0 does not compile for sm_70' \
    'doctor: a GPU that NVRTC does not know' env "${env[@]}" "$fusec" doctor
  expect 2 '^error: NVRTC 13.0 does not compile for sm_70' 'fusec run: a GPU that NVRTC does not know' \
    env "${env[@]}" "${run[@]}"
  local matmul=$scratch/matmul.fuse
  cat >"$matmul" <<'FUSE'
graph @matmul(%x: f32[2, 2]) -> (y: f32[2, 2]) {
  %1 = matmul %x, %x : f32[2, 2]
  return y = %1
}
FUSE
  run=("$fusec" run "$matmul" --device cuda)
  env=("${gpu[@]}" FUSE_LIBCUBLASLT=/nonexistent/libcublasLt.so)
  both 'no cuBLASLt' missing-library 'cuBLASLt was not found' "${run[@]}"
  head -c 6000 "$fake/libfake_cublaslt.so" >"$scratch/libcublasLt.so"
  env=("${gpu[@]}" "FUSE_LIBCUBLASLT=$scratch/libcublasLt.so")
  both 'cuBLASLt cut short' broken-install 'cuBLASLt is damaged or incomplete' "${run[@]}"
  env=("${gpu[@]}" FAKE_CUBLASLT_VERSION=111103)
  both 'cuBLASLt 11' incompatible-version 'cuBLASLt is of a version that fuse does not take' "${run[@]}"
  env=("${gpu[@]}" FAKE_CUDA_VERSION=12040 FAKE_NVRTC_VERSION=12.4)
  both 'a driver older than cuBLASLt' incompatible-version \
    'the NVIDIA driver is of CUDA 12.4 .*older than cuBLASLt 13.0' "${run[@]}"
}

# with_mount OPTIONS COMMAND...: the command with a tmpfs of those options at $scratch/mount, in a mount namespace
# of its own. --map-root-user lets a plain user do it where the kernel allows.
namespace=(unshare --mount --propagation private)
((EUID == 0)) || namespace+=(--map-root-user)
with_mount() {
  local options=$1
  shift
  # shellcheck disable=SC2016
  "${namespace[@]}" bash -c 'mount -t tmpfs -o "$1" tmpfs "$0" && shift && exec "$@"' \
    "$scratch/mount" "$options" "$@"
}

check_directories() {
  local -a run=("$fusec" run "$softmax" --device emulated --dim B=1)
  local -a env=("TMPDIR=/nonexistent")
  both 'no temporary directory' io 'temporary directory /nonexistent .*does not exist' "${run[@]}"
  # shellcheck disable=SC2016
  printf '#!/bin/sh\nrm -rf "$TMPDIR"\nexit 1\n' >"$scratch/remover"
  chmod +x "$scratch/remover"
  mkdir -p "$scratch/vanishing"
  expect 1 "^error: $scratch/vanishing/fuse-.* is gone: somebody removed it while fuse used it" \
    'run: a temporary directory that vanishes' env "TMPDIR=$scratch/vanishing" "FUSE_CXX=$scratch/remover" "${run[@]}"
  mkdir -p "$scratch/mount"
  if ! with_mount size=1m true 2>"$scratch/err"; then
    echo "skipped directories that are noexec, full or read-only: $(head -n 1 "$scratch/err")"
    return
  fi
  env=("TMPDIR=$scratch/mount")
  local row options pattern
  for row in 'noexec|is mounted noexec' 'size=4k|is full' 'size=24k|is full' 'ro|cannot be written: Read-only'; do
    options=${row%%|*} pattern=${row#*|}
    expect 1 "\\[io\\]: the temporary directory .*$pattern" "doctor: a temporary directory with $options" \
      with_mount "$options" env "${env[@]}" FUSE_LIBCUDA=/nonexistent "$fusec" doctor
    expect 1 "^error: the temporary directory .*$pattern" "run: a temporary directory with $options" \
      with_mount "$options" env "${env[@]}" "${run[@]}"
    grep -q '  hint: .*TMPDIR' "$scratch/err"
    report $? 'and the hint is TMPDIR'
  done
  # shellcheck disable=SC2016
  expect 2 '^dev: cannot write to .*/build/release: read-only' './dev build: the source tree is read-only' with_mount ro \
    bash -c 'mount --bind "$PWD" "$PWD" && mount -o remount,bind,ro "$PWD" && cd "$PWD" && exec ./dev build'
  # What cannot be kept in HOME is not kept.
  expect 0 'cache .*/mount/.cache/fuse-compiler: does not exist; it cannot be made in .*/mount, so nothing is kept' \
    'doctor: a HOME that is read-only' with_mount ro env -u XDG_CACHE_HOME -u FUSE_CACHE_DIR FUSE_CACHE=1 "HOME=$scratch/mount" "$fusec" doctor
  # shellcheck disable=SC2016
  expect 0 'OK$' 'run: HOME and the source tree are read-only' with_mount ro \
    bash -c 'mount --bind "$PWD" "$PWD" && mount -o remount,bind,ro "$PWD" && cd "$PWD" && ! touch x 2>/dev/null &&
      exec env HOME="$0" "$@"' "$scratch/mount" "${run[@]}" --check
}
