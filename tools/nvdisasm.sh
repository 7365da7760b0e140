#!/usr/bin/env bash
# Takes nvdisasm out of the Python package triton: bash tools/nvdisasm.sh DIRECTORY. Needs pip and a network.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

# The counts of bench/results/sass_counts.json were made with its nvdisasm.
version=3.7.1
sha256=6744957e9fd610a29680ec2346057d0c86948ed3812468670719f391e94b44a5
member=triton/backends/nvidia/bin/nvdisasm

die() { printf 'nvdisasm: %s\n' "$*" >&2; exit 1; }
(($# == 1)) || die 'usage: nvdisasm.sh DIRECTORY'
directory=$1

[[ $(uname -sm) == 'Linux x86_64' ]] || die "triton $version has none for $(uname -sm)"
python=
for candidate in python3 python; do
  if "$candidate" -m pip --version >/dev/null 2>&1; then python=$candidate; break; fi
done
[[ $python ]] || die 'Python with pip is missing (Debian: apt-get install python3-pip)'

scratch=$(mktemp -d "${TMPDIR:-/tmp}/fuse-nvdisasm.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
printf 'triton==%s --hash=sha256:%s\n' "$version" "$sha256" >"$scratch/requirements"
# The same wheel whatever Python is here: nothing of it is imported.
timeout 300 "$python" -m pip download --quiet --no-cache-dir --no-deps --only-binary=:all: --require-hashes \
  --python-version 3.11 --implementation cp --abi cp311 --platform manylinux_2_28_x86_64 \
  --dest "$scratch" --requirement "$scratch/requirements" >&2 ||
  die "pip could not download triton $version (200 MB); without a network, copy an nvdisasm to $directory"
"$python" - "$scratch" "$member" <<'PYTHON' || die "triton $version has no $member"
import glob, sys, zipfile
scratch, member = sys.argv[1:]
wheel, = glob.glob(scratch + '/*.whl')
with zipfile.ZipFile(wheel) as archive, open(scratch + '/nvdisasm', 'wb') as out:
    out.write(archive.read(member))
PYTHON
mkdir -p "$directory"
install -m 755 "$scratch/nvdisasm" "$directory/nvdisasm.new"
mv "$directory/nvdisasm.new" "$directory/nvdisasm"
"$directory/nvdisasm" --version | sed -n 's/.*, V\([0-9.]*\)$/nvdisasm \1 of triton '"$version"'/p'
