# shellcheck shell=bash
# Fresh Debian systems in directories, for matrix.sh and fresh_machine.sh, which source this. Needs root, and a mount
# namespace of its own (enter_namespace). SPDX-License-Identifier: Apache-2.0

project=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
self=$(basename "$0" .sh)
die() { printf '%s: %s\n' "$self" "$*" >&2; exit 2; }

require_root_and_tools() {
  ((EUID == 0)) || die 'it makes chroots and mounts: run it as root'
  local tool
  for tool in debootstrap git unshare chroot; do
    command -v "$tool" >/dev/null || die "$tool is missing: apt-get install $tool"
  done
}

# enter_namespace ARGUMENT...: runs the script again where its mounts are nobody else's, and end with it.
enter_namespace() {
  if [[ -n ${FUSE_CHROOT_NAMESPACE:-} ]]; then return 0; fi
  FUSE_CHROOT_NAMESPACE=1 exec unshare --mount --propagation private "$0" "$@"
}

# The first Debian archive among this machine's apt sources, in either of their formats.
debian_archive() {
  local file
  {
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
      [[ -e $file ]] || continue
      sed -nE 's/^deb +(\[[^]]*\] +)?([^ ]+) +.*/\2/p' "$file"
    done
    for file in /etc/apt/sources.list.d/*.sources; do
      [[ -e $file ]] || continue
      sed -nE 's/^URIs: *([^ ]+).*/\1/p' "$file"
    done
  } | grep -m 1 -E '/debian/?$' || die 'no Debian archive in the apt sources'
}

# make_root SUITE DIRECTORY: the smallest system of that release; the archive, keys, proxies and certificates are this
# machine's.
make_root() {
  local suite=$1 root=$2 archive path
  archive=$(debian_archive) || return 1
  debootstrap --variant=minbase "$suite" "$root" "$archive" || return 1
  for path in /etc/apt/apt.conf.d /usr/share/keyrings /usr/local/share/ca-certificates /etc/ssl/certs; do
    [[ -e $path ]] || continue
    mkdir -p "$root$path"
    cp -a "$path/." "$root$path/"
  done
  rm -f "$root"/etc/apt/sources.list.d/*
  echo "deb $archive $suite main" >"$root/etc/apt/sources.list"
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
}

show_system() {  # ROOT: the mounts that programs expect, and this machine's CUDA toolkit, read-only
  local root=$1 path
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs tmpfs "$root/run"
  for path in /usr/local/cuda*; do
    [[ -e $path ]] || continue
    if [[ -L $path ]]; then
      cp -a "$path" "$root$path"
    else
      mkdir -p "$root$path"
      mount --bind "$path" "$root$path"
      mount -o remount,bind,ro "$root$path"
    fi
  done
}

# remove_root ROOT: what is still mounted there is another file system, and stays.
remove_root() {
  local root=$1 path
  for path in "$root"/{proc,dev,run} "$root"/usr/local/cuda*; do
    if mountpoint -q "$path"; then umount --recursive --lazy "$path"; fi
  done
  rm -rf --one-file-system "$root"
}

clone_project() {  # ROOT: HEAD of this repository, in /home/fuse
  git clone --quiet --no-hardlinks "$project" "$1/home/fuse"
  git -C "$1/home/fuse" log --oneline -1
}

# A clean environment; only what apt needs to reach its servers is handed on.
environment=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb)
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  if [[ -n ${!name:-} ]]; then environment+=("$name=${!name}"); fi
done

# inside ROOT COMMAND: as root, in the clone.
inside() { "${environment[@]}" HOME=/root chroot "$1" bash -c "cd /home/fuse && $2"; }
