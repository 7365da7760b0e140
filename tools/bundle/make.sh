#!/usr/bin/env bash
# Lays out dist/ from a build of the preset bundle: bash tools/bundle/make.sh BUILD_DIRECTORY DIST_DIRECTORY.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
shopt -s nullglob

max_bytes=40000000
max_glibc=2.36
# What every machine with glibc has.
libc='libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 ld-linux-x86-64.so.2'

die() { printf 'bundle: %s\n' "$*" >&2; exit 1; }
(($# == 2)) || die 'usage: make.sh BUILD_DIRECTORY DIST_DIRECTORY'
build=$(cd "$1" && pwd) dist=$2
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."

check_libraries() {  # FILE: it needs libc only, of an old enough version, and has no search path of its own
  local file=$1 library version
  while read -r library; do
    [[ " $libc " == *" $library "* ]] || die "$file needs $library, which a machine may lack"
  done < <(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  if readelf -d "$file" | grep -qE '\((RPATH|RUNPATH)\)'; then die "$file has an RPATH"; fi
  version=$(readelf -V "$file" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -uV | tail -1)
  [[ $(printf '%s\n' "$version" "$max_glibc" | sort -V | tail -1) == "$max_glibc" ]] ||
    die "$file needs glibc $version, newer than $max_glibc: build on an older system"
}

rm -rf "$dist"
mkdir -p "$dist"/{bin,lib/fake,examples,tests,docs,src/passes/rewrite}
install -m 755 "$build/bin/fuse" "$dist/bin/fuse"
while read -r program; do
  ln -s fuse "$dist/bin/$program"
done < <(sed -n 's/^FUSE_PROGRAM(\(.*\))$/\1/p' "$build/tools/bundle/programs.def")
install -m 644 "$build"/lib/fake/*.so "$dist/lib/fake"
for file in "$dist/bin/fuse" "$dist"/lib/fake/*.so; do check_libraries "$file"; done

# What programs and tests read, by the paths that it has in the repository.
cp -r examples/graphs "$dist/examples"
cp -r tests/golden tests/papers tests/cases "$dist/tests"
# Peers run the same cases; what is predicted for them is in the static counts.
mkdir -p "$dist/bench/results"
cp bench/cases.json bench/gpu_queue.md "$dist/bench"
mkdir "$dist/bench"/{peers,page}
cp bench/page/page.md "$dist/bench/page"
cp bench/peers/*.py "$dist/bench/peers"
cp bench/results/*-epyc-*-cores.json "$dist/bench/results"  # of the emulated device
if [[ -e bench/results/sass_counts.json ]]; then cp bench/results/sass_counts.json "$dist/bench/results"; fi
mkdir -p "$dist/tests/guided"
cp -r tests/guided/corpus "$dist/tests/guided"
cp docs/passes.md "$dist/docs"
if [[ -d tests/fuzz/corpus ]]; then
  mkdir "$dist/tests/fuzz"
  cp -r tests/fuzz/corpus "$dist/tests/fuzz"
fi
cp src/passes/*.hpp "$dist/src/passes"
cp src/passes/rewrite/*.hpp "$dist/src/passes/rewrite"
cp LICENSE THIRD_PARTY_NOTICES* "$dist"
cp docs/bundle.md "$dist/README.md"
install -m 755 tools/bundle/check tools/bundle/first "$dist"
install -m 644 tools/bundle/machine.sh "$dist"
git describe --always --dirty >"$dist/COMMIT" 2>/dev/null || echo 'not from a git checkout' >"$dist/COMMIT"

bytes=$(du -sb --apparent-size "$dist" | cut -f 1)
megabytes() { printf '%d.%d MB' $(($1 / 1000000)) $(($1 / 100000 % 10)); }
printf '%s: %s, of it bin/fuse %s; commit %s\n' "$dist" "$(megabytes "$bytes")" \
  "$(megabytes "$(stat -c %s "$dist/bin/fuse")")" "$(<"$dist/COMMIT")"
((bytes < max_bytes)) || die "$dist has $bytes bytes, more than $max_bytes"
