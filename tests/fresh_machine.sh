#!/usr/bin/env bash
# Shows that a bare Debian is enough: makes two of them with debootstrap and runs ./dev in each, with and
# without a network, as root and as a user. SPDX-License-Identifier: Apache-2.0
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: sudo tests/fresh_machine.sh DIRECTORY [SUITE]

SUITE is a Debian release, bookworm (12) unless given. Needs root, debootstrap, git and about 4 GB under DIRECTORY
(made if missing, must be empty; it stays for a look). The mirror is that of this machine's own apt sources. Tests
HEAD of this repository: commit first. The CUDA toolkit of this machine (/usr/local/cuda*), where there is one, is
shown to the chroot.
TEXT
}

case ${1:-} in
  -h | --help) usage; exit 0 ;;
  '' | -*) usage >&2; exit 2 ;;
esac
# shellcheck source=tests/chroot.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/chroot.sh"
require_root_and_tools
enter_namespace "$@"

suite=${2:-bookworm}
mkdir -p "$1"
dir=$(cd "$1" && pwd)
[[ -z $(ls -A "$dir") ]] || die "$dir is not empty"
root=$dir/root bare=$dir/bare logs=$dir/logs
mkdir "$logs"

failures=0
# check NAME COMMAND...: one line of result; the output goes to a log.
check() {
  local name=$1 log started=$SECONDS status=0
  shift
  log=$logs/${name//[^a-z0-9]/-}.log
  if [[ -t 1 ]]; then printf '...    %s' "$name"; fi
  "$@" >"$log" 2>&1 || status=$?
  if [[ -t 1 ]]; then printf '\r'; fi
  if ((status == 0)); then
    printf 'ok     %s (%d s)\n' "$name" $((SECONDS - started))
  else
    printf 'FAILED %s (status %d, %d s, %s)\n' "$name" "$status" $((SECONDS - started)) "$log"
    tail -n 15 "$log" | sed 's/^/       | /'
    failures=$((failures + 1))
  fi
  return 0
}
must() {  # as check, but the rest makes no sense without it
  local before=$failures
  check "$@"
  ((failures == before)) || exit 1
}

as_root() { inside "$root" "$1"; }
offline() { unshare --net "${environment[@]}" HOME=/root chroot "$root" bash -c "cd /home/fuse && $1"; }

# One line to copy on stdout, status 2, and nothing built.
user_is_told() {
  local status=0 out
  useradd --root "$bare" --create-home tester
  chown -R --reference="$bare/home/tester" "$bare/home/fuse"
  out=$("${environment[@]}" HOME=/home/tester chroot --userspec=tester "$bare" \
    bash -c 'cd /home/fuse && ./dev demo') || status=$?
  printf '%s\nstatus %d\n' "$out" "$status"
  ((status == 2)) || return 1
  [[ $(wc -l <<<"$out") == 1 && $out == 'sudo apt-get install -y --no-install-recommends '* ]] || return 1
  [[ ! -e $bare/home/fuse/build ]]
}

must 'debootstrap' make_root "$suite" "$root"
must 'second root' cp -a "$root" "$bare"
must 'mounts' show_system "$root"
must 'mounts for the user' show_system "$bare"
must 'clone' clone_project "$root"
must 'clone for the user' clone_project "$bare"
must 'no compiler before' as_root '! command -v g++ && ! command -v cmake'
check 'root: ./dev demo' as_root './dev demo'
check 'root: ./dev test' as_root './dev test'
check 'offline, built again: ./dev demo' offline 'rm -rf build && ./dev demo'
check 'offline: ./dev test' offline './dev test'
check 'user without packages: one line, status 2' user_is_told

printf '\n%s\n' "$(git -C "$root/home/fuse" log -1 --format='tested %h %s')"
if ((failures)); then
  printf '%d steps failed; logs in %s\n' "$failures" "$logs"
  exit 1
fi
echo 'a fresh machine is enough'
