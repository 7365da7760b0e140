#!/usr/bin/env bash
# Shows that a bare Debian 12 is enough: makes two of them with debootstrap and runs ./dev in each, with and
# without a network, as root and as a user. SPDX-License-Identifier: Apache-2.0
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: sudo tests/fresh_machine.sh DIRECTORY

Needs root, debootstrap, git and about 4 GB under DIRECTORY (made if missing, must be empty; it stays for a look).
The mirror is that of this machine's own apt sources. Tests HEAD of this repository: commit first.
The CUDA toolkit of this machine (/usr/local/cuda*), where there is one, is shown to the chroot.
TEXT
}

case ${1:-} in
  -h | --help) usage; exit 0 ;;
  '' | -*) usage >&2; exit 2 ;;
esac
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
die() { printf 'fresh_machine: %s\n' "$*" >&2; exit 2; }
((EUID == 0)) || die 'run it as root'
for tool in debootstrap git unshare chroot; do
  command -v "$tool" >/dev/null || die "$tool is missing"
done

# A mount namespace of its own: whatever happens, no mount is left behind.
if [[ -z ${FUSE_FRESH_NAMESPACE:-} ]]; then
  FUSE_FRESH_NAMESPACE=1 exec unshare --mount --propagation private "$0" "$@"
fi

suite=bookworm
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

# The first Debian archive among the apt sources, in either of their formats.
mirror() {
  local file
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [[ -e $file ]] || continue
    sed -nE 's/^deb +(\[[^]]*\] +)?([^ ]+) +.*/\2/p' "$file"
  done
  for file in /etc/apt/sources.list.d/*.sources; do
    [[ -e $file ]] || continue
    sed -nE 's/^URIs: *([^ ]+).*/\1/p' "$file"
  done
}
archive=$(mirror | grep -E '/debian/?$' | head -n 1) || die 'no Debian archive in the apt sources'

# The same servers, keys, proxies and certificates as this machine's apt.
copy_apt_configuration() {
  local to=$1 path
  rm -f "$to/etc/apt/sources.list"  # debootstrap's own; twice the same archive makes apt complain
  for path in /etc/apt /usr/share/keyrings /usr/local/share/ca-certificates /etc/ssl/certs; do
    [[ -e $path ]] || continue
    mkdir -p "$to$path"
    cp -a "$path/." "$to$path/"
  done
  cp -L /etc/resolv.conf /etc/hosts "$to/etc/"
}

# Other releases' sources (a host that is not bookworm) would mix suites; then only the archive itself is kept.
keep_only_suite() {
  local to=$1
  if ! grep -rqs "$suite" "$to/etc/apt/sources.list" "$to/etc/apt/sources.list.d"; then
    rm -f "$to"/etc/apt/sources.list.d/*
    echo "deb $archive $suite main" >"$to/etc/apt/sources.list"
  fi
}

make_root() {
  debootstrap --variant=minbase "$suite" "$root" "$archive"
  copy_apt_configuration "$root"
  keep_only_suite "$root"
}

show_system() {  # mounts that programs expect, and the CUDA toolkit
  local to=$1 path
  mount -t proc proc "$to/proc"
  mount --rbind /dev "$to/dev"
  mount -t tmpfs tmpfs "$to/run"
  for path in /usr/local/cuda*; do
    [[ -e $path ]] || continue
    if [[ -L $path ]]; then
      cp -a "$path" "$to$path"
    else
      mkdir -p "$to$path"
      mount --bind "$path" "$to$path"
      mount -o remount,bind,ro "$to$path"
    fi
  done
}

clone() {
  git clone --quiet --no-hardlinks "$here" "$1/home/fuse"
  git -C "$1/home/fuse" log --oneline -1
}

# A clean environment; only what apt needs to reach its servers is handed on.
environment=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb)
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  if [[ -n ${!name:-} ]]; then environment+=("$name=${!name}"); fi
done

as_root() { "${environment[@]}" HOME=/root chroot "$root" bash -c "cd /home/fuse && $1"; }
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

must 'debootstrap' make_root
must 'second root' cp -a "$root" "$bare"
must 'mounts' show_system "$root"
must 'mounts for the user' show_system "$bare"
must 'clone' clone "$root"
must 'clone for the user' clone "$bare"
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
