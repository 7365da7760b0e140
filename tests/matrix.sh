#!/usr/bin/env bash
# Builds and tests HEAD in a fresh system of each Debian release: other compilers, fmt, Catch2, CMake and Boost than
# here. ./dev matrix calls it. SPDX-License-Identifier: Apache-2.0
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: ./dev matrix [--directory DIRECTORY] [--keep] [SUITE...]

Makes a fresh Debian with debootstrap for each SUITE (bookworm and trixie, 12 and 13, unless given) and runs
./dev test in it. Needs root, about 2 GB a suite, and the archive of this machine's own apt sources. Tests HEAD:
commit first. The CUDA toolkit of this machine (/usr/local/cuda*), where there is one, is shown to the chroot.

  --directory DIRECTORY   where the chroots go (default: a new one in TMPDIR, else /tmp)
  --keep                  leave the chroots there; else they are removed, and the logs where all passed

One line a suite: passed and failed counts and the versions of what it was built with. Exit status 1 where a suite
failed.
TEXT
}

directory='' keep=''
suites=()
while (($#)); do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --directory) (($# > 1)) || { usage >&2; exit 2; }; directory=$2; shift ;;
    --directory=*) directory=${1#*=} ;;
    --keep) keep=1 ;;
    [a-z]*) suites+=("$1") ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
((${#suites[@]})) || suites=(bookworm trixie)

# shellcheck source=tests/chroot.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/chroot.sh"
require_root_and_tools
if [[ -z $directory ]]; then directory=$(mktemp -d "${TMPDIR:-/tmp}/fuse-matrix.XXXXXX"); fi
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
enter_namespace --directory "$directory" ${keep:+--keep} "${suites[@]}"
if [[ -n $(git -C "$project" status --porcelain) ]]; then
  echo 'matrix: there are changes that are not committed; HEAD is tested' >&2
fi

roots=()
clean_up() {
  local root
  stop_clock
  if [[ $keep ]]; then return 0; fi
  for root in "${roots[@]}"; do remove_root "$root"; done
  rmdir --ignore-fail-on-non-empty "$directory"
}
trap clean_up EXIT

# A terminal shows the seconds of a silent step.
clock=
start_clock() {  # WHAT
  printf '== %s\n' "$1" >&2
  if [[ ! -t 2 ]]; then return 0; fi
  (trap 'exit 0' TERM
   while sleep 1; do printf '\r   %d s\r' "$SECONDS" >&2; done) &
  clock=$!
}
stop_clock() {
  if [[ -z $clock ]]; then return 0; fi
  kill "$clock" 2>/dev/null || true
  wait "$clock" 2>/dev/null || true
  clock=
  printf '\r           \r' >&2
}

# What the suite was built with: "g++ 14.2.0, cmake 3.31.6-2, ..."
versions() {  # ROOT
  # shellcheck disable=SC2016
  chroot "$1" dpkg-query --show --showformat '${Package} ${Version}, ' \
    g++ cmake libfmt-dev catch2 libboost-context-dev nlohmann-json3-dev libcli11-dev 2>/dev/null | sed 's/, $//'
}

prepare_suite() {  # SUITE ROOT
  make_root "$1" "$2" && show_system "$2" && clone_project "$2"
}

# test_suite SUITE: its line on stdout; a failure where anything did.
test_suite() {
  local suite=$1 root=$directory/$1 log=$directory/$1.log counts
  [[ ! -e $root ]] || die "$root is there already"
  roots+=("$root")
  start_clock "$suite: a fresh system"
  if ! prepare_suite "$suite" "$root" >"$log" 2>&1; then
    stop_clock
    tail -n 15 "$log" | sed 's/^/   | /' >&2
    printf '%s: no system could be made (log %s)\n' "$suite" "$log"
    return 1
  fi
  stop_clock
  start_clock "$suite: ./dev test"
  local status=0
  inside "$root" './dev build --preset shared fuse && ./dev test' >>"$log" 2>&1 || status=$?
  stop_clock
  counts=$(tail -n 1 "$log" | grep -xE '[0-9]+ passed, [0-9]+ failed') || counts='it did not come to an end'
  printf 'Debian %s (%s): %s; %s\n' "$(sed -n 's/^VERSION_ID="\(.*\)"/\1/p' "$root/etc/os-release")" "$suite" \
    "$counts" "$(versions "$root")"
  if ((status == 0)) && [[ $counts == *', 0 failed' ]]; then
    [[ $keep ]] || rm -f "$log"
    return 0
  fi
  {
    grep -nE '(error|warning): |^FAILED|^[^ ]+: FAILED:' "$log" | head -n 30 || true
    tail -n 15 "$log"
  } | sed 's/^/   | /' >&2
  printf '   status %d, log %s\n' "$status" "$log" >&2
  return 1
}

failures=0
for suite in "${suites[@]}"; do
  status=0
  test_suite "$suite" || status=$?
  ((status == 0)) || failures=$((failures + 1))
  if [[ ! $keep ]]; then remove_root "$directory/$suite"; fi
done
((failures == 0))
